"""The lessons of the teacher pool: code with parameters, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recipe.text import lesson_cases
from recipe.text.dice import Dice
from recipe.text.lesson_cases import Cases, Values


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """One exercise with parameters."""

    name: str
    task: str
    """Goes on from "a function that …"; may use the values."""
    code: str
    """Source with ``{doc}`` for the docstring; other braces are doubled."""
    values: Callable[[Dice], Values]
    cases: Callable[[Dice, Values], Cases]
    remarks: tuple[str, ...]


LESSONS: tuple[Lesson, ...] = (
    Lesson(
        name="rotate",
        task="rotates a list by {k} places to the left",
        code="""
def rotate(items):
{doc}
    if not items:
        return []
    places = {k} % len(items)
    return items[places:] + items[:places]
""",
        values=lambda dice: {"k": dice.between(1, 9)},
        cases=lesson_cases.rotate_cases,
        remarks=(
            "The remainder makes a rotation longer than the list harmless.",
            "An empty list has no remainder, so it is asked for first.",
        ),
    ),
    Lesson(
        name="shift letters",
        task="moves every small letter {k} places on in the alphabet",
        code="""
def shift(text):
{doc}
    moved = []
    for character in text:
        if "a" <= character <= "z":
            place = (ord(character) - ord("a") + {k}) % 26
            character = chr(ord("a") + place)
        moved.append(character)
    return "".join(moved)
""",
        values=lambda dice: {"k": dice.between(1, 25)},
        cases=lesson_cases.caesar_cases,
        remarks=("Spaces stay where they are.", "Twenty-six places are none at all: the remainder says so."),
    ),
    Lesson(
        name="window spans",
        task="cuts a text of n tokens into windows of {window}, a new one every {stride} tokens",
        code="""
def spans(n):
{doc}
    found = []
    start = 0
    while True:
        stop = min(start + {window}, n)
        found.append((start, stop))
        if stop == n:
            return found
        start += {stride}
""",
        values=lambda dice: {"stride": (s := dice.between(2, 8)), "window": s + dice.between(0, 4)},
        cases=lesson_cases.windows_cases,
        remarks=(
            "The last window may be short, but no token is left out.",
            "A stride equal to the window gives no overlap.",
        ),
    ),
    Lesson(
        name="run lengths",
        task="writes a text as runs of equal characters from {letters}",
        code="""
def encode(text):
{doc}
    runs = []
    for character in text:
        if runs and runs[-1][0] == character:
            runs[-1] = (character, runs[-1][1] + 1)
        else:
            runs.append((character, 1))
    return runs
""",
        values=lambda dice: {"letters": dice.pick(("ab", "xyz", "01", "abc", "+-", "AGCT"))},
        cases=lesson_cases.runs_cases,
        remarks=("Each run is a pair of a character and how often it stands there.",),
    ),
    Lesson(
        name="keep first",
        task="drops repeated numbers and keeps the first of each, in order",
        code="""
def {name}(items):
{doc}
    seen = set()
    kept = []
    for item in items:
        if item not in seen:
            seen.add(item)
            kept.append(item)
    return kept
""",
        values=lambda dice: {"name": dice.pick(("unique", "without_repeats", "first_of_each", "distinct"))},
        cases=lesson_cases.unique_cases,
        remarks=(
            "A set answers in constant time whether an item was seen.",
            "Sorting would lose the order, so it is not used.",
        ),
    ),
    Lesson(
        name="multiples",
        task="adds the numbers below n that {a} or {b} divides",
        code="""
def total(n):
{doc}
    result = 0
    for number in range(n):
        if number % {a} == 0 or number % {b} == 0:
            result += number
    return result
""",
        values=lambda dice: {"a": dice.between(2, 9), "b": dice.between(3, 17)},
        cases=lesson_cases.multiples_cases,
        remarks=("A number that both divide is added once.",),
    ),
    Lesson(
        name="digits",
        task="gives the digits of a positive number in base {base}, the highest first",
        code="""
def digits(number):
{doc}
    found = []
    while number:
        number, digit = divmod(number, {base})
        found.append(digit)
    return found[::-1]
""",
        values=lambda dice: {"base": dice.between(2, 16)},
        cases=lesson_cases.base_cases,
        remarks=("The lowest digit is the remainder, so the digits come out backwards.",),
    ),
    Lesson(
        name="polynomial",
        task="evaluates the polynomial with the coefficients {coefficients}, the constant first",
        code="""
def value(x):
{doc}
    result = 0
    for coefficient in reversed({coefficients}):
        result = result * x + coefficient
    return result
""",
        values=lambda dice: {"coefficients": dice.numbers(dice.between(2, 5), -7, 7)},
        cases=lesson_cases.horner_cases,
        remarks=("Horner's rule needs one multiplication a coefficient.",),
    ),
    Lesson(
        name="binary search",
        task="finds the place of a number in a sorted list, or None",
        code="""
def find(items, wanted):
{doc}
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < len(items) and items[low] == wanted:
        return low
    return None
""",
        values=lambda dice: {},
        cases=lesson_cases.search_cases,
        remarks=("The list is halved at every turn.", "The invariant: everything before low is too small."),
    ),
    Lesson(
        name="common words",
        task="lists the {top} most common words with their counts, ties by the alphabet",
        code="""
def common(text):
{doc}
    counts = {{}}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ranked[:{top}]
""",
        values=lambda dice: {"top": dice.between(1, 3)},
        cases=lesson_cases.count_cases,
        remarks=("A negative count sorts the large ones to the front.",),
    ),
    Lesson(
        name="merge spans",
        task="joins spans that touch or overlap",
        code="""
def {name}(spans):
{doc}
    joined = []
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined
""",
        values=lambda dice: {"name": dice.pick(("join", "merge", "union"))},
        cases=lesson_cases.merge_cases,
        remarks=("Sorted by their start, a span can only touch the last one.",),
    ),
    Lesson(
        name="coins",
        task="counts the fewest coins of {coins} that make an amount",
        code="""
def fewest(amount):
{doc}
    best = [0]
    for value in range(1, amount + 1):
        best.append(1 + min(best[value - coin] for coin in {coins} if coin <= value))
    return best[amount]
""",
        values=lambda dice: {"coins": sorted({1, *dice.numbers(dice.between(1, 3), 2, 25)})},
        cases=lesson_cases.coins_cases,
        remarks=("Taking the largest coin first can be wrong; trying every coin is not.",),
    ),
    Lesson(
        name="leap years",
        task="says how many days February has in a year",
        code="""
def days_in_february(year):
{doc}
    if year % 400 == 0:
        return 29
    if year % 100 == 0:
        return 28
    return 29 if year % 4 == 0 else 28
""",
        values=lambda dice: {},
        cases=lesson_cases.leap_cases,
        remarks=("The rarest rule is asked first.", "A century is a leap year once in four."),
    ),
    Lesson(
        name="primes",
        task="lists the primes up to n (here at most {top}) with a sieve",
        code="""
def primes(n):
{doc}
    prime = [True] * (n + 1)
    found = []
    for number in range(2, n + 1):
        if prime[number]:
            found.append(number)
            for multiple in range(number * number, n + 1, number):
                prime[multiple] = False
    return found
""",
        values=lambda dice: {"top": dice.between(10, 60)},
        cases=lesson_cases.primes_cases,
        remarks=("Crossing out starts at the square: smaller multiples are crossed out already.",),
    ),
    Lesson(
        name="transpose",
        task="turns the rows of a table into columns",
        code="""
def transpose(table):
{doc}
    columns = []
    for place in range(len(table[0])):
        columns.append([row[place] for row in table])
    return columns
""",
        values=lambda dice: {},
        cases=lesson_cases.transpose_cases,
        remarks=("Doing it twice gives the table back.",),
    ),
    Lesson(
        name="pairs",
        task="counts the pairs of a list that add up to {total}",
        code="""
def count_pairs(items):
{doc}
    seen = {{}}
    pairs = 0
    for item in items:
        pairs += seen.get({total} - item, 0)
        seen[item] = seen.get(item, 0) + 1
    return pairs
""",
        values=lambda dice: {"total": dice.between(6, 15)},
        cases=lesson_cases.pairs_cases,
        remarks=("Each pair is counted when its second member comes.",),
    ),
    Lesson(
        name="brackets",
        task="tells whether every bracket is closed by one of its kind",
        code="""
def {name}(text):
{doc}
    partner = {{")": "(", "]": "[", "}}": "{{"}}
    open_brackets = []
    for character in text:
        if character in partner:
            if not open_brackets or open_brackets.pop() != partner[character]:
                return False
        else:
            open_brackets.append(character)
    return not open_brackets
""",
        values=lambda dice: {"name": dice.pick(("balanced", "well_formed", "closed"))},
        cases=lesson_cases.stack_cases,
        remarks=("The last bracket opened is the first that must be closed.",),
    ),
    Lesson(
        name="running extreme",
        task="gives the {word} number seen so far, at every place of a list",
        code="""
def running(items):
{doc}
    seen = []
    for item in items:
        if not seen or item {sign} seen[-1]:
            seen.append(item)
        else:
            seen.append(seen[-1])
    return seen
""",
        values=lambda dice: dice.pick(({"word": "largest", "sign": ">"}, {"word": "smallest", "sign": "<"})),
        cases=lesson_cases.running_cases,
        remarks=("One comparison a number is enough.",),
    ),
)  # fmt: skip
