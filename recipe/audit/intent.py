"""A recipe of a run, laid out: what rows are held against while it is in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recipe.audit.chain import Entry
from recipe.audit.layout import StageLayout, lay_out, stage_at
from recipe.audit.replay import contest_of
from recipe.audit.schedule import Contest
from recipe.audit.state import Malformed, PoolState, State, read_state
from recipe.config import Recipe


@dataclass(frozen=True, slots=True)
class Intent:
    """A settled recipe, its version, and its stages in steps."""

    recipe: Recipe
    version: int
    layouts: tuple[StageLayout, ...]
    names: tuple[str, ...]
    """Of the pools, in order."""
    hash: str = ""
    """Of the recipe's file, as it is on record."""
    carried: int | None = None
    """Stage inside which it came into force while pools were ahead of their share, or behind it."""

    @classmethod
    def of(cls, recipe: Recipe, version: int, file_hash: str = "") -> Intent:
        """The intent of a settled recipe."""
        return cls(recipe, version, lay_out(recipe), tuple(recipe.pools), file_hash)

    def start(self) -> State:
        """The state before the first step of a run that is no branch."""
        return State(pools=tuple(PoolState() for _ in self.names))

    def state(self, plain: object) -> State:
        """A snapshot from its plain form.

        Raises:
            Malformed: it is none, or its step is no step of its stage.
        """
        state = read_state(plain, len(self.names), len(self.layouts))
        last = self.layouts[state.stage].stop_step
        if state.step <= last:
            return state
        if state.step <= self.layouts[-1].stop_step and self.positions_at(state.step) == state.positions:
            raise Malformed("snapshot.stage", f"{self.stage_of(state.step)}, that of its step", state.stage)
        raise Malformed("snapshot.step", f"at most {last}, the end of its stage", state.step)

    def state_of(self, entry: Entry, row: Mapping[str, Any]) -> State:
        """The snapshot that a row holds; that of a run's first row is known beforehand, unless it branched.

        Raises:
            Malformed: as :meth:`state`.
        """
        if entry.kind == "created" and row.get("parent") is None:
            return self.start()
        return self.state(row.get("snapshot"))

    def enter(self, at: State) -> State:
        """The state; at a stage's end, as the beginning of the next stage."""
        return at.next_stage() if self.stage_of(at.step) == at.stage + 1 else at

    def stage_of(self, step: int) -> int:
        """Stage of a step; of the end of the run, the last one."""
        return min(stage_at(self.layouts, step), len(self.layouts) - 1)

    def positions_at(self, step: int) -> int:
        """Positions of the run before a step."""
        return self.layouts[self.stage_of(step)].positions_at(step)

    def drawn(self, stage: int, start: int, stop: int) -> frozenset[str]:
        """Pools that steps ``start..stop - 1`` of a stage are served from."""
        parts = self.layouts[stage].drawn(start, stop)
        return frozenset(name for name, is_drawn in zip(self.names, parts, strict=True) if is_drawn)

    def contest(self, at: State) -> Contest:
        """The contest for the shares of the leg that a state is in.

        Raises:
            Malformed: nobody stayed.
        """
        return contest_of(self.layouts[at.stage], at, self.carried)
