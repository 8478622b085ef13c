"""Worked arithmetic, generated from a seed; every answer is checked by another way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from recipe.text.dice import Dice
from recipe.text.documents import Document

NUM_DOCUMENTS = 2_500


def maths_documents(seed: int, num_documents: int = NUM_DOCUMENTS) -> Iterator[Document]:
    """Sheets of two to six worked problems, mostly of one kind."""
    dice = Dice(seed, "maths")
    for index in range(num_documents):
        kind = dice.pick(KINDS)
        kinds = [kind if dice.between(1, 4) > 1 else dice.pick(KINDS) for _ in range(dice.between(2, 6))]
        problems = [make(dice) for make in kinds]
        sheet = "\n\n".join(f"Problem {i + 1}. {problem}" for i, problem in enumerate(problems))
        yield Document(
            id=f"maths-{index}",
            text=sheet + "\n",
            source=f"generated: worked arithmetic, seed {seed}",
            tags={"kind": kind.__name__, "problems": len(problems)},
        )


def addition(dice: Dice) -> str:
    """Column addition with every carry written down."""
    digits = dice.between(3, 9)
    numbers = [dice.number(dice.between(max(2, digits - 2), digits)) for _ in range(dice.between(2, 4))]
    lines = [f"Add {' + '.join(map(str, numbers))}, column by column."]
    carry, answer, place = 0, "", 0
    while any(n // 10**place for n in numbers) or carry:
        column = [n // 10**place % 10 for n in numbers if n >= 10**place]
        total = sum(column) + carry
        terms = " + ".join(map(str, column + ([carry] if carry else []))) or "0"
        note = f", write {total % 10}" + (f", carry {total // 10}" if total >= 10 else "")
        lines.append(f"  10^{place}: {terms} = {total}{note}")
        answer, carry, place = str(total % 10) + answer, total // 10, place + 1
    assert int(answer) == sum(numbers)
    return "\n".join([*lines, f"Sum: {answer}"])


def multiplication(dice: Dice) -> str:
    """Long multiplication by partial products."""
    a, b = dice.number(dice.between(2, 5)), dice.number(dice.between(2, 4))
    lines = [f"Multiply {a} by {b} with partial products."]
    total = 0
    for place, digit in enumerate(map(int, reversed(str(b)))):
        partial = a * digit * 10**place
        total += partial
        lines.append(f"  {a} x {digit * 10**place} = {partial}; running sum {total}")
    # casting out nines and elevens checks the product without multiplying again
    for modulus in (9, 11):
        assert (a % modulus) * (b % modulus) % modulus == total % modulus
    lines.append(f"  check modulo 9: {a % 9} x {b % 9} leaves {total % 9}, and {total} leaves {total % 9}")
    return "\n".join([*lines, f"Product: {total}"])


def division(dice: Dice) -> str:
    """Long division, digit by digit."""
    a, b = dice.number(dice.between(4, 8)), dice.between(3, 97)
    lines = [f"Divide {a} by {b}, bringing down one digit at a time."]
    remainder, quotient = 0, ""
    for digit in str(a):
        current = remainder * 10 + int(digit)
        quotient += str(current // b)
        if current >= b:
            lines.append(f"  {current} = {b} x {current // b} + {current % b}")
        remainder = current % b
    result = int(quotient)
    assert result * b + remainder == a
    lines.append(f"  check: {b} x {result} + {remainder} = {a}")
    return "\n".join([*lines, f"Quotient {result}, remainder {remainder}"])


def fractions(dice: Dice) -> str:
    """A sum or difference of two fractions over their least common denominator."""
    b, d = dice.between(2, 36), dice.between(2, 36)
    a, c = dice.between(1, 3 * b), dice.between(1, 3 * d)
    sign = dice.pick((1, -1))
    common = math.lcm(b, d)
    left, right = a * common // b, c * common // d
    top = left + sign * right
    shared = math.gcd(top, common)
    answer = Fraction(a, b) + sign * Fraction(c, d)
    assert answer == Fraction(top, common)
    mark = "+" if sign > 0 else "-"
    return "\n".join(
        [
            f"Compute {a}/{b} {mark} {c}/{d}.",
            f"  The least common multiple of {b} and {d} is {common}.",
            f"  {a}/{b} = {left}/{common} and {c}/{d} = {right}/{common}.",
            f"  {left} {mark} {right} = {top}, so the result is {top}/{common}.",
            f"  The greatest common divisor of {abs(top)} and {common} is {shared}.",
            f"Result: {answer}",
        ]
    )


def euclid(dice: Dice) -> str:
    """The greatest common divisor, and the numbers that make it."""
    shared = dice.between(1, 60)
    a, b = shared * dice.between(20, 900), shared * dice.between(20, 900)
    lines = [f"Find the greatest common divisor of {a} and {b} with Euclid's algorithm."]
    rows = [(a, 1, 0), (b, 0, 1)]
    while rows[-1][0]:
        (r0, s0, t0), (r1, s1, t1) = rows[-2:]
        q = r0 // r1
        lines.append(f"  {r0} = {q} x {r1} + {r0 % r1}")
        rows.append((r0 % r1, s0 - q * s1, t0 - q * t1))
    divisor, s, t = rows[-2]
    assert divisor == math.gcd(a, b) == s * a + t * b
    lines.append(f"  going back: {s} x {a} + {t} x {b} = {divisor}")
    return "\n".join([*lines, f"gcd({a}, {b}) = {divisor}"])


def powers(dice: Dice) -> str:
    """A power modulo a number, by squaring."""
    base, exponent, modulus = dice.between(2, 99), dice.between(10, 500), dice.between(7, 999)
    lines = [f"Compute {base}^{exponent} modulo {modulus} by repeated squaring."]
    lines.append(f"  {exponent} is {exponent:b} in binary.")
    result, square, bits = 1, base % modulus, exponent
    position = 0
    while bits:
        if bits & 1:
            result = result * square % modulus
            lines.append(f"  bit {position} is 1: multiply by {square}, result {result}")
        bits, position = bits >> 1, position + 1
        if bits:
            lines.append(f"  square: {square}^2 = {square * square} leaves {square * square % modulus}")
            square = square * square % modulus
    assert result % modulus == pow(base, exponent, modulus)
    return "\n".join([*lines, f"{base}^{exponent} mod {modulus} = {result % modulus}"])


def equation(dice: Dice) -> str:
    """A linear equation in one unknown."""
    a, c = dice.between(2, 40), dice.between(-30, 30)
    if a == c:
        c -= 1
    x = Fraction(dice.between(-40, 40), dice.pick((1, 1, 1, 2, 3, 4)))
    constant = Fraction(dice.between(-60, 60))
    right = a * x + constant - c * x
    assert a * x + constant == c * x + right
    return "\n".join(
        [
            f"Solve {a}x + ({constant}) = {c}x + ({right}).",
            f"  Take {c}x from both sides: {a - c}x + ({constant}) = {right}.",
            f"  Take {constant} from both sides: {a - c}x = {right - constant}.",
            f"  Divide by {a - c}: x = {(right - constant) / (a - c)}.",
            f"  Check: {a} x ({x}) + ({constant}) = {a * x + constant},",
            f"  and {c} x ({x}) + ({right}) = {c * x + right}.",
            f"x = {x}",
        ]
    )


def system(dice: Dice) -> str:
    """Two linear equations in two unknowns, by elimination."""
    x, y = dice.between(-20, 20), dice.between(-20, 20)
    a, b, c = dice.between(1, 12), dice.between(1, 12), dice.between(1, 12)
    d = dice.between(1, 12)
    if a * d == b * c:
        d += 1
    p, q = a * x + b * y, c * x + d * y
    determinant = a * d - b * c
    assert Fraction(p * d - b * q, determinant) == x and Fraction(a * q - p * c, determinant) == y
    return "\n".join(
        [
            f"Solve {a}x + {b}y = {p} and {c}x + {d}y = {q}.",
            f"  Multiply the first by {c} and the second by {a}:",
            f"  {a * c}x + {b * c}y = {p * c} and {a * c}x + {a * d}y = {q * a}.",
            f"  Subtract: {determinant}y = {q * a - p * c}, so y = {y}.",
            f"  Put y back: {a}x = {p} - ({b * y}) = {p - b * y}, so x = {x}.",
            f"x = {x}, y = {y}",
        ]
    )


def factors(dice: Dice) -> str:
    """The prime factors of a number, by trial division."""
    number = dice.between(60, 99_999)
    lines = [f"Factor {number} into primes."]
    rest, prime, found = number, 2, []
    while prime * prime <= rest:
        while rest % prime == 0:
            lines.append(f"  {rest} / {prime} = {rest // prime}")
            found.append(prime)
            rest //= prime
        prime += 1
    if rest > 1:
        lines.append(f"  {rest} has no divisor up to {math.isqrt(rest)}: it is prime")
        found.append(rest)
    assert math.prod(found) == number
    return "\n".join([*lines, f"{number} = {' x '.join(map(str, found))}"])


def shares(dice: Dice) -> str:
    """Whole shares of a total, by largest remainder."""
    weights = dice.numbers(dice.between(2, 5), 1, 40)
    total, whole = dice.between(50, 5000), sum(weights)
    floors = [total * w // whole for w in weights]
    rests = [total * w % whole for w in weights]
    order = sorted(range(len(weights)), key=lambda i: (-rests[i], i))
    extra = total - sum(floors)
    parts = [floor + (i in order[:extra]) for i, floor in enumerate(floors)]
    assert sum(parts) == total
    lines = [f"Divide {total} into whole parts in the ratio {':'.join(map(str, weights))}."]
    lines.append(f"  The ratio adds up to {whole}.")
    lines += [
        f"  {total} x {w} = {total * w} = {whole} x {f} + {r}"
        for w, f, r in zip(weights, floors, rests, strict=True)
    ]
    lines.append(f"  The whole parts add up to {sum(floors)}; {extra} left for the largest remainders.")
    return "\n".join([*lines, f"Parts: {', '.join(map(str, parts))}"])


KINDS: tuple[Callable[[Dice], str], ...] = (
    addition,
    multiplication,
    division,
    fractions,
    euclid,
    powers,
    equation,
    system,
    factors,
    shares,
)
