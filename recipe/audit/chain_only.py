"""The audit of the chain alone: every hash, no number. Seconds, whatever the run's size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.audit.chain import NAME, Entry, Text, only, read_text
from recipe.audit.coverage import Coverage
from recipe.audit.record import read_sealed, seal_findings
from recipe.pools import Finding
from recipe.run.canonical import digest
from recipe.run.manifest import latest_path, manifest_path

_NUMBER = re.compile(rb'"manifest":(\d{1,18})[,}]')
_HASH = re.compile(rb'"manifest_hash":"([0-9a-f]{64})"')
_HEX = re.compile(r"[0-9a-f]{64}")
_MANIFEST = re.compile(r"(\d{6,18})\.yaml")


@dataclass(frozen=True, slots=True)
class Named:
    """A file that a row names by its hash."""

    check: str
    path: Path
    hash: str
    said_by: str
    late: bool = False
    """Of a checkpoint that was committed after later ones."""


def check_chain(folder: Path) -> tuple[Text, list[Finding], Coverage]:
    """Hashes, order and numbers of all rows, and the bytes of all files that rows name by hash."""
    text, findings = read_text(folder / NAME)
    named = list(_named(folder, text))
    for file in named:
        findings += _compared(folder, file)
    manifests = [file for file in named if file.check == "manifest"]
    findings += [*_numbering(folder, manifests), *_strangers(folder, manifests)]
    findings += _copy(folder, [file for file in manifests if not file.late])
    return text, findings, Coverage(rows=len(text.entries), chain_only=True, named=len(named))


def _named(folder: Path, text: Text) -> Iterator[Named]:
    for entry in text.entries:
        if entry.kind == "checkpoint":
            yield from _manifest(folder, text, entry)
        elif entry.kind in ("created", "amend", "withdraw", "decision"):
            row = text.row(entry)
            if isinstance(row, dict):
                yield from _others(folder, row, entry)


def _manifest(folder: Path, text: Text, entry: Entry) -> Iterator[Named]:
    line = text.data[entry.offset : entry.offset + entry.size]
    number, hashed = only(line, b"manifest", _NUMBER), only(line, b"manifest_hash", _HASH)
    found: tuple[Any, Any] = (int(number[1]), hashed[1].decode()) if number and hashed else (None, None)
    if found[0] is None:
        row = text.row(entry)
        found = (row.get("manifest"), str(row.get("manifest_hash")))
    if type(found[0]) is int and found[0] >= 0:
        path = manifest_path(folder, found[0])
        late = b'"late":true' in line
        yield Named("manifest", path, found[1], f"{entry.where}: manifest_hash", late)


def _others(folder: Path, row: dict[str, Any], entry: Entry) -> Iterator[Named]:
    """Recipes, the run's identity, the parent's manifest, lists of withdrawn documents, evidence."""
    version, file, parent = row.get("recipe"), row.get("file"), row.get("parent")
    evidence = row.get("evidence")
    if entry.kind == "created":
        yield Named("run", folder / "run.yaml", str(row.get("run_hash")), f"{entry.where}: run_hash")
    if isinstance(parent, dict):
        path = folder / "parent.yaml"
        yield Named("lineage", path, str(parent.get("hash")), f"{entry.where}: parent.hash")
    if isinstance(evidence, str) and _HEX.fullmatch(evidence):
        path = folder / "evidence" / f"{evidence}.json"
        yield Named("evidence", path, evidence, f"{entry.where}: evidence")
    if entry.kind in ("created", "amend") and type(version) is int:
        path = folder / "recipes" / f"{version:04d}.yaml"
        yield Named("recipe", path, str(row.get("recipe_hash")), f"{entry.where}: recipe_hash")
    if entry.kind == "withdraw" and isinstance(file, str) and file == f"withdrawn/{Path(file).name}":
        yield Named("withdrawn", folder / file, str(row.get("file_hash")), f"{entry.where}: file_hash")


def _compared(folder: Path, file: Named) -> list[Finding]:
    """One file against the hash in the row."""
    if file.check not in ("withdrawn", "evidence"):
        return seal_findings(file.check, read_sealed(folder, file.path, parse=False), file.hash, file.said_by)
    try:
        found = digest(file.path.read_bytes())
    except OSError as error:
        found = error.strerror or "no file"
    name = str(file.path.relative_to(folder))
    if found == file.hash:
        return []
    return [Finding(file.check, name, f"contents with hash {file.hash}, as {file.said_by} says", found)]


def _numbering(folder: Path, manifests: Sequence[Named]) -> Iterator[Finding]:
    """Manifests are numbered 1, 2, 3 … in the order of their rows."""
    for number, file in enumerate(manifests, start=1):
        if file.path != manifest_path(folder, number):
            where = file.said_by.replace("manifest_hash", "manifest")
            yield Finding("chain", where, str(number), file.path.stem.lstrip("0") or "0")


def _strangers(folder: Path, manifests: Sequence[Named]) -> Iterator[Finding]:
    """Manifests that no row names; the next number may be left of a checkpoint that was cut short."""
    known = {file.path.name for file in manifests}
    try:
        paths = sorted((folder / "manifests").iterdir())
    except OSError as error:
        if manifests:
            reason = error.strerror or str(error)
            yield Finding("manifest", "manifests", "a folder that can be read", reason)
        return
    for path in paths:
        if _MANIFEST.fullmatch(path.name) and path.name not in known:
            is_next = path == manifest_path(folder, len(manifests) + 1)
            observed = "none: it was cut short, or rows were cut off" if is_next else "none"
            check = "unfinished" if is_next else "manifest"
            yield Finding(check, f"manifests/{path.name}", "a checkpoint row that names it", observed)


def _copy(folder: Path, manifests: Sequence[Named]) -> Iterator[Finding]:
    """latest.yaml holds the bytes of the last manifest, or, after a crash, of the one before."""
    if not manifests:
        return
    copies = [_bytes(file.path) for file in manifests[-2:]]
    latest = _bytes(latest_path(folder))
    if latest is None or latest != copies[-1]:
        check = "unfinished" if latest is None or latest in copies else "manifest"
        observed = "no file" if latest is None else "other bytes"
        yield Finding(check, "manifests/latest.yaml", f"a copy of {manifests[-1].path.name}", observed)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
