"""What an amendment is made of: the recipe that changes, the rest of the run, and the turn on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from recipe.config import Recipe, difference, fingerprint
from recipe.errors import Problem, RecipeError
from recipe.mixing.growth import grown as grown_state
from recipe.mixing.opening import close_pools, open_pools, pool_problems, settle_with
from recipe.mixing.outlook import Outlook, outlook
from recipe.mixing.snapshot import PoolState, Snapshot
from recipe.mixing.trial import changed_policy_problems
from recipe.mixing.turning import base_snapshot, behind_problems, filter_problems
from recipe.mixing.unread import at_next_epoch
from recipe.mixing.withdrawals import Withdrawals, withdrawn_of
from recipe.pools import Pool
from recipe.pools.growth import Prefix, grown_from
from recipe.run.canonical import Plain
from recipe.run.changing.discarded import discarded_manifests
from recipe.run.folder import RecipeVersion, RunFolder
from recipe.run.head import read_head
from recipe.run.holdings import Holding, changed, known_paths, refuse_changed
from recipe.run.manifest import manifest_path, read_manifest, seal_of, sealed
from recipe.run.place import Place, subject_of
from recipe.run.rows_of_kind import last_of_kind
from recipe.run.standing import Turning
from recipe.run.statement import Statement, Subject, text_on_record
from recipe.run.ways_back import with_ways_back

Growth = Literal["next-epoch", "now"]
AT = "--at {step}"
"""How a step is named beside a run."""


@dataclass(frozen=True, kw_only=True)
class Approval:
    """Why a run is changed, and who said so."""

    reason: str
    approved_by: str | None = None
    by: str = "user"
    """``user``, ``policy`` or ``adoption``."""
    evidence: str | None = None
    """Hash of what the decision rests on."""
    policy: Plain | None = None
    """Of an answer of a policy: its target and what it remembers."""

    def to_plain(self) -> Plain:
        """As an amendment's row holds it.

        Raises:
            ValueError: a reason or a name that cannot be put on record.
        """
        return {
            "reason": text_on_record("reason", self.reason),
            "approved_by": None
            if self.approved_by is None
            else text_on_record("approved_by", self.approved_by),
            "by": self.by,
            "evidence": self.evidence,
            "policy": self.policy,
        }


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


_GROWN = (
    "put the data back that the run was served from; a pool that only has more parts now may open them "
    "(--grown next-epoch or now)"
)


def _none_grown(opens: Growth) -> RecipeError:
    return RecipeError.single(
        "no pool has more parts now",
        "--grown",
        given=opens,
        expected="a pool of the run that has grown since",
        fix="leave it out; a pool that is new to the run needs only its path and its quotas",
    )


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
        raise RecipeError.single(
            f"{folder.path}: nothing to amend",
            "KEY=VALUE",
            given="the recipe in force",
            expected="a change of it",
            fix="say what shall change, such as stages.base.quotas.code=20%",
        )
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


def manifest_at(folder: RunFolder, step: int) -> Plain | None:
    """The manifest of the lineage at a step; None where there is none."""
    head = read_head(folder.ledger, step)
    if head.parent is None or head.parent.end_step != step:
        return None
    path = manifest_path(folder.path, int(head.parent.data["manifest"]))
    return read_manifest(path, head.parent.data["manifest_hash"])


def words_at(folder: RunFolder, step: int) -> Statement:
    """What the trainer said at the checkpoint of a step: it holds for the same weights again."""
    manifest = manifest_at(folder, step)
    if manifest is None:
        return Statement()
    return Statement(
        uri=manifest["checkpoint"]["uri"],
        digest=manifest["checkpoint"]["digest"],
        gpu_hours=manifest["gpu_hours"],
        metrics=manifest["metrics"],
    )


def next_version(folder: RunFolder) -> int:
    """One more than the last recipe version that a row of the ledger puts in force, discarded or not."""
    row = last_of_kind(folder.ledger, "amend")
    return 2 if row is None else int(row.data["recipe"]) + 1
