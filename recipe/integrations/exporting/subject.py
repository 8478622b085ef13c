"""What is exported: the stream of a run, every step under the recipe then in force, or of a recipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recipe.config import Recipe
from recipe.mixing.opening import close_pools
from recipe.mixing.plan import make_plan
from recipe.mixing.snapshot import start_of
from recipe.run.opening import open_run
from recipe.run.stream import RunStream, steps_there


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A stream with its name."""

    name: str
    stream: RunStream
    recorded: int
    """Steps up to the run's last checkpoint; 0 for a recipe. Later ones may still be amended."""

    def turns(self, first: int, stop: int) -> list[tuple[int, int, RunStream]]:
        """The stretches of steps with one recipe in force: ``(first, stop, stream)`` in order.

        Raises:
            RecipeError: an earlier turn's data is gone.
        """
        found = []
        while first < stop:
            stream = self.stream.at(stop - 1)
            found.append((max(first, stream.floor), stop, stream))
            stop = min(stop, stream.floor)
        return found[::-1]

    def end(self) -> int:
        """Steps that there are: those planned, or fewer where a pool runs dry."""
        return steps_there(self.stream, self.stream.step)


@contextmanager
def of_run(path: str | Path, pools_root: str | Path | None = None) -> Iterator[Subject]:
    """A run at its last checkpoint; nothing is written there.

    Raises:
        RecipeError: as :func:`recipe.open_run`.
    """
    with open_run(path, pools_root=pools_root) as run:
        yield Subject(name=run.name, stream=run.stream(), recorded=run.step)


@contextmanager
def of_recipe(recipe: Recipe) -> Iterator[Subject]:
    """A recipe that no run was started with.

    Raises:
        RecipeError: a pool is missing, or runs out for certain.
    """
    plan = make_plan(recipe, compare_packing=False)
    pools = {name: plan.opened[name] for name in recipe.pools}
    try:
        plan.check()
        yield Subject(
            name=plan.recipe.name, stream=RunStream(plan.recipe, pools, [start_of(len(pools))]), recorded=0
        )
    finally:
        close_pools(pools.values())
