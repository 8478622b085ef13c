"""An amendment worked out: what changes, the rest of the run before and after, the turn to put on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recipe.config import Recipe, difference, fingerprint
from recipe.errors import Problem, RecipeError
from recipe.mixing.growth import grown as grown_state
from recipe.mixing.outlook import Outlook, outlook
from recipe.mixing.snapshot import PoolState, Snapshot
from recipe.mixing.trial import changed_policy_problems
from recipe.mixing.turning import base_snapshot, behind_problems
from recipe.mixing.unread import at_next_epoch
from recipe.mixing.withdrawals import Withdrawals, withdrawn_of
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.changing.change import Change
from recipe.run.changing.discarded import discarded_manifests
from recipe.run.checkpoint_steps import checkpoint_steps, nearest
from recipe.run.folder import RecipeVersion, RunFolder
from recipe.run.head import read_head
from recipe.run.holdings import Holding
from recipe.run.manifest import seal_of, sealed
from recipe.run.place import Place, subject_of
from recipe.run.rows_of_kind import last_of_kind
from recipe.run.standing import Turning
from recipe.run.statement import Subject
from recipe.run.ways_back import with_ways_back

AT = "--at {step}"
"""How a step is named beside a run."""


@dataclass(frozen=True, kw_only=True)
class Amendment:
    """An amendment worked out: what changes, and the rest of the run before and after."""

    path: str
    step: int
    version: int
    """Of the recipe, once it is on record."""
    changes: tuple[str, ...]
    """``key: old → new``, a line each."""
    old: Recipe
    new: Recipe
    before: Outlook
    after: Outlook
    discards: int
    """Steps on record after ``step``, which going on from there discards."""
    discarded: tuple[Plain, ...]
    """Manifests among them that have metrics, that a decision is about, or that a turn wrote."""
    rest: Plain | None = None
    """GPU-hours and seconds of the rest at the rate measured last, where checkpoints state GPU-hours."""
    manifest: int | None = None
    """Number of the manifest that put it on record."""

    def to_plain(self) -> Plain:
        """Plain values for ``recipe amend --json``."""
        return {
            "run": self.path,
            "step": self.step,
            "version": self.version,
            "changes": list(self.changes),
            "discards": self.discards,
            "discarded": list(self.discarded),
            "before": self.before.to_plain(),
            "after": self.after.to_plain(),
            "rest": self.rest,
            "manifest": self.manifest,
        }


def worked_out(
    folder: RunFolder, place: Place, change: Change, *, anew: bool = False, allow: Sequence[str] = ()
) -> tuple[Amendment, Snapshot]:
    """An amendment to a settled recipe, and the state that the run would go on from.

    With ``anew`` a recipe that is the same again is put on record too. ``allow`` names what a changed policy
    may be beside the shipped ones.

    Raises:
        RecipeError: nothing changes, what is behind would, a changed policy is not allowed or could not
            answer, or a pool runs out for certain.
    """
    at, old, new, pools = place.state.snapshot, place.state.recipe, change.recipe, change.pools
    if fingerprint(new) == fingerprint(old) and not (change.grown or anew):
        raise _nothing_changes(folder, old, new)
    if problems := behind_problems(old, new, at, pools):
        problems = with_ways_back(folder.ledger, old, at, problems, AT)
        raise RecipeError(f"{folder.path}: changes of what is behind step {at.step}", problems)
    if problems := changed_policy_problems(old, new, allow):
        raise RecipeError(f"{folder.path}: a policy that cannot be asked", problems)
    base = base_snapshot(at, old, new, renewed=change.grown)
    states = dict(zip(new.pools, base.pools, strict=True))
    for name in change.grown:
        states[name] = _with_growth(states[name], change, pools[name], place.state.withdrawn)
    base = replace(base, pools=tuple(states.values()))
    after = outlook(new, pools, base)
    if after.positions == after.end_positions and not (change.grown or anew):
        raise _nothing_left(folder, new, at.step)
    if after.problems:
        raise RecipeError(f"{folder.path}: the rest of the run cannot be served", after.problems)
    head = read_head(folder.ledger)
    amendment = Amendment(
        path=str(folder.path),
        step=at.step,
        version=next_version(folder),
        changes=(*difference(old, new), *(f"pools.{name}: grown, {change.opens}" for name in change.grown)),
        old=old,
        new=new,
        before=outlook(old, {name: pools[name] for name in old.pools}, _as_it_was(at, old, change)),
        after=after,
        discards=max(0, head.reached.end_step - at.step),
        discarded=discarded_manifests(folder, at.step),
    )
    return amendment, base


def _nothing_left(folder: RunFolder, new: Recipe, end: int) -> RecipeError:
    """The run has reached its end, and the change gives it no further step."""
    steps = checkpoint_steps(folder.ledger)
    before = nearest([step for step in steps if step < end], end)
    earlier = f"; or amend it at an earlier checkpoint (--at {before[-1]})" if before else ""
    return RecipeError.single(
        f"{folder.path}: nothing is left to change",
        f"step {end:,}",
        given="the end of the run, also under the changed recipe",
        expected="steps ahead that the change is about",
        fix=f"add a stage, +stages.NAME={{like: {list(new.stages)[-1]}, tokens: …}}{earlier}",
    )


def _nothing_changes(folder: RunFolder, old: Recipe, new: Recipe) -> RecipeError:
    """The recipe is the one in force; where a pool is said to be is no part of it."""
    problems = [
        Problem(
            f"pools.{name}.path", f"{new.folder(name)}: the same pool at another place, and nothing else",
            "a change of the recipe: a pool is what it holds, not where it is",
            f"put it where the run reads it; if documents were erased from it, then: recipe withdraw "
            f"{folder.path} --erased",
        )
        for name in new.pools
        if name in old.pools and new.folder(name) != old.folder(name)
    ]  # fmt: skip
    fix = "say what shall change, such as stages.base.quotas.code=20%"
    problems = problems or [Problem("KEY=VALUE", "the recipe in force", "a change of it", fix)]
    return RecipeError(f"{folder.path}: nothing to amend", problems)


def turned(
    folder: RunFolder, place: Place, change: Change, base: Snapshot, said: Plain
) -> tuple[Subject, Turning]:
    """The run under a changed recipe, and the turn that its first write puts on record.

    Args:
        folder: the run's.
        place: where it turns.
        change: the recipe from there on.
        base: the state that it goes on from.
        said: why, and who approved it.
    """
    new, pools = change.recipe, change.pools
    number = next_version(folder)
    version = RecipeVersion(
        version=number,
        step=base.step,
        reason=said["reason"],
        approved_by=said["approved_by"],
        recipe=new,
        declared=new,
    )
    stored = sealed(version.to_plain())
    before = subject_of(place, {name: pools[name] for name in place.state.recipe.pools})
    before = replace(
        before, holdings={**before.holdings, **{n: place.state.holdings[n] for n in change.grown}}
    )
    added = {
        name: Holding.of(pool)
        for name, pool in pools.items()
        if name not in before.holdings or name in change.grown
    }
    after = replace(
        before,
        recipe=new,
        version=number,
        version_hash=seal_of(stored),
        holdings={name: added.get(name) or before.holdings[name] for name in new.pools},
    )
    body: Plain = {
        "recipe_fingerprint": fingerprint(new),
        **said,
        "pools": {name: holding.to_plain() for name, holding in added.items()},
    }
    if change.grown:
        body["grown"] = {
            name: {"before": before.holdings[name].fingerprint, "opens": change.opens}
            for name in change.grown
        }
    files = {f"recipes/{number:04d}.yaml": stored}
    return after, Turning(
        kind="amend", body=body, at=place.state.snapshot, base=base, before=before, files=files
    )


def next_version(folder: RunFolder) -> int:
    """One more than the last recipe version that a row of the ledger puts in force, discarded or not."""
    row = last_of_kind(folder.ledger, "amend")
    return 2 if row is None else int(row.data["recipe"]) + 1


def _with_growth(state: PoolState, change: Change, pool: Pool, withdrawn: Withdrawals) -> PoolState:
    """A pool's state once it has more parts."""
    state = grown_state(state, change.grown[pool.name])
    if change.opens == "now":
        state = at_next_epoch(change.recipe, pool, state, withdrawn_of(change.recipe, withdrawn, pool.name))
    return state


def _as_it_was(at: Snapshot, old: Recipe, change: Change) -> Snapshot:
    """A state whose pools that have grown since say how large they were."""
    states = zip(old.pools, at.pools, strict=True)
    pools = (grown_state(pool, change.grown[name]) if name in change.grown else pool for name, pool in states)
    return replace(at, pools=tuple(pools))
