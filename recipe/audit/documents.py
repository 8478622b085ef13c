"""What rows say of documents, held against the pools: lists of withdrawn ones, and pools at the beginning."""

from __future__ import annotations

import numpy as np

from recipe.audit.following import Following
from recipe.audit.recompute import Bench
from recipe.errors import RecipeError
from recipe.pools import Finding


def check_first(course: Following, bench: Bench) -> list[Finding]:
    """Pools of the first row: those that are there now are the same or have grown, if never replaced."""
    found = []
    for name, held in course.lineage.marks[0].terms.holdings.items():
        if (
            name in bench.pools
            and name not in course.replaced
            and not bench.was(name, held.get("fingerprint"))
        ):
            where = f"{course.lineage.marks[0].entry.where}: pools.{name}.fingerprint"
            expected = f"{bench.pools[name].fingerprint}, or what that pool was before it grew"
            found.append(Finding("pools", where, expected, str(held.get("fingerprint"))))
    return found


def check_erased(course: Following, bench: Bench) -> list[Finding]:
    """Documents that a run began without, as its first row says, were erased from its pools."""
    found = []
    first = course.lineage.marks[0]
    for name, known in first.terms.withdrawn.items() if course.created.get("parent") is None else ():
        if name in course.replaced or not bench.has(first.terms, name):
            continue
        there = np.setdiff1d(known.documents, bench.pools[name].erased)
        if len(there):
            where = f"{first.entry.where}: withdrawals.pools.{name}"
            expected = "documents that the pool says were erased"
            found.append(Finding("withdrawn", where, expected, f"{len(there)} others: {there[:8].tolist()}"))
    return found


def check_lists(course: Following, bench: Bench) -> list[Finding]:
    """Every list of a withdrawal against the pools it is about, where these are there."""
    found = []
    for terms, taken in course.lists_read:
        for name, documents in taken.documents.items():
            if not bench.has(terms, name):
                continue
            pool, ids = bench.pools[name], taken.ids[name]
            where = f"{taken.name}: documents.{name}"
            if documents.max(initial=0) >= pool.num_numbers:
                last = pool.num_numbers - 1
                found.append(Finding("withdrawn", where, f"0..{last}", str(documents.max())))
                continue
            try:
                known = pool.ids(documents)
            except (RecipeError, OSError):
                continue
            for index in np.flatnonzero([a != b for a, b in zip(known, ids, strict=True)])[:8].tolist():
                place = f"{taken.name}: pools.{name}.{index}"
                expected = f"{known[index]!r}, the id of document {documents[index]}"
                found.append(Finding("withdrawn", place, expected, repr(ids[index])))
    return found
