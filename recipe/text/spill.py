"""Tokenised documents on disk between the two passes: sorted runs, one a task, merged by key.

The first pass writes each task's documents sorted by their unit's key; the second takes one range of
keys after the other from all tasks and sorts it. What is in memory is the index of a range.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.workplace import sync, write_durably

INDEX = np.dtype(
    [
        *(("high", "<u8"), ("low", "<u8"), ("file", "<u4"), ("line", "<u8")),
        *(("id", "<u8"), ("token", "<u8"), ("row", "<u8")),
    ]
)
"""Key of the unit, place in the sources, hash of the document's id, first token and first byte of the row;
a last entry ends the last document."""

#: Tokens of a range, in bytes: the second pass touches about so much at a time.
RANGE_BYTES = 64 << 20


#: Tokens that are brought to their stored width at once.
SLICE_TOKENS = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One tokenised document on its way."""

    key: tuple[int, int]
    file: int
    line: int
    tokens: NDArray[Any]
    row: tuple[Any, ...]
    """Plain values: id, group, tags, source; then sections, and what stands in front, where there are any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a task gives: its documents, sorted, as they are stored. Equal for equal batches, anywhere."""

    tokens: Sequence[NDArray[Any]]
    """One after the other; of any width that holds them."""
    dtype: np.dtype[Any]
    """Width in which they are stored."""
    rows: bytes
    index: NDArray[Any]
    report: bytes
    """JSON of what the task says of itself."""

    def packed(self) -> Run:
        """The same with all tokens in one array of the stored width, to be sent elsewhere."""
        whole = np.empty(sum(map(len, self.tokens)), self.dtype)
        start = 0
        for tokens in self.tokens:
            whole[start : start + len(tokens)] = tokens
            start += len(tokens)
        return replace(self, tokens=(whole,))


def encode_run(entries: Sequence[Entry], dtype: np.dtype[Any], report: dict[str, Any]) -> Run:
    """Sort the documents of one task and say where each begins."""
    entries = sorted(entries, key=lambda entry: (entry.key, entry.file, entry.line))
    index = np.zeros(len(entries) + 1, dtype=INDEX)
    rows = [json.dumps(entry.row, ensure_ascii=False).encode() for entry in entries]
    for name, values in (
        ("high", [entry.key[0] for entry in entries]),
        ("low", [entry.key[1] for entry in entries]),
        ("file", [entry.file for entry in entries]),
        ("line", [entry.line for entry in entries]),
    ):
        index[name][:-1] = np.array(values, dtype=index.dtype[name])
    index["id"][:-1] = [id_hash(entry.row[0]) for entry in entries]
    index["token"][1:] = np.cumsum([len(entry.tokens) for entry in entries], dtype=np.uint64)
    index["row"][1:] = np.cumsum([len(row) for row in rows], dtype=np.uint64)
    return Run(
        tokens=[entry.tokens for entry in entries],
        dtype=dtype,
        rows=b"".join(rows),
        index=index,
        report=json.dumps(report, ensure_ascii=False).encode(),
    )


def store_run(folder: Path, number: int, run: Run) -> None:
    """Store what one task gave; its report is written last and says that it is whole."""
    files = [_file(folder, number, ending) for ending in ("tokens", "rows", "npy")]
    with files[0].open("wb") as file:
        for tokens in run.tokens:
            for start in range(0, len(tokens), SLICE_TOKENS):
                part = tokens[start : start + SLICE_TOKENS]
                file.write(np.ascontiguousarray(part, dtype=run.dtype).data)
    files[1].write_bytes(run.rows)
    np.save(files[2], run.index)
    for path in files:
        sync(path)
    write_durably(report_file(folder, number), run.report)


def id_hash(id: str | int) -> int:
    """64 bits of a document's id."""
    return int.from_bytes(blake2b(repr(id).encode(), digest_size=8).digest(), "little")


def repeated_ids(folder: Path, num_tasks: int, most: int) -> list[tuple[str | int, str, str]]:
    """(id, place, other place) of ids that several documents have; ``most`` of them at most."""
    runs = [_Run.open(folder, number, np.dtype("<u2"), 0, 0) for number in range(num_tasks)]
    hashes = np.sort(np.concatenate([*(run.index["id"][:-1] for run in runs), np.zeros(0, "<u8")]))
    twice = hashes[1:][hashes[1:] == hashes[:-1]][: 4 * most]
    places: dict[str | int, str] = {}
    found: list[tuple[str | int, str, str]] = []
    for run in runs if len(twice) else ():
        for place in np.flatnonzero(np.isin(run.index["id"][:-1], twice)).tolist():
            id, _, _, source, *_ = run.row(place)
            if id in places:
                found.append((id, places[id], source))
            places.setdefault(id, source)
    return found[:most]


def report_file(folder: Path, number: int) -> Path:
    """There if and only if the task is whole."""
    return _file(folder, number, "json")


def read_report(folder: Path, number: int) -> dict[str, Any]:
    """What the task said of itself."""
    report: dict[str, Any] = json.loads(report_file(folder, number).read_bytes())
    return report


def has_finished(folder: Path) -> bool:
    """Whether a task is whole."""
    return any(folder.glob("task-*.json"))


def remove_unfinished(folder: Path) -> None:
    """Remove the files of tasks that are not whole."""
    for path in folder.glob("task-*"):
        if not path.with_suffix(".json").exists():
            path.unlink()


def merged(
    folder: Path, num_tasks: int, dtype: np.dtype[Any], start: int = 0, range_bytes: int = RANGE_BYTES
) -> Iterator[Entry]:
    """All documents in the order of their keys, from document ``start`` on.

    Tokens are views of the files, to be used before the next entry is taken.
    """
    size = sum(_file(folder, number, "tokens").stat().st_size for number in range(num_tasks))
    bits = max(0, (size // range_bytes).bit_length())
    skipped = 0
    for bucket in range(1 << bits):
        runs = [_Run.open(folder, number, dtype, bucket, bits) for number in range(num_tasks)]
        runs = [run for run in runs if len(run.index) > 1]
        count = sum(len(run.index) - 1 for run in runs)
        if skipped + count <= start:
            skipped += count
            continue
        yield from _sorted(runs, max(0, start - skipped))
        skipped += count


def _sorted(runs: list[_Run], start: int) -> Iterator[Entry]:
    """Documents of one range of keys, in order."""
    if not runs:
        return
    index = np.concatenate([run.index[:-1] for run in runs])
    run_of = np.repeat(np.arange(len(runs)), [len(run.index) - 1 for run in runs])
    place = np.concatenate([np.arange(len(run.index) - 1) for run in runs])
    order = np.lexsort((index["line"], index["file"], index["low"], index["high"]))
    for at in order[start:].tolist():
        yield runs[run_of[at]].entry(int(place[at]))


@dataclass(frozen=True, slots=True)
class _Run:
    """The documents of one task in one range of keys; the files are mapped."""

    index: NDArray[Any]
    tokens: NDArray[Any]
    rows: NDArray[np.uint8]

    @classmethod
    def open(cls, folder: Path, number: int, dtype: np.dtype[Any], bucket: int, bits: int) -> _Run:
        whole = np.load(_file(folder, number, "npy"), mmap_mode="r")
        keys = whole["high"][:-1]
        first, last = 0, len(keys)
        if bits:
            first = int(np.searchsorted(keys, np.uint64(bucket << (64 - bits))))
            if bucket + 1 < 1 << bits:
                last = int(np.searchsorted(keys, np.uint64((bucket + 1) << (64 - bits))))
        index = np.array(whole[first : last + 1])
        if len(index) < 2:
            return cls(index, np.zeros(0, dtype), np.zeros(0, np.uint8))
        tokens = np.memmap(_file(folder, number, "tokens"), dtype=dtype, mode="r")
        return cls(index, tokens, np.memmap(_file(folder, number, "rows"), dtype=np.uint8, mode="r"))

    def entry(self, place: int) -> Entry:
        here, after = self.index[place], self.index[place + 1]
        return Entry(
            key=(int(here["high"]), int(here["low"])),
            file=int(here["file"]),
            line=int(here["line"]),
            tokens=self.tokens[int(here["token"]) : int(after["token"])],
            row=self.row(place),
        )

    def row(self, place: int) -> tuple[Any, ...]:
        first, last = self.index["row"][place : place + 2].tolist()
        return tuple(json.loads(self.rows[first:last].tobytes()))


def _file(folder: Path, number: int, ending: str) -> Path:
    return folder / f"task-{number:06d}.{ending}"
