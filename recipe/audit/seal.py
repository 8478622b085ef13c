"""The head of a run's record, to publish: with it anybody can tell later that what came before stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recipe.audit.chain import NAME, Entry, Text, read_text
from recipe.audit.findings import shown
from recipe.errors import Problem, RecipeError
from recipe.pools import Finding

_MARK = "recipe-seal/1"
_HEX = re.compile(r"[0-9a-f]{64}")
_PIECE = re.compile(rf"(?:{_MARK} )?head=(?P<head>[0-9a-f]{{64}})", re.IGNORECASE)
_LINE = re.compile(
    rf"{_MARK} head=(?P<head>[0-9a-f]{{64}}) row=(?P<row>\d{{1,18}}) manifest=(?P<manifest>\d{{1,18}}|none)"
    r" manifest_hash=(?P<manifest_hash>[0-9a-f]{64}|none) step=(?P<step>\d{1,18}) time=(?P<time>\S+)"
    r" id=(?P<id>\S+) run=(?P<run>.+)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """Where a run's record stands: its last row, by number and hash, and its last manifest."""

    run: str
    """Name of the run."""
    id: str | None
    """Unique to the run, as its first row states it."""
    row: int
    head: str
    """Hash of that row; it covers every row before it and, by their hashes, every manifest."""
    manifest: int | None
    """Last manifest on record; None before the first checkpoint."""
    manifest_hash: str | None
    step: int
    """Steps consumed, as the last row that says so has it."""
    time: str
    """Of the row."""

    def line(self) -> str:
        """All of it in one line, for a commit message, a log, a letter; ``recipe audit --head`` reads it."""
        manifest = "none" if self.manifest is None else self.manifest
        return (
            f"{_MARK} head={self.head} row={self.row} manifest={manifest} "
            f"manifest_hash={self.manifest_hash or 'none'} step={self.step} time={self.time} "
            f"id={self.id or 'none'} run={self.run}"
        )

    def to_plain(self) -> dict[str, Any]:
        """What ``recipe seal --json`` prints."""
        return {**asdict(self), "line": self.line()}


def seal_run(path: str | Path) -> Seal:
    """The head of a run's record as it stands; nothing is locked or written.

    A last row that was cut short does not count, as it does not for the run.

    Raises:
        RecipeError: no run, or a chain that is broken: its head would prove nothing.
    """
    folder = Path(path)
    if not (folder / NAME).is_file():
        raise RecipeError.single(
            f"{folder}: no run", str(folder / NAME), given="no such file",
            expected="the ledger of a run, as `recipe run` makes it", fix="give the path of a run",
        )  # fmt: skip
    text, findings = read_text(folder / NAME)
    if broken := [finding for finding in findings if finding.check != "unfinished"]:
        fix = "take the ledger from a copy; `recipe audit` names every fault"
        raise RecipeError(
            f"{folder}: a chain that is broken has no head to publish",
            [Problem(fault.where, fault.observed, fault.expected, fix) for fault in broken],
        )
    if not text.entries:
        raise RecipeError.single(
            f"{folder}: no row", str(folder / NAME), given="a ledger without a whole row",
            expected="at least the row of the run's creation", fix="give the path of a run that was started",
        )  # fmt: skip
    return _seal(text)


def _seal(text: Text) -> Seal:
    created, last = text.row(text.entries[0]), text.row(text.entries[-1])
    point = next((entry for entry in reversed(text.entries) if entry.kind == "checkpoint"), None)
    manifest = {} if point is None else text.row(point)
    return Seal(
        run=str(created.get("run")),
        id=created.get("id"),
        row=len(text.entries) - 1,
        head=str(last.get("hash")),
        manifest=manifest.get("manifest"),
        manifest_hash=manifest.get("manifest_hash"),
        step=_step(text),
        time=str(last.get("time")),
    )


def _step(text: Text) -> int:
    """Steps consumed at the end of a ledger."""
    for entry in reversed(text.entries):
        row = text.row(entry)
        ends, snapshot = row.get("steps"), row.get("snapshot")
        of_state = snapshot.get("step") if isinstance(snapshot, dict) else None
        is_chunk = entry.kind == "chunk" and isinstance(ends, list) and len(ends) > 1
        step = ends[1] if is_chunk else row.get("to_step", of_state)
        if type(step) is int:
            return step
    return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What somebody kept of a run: the hash of a row or of a manifest, or a whole seal."""

    hash: str
    seal: Seal | None = None


def read_published(text: str) -> Published:
    """What ``--head`` was given: 64 hexadecimal digits, ``head=`` and these, or a line of ``recipe seal``.

    Raises:
        RecipeError: neither.

    >>> read_published(" " + "AB" * 32).hash[:4]
    'abab'
    """
    words = " ".join(text.split())
    if _HEX.fullmatch(words.lower()):
        return Published(hash=words.lower())
    if piece := _PIECE.fullmatch(words):
        return Published(hash=piece["head"].lower())
    if match := _LINE.fullmatch(words):
        known = {key: None if value == "none" else value for key, value in match.groupdict().items()}
        numbers = {key: int(known[key]) for key in ("row", "step", "manifest") if known[key] is not None}  # type: ignore[arg-type]
        seal = Seal(**{**known, **numbers})  # type: ignore[arg-type]
        return Published(hash=seal.head, seal=seal)
    raise RecipeError.single(
        "recipe audit", "--head", given=text if len(text) < 300 else f"{text[:300]}…",
        expected="64 hexadecimal digits (of a row or a manifest), head=DIGITS, or a line of `recipe seal`",
        fix="copy it again; all 64 digits are needed, a beginning proves little",
    )  # fmt: skip


def check_published(text: Text, published: Published) -> tuple[list[Finding], str]:
    """Whether the record still holds what was published; and, where it does, what that proves."""
    entry = _row_of(text, published.hash)
    if entry is None:
        return [_gone(text, published)], ""
    found = _compared(text, entry, published.seal)
    whole = _is_whole(text.entries[: entry.line + 1])
    if found or not whole:
        where = f"{NAME} rows 0 to {entry.line}"
        chained = "an unbroken chain up to what was published"
        return [*found, *([] if whole else [Finding("head", where, chained, "a chain that is broken")])], ""
    after = len(text.entries) - entry.line - 1
    what = "row" if entry.stated == published.hash else "manifest"
    said = (
        f"the {what} that was published is in the chain, as row {entry.number}: that row, every row before "
        f"it and every file they name by hash are what they were then; {after} rows came later"
    )
    return [], said


def _row_of(text: Text, wanted: str) -> Entry | None:
    """The row with a hash, or the checkpoint row of the manifest with it."""
    for entry in text.entries:
        if entry.stated == wanted == entry.computed:
            return entry
    offsets = [entry.offset for entry in text.entries]
    mark = f'"manifest_hash":"{wanted}"'.encode()
    at = text.data.find(mark)
    while at >= 0:
        entry = text.entries[bisect_right(offsets, at) - 1]
        if entry.kind == "checkpoint" and text.row(entry).get("manifest_hash") == wanted:
            return entry
        at = text.data.find(mark, at + 1)
    return None


def _gone(text: Text, published: Published) -> Finding:
    rows, seal = len(text.entries), published.seal
    if seal is None:
        observed = f"none among {rows} rows: the end was cut off, or what came before was written anew"
        return Finding("head", NAME, f"a row or a manifest with hash {published.hash}", observed)
    expected = f"row {seal.row} with hash {seal.head}, as it was published"
    if seal.row >= rows:
        observed = f"{rows} rows: the end was cut off"
        return Finding("head", NAME, expected, observed)
    observed = f"hash {text.entries[seal.row].stated}: it, or a row before it, was written anew"
    return Finding("head", f"{NAME} row {seal.row}", expected, observed)


def _compared(text: Text, entry: Entry, seal: Seal | None) -> list[Finding]:
    """What else a seal says, against the row that it names and the one before."""
    if seal is None:
        return []
    upto = Text(text.data, text.entries[: entry.line + 1])
    there = _seal(upto)
    return [
        Finding("head", f"{entry.where}: {key}", f"{shown(said)}, as it was published", shown(found))
        for key, said in asdict(seal).items()
        if (found := getattr(there, key)) != said
    ]


def _is_whole(entries: Sequence[Entry]) -> bool:
    """Whether rows are numbered from 0 and each names the one before."""
    previous: str | None = None
    for number, entry in enumerate(entries):
        named = (entry.number, entry.previous) == (number, previous)
        if not named or entry.stated is None or entry.stated != entry.computed:
            return False
        previous = entry.stated
    return True
