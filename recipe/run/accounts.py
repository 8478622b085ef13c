"""What a stretch of steps spent: differences of two snapshots, and the ledger's chunk rows.

Chunk rows of one lineage tile its steps without gaps. A row covers what lies between the snapshot
of the closing row before it and its own. Numbers are of the row alone, but ``debt`` and
``snapshot``, which are at its end. ``grid`` is the stretch of the stage's stated length, in
positions, that the row plans for: from one multiple of the chunk to the next, or to the place
where something else closed it early.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from recipe.config import Recipe
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.snapshot import COUNTS, PoolState, Snapshot
from recipe.mixing.weighing import weights_between, weights_plain
from recipe.run.canonical import Plain

STAGE_COUNTS = ("spent", "body", "overlap", "special", "padding", "labels", "sequences")
"""What is kept per stage and pool."""

StageTotals = dict[str, dict[str, dict[str, int]]]
"""Stage, pool, kind: tokens."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of an accounted stretch: the snapshot there, and how far the stage was planned."""

    snapshot: Snapshot
    stage: int
    """Stage of the stretch; the next one may begin here."""
    planned_to: int
    """Positions of that stage that rows so far plan for."""


class Accounts:
    """The numbers of a run that follow from its recipe and from snapshots."""

    def __init__(self, recipe: Recipe) -> None:
        """For a settled recipe."""
        self.recipe = recipe
        self.curriculum = Curriculum.from_recipe(recipe)
        self.names = tuple(recipe.pools)
        self.members = {name: tuple(group.pools) for name, group in recipe.groups.items()}

    def chunk_rows(self, start: Closing, closings: Iterable[Snapshot], version: int) -> list[Plain]:
        """The bodies of the rows of chunks that close one after another from ``start`` on."""
        rows = []
        for snapshot in closings:
            stage, chunk, _ = self.place(start)
            layout = self.curriculum.stages[stage]
            planned_to = min((chunk + 1) * layout.chunk, layout.length)
            rows.append(self.chunk_row(start, snapshot, planned_to, version))
            start = Closing(snapshot, stage, planned_to)
        return rows

    def place(self, at: Closing) -> tuple[int, int, int]:
        """Stage, chunk and planned positions of the stage that the step after a closing belongs to."""
        stage = self.curriculum.stretch(at.snapshot.step).stage
        chunk = at.snapshot.chunk if at.snapshot.stage == stage else 0
        return stage, chunk, at.planned_to if at.stage == stage else 0

    def chunk_row(self, start: Closing, end: Snapshot, planned_to: int, version: int) -> Plain:
        """The body of one row; all its steps lie in one stage."""
        before = start.snapshot
        stage, chunk, planned_from = self.place(start)
        layout = self.curriculum.stages[stage]
        planned = layout.planned(planned_from, planned_to)
        pools = {
            name: {"planned": tokens, **difference(a, b), "debt": b.debt}
            for name, tokens, a, b in zip(self.names, planned, before.pools, end.pools, strict=True)
        }
        counted = sum(pool["spent"] for pool in pools.values())
        assert counted == sum(pool["owed"] for pool in pools.values()), (before, end)
        row: Plain = {
            "kind": "chunk",
            "recipe": version,
            "stage": layout.name,
            "chunk": chunk,
            "steps": [before.step, end.step],
            "positions": end.positions - before.positions,
            "grid": [planned_from, planned_to],
            "counted": counted,
            "pools": pools,
            "groups": {
                name: {
                    kind: sum(pools[pool][kind] for pool in members) for kind in ("planned", "owed", "spent")
                }
                for name, members in self.members.items()
            },
            "snapshot": end.to_plain(),
        }
        if weights := weights_between(self.recipe, layout, before.step, end.step):
            row["loss_weights"] = weights_plain(weights)
        if end.step == layout.stop_step:
            row["overshoot"] = layout.overshoot
        return row

    def stage_totals(self, before: StageTotals, snapshots: Sequence[Snapshot]) -> StageTotals:
        """Totals by stage, given those at the first snapshot; no stage ends between two neighbours."""
        totals = {
            stage: {pool: dict(kinds) for pool, kinds in pools.items()} for stage, pools in before.items()
        }
        for start, end in pairwise(snapshots):
            if end.step == start.step:
                continue
            layout = self.curriculum.stages[self.curriculum.stretch(start.step).stage]
            stage = totals.setdefault(layout.name, {})
            for name, a, b in triples(self.names, start, end):
                pool = stage.setdefault(name, dict.fromkeys(STAGE_COUNTS, 0))
                for kind in STAGE_COUNTS:
                    pool[kind] += getattr(b, kind) - getattr(a, kind)
        return totals

    def cumulative(self, snapshot: Snapshot) -> dict[str, dict[str, int]]:
        """By pool and kind, over the run."""
        return {
            name: {kind: getattr(pool, kind) for kind in COUNTS}
            for name, pool in zip(self.names, snapshot.pools, strict=True)
        }

    def warnings(self, before: Snapshot, after: Snapshot) -> list[Plain]:
        """Bodies of the rows for pools that passed ``max_epochs`` between two snapshots."""
        rows = []
        for name, a, b in triples(self.names, before, after):
            allowed = self.recipe.epochs_allowed(name)
            if passed(b, allowed) and not passed(a, allowed):
                rows.append(
                    {
                        "kind": "warning",
                        "step": after.step,
                        "pool": name,
                        "what": "read more often than max_epochs",
                        "epoch": b.cursor.epoch,
                        "max_epochs": allowed,
                    }
                )
        return rows


def triples(
    names: Sequence[str], before: Snapshot, after: Snapshot
) -> Iterator[tuple[str, PoolState, PoolState]]:
    """Name and states of every pool of the later snapshot; a pool added since had given nothing before."""
    assert len(before.pools) <= len(after.pools) <= len(names), (len(before.pools), len(after.pools), names)
    for name, a, b in zip_longest(names[: len(after.pools)], before.pools, after.pools):
        yield name, a or PoolState(), b


def discarded(names: Sequence[str], end: Snapshot, back_to: Snapshot) -> Plain:
    """What a rewind takes out of the account, by pool and kind."""
    return {name: difference(a, b) for name, a, b in triples(names, back_to, end)}


def difference(before: PoolState, after: PoolState) -> Plain:
    """What a pool gave between two states, by kind; what was dropped by reason."""
    plain: Plain = {kind: getattr(after, kind) - getattr(before, kind) for kind in COUNTS}
    if left_out := after.separators - before.separators:
        plain["separators"] = left_out
    plain["dropped"] = dropped(before.dropped, after.dropped)
    return plain


def dropped(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Tokens dropped between two states, by reason; reasons without any are left out.

    >>> dropped({"tail": 3}, {"tail": 5, "short": 1})
    {'short': 1, 'tail': 2}
    """
    reasons = sorted({*before, *after})
    return {why: n for why in reasons if (n := after.get(why, 0) - before.get(why, 0))}


def passed(pool: PoolState, epochs: int) -> bool:
    """Whether a pool was drawn from beyond its first ``epochs`` readings."""
    cursor = pool.cursor
    return cursor.epoch > epochs or (
        cursor.epoch == epochs and (bool(cursor.cuts) or (cursor.block, cursor.sequence) > (0, 0))
    )
