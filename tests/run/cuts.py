"""What runs must look like after an operation was cut short at any of its writes."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import recipe
from recipe.run import writes
from recipe.run.ledger import read_tail
from recipe.run.manifest import latest_path, read_manifest, unseal
from recipe.run.row import TURN_KINDS
from recipe.run.surviving import surviving
from tests.run.conftest import served
from tests.run.faulty import CHANGING
from tests.run.operations import Operation, World

OF_THE_RECORD = (
    "row",
    "time",
    "previous",
    "hash",
    "recipe",
    "recipe_hash",
    "turn",
    "file",
    "id",
    "run_hash",
    "parent",
    "policy",
    "evidence",
)
"""Keys of rows that say where on record something is, not what it is."""


class RecordingOs:
    """``os``, but every moment at which a killed process would stop is kept as a copy of a folder.

    Before each change, and in the middle of each write. Nothing is flushed to disk.
    """

    def __init__(self, folder: Path, copies: Path) -> None:
        self._folder = folder
        self._copies = copies
        self.num = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in (*CHANGING, "open"):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "fsync":
                return None
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **kwargs)
            self._keep()
            if name != "write":
                return real(*args, **kwargs)
            data = bytes(args[1])
            half = os.write(args[0], data[: len(data) // 2])
            self._keep()
            return half + os.write(args[0], data[half:])

        return call

    def _keep(self) -> None:
        shutil.copytree(self._folder, self._copies / f"{self.num:04d}")
        self.num += 1


def restore(source: Path, folder: Path) -> None:
    """A folder as it was copied."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but leases, hints, and unfinished files, by its path."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        parts = name.split("/")
        is_ours = not {"lease", "snapshots", "progress.json"} & set(parts)
        if path.is_file() and is_ours and not any(part.startswith(writes.TEMPORARY) for part in parts):
            found[name] = path.read_bytes()
    return found


def temporaries(folder: Path) -> list[Path]:
    """Unfinished files and folders."""
    return list(folder.rglob(f"{writes.TEMPORARY}*"))


@dataclass(frozen=True)
class End:
    """A run served to its end, and what is on record of it then."""

    rows: list[dict[str, Any]]
    snapshot: dict[str, Any]


def served_from(path: Path, since: int) -> tuple[int, list[bytes]]:
    """Where a run stands, and its batches from a step on."""
    with recipe.open_run(path) as run:
        return run.step, served(run.stream(), since)


def end_of(path: Path) -> End:
    """Put the end of a run on record."""
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    ledger = path / "ledger.jsonl"
    rows = [row for row in surviving(ledger, read_tail(ledger)) if row.kind in ("chunk", *TURN_KINDS)]
    told = [{key: value for key, value in row.data.items() if key not in OF_THE_RECORD} for row in rows]
    return End(told, read_manifest(latest_path(path))["snapshot"])


class Checker:
    """Checks what an operation left when it was cut short."""

    def __init__(self, world: World, operation: Operation, scratch: Path) -> None:
        """Do it once, undisturbed."""
        self.world, self.operation, self._scratch = world, operation, scratch
        self._path = world.runs / operation.run
        self._copies = scratch / "copies"
        operation.base(world)
        shutil.copytree(world.runs, scratch / "base")
        self._files = contents(world.runs)
        self._truths = [self._truth()] if self._path.exists() else []
        self._ends = [self._end()] if self._path.exists() else []
        self.start_over()
        self._record()
        assert operation.is_done(world)
        self._done = contents(world.runs)
        self._truths.append(self._truth())
        assert self._findings() == []
        self._ends.append(self._end())
        self._steps = {operation.via, *(truth[0] for truth in self._truths)}
        self._seen: set[Any] = set()

    def start_over(self) -> World:
        """The runs as they were before."""
        restore(self._scratch / "base", self.world.runs)
        return self.world

    def cuts(self) -> list[Path]:
        """The runs as they were at every moment at which the operation may be killed."""
        return sorted(self._copies.iterdir())

    def check(self, cut: Path | None = None) -> None:
        """The run opens, has no fault but what is unfinished, and goes on, with the operation or without.

        Args:
            cut: a copy of the runs; default: they are in their place.
        """
        if cut is not None:
            restore(cut, self.world.runs)
        key = {name: len(data) for name, data in contents(self.world.runs).items()}
        mark = tuple(sorted(key.items()))
        if mark in self._seen:
            if self._path.exists():
                assert recipe.run_status(self._path).step in self._steps
            return
        self._seen.add(mark)
        self._check_files()
        findings = set(self._findings())
        assert findings <= {"unfinished", *self.operation.findings}, findings
        self._open()
        if not self.operation.is_done(self.world):
            here = self._scratch / "here"
            restore(self.world.runs, here)
            if self._path.exists():
                assert end_of(self._path) == self._ends[0], "the run goes on as if nothing had been tried"
                assert set(self._findings()) <= {"unfinished"}
            restore(here, self.world.runs)
            self.operation.do(self.world)
            assert self.operation.is_done(self.world)
        assert self._end() == self._ends[-1], "the operation, done again, ends as if undisturbed"

    def _record(self) -> None:
        """Do the operation; keep a copy of the runs at every write."""
        with patched(RecordingOs(self.world.runs, self._copies)):
            self.operation.do(self.world)

    def _open(self) -> None:
        """The run serves what it did before, or what it does with the operation."""
        if not self._path.exists():
            return
        recipe.run_status(self._path)
        step, batches = self._truth()
        assert step in self._steps
        left = batches[step - self.operation.since :]
        assert left in [truth[1][step - self.operation.since :] for truth in self._truths]

    def _truth(self) -> tuple[int, list[bytes]]:
        return served_from(self._path, self.operation.since)

    def _end(self) -> End:
        end = end_of(self._path)
        assert self._findings() == []
        return end

    def _check_files(self) -> None:
        """Nothing is lost, changed, half-written, or there for no reason."""
        now = contents(self.world.runs)
        for name, data in self._files.items():
            if name.endswith("ledger.jsonl"):
                assert now[name].startswith(data), name
            elif name.endswith("latest.yaml"):
                assert any(now[name] == other for key, other in now.items() if key != name), name
            else:
                assert now[name] == data, name
        for name, data in now.items():
            assert name in self._done, name
            if name.endswith(".yaml"):
                unseal(Path(name), data)

    def _findings(self) -> list[str]:
        """What the audit finds in the run."""
        found = recipe.audit_run(self._path, workers=1).findings if self._path.exists() else ()
        return [finding.check for finding in found]


def patched(stand_in: Any) -> Any:
    """A stand-in for ``os`` in the one module that writes."""

    class Patch:
        def __enter__(self) -> Any:
            writes.os = stand_in  # type: ignore[assignment]
            return stand_in

        def __exit__(self, *error: object) -> None:
            writes.os = os

    return Patch()
