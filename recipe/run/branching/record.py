"""What is put on record of a branch beside its recipe and state, and what is said before it is created."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recipe.config import Recipe
from recipe.config.overrides import read_overrides
from recipe.config.pool_patterns import fits
from recipe.config.pool_sets import STAR
from recipe.config.stage import OBJECTIVE
from recipe.mixing.outlook import Outlook
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.withdrawals import Withdrawals
from recipe.run.branching.beginning import cut_epochs
from recipe.run.branching.controlled import Control, Side, compare_sides
from recipe.run.branching.origin import Origin, later_withdrawals
from recipe.run.branching.wishes import Wish
from recipe.run.canonical import Plain
from recipe.run.changing.consulting import LastAnswer, last_answer
from recipe.run.holdings import Holdings


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A branch worked out, while its pools are open."""

    wish: Wish
    old: Recipe
    """The parent's recipe in force, its pools called as in the branch."""
    declared: Recipe
    recipe: Recipe
    before: Holdings
    holdings: Holdings
    fresh: tuple[str, ...]
    is_retokenised: bool
    withdrawn: Withdrawals
    lapsed: tuple[str, ...]
    """Pools of other documents than those that the parent withdrew from."""
    base: Snapshot
    outlook: Outlook
    trunk: Outlook | None


def control_of(origin: Origin, planned: Planned) -> Control:
    """The branch held against its parent."""
    one = _side(origin, planned.old, planned.before)
    return compare_sides(one, _side(origin, planned.recipe, planned.holdings), _named(planned))


def _side(origin: Origin, recipe: Recipe, holdings: Holdings) -> Side:
    return Side(
        recipe=recipe,
        pools={name: held.fingerprint for name, held in holdings.items()},
        tokenizers={name: held.tokenizer for name, held in holdings.items()},
        step=origin.step,
        origin=origin.manifest["hash"],
    )


def _named(planned: Planned) -> list[str]:
    """Dotted keys of the recipe that a wish names."""
    wish = planned.wish
    keys = [change.key for change in read_overrides(wish.overrides)[0]]
    new = [name for name in planned.recipe.pools if name not in planned.old.pools]
    for key in [key for key in keys if key.startswith("pools.") and STAR in key]:
        keys += [f"pools.{name}" for name in fits(key.removeprefix("pools."), new)]
    stages = dict.fromkeys(
        key.split(".")[1] for key in keys if key.startswith("stages.") and key.count(".") > 1
    )
    if wish.from_pool is not None:
        keys += [f"stages.{stage}.quotas.{wish.from_pool}" for stage in stages]
        keys += [f"stages.{stage}.{OBJECTIVE}.{wish.from_pool}" for stage in _weighed(keys)]
    if wish.end_stage is not None:
        both = [name for name in dict.fromkeys([*planned.old.stages, *planned.recipe.stages])]
        changed = [name for name in both if planned.old.stages.get(name) != planned.recipe.stages.get(name)]
        keys += [f"stages.{name}" for name in changed]
    if planned.is_retokenised:
        keys.append("start")
    return keys


def _weighed(keys: Sequence[str]) -> list[str]:
    """Stages for which keys of what their loss counts are named."""
    places = [key.split(".") for key in keys]
    return list(
        dict.fromkeys(place[1] for place in places if place[0] == "stages" and place[2:3] == [OBJECTIVE])
    )


def parent_record(origin: Origin, planned: Planned, control: Control) -> Plain:
    """What a branch's record says of its parent."""
    wish = planned.wish
    parent: Plain = {
        "run": origin.state.run,
        "id": origin.identity["id"],
        "path": str(origin.folder.path.absolute()),
        "manifest": origin.number,
        "hash": origin.manifest["hash"],
        "step": origin.step,
        "data": wish.data,
        **control.to_plain(),
    }
    if wish.data == "continue" and planned.fresh:
        parent["fresh"] = list(planned.fresh)
    if planned.is_retokenised:
        parent["retokenised"] = True
    if wish.renamed:
        parent["renamed"] = dict(wish.renamed)
    return parent


def policy_record(origin: Origin, planned: Planned) -> Plain | None:
    """The last answer of the parent's policy, where the branch goes on with it; None where there is none."""
    policy, before = planned.recipe.policy, planned.old.policy
    if policy is None or before is None or policy.target != before.target:
        return None
    last = last_answer(origin.folder.ledger, origin.state.turn, policy.target)
    if last == LastAnswer():
        return None
    return {"target": policy.target, "memory": last.memory, "asked": last.step}


def notes(origin: Origin, planned: Planned) -> Iterator[str]:
    """What is to be said before a branch is created, and in its plan."""
    at = origin.state.snapshot
    recipes = (planned.old, planned.recipe)
    if planned.wish.data == "fresh":
        yield "every pool is read from its beginning: documents that the parent read come again"
    elif planned.fresh:
        yield f"read from the beginning: {', '.join(planned.fresh)}"
    if jumped := cut_epochs(at, recipes, planned.fresh):
        yield (
            f"another seed ({planned.old.seed} → {planned.recipe.seed}): {', '.join(jumped)} go on at the "
            "next epoch, in another order; what is unread of this one is counted as dropped (unread), and "
            "documents that the parent read may come again before those"
        )
    if planned.is_retokenised:
        yield "another tokenizer: counts begin at zero; what the parent spent is shown apart, never added"
    if planned.lapsed:
        yield (
            f"{', '.join(planned.lapsed)}: the parent withdrew documents of what these replace; "
            "withdraw them from the branch too (recipe withdraw)"
        )
    if later := later_withdrawals(origin):
        yield (
            f"the parent withdrew documents after this checkpoint (withdrawals: {later}): they are not "
            "withdrawn here; withdraw them from the branch too (recipe withdraw)"
        )
    yield from planned.outlook.warnings
