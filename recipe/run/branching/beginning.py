"""The recipe and the state that a branch begins with: functions of its parent's and of what was asked for.

The state is that of an amendment at the parent's checkpoint (:func:`recipe.mixing.turning.base_snapshot`)
with every pool's reading where it is, but:

- a pool that is read *fresh* stands at the beginning of epoch 0, and holds no returned range. What it gave
  before stays counted;
- under **another seed** every order is another one, so that a place in the old order says nothing in the
  new one: each pool that is not read fresh, and of whose epoch anything was opened, goes on at its next
  epoch. What that leaves unread of the epoch is counted under ``dropped["unread"]``: every token of an epoch
  is still fresh once or dropped by one reason. Documents that the parent read may come again before the
  ones it left unread, which is said wherever the branch is shown. Branches with one seed go on alike;
- with **another tokenizer** tokens are other units: every pool is read fresh, all counts begin at zero, and
  what the parent spent is stated apart as tokens before the start.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from recipe.config import Recipe, recipe_from_plain, recipe_to_plain
from recipe.config.stage import OBJECTIVE, SHARES
from recipe.mixing.snapshot import Cursor, PoolState, Snapshot
from recipe.mixing.turning import base_snapshot
from recipe.mixing.unread import at_next_epoch, is_begun
from recipe.mixing.withdrawals import Withdrawals, withdrawn_of
from recipe.pools import Pool


def renamed(recipe: Recipe, names: Mapping[str, str]) -> Recipe:
    """A recipe in which some pools have other names and keep their orders.

    Args:
        recipe: settled.
        names: the new name of each.
    """
    if not names:
        return recipe
    data = recipe_to_plain(recipe)
    data["pools"] = {names.get(name, name): pool for name, pool in data["pools"].items()}
    for old, new in names.items():
        data["pools"][new].setdefault("renamed_from", old)
    for pool in data["pools"].values():
        if "of" in pool:
            pool["of"] = names.get(pool["of"], pool["of"])
    for group in data.get("groups", {}).values():
        group["pools"] = [names.get(name, name) for name in group["pools"]]
        if isinstance(within := group.get("within"), dict) and "shares" in within:
            within["shares"] = _keys(within["shares"], names)
    for stage in data["stages"].values():
        for form in (*SHARES, OBJECTIVE, "transform"):
            if form in stage:
                stage[form] = _keys(stage[form], names)
    return recipe_from_plain(data, source=recipe.name)


def _keys(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}


def beginning(
    at: Snapshot,
    recipes: tuple[Recipe, Recipe],
    pools: Mapping[str, Pool],
    fresh: Collection[str],
    withdrawn: Withdrawals,
) -> Snapshot:
    """The state that a branch's steps go on from.

    Args:
        at: the parent's, at its checkpoint.
        recipes: the parent's, and the branch's; both settled, pools called as in the branch.
        pools: of the branch, opened.
        fresh: names of those that are read from their beginning.
        withdrawn: documents of the parent's pools that were withdrawn, pools called as in the branch.
    """
    old, new = recipes
    base = base_snapshot(at, old, new, renewed=fresh)
    states = []
    for name, state in zip(new.pools, base.pools, strict=True):
        if name in fresh:
            state = replace(state, cursor=Cursor(), held=())
        elif old.seed != new.seed:
            state = at_next_epoch(old, pools[name], state, withdrawn_of(new, withdrawn, name))
        states.append(state)
    return replace(base, pools=tuple(states))


def uncounted(base: Snapshot) -> Snapshot:
    """A state with nothing spent, owed or read: tokens of another tokenizer are counted apart."""
    return replace(base, counted=0, pools=tuple(PoolState() for _ in base.pools))


def renamed_withdrawals(
    withdrawn: Withdrawals, names: Mapping[str, str], gone: Collection[str]
) -> Withdrawals:
    """What was withdrawn, pools called as in a branch; without pools whose documents are others now."""
    pools = {names.get(name, name): known for name, known in withdrawn.pools.items()}
    kept = {name: known for name, known in pools.items() if name not in gone}
    return Withdrawals(withdrawn.number, kept)


def cut_epochs(at: Snapshot, recipes: tuple[Recipe, Recipe], fresh: Collection[str]) -> list[str]:
    """The pools of which another seed leaves an epoch unfinished."""
    old, new = recipes
    states = dict(zip(old.pools, at.pools, strict=True))
    if old.seed == new.seed:
        return []
    return [name for name in old.pools if name not in fresh and is_begun(states[name])]
