"""Pools that share a folder: no recipe may change whose a document is in a stage that had begun."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from recipe.audit.following import Following
from recipe.audit.lineage import Mark
from recipe.audit.recompute import Bench
from recipe.pools import Finding
from recipe.sequences.ownership import rule_for


def check_owners(course: Following, bench: Bench) -> list[Finding]:
    """Every amendment against the recipe before it, where the pools are there."""
    marks = course.lineage.marks
    return [
        finding
        for before, mark in pairwise(marks)
        if mark.entry.kind == "amend"
        for finding in _changed(before, mark, bench)
    ]


def _changed(before: Mark, mark: Mark, bench: Bench) -> Iterator[Finding]:
    old, new = before.terms.intent.recipe, mark.terms.intent.recipe
    for stage in list(old.stages)[: mark.stage + 1]:
        for name in old.pools:
            pool = bench.pools.get(name)
            if pool is None or stage not in new.stages or name not in new.pools:
                continue
            was, becomes = (rule_for(pool, recipe.rule(stage, name)).behind for recipe in (old, new))
            if was != becomes:
                where = f"{mark.entry.where}: stages.{stage}: pools before {name}"
                yield Finding("behind", where, ", ".join(was) or "none", ", ".join(becomes) or "none")
