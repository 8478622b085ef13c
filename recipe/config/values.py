"""Types of single values in a recipe: amounts, names, texts; each refuses with a way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any
from unicodedata import east_asian_width, normalize

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recipe.config.naming import PLAIN_NAME, is_plain_name
from recipe.config.problems import Fault, faults, problem
from recipe.maths.amounts import AMOUNT_PATTERN, LARGEST_AMOUNT, parse_amount

_OCTAL = re.compile(r"0[0-9_]*[0-9]")
LARGEST_SEED = 2**63 - 1
LONGEST_CONTEXT = 2**24
"""Positions: longer than any model's position table; rows are allocated whole."""
MOST_RAMP_STEPS = 10_000
"""Of a quota ramp: each has shares of its own, held and written out."""


def _amount(
    least: int, most: int = LARGEST_AMOUNT, like: str = "10B, 4Mi, 1_000_000 or 1e9"
) -> Callable[[object], int]:
    span = f"{least}..{most}" if most < LARGEST_AMOUNT else f"{least} or more"
    if most == LARGEST_AMOUNT and least == 0:
        span = "0..2**63-1"

    def read(given: object) -> int:
        if isinstance(given, str) and _OCTAL.fullmatch(given.strip()):
            plain = given.strip().lstrip("0_") or "0"
            fix = f"write {plain}, or the number that is meant: a leading 0 is octal elsewhere"
            raise problem("", given=given, expected=f"a whole number, {span}", fix=fix)
        try:
            amount = parse_amount(given)
        except ValueError as error:
            raise problem(
                "",
                given=given,
                expected=f"a whole number, {span}",
                fix=full_width_fix(given, parse_amount) or _amount_fix(str(error), span, like),
            ) from None
        if not least <= amount <= most:
            raise problem("", given=given, expected=f"a whole number, {span}", fix=f"use {span}")
        return amount

    return read


def _amount_fix(error: str, span: str, like: str) -> str:
    if error.startswith("not in"):
        return f"use {span}"
    if error.rstrip("'").endswith("%"):
        return f"{error}: it is no share of anything; write it like {like}"
    return error if "? write " in error else f"{error}; write it like {like}"


def full_width_fix(given: object, read: Callable[[object], object]) -> str | None:
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


def amount_schema(least: int) -> dict[str, Any]:
    """JSON Schema of a whole number, or an amount."""
    number = {"type": "integer", "minimum": least}
    return {
        "anyOf": [number, {"type": "string", "pattern": AMOUNT_PATTERN, "examples": ["10B", "4Mi", "1e9"]}]
    }


read_tokens = _amount(0)
"""Tokens as a number or an amount."""
read_count = _amount(1)
"""The same, at least one."""

Count = Annotated[int, BeforeValidator(read_count), WithJsonSchema(amount_schema(1))]
"""A whole number of at least one, as a number or an amount."""

Amount = Annotated[int, BeforeValidator(read_tokens), WithJsonSchema(amount_schema(0))]
"""A whole number of at least zero, as a number or an amount."""


def _read_context(given: object) -> int:
    context = _amount(1)(given)
    if context > LONGEST_CONTEXT:
        fix = "lower it: no model's position table is as long, and rows are allocated whole"
        raise problem("", given=given, expected=f"a whole number, 1..{LONGEST_CONTEXT}", fix=fix)
    return context


Context = Annotated[
    int, BeforeValidator(_read_context), WithJsonSchema({**amount_schema(1), "maximum": LONGEST_CONTEXT})
]
"""Positions of a sequence."""


MULTIPLE_PATTERN = r"(\d+|cp|tp)(\s*\*\s*(\d+|cp|tp))*"
"""A product of whole numbers and sizes of ``parallel``."""


def _read_multiple(given: object) -> int | str:
    if not isinstance(given, str) or not re.search("[ct]p", given):
        return _amount(1, LONGEST_CONTEXT, like="16 or 2*cp")(given)
    text = given.strip()
    if not re.fullmatch(MULTIPLE_PATTERN, text) or "0" in re.split(r"\s*\*\s*", text):
        fix = "write a number such as 16, or a product such as 2*cp or 2*cp*tp"
        raise problem("", given=given, expected="a whole number, or a product with cp and tp", fix=fix)
    return re.sub(r"\s", "", text)


Multiple = Annotated[
    int | str,
    BeforeValidator(_read_multiple),
    WithJsonSchema(
        {"anyOf": [*amount_schema(1)["anyOf"], {"type": "string", "pattern": f"^{MULTIPLE_PATTERN}$"}]}
    ),
]
"""Positions that something is a multiple of: a number, or a product such as ``2*cp``."""


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
                *amount_schema(0)["anyOf"],
                {"type": "object", "additionalProperties": amount_schema(0)},
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
            "additionalProperties": amount_schema(1),
            "minProperties": 1,
        }
    ),
]
"""Sequences of a batch from a position of the run on; the first position is 0."""

RampSteps = Annotated[
    int,
    BeforeValidator(_amount(1, MOST_RAMP_STEPS, like="64")),
    WithJsonSchema({**amount_schema(1), "maximum": MOST_RAMP_STEPS}),
]
"""Steps of a quota ramp."""

Seed = Annotated[
    int,
    BeforeValidator(_amount(0, like="1234")),
    WithJsonSchema({**amount_schema(0), "maximum": LARGEST_SEED}),
]
"""A base seed, ``0..2**63-1``."""
