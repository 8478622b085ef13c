"""A changed recipe with its pools opened: those of the run are the same, or have grown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.mixing.opening import close_pools, open_pools, pool_problems, settle_with
from recipe.mixing.turning import filter_problems
from recipe.pools import Pool
from recipe.pools.growth import Prefix, grown_from
from recipe.run.holdings import changed, known_paths, refuse_changed
from recipe.run.place import Place

Growth = Literal["next-epoch", "now"]
_GROWN = (
    "put the data back that the run was served from; a pool that only has more parts now may open them "
    "(--grown next-epoch or now)"
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A changed recipe with its pools opened; settled."""

    recipe: Recipe
    pools: Mapping[str, Pool]
    grown: Mapping[str, Prefix]
    """Pools that have more parts now, and what of them was there before."""
    opens: Growth | None = None
    """When the new parts of a pool are read: from its next epoch on, or at once, in an epoch that begins."""


def open_for(place: Place, new: Recipe, opens: Growth | None, pools_root: Path | None) -> Change:
    """The pools of a changed recipe, those of the run checked to be the same, or to have grown.

    Raises:
        RecipeError: a pool is missing or another one, or has grown and ``opens`` does not say what then.
    """
    holdings, old = place.state.holdings, place.state.recipe
    if problems := list(filter_problems(old, new)):
        raise RecipeError("pools of the run that would hold other documents", problems)
    known = known_paths(old, holdings, pools_root)
    moved = {name for name in known if name in new.pools and new.folder(name) != old.folder(name)}
    known = {name: path for name, path in known.items() if name not in moved}
    lacking = [name for name in new.pools if name not in known and new.folder(name) is None]
    if lacking:
        fix = "give it a path; a stock alone is enough for `recipe plan` only"
        problems = [
            Problem(f"pools.{name}.path", "no path", "the folder of the pool", fix) for name in lacking
        ]
        raise RecipeError("no data for a pool that is added", problems)
    pools = open_pools(new, {n: known[n] if n in known else new.pool_path(n).absolute() for n in new.pools})
    try:
        differing = changed(holdings, {name: pools[name] for name in holdings if name in pools})
        if opens is None:
            refuse_changed(differing, fix=_GROWN)
        elif not differing:
            raise _none_grown(opens)
        grown = {name: grown_from(before, pools[name]) for name, (before, _) in differing.items()}
        if problems := pool_problems(new, pools):
            raise RecipeError("pools that do not go together", problems)
        return Change(recipe=settle_with(new, pools), pools=pools, grown=grown, opens=opens)
    except RecipeError:
        close_pools(pools.values())
        raise


def _none_grown(opens: Growth) -> RecipeError:
    return RecipeError.single(
        "no pool has more parts now",
        "--grown",
        given=opens,
        expected="a pool of the run that has grown since",
        fix="leave it out; a pool that is new to the run needs only its path and its quotas",
    )
