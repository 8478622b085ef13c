"""What a prepared pool depends on, how two preparations differ, and what is told while one runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from recipe.errors import RecipeError
from recipe.pools.card import content_hash
from recipe.pools.pool import Pool
from recipe.pools.splits import SPLIT, Split
from recipe.text.records import CLEANING_VERSION
from recipe.text.sections import SECTIONS_VERSION
from recipe.text.shuffle import SHUFFLE_VERSION
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import Tokenizer

EngineName = Literal["local", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


@dataclass(frozen=True, kw_only=True, slots=True)
class PrepareOptions:
    """How text becomes a pool."""

    seed: int = 0
    """Of the global document shuffle; 0 ≤ seed < 2**63."""
    workers: int | None = None
    """Processes that tokenise; None: one for each core this process may use, or every one of a cluster that
    runs already. Changes no byte."""
    engine: EngineName = "local"
    """Where they are: ``local``, on this machine; ``ray``, on a Ray cluster. Changes no byte."""
    ray_address: str | None = None
    """Of a cluster that runs (``auto``, ``HOST:PORT``, ``ray://HOST:PORT``); None: what ``RAY_ADDRESS``
    says, or else one is started here, and ended."""
    part_tokens: int | None = None
    """Stored tokens of a part at most; None: the default of pools."""
    overwrite: bool = False
    """Replace a pool that was made from something else."""
    extends: Path | None = None
    """A pool whose documents come first: the new ones are appended to it, in a folder of their own."""
    repeats: int | None = None
    """Find what repeats inside documents and groups, in stretches of so many tokens; None: nobody looks, but
    in a pool that extends one in which somebody did."""
    duplicates: Literal["keep", "drop"] = "keep"
    """``drop``: of documents with equal tokens one stays, with the tags of all."""
    split: Split | None = None
    """Several pools in one reading, such as training and validation: for ``prepare_splits``."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        if self.engine not in ENGINES:
            raise ValueError(f"engine is one of {', '.join(ENGINES)}, not {self.engine!r}")
        if self.ray_address is not None and self.engine != "ray":
            raise RecipeError.single(
                "prepare", "ray_address", given=f"{self.ray_address} with --engine {self.engine}",
                expected="an address for --engine ray", fix="add --engine ray, or leave the address out",
            )  # fmt: skip
        if self.duplicates not in ("keep", "drop"):
            raise ValueError(f"duplicates is keep or drop, not {self.duplicates!r}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed lies in 0..2**63-1, not {self.seed}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers is at least 1, not {self.workers}")
        if self.repeats is not None and self.repeats < 1:
            raise ValueError(f"repeats is at least 1, not {self.repeats}")

    @property
    def num_workers(self) -> int:
        """Processes to start."""
        return self.workers or len(os.sched_getaffinity(0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What a preparation does at the moment."""

    phase: Literal["read", "write", "note", "hidden"]
    done: int = 0
    """Stored bytes read, documents written, or hidden files that are not read."""
    total: int | None = None
    text: str = ""
    """For ``note`` and ``hidden``: a sentence for the person watching."""


Tell = Callable[[Progress], None]


def hidden(places: Sequence[str]) -> Progress:
    """What is told of files that are not read because a name on the way to them begins with a dot.

    >>> hidden(["a/.b.txt"]).text
    'note: hidden and not read: 1 file (a/.b.txt); a file that is named as a source is read'
    """
    shown = ", ".join(places[:3]) + (", …" if len(places) > 3 else "")
    how_many = f"{len(places):,} file{'s' if len(places) > 1 else ''}"
    text = f"note: hidden and not read: {how_many} ({shown}); a file that is named as a source is read"
    return Progress(phase="hidden", done=len(places), text=text)


def tell_nobody(progress: Progress) -> None:
    """For callers that do not watch."""


def settings_of(
    tokenizer: Tokenizer, options: PrepareOptions, extends: Pool | None, split: str | None = None
) -> dict[str, Any]:
    """Everything but the inputs that decides the pool's bytes, as plain values.

    Workers, the place of the pool, of one that it extends and of the tokenizer's file are not among them.
    ``split``: the name of the pool among the options' splits.
    """
    read = {item.name: getattr(options.read, item.name) for item in fields(options.read)}
    for name in (
        "units_key",
        "sections",
        "marker",
        "text_member",
    ):  # younger than many a pool: what is not asked for is not written
        if read[name] is None:
            del read[name]
    return {
        "tokenizer": tokenizer.fingerprint(),
        "cleaning_version": CLEANING_VERSION,
        "shuffle_version": SHUFFLE_VERSION,
        **({} if options.read.sections is None else {"sections_version": SECTIONS_VERSION}),
        "seed": options.seed,
        "part_tokens": options.part_tokens,
        **({} if options.repeats is None else {"repeats": options.repeats}),
        **({} if options.duplicates == "keep" else {"duplicates": options.duplicates}),
        **({} if options.split is None else {SPLIT: {**options.split.to_plain(), "name": split}}),
        **({} if extends is None else {"extends": extends.fingerprint}),
        "read": {key: list(value) if isinstance(value, tuple) else value for key, value in read.items()},
    }


def preparation_key(settings: Mapping[str, Any], contents: object) -> str:
    """The key under which a pool is known: equal keys, equal pools."""
    return content_hash([settings, contents])


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = ""
) -> list[tuple[str, Any, Any]]:
    """(dotted key, old value, new value) of what is not the same."""
    found: list[tuple[str, Any, Any]] = []
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found.append((f"{prefix}{key}", before, after))
    return found
