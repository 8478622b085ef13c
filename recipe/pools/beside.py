"""Files that stand beside a pool's own and say how it was made: with their hashes, in one sealed record.

They are not needed to read a pool and may be left out of a copy; where they are, a changed byte is found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipe.pools.blocks import file_hash
from recipe.pools.card import content_hash
from recipe.pools.finding import Finding

RECORD_NAME = "prepare.json"
"""In a prepared pool: settings, inputs with their hashes, counts."""
REMADE = "remade"
"""Key of the ``source`` of a card that was lost and made anew."""
QUARANTINE_NAME = "quarantine.jsonl"
"""In a prepared pool, if any record was left out: source, line (or row, member), reason."""
COPIES_NAME = "copies.jsonl"
"""In a pool that extends another: what left-out copies of its documents say more (`recipe.pools.copies`)."""
_UNSEALED = frozenset({"format", "settings", "inputs", "read"})
"""Keys of a record that an older version wrote, without a hash: any other is a damaged one's."""
BESIDE = (QUARANTINE_NAME, COPIES_NAME)
"""Files whose sizes and hashes the record states, where they are."""


def sealed_record(folder: Path, record: Mapping[str, Any]) -> bytes:
    """The bytes of a record: with what stands beside it in ``folder``, and its own hash."""
    files = [folder / name for name in BESIDE if (folder / name).is_file()]
    beside = {path.name: {"bytes": path.stat().st_size, "hash": file_hash(path)} for path in files}
    plain = {**record, **({"beside": beside} if beside else {})}
    return _text({**plain, "hash": content_hash(plain)})


def _text(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, indent=1, ensure_ascii=False).encode()


def check_beside(folder: Path) -> tuple[list[Finding], list[str]]:
    """What is wrong with the record and the files it names, and what cannot be told."""
    path = folder / RECORD_NAME
    if not path.is_file():
        there = [name for name in BESIDE if (folder / name).is_file()]
        return [], [f"{folder / name}: no record of its hash" for name in there]
    data = path.read_bytes()
    try:
        record = json.loads(data)
        stated = record.pop("hash", None)
    except (ValueError, AttributeError, RecursionError):
        return [Finding("contents", str(path), "a JSON record with its hash", "something else")], []
    if stated is None and record.keys() <= _UNSEALED and data == _text(record):
        older = [path.name, *(name for name in BESIDE if (folder / name).is_file())]
        return [], [f"{folder / name}: no hash on record, written by an older version" for name in older]
    found = content_hash(record)
    if found != stated or data != _text({**record, "hash": stated}):
        observed = found if found != stated else "other bytes that say the same"
        return [Finding("contents", str(path), f"the hash it states, {stated}", observed)], []
    return [one for name, said in record.get("beside", {}).items() for one in _check(folder / name, said)], []


def _check(path: Path, said: Mapping[str, Any]) -> list[Finding]:
    if not path.is_file():
        return []
    found = file_hash(path)
    return [] if found == said["hash"] else [Finding("contents", str(path), said["hash"], found)]
