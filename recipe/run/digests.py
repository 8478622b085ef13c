"""What the trainer was handed: a digest of each step's rows, appended by each rank to a file of its own.

The files need no lease and no communication; they may be deleted, and nobody has to write them. A line
that was cut short by a crash counts for nothing. A rank adds its steps in rising order: a step that does
not rise means that it went back (a resume), and what it had from that step on is discarded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import ArrayLike

from recipe.mixing.dealing import dealt_rows
from recipe.run.canonical import canonical
from recipe.sequences.digest import WORDS, row_digests, step_digest, words_of

FOLDER = "digests"
FORMAT = 1
_NAME = re.compile(r"rank-(\d{5,})\.jsonl")
_DIGITS = 16 * WORDS


class BatchDigests:
    """Keeps digests of batches, in the folder ``digests`` of a run, or in any other folder.

    One for each process that trains; threads must not share it::

        digests = recipe.BatchDigests("runs/demo")
        for step, batch in stream.batches(dp_rank=rank, dp_size=world):
            digests.add(step, batch, dp_rank=rank, dp_size=world)
    """

    def __init__(self, path: str | Path) -> None:
        """``path``: a run's folder, or any other one, where it is written instead; it is made if need be."""
        self.folder = digest_folder(Path(path))
        self._ledger = _size(Path(path) / "ledger.jsonl")
        self._files: dict[int, BinaryIO] = {}

    def add(
        self,
        step: int,
        batch: Mapping[str, ArrayLike],
        *,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
    ) -> None:
        """Append the digest of all rows of one rank in one step, as they were handed to the trainer.

        Args:
            step: the step.
            batch: as the stream gave it; ids, labels, positions and segments are hashed. Its ``rows``, if it
                has them, say which they are; else the dealing does.
            dp_rank: the rank, as the batch was dealt.
            dp_size: number of ranks.
            micro_batch: as the batch was dealt.

        Raises:
            ValueError: a batch without these arrays; no such rank.
            OSError: the file cannot be written.
        """
        count = len(batch["input_ids"]) if "input_ids" in batch else 0  # type: ignore[arg-type]
        rows = dealt_rows(count * dp_size, dp_rank, dp_size, micro_batch)
        if "rows" in batch:
            rows = np.asarray(batch["rows"], np.int64)
        line = {
            "format": FORMAT,
            "step": int(step),
            "rank": int(dp_rank),
            "of": int(dp_size),
            "rows": count,
            "ledger": self._ledger,
            "digest": step_digest(row_digests(batch, step, rows)),
        }
        file = self._files.get(dp_rank)
        if file is None:
            file = self._files[dp_rank] = _opened(self.folder, dp_rank)
        file.write(canonical(line) + b"\n")

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self) -> Self:
        """The collector itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


def digest_folder(path: Path) -> Path:
    """Where the digests of a run are; of a folder that is no run, the folder itself."""
    return path / FOLDER if (path / "run.yaml").is_file() else path


def _size(ledger: Path) -> int | None:
    """Bytes on record when the collector was opened: rows from there on are later than its lines."""
    try:
        return ledger.stat().st_size
    except OSError:
        return None


def _opened(folder: Path, rank: int) -> BinaryIO:
    """The file of a rank, unbuffered: a line is there when ``add`` returns; a torn last line is ended."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rank-{rank:05d}.jsonl"
    file = path.open("ab", buffering=0)
    size = os.fstat(file.fileno()).st_size
    if size:
        with path.open("rb") as existing:
            existing.seek(size - 1)
            if existing.read(1) != b"\n":
                file.write(b"\n")
    return file


@dataclass(frozen=True, slots=True)
class Handed:
    """The digest of all rows of a step, as the ranks have it."""

    step: int
    rows: int
    digest: str
    ledger: int | None
    """Bytes of the ledger when the first of the ranks was opened; None where one does not know."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a folder of digests holds."""

    steps: tuple[Handed, ...]
    """Steps of which every rank's digest is there, in order."""
    partial: int
    """Steps of which some rank's is not."""
    unreadable: int
    """Lines that say nothing: cut short, or changed."""


def read_digests(folder: Path) -> Kept:
    """The digests of a folder, ranks joined.

    All ranks of a step must have been dealt alike: where the number of ranks changed and a step was
    served again, what the old ranks left behind does not count.
    """
    dealt: dict[int, dict[int, _Dealt]] = {}
    unreadable = 0
    for path in sorted(folder.glob("rank-*.jsonl")):
        if not (match := _NAME.fullmatch(path.name)):
            continue
        last: dict[int, tuple[int, int, int | None, str]] = {}
        for line in _lines(path, int(match[1])):
            if line is None:
                unreadable += 1
                continue
            while last and next(reversed(last)) >= line["step"]:
                last.popitem()
            last[line["step"]] = (line["of"], line["rows"], line.get("ledger"), line["digest"])
        for step, (size, rows, ledger, digest) in last.items():
            dealt.setdefault(step, {}).setdefault(size, _Dealt()).add(rows, ledger, digest)
    whole = [
        Handed(step, of.rows, f"{of.digest:0{_DIGITS}x}", of.ledger if of.knows else None)
        for step, sizes in sorted(dealt.items())
        for size, of in sizes.items()
        if of.ranks == size
    ]
    return Kept(tuple(whole), len(dealt) - len(whole), unreadable)


@dataclass(slots=True)
class _Dealt:
    """The ranks of a step that were dealt alike, joined so far."""

    ranks: int = 0
    rows: int = 0
    digest: int = 0
    ledger: int = 1 << 62
    knows: bool = True

    def add(self, rows: int, ledger: int | None, digest: str) -> None:
        """One more rank."""
        self.ranks += 1
        self.rows += rows
        self.digest ^= int(digest, 16)
        self.ledger = min(self.ledger, 0 if ledger is None else ledger)
        self.knows &= ledger is not None


def _lines(path: Path, rank: int) -> Iterator[dict[str, Any] | None]:
    """Lines of a rank's file; None for one that says nothing."""
    for text in path.read_bytes().splitlines():
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            numbers = [line[key] for key in ("format", "step", "rank", "of", "rows")]
            words_of(line["digest"])
            known = all(type(number) is int and number >= 0 for number in numbers)
            good = known and line["format"] == FORMAT and line["rank"] == rank < line["of"]
            good = good and type(line.get("ledger")) in (int, type(None))
        except (ValueError, TypeError, LookupError, RecursionError):
            good = False
        yield line if good else None
