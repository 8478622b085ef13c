"""What is made of a pool's pieces before they are packed: ``transform: {fim: …}``."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from recipe.config.partial import Model
from recipe.config.problems import Place, problem
from recipe.config.share_values import LONGEST_PERCENT, percent_fix
from recipe.config.values import read_tokens
from recipe.maths.shares import PERCENT_PATTERN, parse_percent, percent_text

MARKERS = 3
"""Positions that a transformed piece takes besides its body and marks."""


def _read_portion(given: object) -> Fraction:
    if isinstance(given, Fraction):
        return given
    expected = "percent text, 0%..100%"
    try:
        portion = parse_percent(given)
    except ValueError:
        raise problem("", given=given, expected=expected, fix=percent_fix(given)) from None
    if portion > 1 or len(str(given).strip()) > LONGEST_PERCENT:
        raise problem("", given=given, expected=expected, fix="write at most 100%, with fewer digits")
    return portion


def _read_marker(given: object) -> int | str:
    if isinstance(given, str) and not given.strip().isdecimal():
        if given.strip():
            return given
        fix = "write an id, or the text of a token of the recipe's tokenizer"
        raise problem("", given=given, expected="an id, or the text of a token", fix=fix)
    return read_tokens(given)


Portion = Annotated[
    Fraction,
    PlainValidator(_read_portion),
    PlainSerializer(percent_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": PERCENT_PATTERN, "examples": ["50%"]}),
]
"""An exact part of all, as percent text: 0%..100%."""

Marker = Annotated[
    int | str,
    BeforeValidator(_read_marker),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}]}),
]
"""A token: its id, or its text, which the recipe's tokenizer turns into the id when the pools are opened."""


class FimConfig(Model):
    """Fill in the middle: some pieces are cut in three, and their middle is predicted last.

    A piece is transformed as a whole, by keyed hashes; it becomes ``prefix-marker prefix suffix-marker suffix
    middle-marker middle`` (PSM), or ``prefix-marker suffix-marker suffix middle-marker prefix middle`` (SPM).

    Source:
        M. Bavarian et al., *Efficient training of language models to fill in the middle*, 2022
        (arXiv 2207.14255); SPM is their variant 2, which has the same markers in the same order as PSM.
    """

    rate: Portion
    """Of the pieces without overlap, the part that is transformed."""
    spm: Portion = Fraction(0)
    """Of the transformed ones, the part whose suffix comes before the prefix."""
    prefix: Marker
    """Marker before the prefix: an id, or the text of a token, such as ``<|fim_prefix|>``."""
    middle: Marker
    """Marker before the middle."""
    suffix: Marker
    """Marker before the suffix."""
    level: Literal["piece"] = "piece"
    """What is cut in three: a ``piece``, after slicing and before packing."""

    @property
    def markers(self) -> dict[str, int | str]:
        """The three markers by name."""
        return {"prefix": self.prefix, "middle": self.middle, "suffix": self.suffix}

    @property
    def ids(self) -> tuple[int, int, int]:
        """Ids of the prefix, middle and suffix markers.

        Raises:
            ValueError: a marker is the text of a token: settle the recipe first.
        """
        found = [marker for marker in self.markers.values() if isinstance(marker, int)]
        if len(found) < MARKERS:
            raise ValueError(f"markers {self.markers} are not all ids: settle the recipe first")
        return found[0], found[1], found[2]


class TransformConfig(Model):
    """What is made of a pool's pieces before they are packed."""

    fim: FimConfig
    """Fill in the middle."""


class Stated(NamedTuple):
    """A transform where a recipe states it."""

    place: Place
    """Its ``fim``."""
    pool: str
    fim: FimConfig


def stated_transforms(pools: Mapping[str, Any], stages: Mapping[str, Any]) -> list[Stated]:
    """The transforms of a recipe's pools, then those that its stages have for pools."""
    found = [
        Stated(("pools", name, "transform", "fim"), name, pool.transform.fim)
        for name, pool in pools.items()
        if pool.transform is not None
    ]
    for name, stage in stages.items():
        for pool, own in (stage.transform or {}).items():
            found.append(Stated(("stages", name, "transform", pool, "fim"), pool, own.fim))
    return found
