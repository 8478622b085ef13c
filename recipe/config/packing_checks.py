"""What must hold of a stage's packing: end marks that are left out, and neighbours that change."""

from __future__ import annotations

from collections.abc import Iterator

from recipe.config.drawing import draws_from
from recipe.config.partial import run_checks
from recipe.config.problems import Fault
from recipe.config.recipe import Recipe
from recipe.config.stage import Stage


def packing_stage_faults(name: str, stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    """Faults of a stage's packing, and of pools that it does not fit."""
    yield from (fault.below(("stages", name)) for fault in run_checks([_has_neighbours], stage))
    for pool in recipe.pools:
        if draws_from(recipe, name, pool):
            for fault in run_checks([_marks_of_documents], pool, stage, recipe):
                yield fault.below(("stages", name))


def _has_neighbours(stage: Stage) -> Iterator[Fault]:
    packing = stage.packing
    if packing.shuffle_fit and packing.method != "best_fit":
        fix = "leave shuffle_fit out, or use packing best_fit"
        expected = f"false with packing {packing.method}: pieces are not sorted by their length"
        yield Fault(("packing", "shuffle_fit"), True, expected, fix)


def _marks_of_documents(pool: str, stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    own = recipe.pools[pool].slicing
    slicing = own.over(stage.declared_slicing) if own is not None else stage.declared_slicing
    if slicing.specials == "window" and stage.packing.eos_keep != 1:
        fix = "leave eos_keep out, or use specials: document"
        expected = f"100%: marks stand round every window of pool {pool}, not between documents"
        yield Fault(("packing", "eos_keep"), _percent(stage), expected, fix)


def _percent(stage: Stage) -> str:
    return str(stage.packing.model_dump(mode="json")["eos_keep"])
