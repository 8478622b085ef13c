"""Splits of documents, such as training and validation: by keyed hashes of groups and contents, exact shares.

Which split a document is in depends on a salt and its group; where it has none, on its body tokens. Files,
places, ids, the number of documents and the seed of the order do not enter: what is there already stays where
it is when more is added, and equal texts are never on two sides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from itertools import accumulate
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.config.naming import PLAIN_NAME, is_plain_name
from recipe.errors import Problem, RecipeError
from recipe.maths.shares import parse_percent, percent_text
from recipe.pools.card import canonical_json

SPLIT = "split"
"""Key of a card's ``source``: the split that the pool is."""
SPLIT_VERSION = 1
"""A change of the draws bumps it."""
MOST_SPLITS = 64

_RATIO = re.compile(r"\s*(\d{1,40})\s*/\s*(\d{1,40})\s*", re.ASCII)
_WHOLE = re.compile(r"\s*\d{1,18}\s*", re.ASCII)
_DECIMAL = re.compile(r"0?(\.\d{1,18})", re.ASCII)
_EXAMPLE = "train=97%,validation=2%,test=1%"


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Shares of the documents by name, which sum to exactly one, and the salt of the draws."""

    shares: Mapping[str, Fraction]
    salt: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no split."""
        if len(self.shares) < 2 or sum(self.shares.values()) != 1 or min(self.shares.values()) <= 0:
            raise ValueError(f"shares of two or more splits, above 0, sum to 1: {dict(self.shares)}")
        if not 0 <= self.salt < 2**63:
            raise ValueError(f"salt lies in 0..2**63-1, not {self.salt}")

    @property
    def names(self) -> tuple[str, ...]:
        """In the order in which they were named."""
        return tuple(self.shares)

    def of(self, draws: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """uint8[n]: the splits that draws fall in, exactly: draw / 2**64 below the shares so far.

        >>> half = Split(shares={"a": Fraction(1, 2), "b": Fraction(1, 2)})
        >>> half.of(np.array([0, 2**63 - 1, 2**63], np.uint64)).tolist()
        [0, 0, 1]
        """
        ends = [ceil(end * 2**64) for end in accumulate(self.shares.values())][:-1]
        return np.searchsorted(np.array(ends, np.uint64), draws, side="right").astype(np.uint8)

    def ranks(self) -> list[int]:
        """The place of each split among those that may keep a text: smallest first, then last named."""
        order = sorted(enumerate(self.shares.values()), key=lambda item: (item[1], -item[0]))
        places = {index: place for place, (index, _) in enumerate(order)}
        return [places[index] for index in range(len(places))]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a card."""
        shares = {name: str(share) for name, share in self.shares.items()}
        return {"version": SPLIT_VERSION, "salt": self.salt, "shares": shares}


def split_draw(salt: int, group: int | str | None, digest: bytes) -> int:
    """The draw of a document, in ``0..2**64 - 1``.

    Args:
        salt: of the split.
        group: of the document; its documents are drawn together.
        digest: hash of the body tokens; looked at where there is no group.
    """
    unit = ["content", digest.hex()] if group is None else ["group", group]
    name = canonical_json(["recipe.split", SPLIT_VERSION, salt, *unit])
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big")


def parse_split(text: str, salt: int = 0) -> Split:
    """A split as it is written: ``train=97%,validation=2%,test=1%``, or ``train=2/3,test=1/3``.

    Nothing is normalised: shares sum to exactly one, and weights are refused with the percentages they mean.

    Raises:
        RecipeError: every fault of the text.

    >>> [str(share) for share in parse_split("train=99.5%, test=1/200").shares.values()]
    ['199/200', '1/200']
    """
    items = [item.partition("=")[::2] if "=" in item else ("", item) for item in text.split(",")]
    pairs = [(name.strip(), given.strip()) for name, given in items]
    if all(_WHOLE.fullmatch(given) for _, given in pairs):
        raise _weights(text, pairs)
    if not any("=" in item for item in text.split(",")):
        raise _without_names(text)
    shares, problems = dict[str, Fraction](), list[Problem]()
    for name, given in pairs:
        if not is_plain_name(name) or name in shares:
            expected = "another name" if name in shares else PLAIN_NAME
            problems.append(Problem(name or given, name or "no name", expected, f"write it like {_EXAMPLE}"))
        if name not in shares and (other := next((n for n in shares if n.casefold() == name.casefold()), "")):
            expected = f"a name that differs from {other} in more than case"
            fix = "rename one of them: where disks know no case, both are one folder"
            problems.append(Problem(name, f"{name}, beside {other}", expected, fix))
        shares[name] = _share(name, given, problems)
    if not problems and sum(shares.values()) != 1:
        fix = "correct a share: none is rounded or normalised"
        problems.append(Problem("the sum", _said(sum(shares.values(), Fraction())), "exactly 100%", fix))
    if not problems and not 2 <= len(shares) <= MOST_SPLITS:
        problems.append(Problem("names", len(shares), f"2..{MOST_SPLITS}", f"write it like {_EXAMPLE}"))
    if problems:
        raise RecipeError(f"split {text!r}", problems)
    return Split(shares=shares, salt=salt)


def _share(name: str, given: str, problems: list[Problem]) -> Fraction:
    share = Fraction(0)
    if (ratio := _RATIO.fullmatch(given)) and int(ratio[2]):
        share = Fraction(int(ratio[1]), int(ratio[2]))
    elif given.endswith("%"):
        try:
            share = parse_percent(given)
        except ValueError:
            share = Fraction(0)
    if not 0 < share < 1:
        meant = _of_decimal(given)
        fix = f"write {name}={meant}" if meant else f"write it like {_EXAMPLE}, or train=2/3,test=1/3"
        problems.append(
            Problem(name or given, given or "nothing", "a share between 0 and all: 2%, or 1/50", fix)
        )
    return share


def _of_decimal(given: str) -> str | None:
    """The percentage that a decimal such as ``0.9`` means; None: it is no such share."""
    match = _DECIMAL.fullmatch(given)
    return _said(Fraction(f"0{match[1]}")) if match and Fraction(f"0{match[1]}") else None


def _without_names(text: str) -> RecipeError:
    """No item has a ``=``: said once, with what ``train:90%`` means where it is that."""
    items = [item.strip().partition(":") for item in text.split(",")]
    pairs = [(name.strip(), share.strip()) for name, _, share in items]
    meant = ",".join(f"{name}={_of_decimal(share) or share}" for name, share in pairs)
    is_colon = all(colon for _, colon, _ in items)
    if is_colon:
        try:
            parse_split(meant)
        except RecipeError:
            is_colon = False
    return RecipeError.single(
        "split", repr(text), given="no name=share", expected="names and shares, joined by =",
        fix=f"write {meant}" if is_colon else f"write it like {_EXAMPLE}",
    )  # fmt: skip


def _weights(text: str, pairs: list[tuple[str, str]]) -> RecipeError:
    """Whole numbers could be percents or weights: say what the weights would be."""
    given, usual = [int(weight) for _, weight in pairs], ("train", "validation", "test")
    total = sum(given)
    names = [
        name or (usual[at] if len(pairs) <= len(usual) else f"part{at + 1}")
        for at, (name, _) in enumerate(pairs)
    ]
    meant = [
        f"{name}={_said(Fraction(weight, total or 1))}"
        for name, weight in zip(names, given, strict=True)
        if weight
    ]
    return RecipeError.single(
        "split", repr(text), given="weights", expected="shares that say what they are: percent, or fractions",
        fix=f"write {','.join(meant)}" if len(meant) > 1 else f"write it like {_EXAMPLE}",
    )  # fmt: skip


def _said(share: Fraction) -> str:
    try:
        return percent_text(share)
    except ValueError:
        return str(share)
