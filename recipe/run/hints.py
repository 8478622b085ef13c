"""Hints: the last step served, and snapshots on the way. Deletable, checked before use, never needed.

What cannot be written is left out without a word, and what cannot be read is as if it were not
there: only a handle's speed at places nobody walked since depends on them.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.snapshot import Snapshot
from recipe.run import writes
from recipe.run.canonical import Plain, canonical, hash_of
from recipe.run.folder import RunFolder
from recipe.run.row import now

PROGRESS_SECONDS = 1.0
SNAPSHOT_SEQUENCES = 1 << 16


class Hints:
    """The hints of one run, written by one handle and read by all."""

    def __init__(self, folder: RunFolder, identity: str) -> None:
        """``identity`` names recipe and data: snapshots of other ones are passed over."""
        self._folder = folder
        self._identity = identity
        self._told_at = -PROGRESS_SECONDS
        self._kept = 0

    def served(self, step: int, walked: Snapshot) -> None:
        """A step was consumed; ``walked`` is the last snapshot that the stream passed."""
        moment = time.monotonic()
        if moment - self._told_at >= PROGRESS_SECONDS:
            self._told_at = moment
            self._write(self._folder.progress, {"step": step, "time": now()})
        if walked.sequences - self._kept >= SNAPSHOT_SEQUENCES:
            self._kept = walked.sequences
            body: Plain = {"identity": self._identity, "snapshot": walked.to_plain()}
            path = self._folder.snapshots / f"{walked.step:012d}.json"
            self._write(path, {**body, "hash": hash_of(body)})

    def nearest(self, step: int) -> Snapshot | None:
        """The latest snapshot kept at or before a step that belongs to this recipe and data."""
        try:
            steps = sorted((int(path.stem) for path in self._folder.snapshots.glob("*.json")), reverse=True)
        except (OSError, ValueError):
            return None
        for at in steps:
            if at <= step and (snapshot := self._read(self._folder.snapshots / f"{at:012d}.json", at)):
                return snapshot
        return None

    def _read(self, path: Path, step: int) -> Snapshot | None:
        try:
            plain = json.loads(path.read_bytes())
            body = {"identity": self._identity, "snapshot": plain["snapshot"]}
            snapshot = Snapshot.from_plain(plain["snapshot"])
            return snapshot if plain["hash"] == hash_of(body) and snapshot.step == step else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def _write(self, path: Path, plain: Plain) -> None:
        with suppress(RecipeError):
            writes.replace_file(path, canonical(plain), durable=False)


def read_progress(folder: RunFolder) -> Plain | None:
    """The hint of the last step served, or None."""
    try:
        plain = json.loads(folder.progress.read_bytes())
        return {"step": int(plain["step"]), "time": str(plain["time"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
