"""Withdrawn documents by their ids: the numbers that a list gives are those of the documents it names."""

from __future__ import annotations

import numpy as np

from recipe.audit.findings import Finding
from recipe.audit.following import Following
from recipe.audit.recompute import Bench
from recipe.errors import RecipeError


def check_lists(course: Following, bench: Bench) -> list[Finding]:
    """Every list of a withdrawal against the pools it is about, where these are there."""
    found = []
    for terms, taken in course.lists_read:
        for name, documents in taken.documents.items():
            if not bench.has(terms, name):
                continue
            pool, ids = bench.pools[name], taken.ids[name]
            where = f"{taken.name}: documents.{name}"
            if documents.max(initial=0) >= pool.num_documents:
                last = pool.num_documents - 1
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
