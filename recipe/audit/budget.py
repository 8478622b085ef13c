"""The budget of a run: what each stage was to be given, what it was given, what is left."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from recipe.audit.course import Course


@dataclass(frozen=True, slots=True)
class StageBudget:
    """One stage, in positions; ``consumed + left = length + overshoot``."""

    length: int
    """As the recipe in force states it."""
    consumed: int
    """By the steps that no rewind discarded, those of parents included."""
    left: int
    overshoot: int
    """Of the last whole batch, beyond the length."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Of all stages, and counted tokens of all pools."""

    stages: dict[str, StageBudget]
    owed: int = 0
    spent: int = 0
    """Equal to ``owed``: what is counted is shared out whole."""

    def to_plain(self) -> dict[str, Any]:
        """As ``recipe audit --json`` prints it."""
        return asdict(self)


def budget_of(course: Course) -> Budget:
    """Of the lineage, by its last state and the recipe in force."""
    state = course.lineage.furthest()[1]
    if state is None:
        return Budget({})
    stages = {}
    for layout in course.intent.layouts:
        consumed = (
            min(max(state.positions, layout.first_position), layout.stop_position) - layout.first_position
        )
        stages[layout.name] = StageBudget(
            layout.length, consumed, max(0, layout.length - consumed), max(0, consumed - layout.length)
        )
    totals = [sum(pool.counts[kind] for pool in state.pools) for kind in ("owed", "spent")]
    return Budget(stages, *totals)
