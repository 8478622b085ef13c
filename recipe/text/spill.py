"""Tokenised documents on disk between the two passes: sorted runs, one a task, merged by key.

The first pass writes each task's documents sorted by their unit's key; the second takes one range of
keys after the other from all tasks and sorts it. What is in memory is the index of a range.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.contents import sorted_run
from recipe.pools.splits import split_draw
from recipe.pools.workplace import sync, write_durably
from recipe.text.spooled import Tokens, slices, tokens_digest

INDEX = np.dtype(
    [
        *(("high", "<u8"), ("low", "<u8"), ("file", "<u4"), ("line", "<u8")),
        *(("id", "<u8"), ("token", "<u8"), ("row", "<u8")),
    ]
)
"""Key of the unit, place in the sources, hash of the document's id, first token and first byte of the row;
a last entry ends the last document."""

CONTENT = np.dtype([("high", "<u8"), ("low", "<u8"), ("number", "<u8"), ("draw", "<u8")])
"""Hash of a document's tokens, its place in the index, and the draw of its split; sorted by hash."""

#: Tokens of a range, in bytes: the second pass touches about so much at a time.
RANGE_BYTES = 64 << 20
#: Documents of a range, about: their indices take about 200 bytes each.
RANGE_DOCUMENTS = 1 << 18


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One tokenised document on its way."""

    key: tuple[int, int]
    file: int
    line: int
    tokens: Any
    """`Tokens`; of what was read from the disk, an array."""
    row: tuple[Any, ...]
    """Plain values: id, group, tags, source; then sections, and what stands in front, where there are any."""
    number: int = 0
    """Of all documents of all tasks, where it was read from the disk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a task gives: its documents, sorted, as they are stored. Equal for equal batches, anywhere."""

    tokens: Sequence[Tokens]
    """One after the other; of any width that holds them."""
    dtype: np.dtype[Any]
    """Width in which they are stored."""
    rows: bytes
    index: NDArray[Any]
    report: bytes
    """JSON of what the task says of itself."""
    contents: NDArray[Any] | None = None
    """CONTENT[n], where equal documents are looked for."""

    def packed(self) -> Run:
        """The same with all tokens in one array of the stored width, to be sent elsewhere."""
        whole = np.empty(sum(map(len, self.tokens)), self.dtype)
        start = 0
        for part in chain.from_iterable(map(slices, self.tokens)):
            whole[start : start + len(part)] = part
            start += len(part)
        return replace(self, tokens=(whole,))


def encode_run(
    entries: Sequence[Entry], dtype: np.dtype[Any], report: dict[str, Any], salt: int | None = None
) -> Run:
    """Sort the documents of one task and say where each begins; with a ``salt``, what each holds too."""
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
        contents=None if salt is None else _contents(entries, salt),
    )


def _contents(entries: Sequence[Entry], salt: int) -> NDArray[Any]:
    digests = [tokens_digest(entry.tokens) for entry in entries]
    groups = [entry.row[1] for entry in entries]
    draws = [split_draw(salt, group, digest) for group, digest in zip(groups, digests, strict=True)]
    run = sorted_run(digests)
    contents = np.empty(len(run), CONTENT)
    for name in run.dtype.names or ():
        contents[name] = run[name]
    contents["draw"] = np.array(draws, np.uint64)[run["number"].astype(np.int64)]
    return contents


def store_run(folder: Path, number: int, run: Run) -> None:
    """Store what one task gave; its report is written last and says that it is whole."""
    files = [task_file(folder, number, ending) for ending in ("tokens", "rows", "npy")]
    with files[0].open("wb") as file:
        for part in chain.from_iterable(map(slices, run.tokens)):
            file.write(np.ascontiguousarray(part, dtype=run.dtype).data)
    files[1].write_bytes(run.rows)
    np.save(files[2], run.index)
    if run.contents is not None:
        files.append(task_file(folder, number, "contents"))
        files[3].write_bytes(run.contents.tobytes())
    for path in files:
        sync(path)
    write_durably(report_file(folder, number), run.report)


def id_hash(id: str | int) -> int:
    """64 bits of a document's id."""
    return int.from_bytes(blake2b(repr(id).encode(), digest_size=8).digest(), "little")


def repeated_ids(folder: Path, num_tasks: int, most: int) -> list[tuple[str | int, str, str]]:
    """(id, place, other place) of ids that several documents have; ``most`` of them at most."""
    hashes = np.concatenate(
        [*(ids_of_task(folder, number) for number in range(num_tasks)), np.zeros(0, "<u8")]
    )
    hashes.sort()
    twice = hashes[1:][hashes[1:] == hashes[:-1]][: 4 * most]
    places: dict[str | int, str] = {}
    found: list[tuple[str | int, str, str]] = []
    for number in range(num_tasks) if len(twice) else ():
        for place in np.flatnonzero(np.isin(ids_of_task(folder, number), twice)).tolist():
            id, _, _, source, *_ = row_of_task(folder, number, place)
            if id in places:
                found.append((id, places[id], source))
            places.setdefault(id, source)
    return found[:most]


def ids_of_task(folder: Path, number: int) -> NDArray[np.uint64]:
    """Hashes of the ids of one task; of the whole index, no more is in memory."""
    return np.array(np.load(task_file(folder, number, "npy"), mmap_mode="r")["id"][:-1])


def row_of_task(folder: Path, number: int, place: int) -> tuple[Any, ...]:
    """What is said of one document of a task: its id, group, tags, place, …"""
    return _Run.open(folder, number, np.dtype("<u2"), 0, 0).row(place)


def report_file(folder: Path, number: int) -> Path:
    """There if and only if the task is whole."""
    return task_file(folder, number, "json")


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


def first_numbers(folder: Path, num_tasks: int) -> list[int]:
    """The first number of each task's documents, then how many there are."""
    paths = [task_file(folder, number, "npy") for number in range(num_tasks)]
    return list(accumulate((len(np.load(path, mmap_mode="r")) - 1 for path in paths), initial=0))


def merged(  # noqa: PLR0913  what there is, and from where
    folder: Path,
    num_tasks: int,
    dtype: np.dtype[Any],
    start: int = 0,
    range_bytes: int = RANGE_BYTES,
    chosen: NDArray[np.bool_] | None = None,
) -> Iterator[Entry]:
    """The documents in the order of their keys, from document ``start`` of these on.

    Tokens are views of the files, to be used before the next entry is taken. ``chosen`` says by number which
    documents there are; None: all.
    """
    size = sum(task_file(folder, number, "tokens").stat().st_size for number in range(num_tasks))
    first, skipped = first_numbers(folder, num_tasks), 0
    bits = max(size // range_bytes, first[-1] // RANGE_DOCUMENTS).bit_length()
    for bucket in range(1 << bits):
        runs = [_Run.open(folder, number, dtype, bucket, bits) for number in range(num_tasks)]
        places = [np.arange(len(run.index) - 1) for run in runs]
        numbers = [place + run.first + base for place, run, base in zip(places, runs, first, strict=False)]
        if chosen is not None:
            kept = [chosen[number] for number in numbers]
            places = [place[keep] for place, keep in zip(places, kept, strict=True)]
            numbers = [number[keep] for number, keep in zip(numbers, kept, strict=True)]
        count = sum(map(len, places))
        if skipped + count > start:
            yield from _sorted(runs, places, numbers, max(0, start - skipped))
        skipped += count


def _sorted(
    runs: list[_Run], places: list[NDArray[np.int64]], numbers: list[NDArray[np.int64]], start: int
) -> Iterator[Entry]:
    """Documents of one range of keys, in order."""
    index = np.concatenate([run.index[place] for run, place in zip(runs, places, strict=True)])
    run_of = np.repeat(np.arange(len(runs)), list(map(len, places)))
    place, number = np.concatenate(places), np.concatenate(numbers)
    order = np.lexsort((index["line"], index["file"], index["low"], index["high"]))
    for at in order[start:].tolist():
        yield runs[run_of[at]].entry(int(place[at]), int(number[at]))


@dataclass(frozen=True, slots=True)
class _Run:
    """The documents of one task in one range of keys; the files are mapped."""

    index: NDArray[Any]
    tokens: NDArray[Any]
    rows: NDArray[np.uint8]
    first: int = 0
    """Place of its first document among the task's."""

    @classmethod
    def open(cls, folder: Path, number: int, dtype: np.dtype[Any], bucket: int, bits: int) -> _Run:
        whole = np.load(task_file(folder, number, "npy"), mmap_mode="r")
        keys = whole["high"][:-1]
        first, last = 0, len(keys)
        if bits:
            first = bisect_left(keys, bucket << (64 - bits))
            if bucket + 1 < 1 << bits:
                last = bisect_left(keys, (bucket + 1) << (64 - bits))
        index = np.array(whole[first : last + 1])
        if len(index) < 2:
            return cls(index, np.zeros(0, dtype), np.zeros(0, np.uint8), first)
        tokens = np.memmap(task_file(folder, number, "tokens"), dtype=dtype, mode="r")
        return cls(
            index, tokens, np.memmap(task_file(folder, number, "rows"), dtype=np.uint8, mode="r"), first
        )

    def entry(self, place: int, number: int) -> Entry:
        here, after = self.index[place], self.index[place + 1]
        return Entry(
            key=(int(here["high"]), int(here["low"])),
            file=int(here["file"]),
            line=int(here["line"]),
            tokens=self.tokens[int(here["token"]) : int(after["token"])],
            row=self.row(place),
            number=number,
        )

    def row(self, place: int) -> tuple[Any, ...]:
        first, last = self.index["row"][place : place + 2].tolist()
        return tuple(json.loads(self.rows[first:last].tobytes()))


def task_file(folder: Path, number: int, ending: str) -> Path:
    """A file of one task."""
    return folder / f"task-{number:06d}.{ending}"
