"""A chunk row against the states that it lies between: place, sums, debts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from recipe.audit.account import difference
from recipe.audit.chain import Entry
from recipe.audit.findings import compared, shown
from recipe.audit.intent import Intent
from recipe.audit.layout import StageLayout
from recipe.audit.lineage import TURNS, Mark
from recipe.audit.state import COUNTS, State
from recipe.maths.rounding import owed
from recipe.pools import Finding


@dataclass(frozen=True)
class Between:
    """A row, the state it starts from (in its stage) and the one it states."""

    intent: Intent
    entry: Entry
    start: State
    end: State
    closed_early: bool = False
    """The course of the run turns right behind it."""

    @property
    def layout(self) -> StageLayout:
        """Of the stage."""
        return self.intent.layouts[self.start.stage]

    @cached_property
    def close(self) -> int:
        """The step at which the chunk closes, if nothing closes it early."""
        return self.layout.close_of(self.start.chunk)

    @property
    def stop(self) -> int:
        """The step at which the chunk must close."""
        is_early = self.closed_early and not self.end.ended and self.start.step < self.end.step < self.close
        return self.end.step if is_early else self.close

    @property
    def work_stop(self) -> int:
        """The step to compute to: where the chunk must close, unless that is absurdly far behind the row."""
        far = not self.is_in_place and self.stop > 2 * self.end.step + 1000
        return self.end.step if far else self.stop

    @property
    def is_in_place(self) -> bool:
        """Whether the row ends where it must: at the chunk's close, or where the run ended."""
        ended = self.end.ended and self.start.step < self.end.step < self.stop
        return self.end.step == self.stop or ended

    def planned(self, before: Mark, stated: object = None) -> tuple[int, int]:
        """Positions of the stage that the row plans for: from, to; ``stated``: to where it says."""
        layout, chunk = self.layout, self.start.chunk
        begin = chunk * layout.chunk
        if before.entry.kind in TURNS:
            begin = before.planned_to if before.stage == self.start.stage else 0
        early = min(max(begin, self.end.stage_positions), layout.length)
        if self.stop < self.close or (self.closed_early and self.end.ended and stated == early):
            return begin, early
        return begin, min((chunk + 1) * layout.chunk, layout.length)


def place(between: Between) -> list[Finding]:
    """What of a snapshot follows from its step alone."""
    start, end = between.start, between.end
    layout = between.layout
    if not start.step <= end.step <= layout.stop_step:
        where = f"{between.entry.where}: snapshot.step"
        return [Finding("lineage", where, f"{start.step}..{layout.stop_step}", str(end.step))]
    positions = layout.positions_at(end.step)
    expected = {
        "stage": start.stage,
        "positions": positions,
        "stage_positions": positions - layout.first_position,
        "sequences": start.sequences + layout.sequences_between(start.step, end.step),
    }
    observed = {name: getattr(end, name) for name in expected}
    return compared("sums", f"{between.entry.where}: snapshot", expected, observed)


def sums(between: Between) -> Iterator[Finding]:
    """Sums that hold in every row, by the differences of its two snapshots."""
    where, names = between.entry.where, between.intent.names
    pairs = zip(between.start.pools, between.end.pools, strict=True)
    gained = dict(zip(names, (difference(a, b) for a, b in pairs), strict=True))
    total = {kind: sum(pool[kind] for pool in gained.values()) for kind in ("owed", "spent", "sequences")}
    if total["owed"] != total["spent"]:
        yield Finding(
            "sums", f"{where}: sum of owed", f"{total['spent']}, the sum of spent", str(total["owed"])
        )
    served = between.end.sequences - between.start.sequences
    if total["sequences"] != served:
        yield Finding("sums", f"{where}: sum of sequences", str(served), str(total["sequences"]))
    context = between.layout.context
    for name, pool in gained.items():
        held, positions = pool["body"] + pool["special"] + pool["padding"], pool["sequences"] * context
        if held != positions:
            expected = f"{positions}, the positions of {pool['sequences']} sequences"
            yield Finding("sums", f"{where}: pools.{name}: body + special + padding", expected, str(held))
        if any(pool[kind] < 0 for kind in COUNTS if kind != "owed") or pool["overlap"] > pool["body"]:
            yield Finding("sums", f"{where}: pools.{name}", "counts that grow, overlap in body", shown(pool))


def shares(between: Between) -> Iterator[Finding]:
    """Counted tokens, debts and owed tokens of a row that lies in one leg, by what its pools were served."""
    start, end, layout, where = between.start, between.end, between.layout, between.entry.where
    if layout.leg_before(start.step) != layout.leg_before(end.step) or start.left != end.left:
        return
    contest, counted = between.intent.contest(end), end.counted - start.counted
    before, after = (owed(contest.parts, contest.whole, at.counted) for at in (start, end))
    total = 0
    for index, (a, b) in enumerate(zip(start.pools, end.pools, strict=True)):
        spent = b.counts["spent"] - a.counts["spent"]
        total += spent
        name = between.intent.names[index]
        debt = a.debt + contest.whole * spent - contest.parts[index] * counted
        if b.debt != debt:
            yield Finding(
                "sums", f"{where}: snapshot: debt of {name}", f"{debt}, by what was served", str(b.debt)
            )
        due = a.counts["owed"] + after[index] - before[index]
        if b.counts["owed"] != due:
            expected = f"{due}, its share of what was served"
            yield Finding("sums", f"{where}: snapshot: owed of {name}", expected, str(b.counts["owed"]))
    if counted != total:
        expected = f"{start.counted + total}, with what was served"
        yield Finding("sums", f"{where}: snapshot.counted", expected, str(end.counted))


def debts(intent: Intent, entry: Entry, end: State) -> Iterator[Finding]:
    """Every pool is within the bound of its share at the end of a row."""
    contest = intent.contest(end)
    for name, pool in zip(intent.names, end.pools, strict=True):
        if not contest.within_bound(pool.debt):
            bound = f"at most {contest.bound} (in 1/{contest.whole} tokens)"
            yield Finding("drift", f"{entry.where}: snapshot: debt of {name}", bound, str(pool.debt))
