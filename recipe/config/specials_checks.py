"""Marks stand round documents, or round windows, in every stage that draws a pool alike.

Where a stage ends inside a document and the next one has the other kind of marks, the token at the seam is
a label twice (a document's piece reads it ahead, a window's BOS predicts it) or never (neither does).
"""

from __future__ import annotations

from collections.abc import Iterator

from recipe.config.drawing import drawing_stages
from recipe.config.partial import run_checks
from recipe.config.problems import Fault
from recipe.config.recipe import Recipe


def specials_faults(recipe: Recipe) -> Iterator[Fault]:
    """Stages whose marks differ from those that a pool had in a stage before; each is named once."""
    named = set[str]()
    for pool in recipe.pools:
        for fault in run_checks([_of_pool], pool, recipe):
            if (stage := str(fault.place[1])) not in named:
                named.add(stage)
                yield fault


def _of_pool(pool: str, recipe: Recipe) -> Iterator[Fault]:
    own = recipe.pools[pool].slicing
    marks = {
        stage.name: (own and own.specials) or stage.declared_slicing.specials or "document"
        for stage in drawing_stages(recipe, pool)
    }
    first = next(iter(marks), None)
    for stage, kind in marks.items():
        if first is not None and kind != marks[first]:
            yield Fault(
                ("stages", stage, "slicing", "specials"),
                f"{kind}; stage {first} has {marks[first]}, and both draw pool {pool}",
                f"{marks[first]}, as before: where one stage ends inside a document and the next goes on, "
                "a token would be a label twice, or never",
                f"write specials: {kind} for every stage, or leave it out here",
            )
            return
