"""Why a record that was read, or a document of a pool, is no document of a new one; and sums by reason."""

from __future__ import annotations

from collections.abc import Mapping

EMPTY = "empty"
"""It has no text."""
DUPLICATE = "duplicate"
"""Its tokens are those of a document that stays."""
NEAR_DUPLICATE = "near_duplicate"
"""Somebody else's list of ids leaves it out."""
OTHER_SPLIT = "other_split"
"""Another split has its text."""
WITHDRAWN = "withdrawn"
"""Its text was erased."""


def added(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """The sum of two counts by reason.

    >>> added({"empty": 1}, {"empty": 2, "duplicate": 3})
    {'empty': 3, 'duplicate': 3}
    """
    return {reason: before.get(reason, 0) + more.get(reason, 0) for reason in {**before, **more}}
