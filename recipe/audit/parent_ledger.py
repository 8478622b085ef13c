"""The ledger of a branch's parent, where that is found: the rows that the branch names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipe.audit.account import Plain


def find_parent(folder: Path, said: Mapping[str, Any]) -> Path | None:
    """The parent's folder, beside the branch or where it was; None where it is not found."""
    path = Path(str(said.get("path")))
    for place in (folder.absolute().parent / path.name, path):
        try:
            identity = (place / "run.yaml").read_bytes()
        except (OSError, ValueError):
            continue
        if f"\nid: {said.get('id')}\n".encode() in identity:
            return place
    return None


def checkpoint_at(place: Path, number: object) -> int | None:
    """Where the row of a manifest's checkpoint begins in a ledger."""
    data, mark = _ledger(place), f'"manifest":{number},'.encode()
    found = data.find(mark)
    while found >= 0:
        begin, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found)
        if b'"kind":"checkpoint"' in data[begin:end]:
            return begin
        found = data.find(mark, found + 1)
    return None


def row_at(place: Path, offset: object) -> Plain:
    """The row that begins at a byte of a ledger; nothing where there is none."""
    data = _ledger(place)
    if type(offset) is not int or not 0 <= offset < len(data):
        return {}
    try:
        row = json.loads(data[offset:].split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _ledger(place: Path) -> bytes:
    try:
        return (place / "ledger.jsonl").read_bytes()
    except OSError:
        return b""
