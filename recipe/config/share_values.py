"""Types of shares in a recipe: percent text, weights, token amounts; each refuses with a way out."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, PlainSerializer, PlainValidator, WithJsonSchema

from recipe.config.partial import entries
from recipe.config.problems import Fault, faults, problem, shown
from recipe.config.values import Amount, full_width_fix, read_tokens
from recipe.maths.shares import PERCENT_PATTERN, parse_percent, parse_weight, percent_text, weight_text

LARGEST_TERM = 10**30
"""Of a weight as a ratio: what is larger could not be written into a recipe and read again."""
LONGEST_PERCENT = 60
"""Characters of a share: what is longer could not be written into a recipe and read again."""
_ELSEWHERE = "; plain numbers go under 'weights', tokens under 'quotas_tokens'"
WEIGHT_PATTERN = r"^\s*([0-9_]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|[0-9]+/[0-9]+)\s*$"


def read_share(given: object) -> Fraction | str:
    """Percent text as a share, or the word ``rest``."""
    if isinstance(given, str) and given.strip() == "rest":
        return "rest"
    try:
        share = parse_percent(given)
    except ValueError:
        expected, fix = "percent text such as 61.6%, or rest", percent_fix(given, _ELSEWHERE)
        raise problem("", given=given, expected=expected, fix=fix) from None
    if len(str(given).strip()) > LONGEST_PERCENT:
        expected = f"percent text of at most {LONGEST_PERCENT} characters"
        raise problem("", given=given, expected=expected, fix="write fewer decimals")
    return share


def percent_fix(given: object, elsewhere: str = "") -> str:
    """What to write instead of something that is no percent text; ``elsewhere``: where plain numbers go."""
    if fix := full_width_fix(given, parse_percent):
        return fix
    try:
        number = parse_weight(given)
    except ValueError:
        return "write the share with a percent sign, like 61.6%"
    if max(number.numerator, number.denominator) > LARGEST_TERM:
        return "write the share with a percent sign, like 61.6%"
    if number < 0:
        return "a share cannot be negative: write 0% or more"
    fraction = f" (or {weight_text(number * 100)}% if it is a fraction)" if 0 < number <= 1 else ""
    return f"write {weight_text(number)}%{fraction}{elsewhere}"


def fill_rest(parts: Mapping[str, Fraction | str]) -> dict[str, Fraction]:
    """Shares that sum to exactly one: ``rest`` becomes what the others leave."""
    found = list[Fault]()
    resting = [name for name, part in parts.items() if part == "rest"]
    named = sum((part for part in parts.values() if isinstance(part, Fraction)), Fraction(0))
    written = {name: part if part == "rest" else percent_text(Fraction(part)) for name, part in parts.items()}
    if len(resting) > 1:
        fix = f"give all but one of {resting} a share"
        found.append(Fault((), shown(written), "rest at most once", fix))
    if named > 1 or (not resting and named != 1):
        over = named - 1
        change = (
            f"lower a share by {percent_text(over)}"
            if over > 0
            else f"raise a share by {percent_text(-over)}"
        )
        given, fix = f"sum {percent_text(named)} of {written}", f"{change}, or write rest for one of them"
        found.append(Fault((), given, "shares that sum to exactly 100%", fix))
    if found:
        raise faults(found)
    return {name: 1 - named if part == "rest" else Fraction(part) for name, part in parts.items()}


def read_weight(given: object) -> Fraction:
    """A weight: an exact number of at least zero."""
    try:
        weight = parse_weight(given)
    except ValueError:
        fix = "weights are plain numbers: write 3 or 0.5"
        if isinstance(given, str) and "%" in given:
            fix = "percent text goes under 'quotas': rename 'weights' to 'quotas'"
        fix = full_width_fix(given, parse_weight) or fix
        raise problem("", given=given, expected="a number, 0 or more", fix=fix) from None
    if weight < 0:
        raise problem(
            "", given=given, expected="a number, 0 or more", fix="write 0 for a pool that takes no part"
        )
    if max(weight.numerator, weight.denominator) > LARGEST_TERM:
        expected = "a number that is a ratio of two whole numbers of at most 10**30"
        fix = "only the proportion of weights counts: write them near 1 and with fewer digits, or 0 for none"
        raise problem("", given=given, expected=expected, fix=fix)
    return weight


def some_positive(weights: dict[str, Any]) -> dict[str, Any]:
    """The weights, when at least one is above zero."""
    if not any(weights.values()):
        raise problem(
            "",
            given=shown({name: weight_text(Fraction(weight)) for name, weight in weights.items()}),
            expected="at least one number above 0",
            fix=f"give one of {', '.join(weights) or 'the pools'} a number above 0",
        )
    return weights


def write_weight(weight: Fraction) -> int | str:
    """A weight in plain form: an int, or exact text."""
    return weight.numerator if weight.denominator == 1 else weight_text(weight)


ShareText = Annotated[
    Any,
    PlainValidator(read_share),
    PlainSerializer(percent_text, return_type=str),
    WithJsonSchema(
        {"anyOf": [{"const": "rest"}, {"type": "string", "pattern": PERCENT_PATTERN}], "examples": ["61.6%"]}
    ),
]
WeightNumber = Annotated[
    Fraction,
    PlainValidator(read_weight),
    PlainSerializer(write_weight),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": WEIGHT_PATTERN}]}
    ),
]
Quotas = Annotated[dict[str, ShareText], AfterValidator(fill_rest), entries(read_share)]
Weights = Annotated[dict[str, WeightNumber], AfterValidator(some_positive), entries(read_weight)]
TokenQuotas = Annotated[dict[str, Amount], AfterValidator(some_positive), entries(read_tokens)]
