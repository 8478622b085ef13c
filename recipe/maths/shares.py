"""Shares of a mixture as exact fractions: percent text, weights, token amounts, and shares within a group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from math import lcm

from recipe.maths.rounding import largest_remainder

SHARE_GRAIN = 10**9
"""Shares computed from stocks are rounded to whole parts of this, so that they can be written down."""

PERCENT_PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$"

_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?\s*", re.ASCII)
_RATIO = re.compile(r"\s*\d{1,40}\s*/\s*0*[1-9]\d{0,39}\s*", re.ASCII)
_DIGITS = Context(prec=60)


def parse_percent(text: object) -> Fraction:
    """The share that percent text states; never negative, may be above one.

    Raises:
        ValueError: not percent text. Bare numbers are refused: ``1`` could be one percent or all.

    >>> parse_percent("61.6%")
    Fraction(77, 125)
    """
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"not percent text: {text!r}")
    return Fraction(match[1]) / 100


def percent_text(share: Fraction) -> str:
    """Percent text that reads back as exactly this share.

    Raises:
        ValueError: the share has no finite decimal form, such as 1/3.

    >>> percent_text(Fraction(77, 125))
    '61.6%'
    """
    percent = share * 100
    tens = 0
    while (percent * 10**tens).denominator != 1:
        tens += 1
        if tens > 60 or not _is_finite(percent):
            raise ValueError(f"{share} has no finite decimal form")
    digits = str(int(percent * 10**tens)).rjust(tens + 1, "0")
    return f"{digits[:-tens]}.{digits[-tens:]}%" if tens else f"{digits}%"


def _is_finite(value: Fraction) -> bool:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def parse_weight(given: object) -> Fraction:
    """A weight as an exact number: what is written, not its nearest binary float.

    A Python float means its shortest decimal text, so ``0.1`` is one tenth; ``'2/3'`` is two thirds.

    Raises:
        ValueError: not a finite number.

    >>> [parse_weight(value) for value in (3, 0.1, "1.5e-3", "2/3")]
    [Fraction(3, 1), Fraction(1, 10), Fraction(3, 2000), Fraction(2, 3)]
    """
    if isinstance(given, Fraction):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return Fraction(given)
    text = repr(given) if isinstance(given, float) else given
    if isinstance(text, str) and (_NUMBER.fullmatch(text) or _RATIO.fullmatch(text)):
        return Fraction(text.replace(" ", ""))
    raise ValueError(f"not a number: {given!r}")


def weight_text(weight: Fraction) -> str:
    """The exact text of a weight: a decimal where it is finite and at most 60 places long, else a ratio.

    >>> [weight_text(Fraction(text)) for text in ("3", "1/10", "2/3")]
    ['3', '0.1', '2/3']
    """
    try:
        return percent_text(weight / 100)[:-1]
    except ValueError:
        return str(weight)


def from_weights(weights: Mapping[str, Fraction | int]) -> dict[str, Fraction]:
    """Shares in proportion to weights; they sum to exactly one.

    Raises:
        ValueError: a weight is negative, or none is positive.

    >>> from_weights({"a": 3, "b": 2})
    {'a': Fraction(3, 5), 'b': Fraction(2, 5)}
    """
    exact = {name: Fraction(weight) for name, weight in weights.items()}
    total = sum(exact.values(), Fraction(0))
    if total <= 0 or min(exact.values()) < 0:
        raise ValueError(f"weights must be >= 0 and one of them > 0: {dict(weights)}")
    return {name: weight / total for name, weight in exact.items()}


def loss_weights(objective: Mapping[str, Fraction], shares: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """What a label of each name counts in a loss, so that all of them count by the objective.

    The objective's share over the share that is sampled: the mean over what is sampled is exactly one, and
    labels that are drawn by ``shares`` and weighted so are an importance sample of the objective's mixture.
    A name that is not sampled has weight 0.

    Args:
        objective: shares of the mixture that the loss is about; they sum to one.
        shares: what is sampled, of the same names; they sum to one.

    Raises:
        ValueError: other names, or a name that has a part of the objective and is not sampled.

    Source:
        Importance sampling; Owen, *Monte Carlo theory, methods and examples* (2013), section 9.1.

    >>> half, code = Fraction(1, 2), Fraction(1, 10)
    >>> found = loss_weights({"web": 1 - code, "code": code}, {"web": half, "code": half})
    >>> [str(weight) for weight in found.values()]
    ['9/5', '1/5']
    """
    lost = [name for name, part in objective.items() if part > 0 and not shares.get(name)]
    if lost or objective.keys() != shares.keys():
        raise ValueError(f"no weights for {lost or list(objective)} by shares of {list(shares)}")
    return {name: objective[name] / share if share else Fraction(0) for name, share in shares.items()}


def effective_share(objective: Mapping[str, Fraction], shares: Mapping[str, Fraction]) -> Fraction:
    """Labels without weights that are worth as much as one with them, where all vary alike; at most one.

    Source:
        Kish, *Survey Sampling* (1965), section 11.7: the effective sample size of unequal weights.

    >>> half, code = Fraction(1, 2), Fraction(1, 10)
    >>> effective_share({"web": 1 - code, "code": code}, {"web": half, "code": half})
    Fraction(25, 41)
    """
    weights = loss_weights(objective, shares)
    return 1 / sum((weight * objective[name] for name, weight in weights.items()), Fraction(0))


def common_denominator(shares: Iterable[Fraction]) -> int:
    """The least number all shares are whole parts of."""
    return lcm(*(share.denominator for share in shares))


def ramped(
    before: Mapping[str, Fraction], after: Mapping[str, Fraction], steps: int
) -> list[dict[str, Fraction]]:
    """Shares on the way from some to others, in equal steps: each has those of its middle.

    Step j of n, from 0, has ``before + (after - before) * (2j + 1) / 2n``: the mean over all steps is the
    middle of both.

    Raises:
        ValueError: fewer than one step, or other names.

    >>> [str(step["a"]) for step in ramped({"a": Fraction(0)}, {"a": Fraction(1)}, 4)]
    ['1/8', '3/8', '5/8', '7/8']
    """
    if steps < 1 or before.keys() != after.keys():
        raise ValueError(f"{steps} steps from {list(before)} to {list(after)}")
    parts = [Fraction(2 * step + 1, 2 * steps) for step in range(steps)]
    return [{name: before[name] + (after[name] - before[name]) * part for name in after} for part in parts]


def natural(stock: Mapping[str, int]) -> dict[str, Fraction]:
    """Shares in proportion to what is in stock: every token is read equally often."""
    return from_weights(stock)


def even(names: Iterable[str]) -> dict[str, Fraction]:
    """The same share for each."""
    return from_weights(dict.fromkeys(names, 1))


def temperature(stock: Mapping[str, int], exponent: Fraction) -> dict[str, Fraction]:
    """Shares in proportion to ``stock ** exponent``: 1 is natural, 0 even; between them small pools gain.

    Computed with 60 decimal digits, the same on every machine.

    Raises:
        ValueError: the exponent is outside ``0..1``.

    Source:
        Conneau and Lample, *Cross-lingual Language Model Pretraining* (2019), section 3.1, exponent 0.7;
        Xue et al., *mT5* (2021), exponent 0.3. A "temperature" T of other texts is 1/exponent.

    >>> shares = temperature({"a": 10**9, "b": 10**6}, Fraction(3, 10))
    >>> [round(float(share), 4) for share in shares.values()]
    [0.8882, 0.1118]
    """
    if not 0 <= exponent <= 1:
        raise ValueError(f"exponent {exponent} is not in 0..1")
    power = _DIGITS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return from_weights({name: Fraction(_raised(tokens, power)) for name, tokens in stock.items()})


def _raised(tokens: int, power: Decimal) -> Decimal:
    if tokens == 0:
        return Decimal(0)
    return _DIGITS.exp(_DIGITS.multiply(power, _DIGITS.ln(Decimal(tokens))))


def unimax(stock: Mapping[str, int], budget: int, max_epochs: Mapping[str, int]) -> dict[str, Fraction]:
    """Shares as even as the stocks allow: no pool is asked for more than ``max_epochs`` readings.

    Pools are visited from the smallest cap up; each takes an even part of the budget that is left, at most
    its cap. With a budget above all caps together the shares are in proportion to the caps.

    Args:
        stock: tokens in each pool.
        budget: tokens the group will be asked for; at least 1.
        max_epochs: readings allowed of each pool.

    Raises:
        ValueError: the budget is below 1, or all stocks are empty.

    Source:
        Chung et al., *UniMax: Fairer and More Effective Language Sampling for Large-Scale Multilingual
        Pretraining* (2023), algorithm 1.

    >>> unimax({"big": 1000, "small": 10}, 100, {"big": 4, "small": 4})
    {'big': Fraction(3, 5), 'small': Fraction(2, 5)}
    """
    if budget < 1:
        raise ValueError(f"budget {budget} is below 1")
    caps = {name: tokens * max_epochs[name] for name, tokens in stock.items()}
    left, takes = Fraction(budget), dict[str, Fraction]()
    for visited, name in enumerate(sorted(caps, key=lambda name: caps[name])):
        takes[name] = min(Fraction(caps[name]), left / (len(caps) - visited))
        left -= takes[name]
    return from_weights({name: takes[name] for name in stock})


def to_grain(shares: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The shares rounded to whole 10**-9 by largest remainder; they still sum to exactly one.

    >>> [str(share) for share in to_grain(even("abc")).values()]
    ['166666667/500000000', '333333333/1000000000', '333333333/1000000000']
    """
    denominator = common_denominator(shares.values())
    parts = [int(share * denominator) for share in shares.values()]
    grains = largest_remainder(parts, denominator, SHARE_GRAIN)
    return {name: Fraction(grain, SHARE_GRAIN) for name, grain in zip(shares, grains, strict=True)}
