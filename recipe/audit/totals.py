"""What the rows that count add up to: tokens by pool, drift by stage, pools that left."""

from __future__ import annotations

from recipe.audit.account import KINDS
from recipe.audit.course import Course


def tokens_on_record(course: Course) -> dict[str, dict[str, int]]:
    """By pool and kind, as the last row of the lineage with a snapshot has them."""
    last = course.lineage.furthest()[1]
    if last is None:
        return {}
    return {
        name: {kind: pool.counts[kind] for kind in KINDS}
        for name, pool in zip(course.intent.names, last.pools, strict=True)
    }


def pools_that_left(course: Course) -> dict[str, int]:
    """Pools that ran dry and left: ``{"stage S: pool P": the step of the row that first says so}``."""
    left: dict[str, int] = {}
    for mark in course.lineage.marks:
        for pool in mark.left:
            stage, name = mark.terms.intent.layouts[mark.stage].name, mark.names[pool]
            left.setdefault(f"stage {stage}: pool {name}", mark.step)
    return left


def largest_drifts(course: Course) -> dict[str, dict[str, int]]:
    """By stage and pool: spent less owed at the row end where it is largest, over the lineage."""
    table: dict[str, dict[str, int]] = {}
    for mark in course.lineage.marks:
        if mark.drift:
            stage = table.setdefault(mark.terms.intent.layouts[mark.stage].name, {})
            for name, tokens in zip(mark.names, mark.drift, strict=True):
                stage[name] = max(stage.get(name, 0), tokens, key=abs)
    return table
