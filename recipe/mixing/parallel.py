"""What a recipe's parallelism leaves to the trainer: no fault, but worth knowing before the first step."""

from __future__ import annotations

from collections.abc import Iterator

from recipe.config import Recipe


def parallel_warnings(recipe: Recipe) -> Iterator[str]:
    """Stages whose documents context-parallel ranks cannot split, or whose batches fill no pipeline."""
    parallel = recipe.parallel
    for name, stage in recipe.stages.items():
        packing, chunks = stage.packing, 2 * parallel.cp
        isolated = packing.attention != "sequence" and packing.method != "concat"
        if parallel.cp > 1 and isolated and packing.multiple(parallel) % chunks:
            yield (
                f"stage {name!r}: context parallelism over packed documents needs each padded to a multiple "
                f"of {chunks} (packing.document_multiple: 2*cp); without it rows can only be split as a whole"
            )
        smallest = min(sequences for _, sequences in stage.ramp)
        if smallest < parallel.pp:
            yield (
                f"stage {name!r}: batches of {smallest} sequences leave stages of a pipeline of "
                f"{parallel.pp} (parallel.pp) without work"
            )
