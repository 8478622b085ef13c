"""How a pool was prepared: which files it was made from, and their records, read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.pools.beside import RECORD_NAME
from recipe.text.archives import raw_members
from recipe.text.documents import Document
from recipe.text.kinds import TABLES, Kind, kind_of
from recipe.text.records import Raw, parse
from recipe.text.sources import ReadOptions, SourceFile
from recipe.text.stores import Stored, state_of, stored
from recipe.text.streams import TruncatedError, open_bytes, read_all, read_line
from recipe.text.tables import raw_rows

Within = int | str | None
"""Line or row of a record, from 1; stem of its members; None: the file itself."""


@dataclass(frozen=True, slots=True)
class Name:
    """A file that a document was read from, and the place of its record in it."""

    file: str
    within: Within


class Prepared:
    """What `prepare` wrote down of a pool."""

    def __init__(self, folder: Path) -> None:
        """``folder``: of the pool; without a record, files are told by their names."""
        try:
            record = json.loads((folder / RECORD_NAME).read_bytes())
            stated: dict[str, Any] = record["settings"]["read"]
            read: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stated.items()}
            self._options = ReadOptions(**read)
            self._kinds: Mapping[str, Any] = {
                entry["name"]: entry["kind"] for entry in record["inputs"] if "name" in entry
            }
            self._extends = "extends" in record["settings"]
            """Then files that are not listed are those of the pool that it extends."""
            origins = [str(entry["origin"]) for entry in record["inputs"] if "origin" in entry]
            self.origin = origins[0] if origins else None
            """Of documents that a program made: which."""
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._options, self._kinds, self.origin, self._extends = ReadOptions(), {}, None, False

    def knows(self, name: Name) -> bool:
        """Whether the file was read as this pool's record says: not one of a pool that it extends."""
        return name.file in self._kinds or not self._extends

    def name_of(self, source: Any) -> Name | None:
        """File and place that a table's ``source`` means; None where it names no file."""
        if not isinstance(source, str):
            return None
        if (found := self._in_archive(source)) is not None:
            return found
        file, _, line = source.rpartition(":")
        if source not in self._kinds and line.isdecimal() and (file in self._kinds or self._guesses):
            return Name(file, int(line))
        return Name(source, None)

    @property
    def _guesses(self) -> bool:
        """Whether files are told by their names, too: not all of them are listed."""
        return self._extends or not self._kinds

    def _in_archive(self, source: str) -> Name | None:
        """``a.tar:x/0001``: there may be colons on both sides."""
        at = source.find(":")
        while at >= 0 and source not in self._kinds:
            file, stem = source[:at], source[at + 1 :]
            if self._kinds.get(file, kind_of(file) if self._guesses else None) == "tar":
                return Name(file, stem)
            at = source.find(":", at + 1)
        return None

    def read(
        self, names: Iterable[Name], roots: Sequence[str | Path]
    ) -> dict[Name, tuple[Stored, Document | None]]:
        """The documents of some places, where their files are found."""
        wanted: dict[str, list[Name]] = {}
        for name in names:
            wanted.setdefault(name.file, []).append(name)
        found: dict[Name, tuple[Stored, Document | None]] = {}
        for file, of in wanted.items():
            place = next((p for root in roots if _is_file(p := stored(root) / file)), None)
            if place is not None:
                held = self._documents(place, file, {name.within for name in of})
                found |= {name: (place, held.get(name.within)) for name in of}
        return found

    def _documents(self, place: Stored, name: str, wanted: set[Within]) -> dict[Within, Document]:
        kind = self._kinds.get(name) or _kind(name, wanted)
        file = SourceFile(name=name, path=place, kind=kind, size=-1, mtime_ns=-1)
        found: dict[Within, Document] = {}
        with suppress(TruncatedError, OSError):
            for raw in _raw(file, wanted, self._options):
                made = parse(raw, file, self._options)
                if isinstance(made, Document):
                    found.setdefault(raw.line if raw.member is None else raw.member, made)
        return found


def _is_file(place: Stored) -> bool:
    return place.is_file() if isinstance(place, Path) else state_of(place) is not None


def _kind(name: str, wanted: set[Within]) -> Kind:
    """By the name, where nothing is written down; a line tells records of any name."""
    kind = kind_of(name) or "text"
    return "jsonl" if kind == "text" and wanted != {None} else kind


def _raw(file: SourceFile, wanted: set[Within], options: ReadOptions) -> Iterator[Raw]:
    """Whole records of a file, by their place; what was refused is not given."""
    numbers = {number for number in wanted if isinstance(number, int)}
    if file.kind in TABLES:
        yield from (raw for raw in raw_rows(0, file, options, wanted=numbers) if raw.fault is None)
    elif file.kind == "tar":
        left = set(wanted)
        for raw in raw_members(0, file, options):
            if raw.member in left and raw.fault is None:
                yield raw
                left.discard(raw.member)
                if not left:
                    return
    else:
        yield from _raw_lines(file.path, numbers, None in wanted, options.max_line_bytes)


def _raw_lines(place: Stored, lines: set[int], is_whole: bool, limit: int) -> Iterator[Raw]:
    if is_whole:
        with open_bytes(place) as stream:
            data, cut = read_all(stream, limit)
            if not cut:
                yield Raw(0, None, data)
    if lines:
        with open_bytes(place) as stream:
            for number in range(1, max(lines) + 1):
                data, cut = read_line(stream, limit)
                if number in lines and not cut:
                    yield Raw(0, number, data)
