"""Amounts of tokens as people write them: ``10B``, ``4Mi``, ``1_000_000``, ``1e9``; exact whole numbers."""

from __future__ import annotations

import re

DECIMAL_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
BINARY_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
LARGEST_AMOUNT = 2**63 - 1
"""Counts stay in signed 64-bit integers."""

AMOUNT_PATTERN = r"^\s*[0-9]+(_[0-9]+)*(\.[0-9]+)?([eE]\+?[0-9]{1,2})?\s*(k|K|M|B|T|Ki|Mi|Gi|Ti)?\s*$"
"""What an amount looks like as text; that it is whole is checked by reading it."""

_AMOUNT = re.compile(
    r"\s*(?P<whole>\d+(?:_\d+)*)(?:\.(?P<tenths>\d+))?(?:[eE]\+?(?P<power>\d{1,2}))?\s*(?P<unit>[A-Za-z]*)\s*",
    re.ASCII,
)
_OTHER_SPELLINGS = {
    "K": "k",
    "m": "M",
    "b": "B",
    "t": "T",
    "G": "B",
    "g": "B",
    "ki": "Ki",
    "mi": "Mi",
    "gi": "Gi",
    "ti": "Ti",
}


def parse_amount(given: object) -> int:
    """The whole number that an amount stands for.

    Units are ``k M B T`` (thousands) and ``Ki Mi Gi Ti`` (1024s). Numbers that are whole pass as they
    are; nothing is rounded.

    Raises:
        ValueError: not an amount, not whole, negative, or above ``2**63 - 1``; the message says which.

    >>> [parse_amount(text) for text in ("10B", "4Mi", "1_000_000", "1e9", "1.5e9", "0.1k", 7)]
    [10000000000, 4194304, 1000000, 1000000000, 1500000000, 100, 7]
    """
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError(f"not an amount: {given!r}")
    if isinstance(given, int):
        return _in_range(given)
    if isinstance(given, float):
        if not given.is_integer() or abs(given) > 2**53:
            raise ValueError(f"not a whole number: {given!r}")
        return _in_range(int(given))
    return _in_range(_parse_text(given))


def _parse_text(text: str) -> int:
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an amount: {text!r}")
    unit = _unit(match["unit"], text)
    tenths = match["tenths"] or ""
    zeros = "0" * int(match["power"] or 0)
    digits = int(match["whole"].replace("_", "") + tenths + zeros) * unit
    scale: int = 10 ** len(tenths)
    amount, rest = divmod(digits, scale)
    if rest:
        raise ValueError(f"not a whole number: {text!r}")
    return amount


def _unit(unit: str, text: str) -> int:
    if unit in DECIMAL_UNITS:
        return DECIMAL_UNITS[unit]
    if unit in BINARY_UNITS:
        return BINARY_UNITS[unit]
    bare = unit[:-1] if len(unit) > 1 and unit[-1] in "bB" else unit
    right = _OTHER_SPELLINGS.get(bare, bare)
    hint = ""
    if right in DECIMAL_UNITS or right in BINARY_UNITS:
        number = text.strip().removesuffix(unit).strip()
        hint = f"; did you mean {right!r}? write {number}{right}"
        if right == "B" and unit != "b":
            hint = "; did you mean 'B', a billion (not bytes)?"
            hint += f" write {number}B, or {number}Gi for {number} x 2**30"
    raise ValueError(f"unknown unit {unit!r} in {text!r}{hint}")


def _in_range(amount: int) -> int:
    if not 0 <= amount <= LARGEST_AMOUNT:
        raise ValueError(f"not in 0..2**63-1: {amount}")
    return amount


def format_amount(amount: int) -> str:
    """An amount for people: three significant digits at least, the exact number where that is short.

    >>> [format_amount(n) for n in (0, 512, 61_600, 6_160_000_000, 1_234_567, 10**13, -2_500)]
    ['0', '512', '61.6k', '6.16B', '1.23M', '10T', '-2.5k']
    """
    if amount < 0:
        return f"-{format_amount(-amount)}"
    unit, size = "", 1
    for name in ("k", "M", "B", "T"):
        if amount >= DECIMAL_UNITS[name]:
            unit, size = name, DECIMAL_UNITS[name]
    if size == 1:
        return str(amount)
    hundredths = (amount * 100 + size // 2) // size
    if hundredths >= 100_000 and unit != "T":
        return format_amount(hundredths * size // 100)
    whole, part = divmod(hundredths, 100)
    if whole >= 100 or part == 0:
        return f"{(hundredths + 50) // 100}{unit}" if part else f"{whole}{unit}"
    return f"{whole}.{part:02d}".rstrip("0") + unit


def exact_amount(amount: int) -> str:
    """The shortest text that reads back as exactly this amount.

    >>> [exact_amount(n) for n in (10**13, 1_500_000, 4_194_304, 16_384, 1_000, 12_345)]
    ['10T', '1500k', '4194304', '16384', '1k', '12345']
    """
    for name in ("T", "B", "M", "k"):
        size = DECIMAL_UNITS[name]
        if amount and amount % size == 0:
            return f"{amount // size}{name}"
    return str(amount)
