"""Pool groups: several pools whose quota is stated as one, and the shares inside."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recipe.config.partial import Faulty, Leniently, Model, UnsoundError
from recipe.config.problems import Fault, faults, nearest, problem
from recipe.config.share_values import (
    LARGEST_TERM,
    fill_rest,
    read_share,
    read_weight,
    some_positive,
    write_weight,
)
from recipe.maths.shares import PERCENT_PATTERN, from_weights, parse_weight, percent_text, weight_text

WITHIN_WORDS = ("natural", "even", "unimax")
_EXAMPLES = "natural, even, unimax, {temperature: 0.3} or {shares: {a: 60%, b: rest}}"


@dataclass(frozen=True, slots=True)
class Within:
    """How a group's quota is divided among its pools."""

    kind: Literal["natural", "even", "unimax", "temperature", "shares"]
    exponent: Fraction | None = None
    """Of ``temperature``: shares in proportion to stock ** exponent."""
    percents: tuple[tuple[str, Fraction], ...] = ()
    """Explicit shares written as percent text; they sum to one."""
    weights: tuple[tuple[str, Fraction], ...] = ()
    """Explicit shares written as numbers."""

    @property
    def shares(self) -> dict[str, Fraction] | None:
        """Explicit shares, summing to one; None where they depend on the stocks."""
        if self.percents:
            return dict(self.percents)
        return from_weights(dict(self.weights)) if self.weights else None

    @property
    def named(self) -> list[str] | None:
        """Pools that have explicit shares; None where shares depend on the stocks."""
        return [name for name, _ in (*self.percents, *self.weights)] or None

    def plain(self) -> str | dict[str, Any]:
        """As a recipe states it."""
        if self.kind == "temperature":
            return {"temperature": weight_text(self.exponent or Fraction(0))}
        if self.percents:
            return {"shares": {name: percent_text(share) for name, share in self.percents}}
        if self.weights:
            return {"shares": {name: write_weight(weight) for name, weight in self.weights}}
        return self.kind


def _read_within(given: Any) -> Within:
    if isinstance(given, Within):
        return given
    if isinstance(given, str) and given in WITHIN_WORDS:
        return Within(cast(Literal["natural", "even", "unimax"], given))
    if isinstance(given, Mapping) and set(given) == {"temperature"}:
        return Within("temperature", exponent=_read_exponent(given["temperature"]))
    if shares := _explicit(given):
        return _read_shares(shares, ("shares",) if shares is not given else ())
    fix = nearest(given, (*WITHIN_WORDS, "temperature", "shares"), "use one of these")
    raise problem("", given=given, expected=_EXAMPLES, fix=fix)


def _explicit(given: Any) -> Mapping[str, Any] | None:
    """The mapping that holds explicit shares, if there is one."""
    shares = given["shares"] if isinstance(given, Mapping) and set(given) == {"shares"} else given
    return shares if isinstance(shares, Mapping) and shares else None


def _only_names(given: Any) -> Within:
    """Explicit shares of which only the names count, because a share or their sum is faulty."""
    shares = _explicit(given)
    if shares is None or set(shares) == {"temperature"}:
        raise UnsoundError
    return Within("shares", weights=tuple((name, Fraction(0)) for name in shares))


def _read_exponent(given: Any) -> Fraction:
    expected, fix = "an exponent in 0..1", "write 0.3; 1 is natural, 0 is even"
    try:
        exponent = parse_weight(given)
    except ValueError:
        raise problem("temperature", given=given, expected=expected, fix=fix) from None
    if not 0 <= exponent <= 1:
        if exponent > 1:
            power = f"{float(1 / exponent):.3g}"
            fix = f"shares go with stock ** exponent: for T = {weight_text(exponent)} write {power}"
        raise problem("temperature", given=given, expected=expected, fix=fix)
    if exponent.denominator > LARGEST_TERM:
        raise problem("temperature", given=given, expected=expected, fix="write fewer digits, such as 0.3")
    return exponent


def _read_shares(shares: Mapping[str, Any], place: tuple[str, ...]) -> Within:
    in_percent = any(
        isinstance(value, str) and (value.strip().endswith("%") or value == "rest")
        for value in shares.values()
    )
    read = read_share if in_percent else read_weight
    found: list[Fault] = []
    values: dict[str, Any] = {}
    for name, value in shares.items():
        try:
            values[name] = read(value)
        except PydanticCustomError as error:
            found += [fault.below((*place, name)) for fault in (error.context or {})["faults"]]
    if not found:
        try:
            if in_percent:
                return Within("shares", percents=tuple(fill_rest(values).items()))
            return Within("shares", weights=tuple(some_positive(values).items()))
        except PydanticCustomError as error:
            found += [fault.below(place) for fault in (error.context or {})["faults"]]
    raise faults(found)


_SHARES_SCHEMA = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            {"const": "rest"},
            {"type": "string", "pattern": PERCENT_PATTERN},
            {"type": "number", "minimum": 0},
        ]
    },
    "minProperties": 1,
}
WithinField = Annotated[
    Within,
    PlainValidator(_read_within),
    Leniently(_only_names),
    PlainSerializer(Within.plain),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(WITHIN_WORDS)},
                {
                    "type": "object",
                    "properties": {"temperature": {"type": ["number", "string"]}},
                    "required": ["temperature"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"shares": _SHARES_SCHEMA},
                    "required": ["shares"],
                    "additionalProperties": False,
                },
                _SHARES_SCHEMA,
            ]
        }
    ),
]


def _to_tuple(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def _members(given: Any) -> tuple[str | Faulty, ...]:
    """The pools of a list in which some entries are no names."""
    if not isinstance(given, list | tuple):
        raise UnsoundError
    return tuple(name if isinstance(name, str) else Faulty(name) for name in given)


class GroupConfig(Model):
    """Pools whose quota may be stated as one; a list of pools is short for ``{pools: [...]}``."""

    pools: Annotated[tuple[str, ...], BeforeValidator(_to_tuple), Leniently(_members)]
    within: WithinField = Within("natural")
    """Shares inside: ``natural`` (by stock), ``even``, ``unimax``, ``{temperature: 0.3}``, ``{shares: …}``"""

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """A list is the pools."""
        return {"pools": given} if isinstance(given, list | tuple) else given


def known_pools(group: GroupConfig) -> tuple[list[str], bool]:
    """The pools of a group that are sound, and whether these are all."""
    known = [name for name in group.pools if isinstance(name, str)]
    return known, len(known) == len(group.pools)


def members_of(name: str, groups: Mapping[str, GroupConfig]) -> tuple[Collection[str], bool]:
    """The pools that a name stands for, and whether these are all."""
    if name not in groups:
        return (name,), True
    try:
        return known_pools(groups[name])
    except UnsoundError:
        return (), False
