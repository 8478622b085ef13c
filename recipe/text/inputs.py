"""What is prepared: files, or documents made by a program; where it ends and whether it has changed."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any, Protocol

from recipe.errors import Problem, RecipeError
from recipe.text.documents import Document
from recipe.text.readers import raw_batches
from recipe.text.records import Raw
from recipe.text.sources import ReadOptions, SourceFile
from recipe.text.stores import State, Stored, open_stored, state_of

MIN_TASK_BYTES = 1 << 20
MAX_TASK_BYTES = 16 << 20
TASKS = 64
#: Bumped when the same files are cut into other tasks: half a preparation by an older version starts anew.
TASKS_VERSION = 3
#: Documents of a task where a program makes them.
TASK_DOCUMENTS = 4096

Batch = list[Raw] | list[Document]


def batch_bytes(batch: Batch) -> int:
    """Stored bytes of records, or characters of documents."""
    return sum(len(item.data) if isinstance(item, Raw) else len(item.text) for item in batch)


class Input(Protocol):
    """What a preparation reads."""

    @property
    def total_bytes(self) -> int | None:
        """Stored bytes, where they are known."""
        ...

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """Files, in order; none where a program makes the documents."""
        ...

    def state(self) -> list[dict[str, Any]]:
        """What can be known without reading: an interrupted preparation goes on only if it is the same."""
        ...

    def batches(self) -> Iterator[tuple[Batch, int]]:
        """Tasks, whose limits depend on the input alone, and the stored bytes read so far."""
        ...

    def contents(self) -> list[dict[str, Any]]:
        """After all was read: the state, with content hashes."""
        ...

    def is_unchanged(self, recorded: Sequence[Mapping[str, Any]]) -> list[str]:
        """Names of what differs from the recorded contents; none: the same."""
        ...


@dataclass(slots=True)
class _Total:
    """Stored bytes of all files that were read so far."""

    count: int = 0


@dataclass(slots=True)
class _Meter:
    """Counts and hashes the stored bytes of a file as they are read."""

    total: _Total
    digest: Any = field(default_factory=lambda: blake2b(digest_size=32))
    count: int = 0

    def update(self, data: memoryview) -> None:
        self.digest.update(data)
        self.count += len(data)
        self.total.count += len(data)


class FileInput:
    """Files of this machine or of a store."""

    def __init__(self, files: tuple[SourceFile, ...], options: ReadOptions) -> None:
        """``files`` as `list_sources` gives them."""
        self.files = files
        self._options = options
        self._total = _Total()
        self._meters = [_Meter(self._total) for _ in files]

    @property
    def total_bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(file.size for file in self.files)

    def state(self) -> list[dict[str, Any]]:
        """Name, size, time of change, kind and group of each file."""
        return [
            {"name": f.name, "kind": f.kind, "group": f.group, "size": f.size, "mtime_ns": f.mtime_ns}
            for f in self.files
        ]

    def batches(self) -> Iterator[tuple[Batch, int]]:
        """About 64 tasks, of 1 to 16 MiB."""
        size = min(MAX_TASK_BYTES, max(MIN_TASK_BYTES, self.total_bytes // TASKS))
        for batch in raw_batches(self.files, self._options, size, self._meters):
            yield batch, self._total.count

    def contents(self) -> list[dict[str, Any]]:
        """The state with the hash of each file.

        Raises:
            RecipeError: a file was changed while it was read.
        """
        problems = []
        for file, meter in zip(self.files, self._meters, strict=True):
            if state_of(file.path) != State(file.size, file.mtime_ns) or meter.count != file.size:
                problems.append(_changed(file))
        if problems:
            raise RecipeError("sources", problems)
        digests = [meter.digest.hexdigest() for meter in self._meters]
        return [{**state, "digest": digest} for state, digest in zip(self.state(), digests, strict=True)]

    def is_unchanged(self, recorded: Sequence[Mapping[str, Any]]) -> list[str]:
        """Compare sizes and times; where only the time differs, the contents by their hash."""
        old = {entry["name"]: entry for entry in recorded}
        changed = [name for name in old if name not in {file.name for file in self.files}]
        for file, state in zip(self.files, self.state(), strict=True):
            before = dict(old.get(file.name, {}))
            digest, mtime_ns = before.pop("digest", ""), before.pop("mtime_ns", None)
            same = before == {key: value for key, value in state.items() if key != "mtime_ns"}
            is_known = mtime_ns == file.mtime_ns and file.mtime_ns >= 0
            if not same or (not is_known and digest != _digest(file.path)):
                changed.append(file.name)
        return changed


class MadeInput:
    """Documents a program makes; ``identity`` says which program, version and seed."""

    files: tuple[SourceFile, ...] = ()
    total_bytes: int | None = None

    def __init__(self, make: Callable[[], Iterable[Document]], identity: Mapping[str, Any]) -> None:
        """``make`` gives the same documents for the same identity."""
        self._make = make
        self._identity = dict(identity)

    def state(self) -> list[dict[str, Any]]:
        """The identity."""
        return [dict(self._identity)]

    def batches(self) -> Iterator[tuple[Batch, int]]:
        """Tasks of so many documents."""
        documents = iter(self._make())
        done = 0
        while batch := list(islice(documents, TASK_DOCUMENTS)):
            done += sum(len(document.text) for document in batch)
            yield batch, done

    def contents(self) -> list[dict[str, Any]]:
        """The identity stands for the contents."""
        return self.state()

    def is_unchanged(self, recorded: Sequence[Mapping[str, Any]]) -> list[str]:
        """Compare the identity."""
        return [] if list(recorded) == self.state() else ["made"]


def _digest(place: Stored) -> str:
    digest = blake2b(digest_size=32)
    with io.BufferedReader(open_stored(place)) as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def _changed(file: SourceFile) -> Problem:
    return Problem(
        str(file.path),
        "changed while it was read",
        "a file that stays as it is",
        "wait until it is written, then prepare again",
    )
