"""What the documents of a pool have in common while it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from recipe.errors import Problem, RecipeError
from recipe.pools.card import canonical_json

SETTINGS_NAME = "settings.json"
"""What decides the bytes of a pool; in its folder while it is written, and only then."""

PART_TOKENS = 1 << 30
"""Stored tokens of a part at most, unless a single document is longer."""

MAX_VOCAB = 1 << 31
_NARROW_VOCAB = 1 << 16


ALIKE = ("vocab_size", "bos", "eos", "tokenizer")
"""What pools must have in common for their documents to stand in one pool."""


def differences(given: object, wanted: object) -> list[tuple[str, object, object]]:
    """What of ``ALIKE`` differs between two pools' cards or settings: its name, given, and wanted."""
    both = [(name, getattr(given, name), getattr(wanted, name)) for name in ALIKE]
    return [(name, one, other) for name, one, other in both if one != other]


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """Width of stored tokens: 16 bits up to 65,536 ids, else 32.

    >>> token_dtype(65_536), token_dtype(65_537)
    (dtype('uint16'), dtype('int32'))
    """
    return np.dtype("<u2" if vocab_size <= _NARROW_VOCAB else "<i4")


@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """What the documents of a pool have in common; an interrupted write goes on only under the same."""

    vocab_size: int
    eos: int | None = None
    bos: int | None = None
    tokenizer: str | None = None
    tokenizer_name: str | None = None
    part_tokens: int = PART_TOKENS
    shuffled: bool = False
    seed: int | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    repeats: int | None = None
    """Tokens of the stretches that are looked for twice in a unit; None: nobody looks."""

    def check(self, path: Path) -> None:
        """Refuse settings that no pool can have."""
        problems = []
        if not 1 <= self.vocab_size <= MAX_VOCAB:
            fix = "give the number of ids of the tokenizer"
            problems.append(Problem("vocab_size", self.vocab_size, f"1..{MAX_VOCAB}", fix))
        for name, mark in (("eos", self.eos), ("bos", self.bos)):
            if mark is not None and not 0 <= mark < self.vocab_size:
                fix = (
                    f"correct {name}, or raise vocab_size to {mark + 1}" if mark >= 0 else f"leave {name} out"
                )
                problems.append(Problem(name, mark, f"an id in 0..{self.vocab_size - 1}", fix))
        if self.part_tokens < 1:
            problems.append(Problem("part_tokens", self.part_tokens, "1 or more", "leave it out"))
        if problems:
            raise RecipeError(str(path), problems)

    @property
    def token_dtype(self) -> np.dtype[Any]:
        """Type of stored tokens."""
        return token_dtype(self.vocab_size)

    @property
    def has_bos(self) -> bool:
        """Whether a begin mark stands before every document."""
        return self.bos is not None

    @property
    def has_eos(self) -> bool:
        """Whether an end mark stands after every document."""
        return self.eos is not None

    def to_json(self) -> bytes:
        """Canonical bytes, to compare with an earlier write's."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.repeats is None:  # younger than many a pool
            del plain["repeats"]
        return canonical_json(plain)
