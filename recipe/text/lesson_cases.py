"""Examples for the lessons, their answers found another way than the lesson's own code."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

from recipe.text.dice import Dice

Values = dict[str, Any]
Cases = list[tuple[str, Any]]
"""Call as it is written, and the value it must give."""

WORDS = (
    "amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll",
    "lagoon", "meadow", "north", "ocean", "prairie", "quarry", "river", "shore", "tundra", "upland",
    "valley", "willow", "yonder", "zenith",
)  # fmt: skip


def words_of(dice: Dice, count: int) -> list[str]:
    """So many plain words."""
    return [dice.pick(WORDS) for _ in range(count)]


def rotate_cases(dice: Dice, values: Values) -> Cases:
    """Rotation read from the list written twice."""
    cases: Cases = []
    for _ in range(3):
        items = dice.numbers(dice.between(1, 8), 0, 99)
        doubled, k = items + items, values["k"] % len(items)
        cases.append((f"rotate({items})", doubled[k : k + len(items)]))
    return [*cases, ("rotate([])", [])]


def caesar_cases(dice: Dice, values: Values) -> Cases:
    """Letters looked up in a table."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    table = dict(zip(letters, letters[values["k"] :] + letters[: values["k"]], strict=True))
    texts = [" ".join(words_of(dice, dice.between(1, 4))) for _ in range(3)]
    return [(f"shift({t!r})", "".join(table.get(c, c) for c in t)) for t in texts]


def windows_cases(dice: Dice, values: Values) -> Cases:
    """Starts by their number, not by a loop that stops."""
    window, stride = values["window"], values["stride"]
    cases: Cases = []
    for n in dice.numbers(3, 1, 40):
        spans = [(a, min(a + window, n)) for a in range(0, n, stride) if a == 0 or a + window - stride < n]
        cases.append((f"spans({n})", spans))
    return cases


def runs_cases(dice: Dice, values: Values) -> Cases:
    """Runs by `itertools.groupby`."""
    texts = ["".join(dice.pick(values["letters"]) * dice.between(1, 4) for _ in range(4)) for _ in range(3)]
    return [(f"encode({t!r})", [(k, len(list(g))) for k, g in itertools.groupby(t)]) for t in texts]


def unique_cases(dice: Dice, values: Values) -> Cases:
    """Order kept by a dictionary."""
    lists = [dice.numbers(dice.between(4, 10), 1, 9) for _ in range(3)]
    return [(f"{values['name']}({x})", list(dict.fromkeys(x))) for x in lists]


def multiples_cases(dice: Dice, values: Values) -> Cases:
    """The union of two ranges."""
    a, b = values["a"], values["b"]
    tops = dice.numbers(4, 5, 200)
    return [(f"total({n})", sum({*range(0, n, a), *range(0, n, b)})) for n in tops]


def base_cases(dice: Dice, values: Values) -> Cases:
    """Digits chosen first, the number made of them."""
    base = values["base"]
    cases: Cases = []
    for _ in range(4):
        digits = [dice.between(1, base - 1), *dice.numbers(dice.between(0, 6), 0, base - 1)]
        number = sum(d * base**i for i, d in enumerate(reversed(digits)))
        cases.append((f"digits({number})", digits))
    return cases


def horner_cases(dice: Dice, values: Values) -> Cases:
    """Powers written out."""
    coefficients = values["coefficients"]
    return [
        (f"value({x})", sum(c * x**i for i, c in enumerate(coefficients))) for x in dice.numbers(4, -9, 9)
    ]


def search_cases(dice: Dice, values: Values) -> Cases:
    """The place by `list.index`."""
    cases: Cases = []
    for _ in range(3):
        items = sorted(set(dice.numbers(8, 1, 60)))
        wanted = dice.pick(items)
        cases.append((f"find({items}, {wanted})", items.index(wanted)))
    return cases


def count_cases(dice: Dice, values: Values) -> Cases:
    """Words counted by `Counter`."""
    cases: Cases = []
    for _ in range(2):
        words = words_of(dice, 4)
        words += [dice.pick(words) for _ in range(dice.between(2, 6))]
        ranked = sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))
        cases.append((f"common({' '.join(words)!r})", ranked[: values["top"]]))
    return cases


def merge_cases(dice: Dice, values: Values) -> Cases:
    """Every half point marked, then read off."""
    cases: Cases = []
    for _ in range(3):
        spans = [(a, a + dice.between(1, 12)) for a in dice.numbers(dice.between(2, 5), 0, 50)]
        points = sorted({p for a, b in spans for p in range(2 * a, 2 * b + 1)})
        merged: list[list[int]] = []
        for p in points:
            if merged and p - merged[-1][1] <= 1:
                merged[-1][1] = p
            else:
                merged.append([p, p])
        cases.append((f"{values['name']}({spans})", [(a // 2, b // 2) for a, b in merged]))
    return cases


def coins_cases(dice: Dice, values: Values) -> Cases:
    """Amounts reached with one more coin, layer by layer."""
    coins: list[int] = values["coins"]
    cases: Cases = []
    for amount in dice.numbers(3, 1, 60):
        reached, layer, steps = {0}, {0}, 0
        while amount not in reached:
            layer = {x + c for x in layer for c in coins if x + c <= amount} - reached
            reached, steps = reached | layer, steps + 1
        cases.append((f"fewest({amount})", steps))
    return cases


def leap_cases(dice: Dice, values: Values) -> Cases:
    """The rule in one expression."""
    years = [dice.between(1800, 2400), 100 * dice.between(15, 30), 4 * dice.between(400, 600), 2000]
    return [
        (f"days_in_february({y})", 29 if (y % 4 == 0) > (y % 100 == 0) or y % 400 == 0 else 28) for y in years
    ]


def primes_cases(dice: Dice, values: Values) -> Cases:
    """Wilson's theorem."""
    tops = dice.numbers(3, 2, values["top"])
    return [
        (f"primes({n})", [p for p in range(2, n + 1) if math.factorial(p - 1) % p == p - 1]) for n in tops
    ]


def transpose_cases(dice: Dice, values: Values) -> Cases:
    """Columns by `zip`."""
    cases: Cases = []
    for _ in range(2):
        rows, columns = dice.between(1, 4), dice.between(1, 4)
        table = [dice.numbers(columns, -9, 9) for _ in range(rows)]
        cases.append((f"transpose({table})", [list(column) for column in zip(*table, strict=True)]))
    return cases


def pairs_cases(dice: Dice, values: Values) -> Cases:
    """All pairs tried."""
    total = values["total"]
    lists = [dice.numbers(dice.between(4, 9), 0, total) for _ in range(3)]
    return [
        (f"count_pairs({x})", sum(a + b == total for a, b in itertools.combinations(x, 2))) for x in lists
    ]


def stack_cases(dice: Dice, values: Values) -> Cases:
    """Pairs struck out until nothing changes."""
    pairs = {")": "(", "]": "[", "}": "{"}
    cases: Cases = []
    for _ in range(4):
        text = "".join(dice.pick("()[]{}") for _ in range(dice.between(2, 4)))
        if dice.between(0, 1):
            text += "".join({v: k for k, v in pairs.items()}.get(c, "") for c in reversed(text))
        rest = text
        while (shorter := rest.replace("()", "").replace("[]", "").replace("{}", "")) != rest:
            rest = shorter
        cases.append((f"{values['name']}({text!r})", rest == ""))
    return cases


def running_cases(dice: Dice, values: Values) -> Cases:
    """The extreme of every prefix."""
    lists = [dice.numbers(dice.between(3, 9), -20, 40) for _ in range(3)]
    best = max if values["word"] == "largest" else min
    return [(f"running({x})", [best(x[: i + 1]) for i in range(len(x))]) for x in lists]
