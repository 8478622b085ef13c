"""Chance from a seed that no library version changes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")
_MASK = (1 << 64) - 1


class Dice:
    """splitmix64 (Steele, Lea and Flood 2014) over whole numbers; equal seeds and names throw alike.

    >>> Dice(1, "maths").between(1, 6), Dice(1, "maths").between(1, 6)
    (5, 5)
    """

    def __init__(self, seed: int, name: str) -> None:
        """Start from the hash of seed and name."""
        self._state = int.from_bytes(blake2b(f"{seed}|{name}".encode(), digest_size=8).digest(), "little")

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def between(self, low: int, high: int) -> int:
        """A whole number in ``low..high``, both included."""
        return low + self._next() % (high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self._next() % len(items)]

    def number(self, digits: int) -> int:
        """A number of exactly so many digits."""
        return self.between(10 ** (digits - 1), 10**digits - 1)

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        """So many numbers in ``low..high``."""
        return [self.between(low, high) for _ in range(count)]
