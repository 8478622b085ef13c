"""Where a run stands and what it has spent: read from the end of its record, without a lock."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.mixing.ending import ending
from recipe.mixing.snapshot import Snapshot
from recipe.run.accounts import Accounts
from recipe.run.canonical import Plain
from recipe.run.comparing.measured import without_sealed
from recipe.run.course import stage_at
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.head import read_head
from recipe.run.hints import read_progress
from recipe.run.lease import newest_owner
from recipe.run.ledger import last_of_course, row_at
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.manifests import manifests_backwards
from recipe.run.row import Row
from recipe.run.sayings import went_on_in
from recipe.run.statement import prior_of
from recipe.run.told_turns import told_decisions, told_turns
from recipe.run.weights import Fate

SHOWN_CHECKPOINTS = 5
SHOWN_TURNS = 8


@dataclass(frozen=True, kw_only=True)
class PoolStatus:
    """What a pool has given, in counted tokens, against its share."""

    spent: int
    owed: int
    epoch: int
    documents: int
    """Begun (their first token was served), over all epochs."""
    begun_in_first_epoch: int
    """Of them, in the first epoch; how many distinct ones were read, ``recipe audit`` tells exactly."""
    tokens: Plain
    dropped: Plain


@dataclass(frozen=True, kw_only=True)
class CheckpointStatus:
    """A checkpoint that no rewind discarded."""

    manifest: int
    step: int
    time: str
    uri: str | None
    weights: Fate | None
    """What became of them, as far as it can be seen from here; None where no place was said."""
    gpu_hours: float | None


@dataclass(frozen=True, kw_only=True)
class Status:
    """A run as its record shows it."""

    name: str
    path: str
    step: int
    num_steps: int
    complete: bool
    ending: str | None
    """Why no step is left before the planned number, where that is so."""
    stage: str | None
    """Stage of the next step; None when the run is complete."""
    version: int
    """Of the recipe in force."""
    version_since: int
    """The step from which it is."""
    shares: dict[str, str]
    """In force in the stage of the next step (of the last one, when the run is complete); exact, by pool."""
    turns: list[Plain]
    """The last few, latest first; as :func:`told_turns` gives them."""
    num_turns: int
    """Of all turns, the run's beginning among them."""
    decisions: list[Plain]
    """That a branch was adopted or chosen; latest first."""
    positions: int
    count: str
    """The kind of token that spent and owed are counted in."""
    pools: dict[str, PoolStatus]
    prior: Plain | None
    """Weights from elsewhere that it started from; the tokens they had seen are in no other number."""
    parent: Plain | None
    """Of a branch: where it started, what differs, and whether that is all."""
    went_on_in: Plain | None
    """The decision that a branch goes on as the trunk in place of this run."""
    checkpoints: list[CheckpointStatus]
    """The last few, latest first."""
    num_manifests: int
    """Of all manifests on record, discarded ones among them."""
    measured: Plain
    """What the last checkpoint states by set, but for sealed ones: metrics, and labels scored."""
    warnings: list[Plain]
    served: Plain | None
    """Hint: the last step handed to a trainer, and when; None where the checkpoint is at or past it."""
    unfinished: str | None
    """What a writer that stopped half-way left behind; the next checkpoint puts it right."""
    writer: str | None
    """Who is writing now, or stopped while writing."""

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe status --json``."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def run_status(path: str | Path) -> Status:
    """The status of a run at its last checkpoint; nothing is locked, written, or opened but its record.

    Raises:
        RecipeError: no run, or a damaged record.
    """
    folder = RunFolder(Path(path))
    folder.check()
    place = find_place(folder).state
    head = read_head(folder.ledger)
    accounts = Accounts(place.recipe)
    snapshot = place.snapshot
    num_steps = accounts.curriculum.num_steps
    stock = {name: held.stock for name, held in place.holdings.items()}
    is_complete = snapshot.ended or snapshot.step == num_steps
    turns = list(told_turns(folder, place.turn))
    last = _last_manifest(folder, head.parent)
    return Status(
        name=place.run,
        path=str(folder.path),
        step=snapshot.step,
        num_steps=num_steps,
        complete=is_complete,
        ending=ending(place.recipe, accounts.curriculum, stock, snapshot) if snapshot.ended else None,
        stage=stage_at(accounts.curriculum, snapshot),
        version=place.version,
        version_since=_since(turns),
        shares=_shares(accounts, snapshot),
        turns=turns[:SHOWN_TURNS],
        num_turns=len(turns),
        decisions=told_decisions(folder)[:SHOWN_TURNS],
        positions=snapshot.positions,
        count=place.recipe.count,
        pools=_pools(accounts, snapshot),
        prior=prior_of(place.recipe),
        parent=row_at(folder.ledger, 0).data.get("parent"),
        went_on_in=went_on_in(folder),
        checkpoints=_checkpoints(folder, head.parent),
        num_manifests=0 if head.numbered is None else int(head.numbered.data["manifest"]),
        measured=without_sealed(last.get("metrics", {})),
        warnings=list(last.get("warnings", ())),
        served=None if is_complete else _beyond(read_progress(folder), snapshot.step),
        unfinished=_unfinished(folder, last_of_course(folder.ledger, head.tail), head.tail.end),
        writer=_writer(folder),
    )


def _pools(accounts: Accounts, snapshot: Snapshot) -> dict[str, PoolStatus]:
    """Pools of the recipe in force, as the snapshot counts them."""
    tokens = accounts.cumulative(snapshot)
    return {
        name: PoolStatus(
            spent=pool.spent,
            owed=pool.owed,
            epoch=pool.cursor.epoch,
            documents=pool.documents,
            begun_in_first_epoch=pool.distinct,
            tokens=tokens[name],
            dropped=dict(pool.dropped),
        )
        for name, pool in zip(accounts.names, snapshot.pools, strict=True)
    }


def _since(turns: list[Plain]) -> int:
    """The step from which the recipe version of the last turn is in force."""
    same = takewhile(lambda turn: turn["version"] == turns[0]["version"], turns)
    return int([turn["step"] for turn in same][-1])


def _shares(accounts: Accounts, snapshot: Snapshot) -> dict[str, str]:
    """The shares that the next sequence is dealt by: pools that left the stage have none."""
    name = stage_at(accounts.curriculum, snapshot)
    stages = accounts.curriculum.stages
    layout = next((stage for stage in stages if stage.name == name), stages[snapshot.stage])
    race = layout.legs[layout.leg(max(snapshot.step, layout.first_step))].race
    for pool in snapshot.left if layout is stages[snapshot.stage] else ():
        race = race.without(pool)
    parts = zip(accounts.names, race.parts, strict=True)
    return {pool: str(Fraction(part, race.denominator)) for pool, part in parts}


def _beyond(served: Plain | None, step: int) -> Plain | None:
    """The hint where it tells of steps that the checkpoint does not count."""
    return served if served is not None and served["step"] >= step else None


def _checkpoints(folder: RunFolder, last: Row | None) -> list[CheckpointStatus]:
    if last is None:
        return []
    counted = (one for one in manifests_backwards(folder.ledger) if not one.discarded)
    return [
        CheckpointStatus(
            manifest=one.manifest,
            step=one.step,
            time=one.time,
            uri=one.uri,
            weights=one.weights(folder.path),
            gpu_hours=one.gpu_hours,
        )
        for one in islice(counted, SHOWN_CHECKPOINTS)
    ]


def _last_manifest(folder: RunFolder, last: Row | None) -> Plain:
    """What the last checkpoint states; nothing before the first."""
    if last is None:
        return {}
    path = manifest_path(folder.path, int(last.data["manifest"]))
    return read_manifest(path, last.data["manifest_hash"])


def _unfinished(folder: RunFolder, last: Row, end: int) -> str | None:
    if folder.ledger.stat().st_size > end:
        return "the ledger ends in an unfinished line"
    if last.kind not in ("checkpoint", "created"):
        return f"{last.kind} row {last.number} has no checkpoint after it"
    return None


def _writer(folder: RunFolder) -> str | None:
    try:
        owner = newest_owner(folder.lease)
    except RecipeError as error:  # who writes is told how to mend it
        return f"somebody whose lease cannot be read ({error.problems[0].where})"
    return f"process {owner.pid} on {owner.host}" if owner else None
