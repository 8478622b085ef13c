"""The ledger's text: every row's own hash, its place, and the hash of the row before.

Reading goes on after a fault, so that one audit names all of them. A row's hash is checked on its
bytes: the canonical text with the hash cut out is what was hashed.
"""

from __future__ import annotations

import json
import mmap
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.audit.findings import shown
from recipe.pools import Finding
from recipe.run.canonical import canonical, digest

NAME = "ledger.jsonl"
_HASH = re.compile(rb',"hash":"([0-9a-f]{64})"')
_PREVIOUS = re.compile(rb'"previous":(?:"([0-9a-f]{64})"|null)[,}]')
_NUMBER = re.compile(rb'"row":(\d{1,18})[,}]')
_KIND = re.compile(rb'"kind":"([a-z_]{1,40})"[,}]')


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger, as far as its text goes."""

    line: int
    offset: int
    size: int
    """Bytes, without the line end."""
    number: int | None
    previous: str | None
    stated: str | None
    """Hash the row states."""
    computed: str | None
    """Hash of the row's text; None when it is no row at all."""
    kind: str | None

    @property
    def where(self) -> str:
        """How a finding names it: by its number, or by its place where the number cannot be trusted."""
        known = self.number is not None and self.stated == self.computed
        return f"{NAME} row {self.number if known else self.line}"


@dataclass(frozen=True, slots=True)
class Text:
    """The bytes of a ledger and its whole lines."""

    data: bytes | mmap.mmap
    entries: tuple[Entry, ...]

    def row(self, entry: Entry) -> Any:
        """The JSON value of a line; raises ValueError when there is none."""
        return json.loads(self.data[entry.offset : entry.offset + entry.size])


def read_text(path: Path) -> tuple[Text, list[Finding]]:
    """The lines of a ledger, and what is wrong with their text and order."""
    data = _mapped(path)
    entries: list[Entry] = []
    findings = []
    before: str | None = None
    for line, (offset, end) in enumerate(_lines(data)):
        entry = _entry(line, offset, data[offset:end], before)
        before = entry.stated
        if end == len(data) and entry.computed is None:
            findings.append(_unfinished(path, line, data[offset:end]))
            break
        entries.append(entry)
        if end == len(data):
            findings.append(
                Finding("unfinished", entry.where, "a line end after the row", "the end of the file")
            )
    if entries and _is_cut(data, entries[-1]):
        cut = entries.pop()
        what = "the end of the file: the append was cut short"
        findings.append(Finding("unfinished", cut.where, "the turn that its chunk was ended for", what))
    return Text(data, tuple(entries)), findings + list(_faults(entries))


def _is_cut(data: bytes | mmap.mmap, entry: Entry) -> bool:
    """Whether a row ends a chunk before its close, as only a turn does, which is written with it."""
    if entry.kind != "chunk" or entry.stated != entry.computed:
        return False
    try:
        row = json.loads(data[entry.offset : entry.offset + entry.size])
        return bool(row["snapshot"]["chunk"] == row["chunk"] and not row["snapshot"]["ended"])
    except (ValueError, LookupError, TypeError):
        return False


def _mapped(path: Path) -> bytes | mmap.mmap:
    if not path.stat().st_size:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _lines(data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    """Begin and end of every line, line ends left out."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        yield begin, end
        begin = end + 1


def _unfinished(path: Path, line: int, text: bytes) -> Finding:
    return Finding(
        "unfinished",
        f"{path.name} line {line}",
        "a whole row, or the end of the file",
        f"{len(text)} bytes of an append that was cut short: {shown(text[:60].decode(errors='replace'))}",
    )


def _entry(line: int, offset: int, text: bytes, before: str | None) -> Entry:
    """A line, read by its text where that is unambiguous, else as JSON; ``before`` is the last hash met."""
    seal = _seal(text)
    fields = None if seal is None else _fields_of_text(text) or _fields_of_value(text)
    if seal is None or fields is None:
        return _entry_of_value(line, offset, text)
    number, previous, kind = fields
    # one text for both: the hash of a row, and what the next one names
    previous = before if previous == before else previous
    return Entry(line, offset, len(text), number, previous, seal, seal, kind)


def _fields_of_text(text: bytes) -> tuple[int, str | None, str] | None:
    """Number, hash of the row before and kind, where the text leaves no doubt which those are.

    Inside of texts quotes are escaped, so that a key with its quotes is a key; ``row`` is that of the
    whole row where no mapping begins between it and ``previous``.
    """
    kind, previous = only(text, b"kind", _KIND), only(text, b"previous", _PREVIOUS)
    if kind is None or previous is None:
        return None
    at = text.find(b'"row":', previous.end() - 1)
    number = _NUMBER.match(text, at) if at >= 0 else None
    if number is None or text.find(b"{", previous.end(), at) >= 0:
        return None
    return int(number[1]), previous[1].decode() if previous[1] else None, sys.intern(kind[1].decode())


def _fields_of_value(text: bytes) -> tuple[int | None, str | None, str | None] | None:
    """The same of the JSON value; None when it is no mapping."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    number, previous, kind = (row.get(key) for key in ("row", "previous", "kind"))
    return (
        number if type(number) is int else None,
        previous if isinstance(previous, str) else None,
        kind if isinstance(kind, str) else None,
    )


def only(text: bytes, key: bytes, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """The value of a key that occurs once in a JSON text; None when it is not there, or more often."""
    quoted = b'"%s":' % key
    at = text.find(quoted)
    return None if at < 0 or text.find(quoted, at + 1) >= 0 else pattern.match(text, at)


def _seal(text: bytes) -> str | None:
    """The hash in the text that is the hash of the text without it."""
    at = text.find(b',"hash":')
    while at >= 0:
        match = _HASH.match(text, at)
        if match and digest(text[:at] + text[match.end() :]) == match[1].decode():
            return match[1].decode()
        at = text.find(b',"hash":', at + 1)
    return None


def _entry_of_value(line: int, offset: int, text: bytes) -> Entry:
    try:
        row = json.loads(text)
        body = {key: value for key, value in row.items() if key != "hash"}
        computed = digest(canonical(body))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return Entry(line, offset, len(text), None, None, None, None, None)
    number, previous, stated, kind = (row.get(key) for key in ("row", "previous", "hash", "kind"))
    return Entry(
        line,
        offset,
        len(text),
        number if type(number) is int else None,
        previous if isinstance(previous, str) else None,
        str(stated) if canonical(row) == text else f"{stated} of a text that is not canonical",
        computed,
        kind if isinstance(kind, str) else None,
    )


def _faults(entries: Sequence[Entry]) -> Iterator[Finding]:
    before: Entry | None = None
    for entry in entries:
        if entry.computed is None:
            yield Finding("chain", f"{NAME} line {entry.line}", "a row: one JSON object", "text that is none")
            before = None
            continue
        if entry.stated != entry.computed:
            yield _broken_seal(entries, entry)
        if before is not None or entry.line == 0:
            yield from _order(before, entry)
        before = entry


def _broken_seal(entries: Sequence[Entry], entry: Entry) -> Finding:
    """The row's hash and its text differ; the row after it tells which of them was changed."""
    after = entries[entry.line + 1] if entry.line + 1 < len(entries) else None
    if after is not None and after.previous == entry.computed:
        return Finding("chain", f"{entry.where}: hash", str(entry.computed), str(entry.stated))
    return Finding("chain", entry.where, f"text with hash {entry.stated}", f"text with hash {entry.computed}")


def _order(before: Entry | None, entry: Entry) -> Iterator[Finding]:
    number = 0 if before is None or before.number is None else before.number + 1
    if before is not None and before.stated == entry.stated and before.number == entry.number:
        yield Finding("chain", entry.where, f"row {number}", f"row {entry.number} a second time")
        return
    if entry.number != number and (before is None or before.number is not None):
        yield Finding("chain", f"{entry.where}: row", f"row {number}", f"row {entry.number}")
    previous = None if before is None else before.stated
    if entry.previous != previous:
        yield Finding(
            "chain",
            f"{entry.where}: previous",
            f"{previous}, the hash of the row before",
            str(entry.previous),
        )
