"""Types of single values in a recipe: amounts, shares, names; each refuses with a way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any
from unicodedata import east_asian_width, normalize

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recipe.config.naming import PLAIN_NAME, is_plain_name
from recipe.config.partial import entries
from recipe.config.problems import Fault, faults, problem, shown
from recipe.maths.amounts import AMOUNT_PATTERN, LARGEST_AMOUNT, parse_amount
from recipe.maths.shares import (
    PERCENT_PATTERN,
    parse_percent,
    parse_weight,
    percent_text,
    weight_text,
)

LARGEST_SEED = 2**63 - 1
LONGEST_CONTEXT = 2**24
"""Positions: longer than any model's position table; rows are allocated whole."""
LARGEST_TERM = 10**30
"""Of a weight as a ratio: what is larger could not be written into a recipe and read again."""
MOST_RAMP_STEPS = 10_000
"""Of a quota ramp: each has shares of its own, held and written out."""
LONGEST_PERCENT = 60
"""Characters of a share: what is longer could not be written into a recipe and read again."""
WEIGHT_PATTERN = r"^\s*([0-9_]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|[0-9]+/[0-9]+)\s*$"


def _amount(
    least: int, most: int = LARGEST_AMOUNT, like: str = "10B, 4Mi, 1_000_000 or 1e9"
) -> Callable[[object], int]:
    span = f"{least}..{most}" if most < LARGEST_AMOUNT else f"{least} or more"
    if most == LARGEST_AMOUNT and least == 0:
        span = "0..2**63-1"

    def read(given: object) -> int:
        try:
            amount = parse_amount(given)
        except ValueError as error:
            raise problem(
                "",
                given=given,
                expected=f"a whole number, {span}",
                fix=_full_width_fix(given, parse_amount) or _amount_fix(str(error), span, like),
            ) from None
        if not least <= amount <= most:
            raise problem("", given=given, expected=f"a whole number, {span}", fix=f"use {span}")
        return amount

    return read


def _amount_fix(error: str, span: str, like: str) -> str:
    if error.startswith("not in"):
        return f"use {span}"
    return error if "? write " in error else f"{error}; write it like {like}"


def _full_width_fix(given: object, read: Callable[[object], object]) -> str | None:
    """What to write where a value is wrong only in its full-width signs, as East Asian keyboards give."""
    if not isinstance(given, str) or given.isascii():
        return None
    narrow = normalize("NFKC", given).strip()
    wide = list(dict.fromkeys(sign for sign in given if east_asian_width(sign) == "F" and not sign.isspace()))
    try:
        read(narrow)
    except ValueError:
        return None
    return f"{' '.join(wide)} is full-width: write {narrow}" if wide else None


def _amount_schema(least: int) -> dict[str, Any]:
    number = {"type": "integer", "minimum": least}
    return {
        "anyOf": [number, {"type": "string", "pattern": AMOUNT_PATTERN, "examples": ["10B", "4Mi", "1e9"]}]
    }


Count = Annotated[int, BeforeValidator(_amount(1)), WithJsonSchema(_amount_schema(1))]
"""A whole number of at least one, as a number or an amount."""

Amount = Annotated[int, BeforeValidator(_amount(0)), WithJsonSchema(_amount_schema(0))]
"""A whole number of at least zero, as a number or an amount."""


def _read_context(given: object) -> int:
    context = _amount(1)(given)
    if context > LONGEST_CONTEXT:
        fix = "lower it: no model's position table is as long, and rows are allocated whole"
        raise problem("", given=given, expected=f"a whole number, 1..{LONGEST_CONTEXT}", fix=fix)
    return context


Context = Annotated[
    int, BeforeValidator(_read_context), WithJsonSchema({**_amount_schema(1), "maximum": LONGEST_CONTEXT})
]
"""Positions of a sequence."""


def read_share(given: object) -> Fraction | str:
    """Percent text as a share, or the word ``rest``."""
    if isinstance(given, str) and given.strip() == "rest":
        return "rest"
    try:
        share = parse_percent(given)
    except ValueError:
        raise problem(
            "", given=given, expected="percent text such as 61.6%, or rest", fix=_percent_fix(given)
        ) from None
    if len(str(given).strip()) > LONGEST_PERCENT:
        expected = f"percent text of at most {LONGEST_PERCENT} characters"
        raise problem("", given=given, expected=expected, fix="write fewer decimals")
    return share


def _percent_fix(given: object) -> str:
    if fix := _full_width_fix(given, parse_percent):
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
    elsewhere = "plain numbers go under 'weights', tokens under 'quotas_tokens'"
    return f"write {weight_text(number)}%{fraction}; {elsewhere}"


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
        fix = _full_width_fix(given, parse_weight) or fix
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
TokenQuotas = Annotated[dict[str, Amount], AfterValidator(some_positive), entries(_amount(0))]


def _not_empty(text: str) -> str:
    if not text.strip():
        raise problem("", given=text, expected="text that is not empty", fix="write it, or leave the key out")
    return text


Text = Annotated[str, AfterValidator(_not_empty)]
"""Text that says something."""


def _read_prior(given: object) -> int | dict[str, int]:
    read = _amount(0)
    if not isinstance(given, Mapping):
        return read(given)
    found, amounts = list[Fault](), dict[str, int]()
    for area, amount in given.items():
        try:
            amounts[area] = read(amount)
        except PydanticCustomError as error:
            found += [fault.below((area,)) for fault in (error.context or {})["faults"]]
    if found:
        raise faults(found)
    return amounts


Prior = Annotated[
    int | dict[str, int],
    BeforeValidator(_read_prior),
    WithJsonSchema(
        {
            "anyOf": [
                *_amount_schema(0)["anyOf"],
                {"type": "object", "additionalProperties": _amount_schema(0)},
            ]
        }
    ),
]
"""Tokens, in total or by area."""


def _plain_name(name: str) -> str:
    if not is_plain_name(name):
        fix = "choose another name, such as trial: runs are folders that are called after it"
        raise problem("", given=name, expected=PLAIN_NAME, fix=fix)
    return name


Name = Annotated[str, AfterValidator(_plain_name)]
"""A name that a folder may have."""


def _read_ramp(given: object) -> dict[int, int]:
    if not isinstance(given, Mapping) or not given:
        raise problem(
            "",
            given=given,
            expected="a mapping of positions of the run to sequences",
            fix="write {0: 256, 100B: 512}",
        )
    found, known, ramp = list[Fault](), list[int](), dict[int, int]()
    for key, value in given.items():
        position, sequences = (_ramp_number(part, str(key), value, found) for part in (key, value))
        if sequences is not None and sequences < 1:
            found.append(Fault((str(key),), value, "1 sequence or more", "use at least 1"))
        if position is None:
            continue
        if known and position <= max(known):
            fix = "write the positions in rising order, each once"
            found.append(Fault((str(key),), value, f"a position after {max(known)}", fix))
        known.append(position)
        ramp[position] = sequences or 0
    if len(known) == len(given) and 0 not in known:
        fix = "say how many sequences the run starts with: {0: 256, …}"
        found.append(Fault((), given, "0 as the first position", fix))
    if found:
        raise faults(found)
    return ramp


def _ramp_number(part: object, key: str, value: object, found: list[Fault]) -> int | None:
    try:
        return parse_amount(part)
    except ValueError as error:
        fix = f"{error}; write 100B: 512"
        found.append(Fault((key,), value, "a position of the run, then sequences", fix))
        return None


Ramp = Annotated[
    dict[int, int],
    BeforeValidator(_read_ramp),
    WithJsonSchema(
        {
            "type": "object",
            "propertyNames": {"pattern": AMOUNT_PATTERN},
            "additionalProperties": _amount_schema(1),
            "minProperties": 1,
        }
    ),
]
"""Sequences of a batch from a position of the run on; the first position is 0."""

RampSteps = Annotated[
    int,
    BeforeValidator(_amount(1, MOST_RAMP_STEPS, like="64")),
    WithJsonSchema({**_amount_schema(1), "maximum": MOST_RAMP_STEPS}),
]
"""Steps of a quota ramp."""

Seed = Annotated[
    int,
    BeforeValidator(_amount(0, like="1234")),
    WithJsonSchema({**_amount_schema(0), "maximum": LARGEST_SEED}),
]
"""A base seed, ``0..2**63-1``."""
