"""What of a run folder is its record: the files that answer for it, and no more.

Batches written by the main job, derived snapshots, hints and the lease stay behind. Symbolic links are
never followed: what they lead to is not the run's.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recipe.errors import Problem, RecipeError
from recipe.run.folder import RunFolder
from recipe.run.head import read_head
from recipe.run.ledger import damaged, rows_backwards
from recipe.run.manifest import manifest_path
from recipe.run.row import SAYING_KINDS, Row

_PLAIN = r"\w[\w.-]*"
_MEMBERS = {
    "": r"run\.yaml|parent\.yaml",
    "recipes": r"\d{4,}\.yaml",
    "withdrawn": _PLAIN,
    "evidence": _PLAIN,
    "digests": _PLAIN,
}
"""By folder of the run: names of files that are part of the record, beside the ledger and its manifests."""


@dataclass(frozen=True, slots=True)
class Record:
    """The files of a run that are handed over."""

    folder: RunFolder
    ledger_bytes: int
    """Bytes of the ledger that count: up to the last checkpoint and what was said after it."""
    left_bytes: int
    """Bytes of the ledger after them: what a writer that was cut short left behind."""
    manifest: int | None
    """Number of the manifest at its tip; None before the first checkpoint."""
    files: tuple[str, ...]
    """Names below the run's folder, sorted; the ledger and ``manifests/latest.yaml`` are apart."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever hands it over should know."""
        if not self.left_bytes:
            return ()
        return (f"{self.left_bytes:,} bytes at the ledger's end have no checkpoint after them: left out",)

    @property
    def num_bytes(self) -> int:
        """Bytes of all of it."""
        return self.ledger_bytes + sum((self.folder.path / name).stat().st_size for name in self.files)


def record_of(folder: RunFolder) -> Record:
    """The record of a run as it counts now; a checkpoint that was cut short is left out.

    Raises:
        RecipeError: no run, a damaged end of the ledger, or a file of the record that is a symbolic link.
    """
    folder.check()
    head = read_head(folder.ledger)
    end, tip, numbers = _counting(folder.ledger, head.tail.end)
    names = ["ledger.jsonl", *_members(folder.path)]
    names += [manifest_path(Path(), number).as_posix() for number in numbers]
    names += [inner for inner in ("manifests", *_MEMBERS) if inner and (folder.path / inner).is_symlink()]
    _check_plain_files(folder.path, names)
    names = sorted(set(names) - {"ledger.jsonl"})
    return Record(folder, end, head.tail.size - end, tip, tuple(names))


def _counting(ledger: Path, end: int) -> tuple[int, int | None, list[int]]:
    """Bytes up to the end of the last row that counts; the manifest at the tip; all manifests up to there.

    Chunk rows, and turns without a checkpoint after them, are what a killed writer left behind. A checkpoint
    that was committed late says something of an earlier step and is not the tip.
    """
    stop, tip, numbers = end, None, list[int]()
    last: Row | None = None
    for row in rows_backwards(ledger, end):
        if last is None and row.kind not in ("checkpoint", "created", *SAYING_KINDS):
            stop = row.offset
        elif row.kind in ("checkpoint", "created") and not row.data.get("late"):
            last = last or row
        if row.kind == "checkpoint":
            numbers.append(_manifest_of(ledger, row))
            if tip is None and not row.data.get("late"):
                tip = numbers[-1]
    return stop, tip, numbers


def _manifest_of(ledger: Path, row: Row) -> int:
    number = row.data["manifest"]
    if type(number) is not int or number < 1:
        raise damaged(ledger, row.offset, f"manifest {number!r:.40}", "the number of a manifest")
    return number


def _members(folder: Path) -> Iterator[str]:
    for inner, pattern in _MEMBERS.items():
        place = folder / inner
        if place.is_symlink() or not place.is_dir():
            continue
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if re.fullmatch(pattern, entry.name))
        yield from (f"{inner}/{name}" if inner else name for name in names)


def _check_plain_files(folder: Path, names: list[str]) -> None:
    """Raise RecipeError naming every file of the record that is missing, a link, or no file."""
    problems = []
    for name in sorted({*names, *(str(Path(name).parent) for name in names)} - {"."}):
        path = folder / name
        try:
            mode = path.lstat().st_mode
        except OSError as error:
            given = error.strerror or str(error)
        else:
            if stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and name not in names):
                continue
            given = f"a symbolic link to {path.readlink()}" if stat.S_ISLNK(mode) else "no regular file"
        fix = "put the file itself there; links are not followed, since what they lead to is not the run's"
        problems.append(Problem(str(path), given, "a file of the run's record", fix))
    if problems:
        raise RecipeError(f"{folder}: a record that cannot be handed over", problems)
