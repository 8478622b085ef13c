"""All manifests of a run at a glance, thousands of them: from the ledger alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from recipe.run.folder import RunFolder
from recipe.run.ledger import check_chain, read_tail, rows_backwards
from recipe.run.row import SAYING_KINDS, Row
from recipe.run.surviving import Bound
from recipe.run.weights import Fate, weights_fate


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestStatus:
    """A manifest that is on record."""

    manifest: int
    """Its number."""
    step: int
    """Steps consumed."""
    time: str
    uri: str | None
    """Where the trainer saved the weights."""
    gpu_hours: float | None
    version: int
    """Of the recipe in force."""
    late: bool
    """Committed after later ones."""
    forgotten: str | None
    """Why its weights are gone, where that is on record."""
    discarded: bool
    """A rewind went back behind it: it counts for nothing, and stays on record."""

    def weights(self, run: Path) -> Fate | None:
        """What became of its weights, as far as it can be seen from here; None where no place was said."""
        gone = self.forgotten is not None
        return None if self.uri is None else weights_fate(run, self.uri, forgotten=gone)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe status --manifests --json``."""
        return asdict(self)


def run_manifests(path: str | Path, last: int | None = None) -> list[ManifestStatus]:
    """The manifests of a run, in the order of their numbers; nothing is locked or written.

    Args:
        path: the run's folder.
        last: only so many, the last ones; default: all.

    Raises:
        RecipeError: no run, or a record that is not what was written.
        ValueError: ``last`` is below zero.
    """
    if last is not None and last < 0:
        raise ValueError(f"last is {last}; it is a number of manifests, from 0")
    folder = RunFolder(Path(path))
    folder.check()
    check_chain(folder.ledger)
    return list(islice(manifests_backwards(folder.ledger), last))[::-1]


def manifests_backwards(ledger: Path) -> Iterator[ManifestStatus]:
    """The manifests, last first: what is said of one, or discards it, comes after it."""
    bound, forgotten = Bound(), dict[tuple[int, str], str]()
    for row in rows_backwards(ledger, read_tail(ledger).end):
        if row.kind == "forgotten":
            forgotten[row.data["manifest"], row.data["manifest_hash"]] = row.data["reason"]
        if row.kind in SAYING_KINDS:
            continue
        is_counted = bound.keeps(row)
        if row.kind == "checkpoint":
            why = forgotten.get((row.data["manifest"], row.data["manifest_hash"]))
            yield _status(row, why, discarded=not is_counted)


def _status(row: Row, forgotten: str | None, *, discarded: bool) -> ManifestStatus:
    return ManifestStatus(
        manifest=row.data["manifest"],
        step=row.end_step,
        time=row.data["time"],
        uri=row.data["uri"],
        gpu_hours=row.data["gpu_hours"],
        version=row.data["recipe"],
        late=bool(row.data.get("late")),
        forgotten=forgotten,
        discarded=discarded,
    )
