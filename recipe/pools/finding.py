"""What a check found wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a pool is not what its card and hashes say."""

    check: str
    where: str
    expected: str
    observed: str
