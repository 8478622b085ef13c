"""A setting of a trainer, and the sequence rules that settings follow."""

from __future__ import annotations

from typing import NamedTuple

from recipe.config import Recipe


class Setting(NamedTuple):
    """One option of a trainer."""

    option: str
    value: object
    why: str


class Habits(NamedTuple):
    """What all pools in all stages have in common; None where they differ.

    ``isolated``: whether pieces do not see each other; None too where groups of them do, which no option of a
    trainer says: ``segment_ids`` and ``cu_seqlens`` do.
    """

    isolated: bool | None
    restarts: bool | None
    crosses: bool | None


def habits_of(recipe: Recipe) -> Habits:
    """Of a settled recipe."""
    rules = [recipe.rule(stage, pool) for stage in recipe.stages for pool in recipe.pools]

    def common(values: set[bool]) -> bool | None:
        return values.pop() if len(values) == 1 else None

    return Habits(
        None
        if any(rule.attention == "group" for rule in rules)
        else common({rule.attention == "piece" for rule in rules}),
        common({rule.positions == "restart" for rule in rules}),
        common({rule.cross_labels for rule in rules}),
    )
