"""What a stage must hold for the trainer's parallelism, and for documents padded to a multiple."""

from __future__ import annotations

from collections.abc import Iterator

from recipe.config.problems import Fault
from recipe.config.recipe import Recipe
from recipe.config.stage import Stage


def _divides_the_context(stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    multiple, context = stage.packing.multiple(recipe.parallel), stage.context
    if context % multiple == 0:
        return
    able = max(n for n in range(1, min(multiple, context) + 1) if context % n == 0)
    nearest = _nearest(context, multiple)
    fix = f"write {able}, or a context of {nearest}" if able > 1 else f"write a context of {nearest}"
    expected = f"a divisor of {context} (the context), as every row is full"
    yield Fault(("packing", "document_multiple"), _told(stage, multiple), expected, fix)


def _documents_stay_apart(stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    """Padding between two documents is there because neither sees the other."""
    packing, multiple = stage.packing, stage.packing.multiple(recipe.parallel)
    if multiple == 1:
        return
    wrong = {
        "method": packing.method == "concat" and "best_fit or none: concat leaves no room between documents",
        "attention": packing.attention == "sequence" and "piece: attention over the row would see padding",
        "cross_labels": packing.cross_labels and "false: padding lies between two documents",
    }
    for key, expected in wrong.items():
        if expected:
            fix = f"change {key}, or leave document_multiple out"
            given = getattr(packing, key)
            yield Fault(
                ("packing", key), given, f"with document_multiple {_told(stage, multiple)}, {expected}", fix
            )


def _splits_over_ranks(stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    parallel = recipe.parallel
    parts, why = 1, ""
    if parallel.cp > 1:
        parts, why = 2 * parallel.cp, f"2 x parallel.cp {parallel.cp}: each rank takes two chunks of a row"
    if parallel.sequence_parallel and parallel.tp > 1:
        parts *= parallel.tp
        why = f"{why + ', ' if why else ''}x parallel.tp {parallel.tp}: sequence_parallel splits positions"
    if stage.context % parts:
        fix = f"write {_nearest(stage.context, parts)}, or change parallel"
        yield Fault(("context",), stage.context, f"a multiple of {parts} ({why})", fix)


def _told(stage: Stage, multiple: int) -> str:
    given = stage.packing.document_multiple
    return str(given) if isinstance(given, int) else f"{given} = {multiple}"


def _nearest(context: int, multiple: int) -> str:
    below = context - context % multiple
    return " or ".join(str(size) for size in (below, below + multiple) if size)


PARALLEL_CHECKS = (_divides_the_context, _documents_stay_apart, _splits_over_ranks)
