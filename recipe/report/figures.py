"""Numbers as a person reads them; the exact ones are in the JSON answers."""

from __future__ import annotations

from fractions import Fraction

_SCALES = ((10**12, "T"), (10**9, "B"), (10**6, "M"))
_PLAIN_BELOW = 10_000_000


def amount(count: int) -> str:
    """A number of tokens: exact below ten million, else four figures.

    >>> [amount(n) for n in (0, -250_000, 12_345_678, 6_160_000_000, 10**13)]
    ['0', '-250,000', '12.35M', '6.16B', '10T']
    """
    size = abs(count)
    if size < _PLAIN_BELOW:
        return f"{count:,}"
    scale, letter = next(item for item in _SCALES if size >= item[0])
    return f"{count / scale:.4g}{letter}" if size < 1000 * scale else f"{count // scale:,}{letter}"


def signed(count: int) -> str:
    """A difference, with its sign.

    >>> [signed(n) for n in (0, 3, -1200)]
    ['0', '+3', '-1,200']
    """
    return amount(count) if count <= 0 else f"+{amount(count)}"


def percent(share: Fraction) -> str:
    """A share in percent, exact where four places are enough.

    >>> [percent(Fraction(n, 1000)) for n in (616, 1, 1000)], percent(Fraction(1, 3))
    (['61.6 %', '0.1 %', '100 %'], '33.3333 %')
    """
    text = f"{float(share * 100):.4f}".rstrip("0").rstrip(".")
    return f"{text} %"


def readings(epochs: Fraction | float | None) -> str:
    """How often a token of the pool is read on average.

    >>> readings(Fraction(600, 250)), readings(None)
    ('2.4', '–')
    """
    if epochs is None:
        return "–"
    return f"{float(epochs):.4f}".rstrip("0").rstrip(".")


def ratio(part: int, whole: int) -> str:
    """A part in percent of the whole, two places; a dash for nothing of nothing.

    >>> ratio(1, 8), ratio(0, 0)
    ('12.50 %', '–')
    """
    return f"{100 * part / whole:.2f} %" if whole else "–"


def byte_size(count: int) -> str:
    """A number of bytes in the unit that fits.

    >>> [byte_size(n) for n in (0, 999, 45_056, 12_345_678, 10**12)]
    ['0 bytes', '999 bytes', '45.1 kB', '12.3 MB', '1.0 TB']
    """
    if count < 1000:
        return f"{count} bytes"
    power = min((len(str(count)) - 1) // 3, 5)
    return f"{count / 1000**power:.1f} {'kMGTP'[power - 1]}B"
