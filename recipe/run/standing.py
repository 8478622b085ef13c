"""Where a handle stands towards the ledger, and turns that are not on record yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recipe.mixing.snapshot import Snapshot
from recipe.run.canonical import Plain
from recipe.run.row import Row
from recipe.run.statement import Subject
from recipe.run.stream import RunStream
from recipe.run.turns import TurnAt


@dataclass(frozen=True, kw_only=True)
class Turning:
    """A turn that is not on record yet."""

    kind: str
    body: Plain
    """What its row says beside what every turn's row does."""
    at: Snapshot
    """The state up to it."""
    base: Snapshot
    """The state from which the steps go on."""
    before: Subject
    """The run up to it."""
    stream: RunStream | None = None
    """Of the run up to it, where steps since the last checkpoint belong to it."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What its row names, by path in the run folder; written first."""

    def core(self, after: Subject) -> Plain:
        """What identifies it in its row; ``after`` is the run from there on."""
        return {
            "kind": self.kind,
            "step": self.base.step,
            "recipe": after.version,
            "recipe_hash": after.version_hash,
            "snapshot": self.base.to_plain(),
            **{key: self.body[key] for key in ("file_hash",) if key in self.body},
        }

    def place(self, after: Subject) -> TurnAt:
        """Its place while it has no row."""
        return TurnAt.pending(self.core(after))


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a handle stands towards the ledger."""

    opened: Snapshot
    known: Row
    """Last row of the ledger when this handle last read or wrote it."""
    rewinds: bool
    """The first checkpoint discards what the ledger has beyond ``opened``."""
    after_turn: bool = False
    """``opened`` is a state taken after the turn at its own step."""
    undone: int | None = None
    """Row of a turn at the very step of ``opened`` that is discarded."""
    turning: Turning | None = None
    """The turn that the first checkpoint puts on record."""

    @property
    def changed(self) -> Mapping[str, tuple[str, str]]:
        """Pools whose change was accepted and is not on record yet: fingerprint before, after."""
        if self.turning is None or self.turning.kind != "data":
            return {}
        return {name: (m["before"], m["after"]) for name, m in self.turning.body["pools"].items()}

    def on_record(self) -> list[Plain]:
        """The accepted change as manifests state it: from which step, and both fingerprints of each pool."""
        pools = {name: {"before": a, "after": b} for name, (a, b) in self.changed.items()}
        return [{"step": self.opened.step, "pools": pools}] if pools else []
