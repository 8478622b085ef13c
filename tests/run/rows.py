"""Rows that hold what a row of their kind must, and ledgers of them, for tests of the ledger's text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipe.run.canonical import canonical
from recipe.run.ledger import parse_line
from recipe.run.row import Row, chained, first_line

_POINTER = {"row": 0, "offset": 0, "step": 0}
_WHOLE: dict[str, dict[str, Any]] = {
    "created": {
        "step": 0,
        "run": "run",
        "id": "0",
        "run_hash": "0",
        "recipe": 1,
        "recipe_hash": "0",
        "pools": {},
        "snapshot": {"pools": []},
    },
    "chunk": {
        "recipe": 1,
        "stage": "s",
        "chunk": 0,
        "steps": [0, 1],
        "grid": [0, 1],
        "positions": 0,
        "counted": 0,
        "pools": {},
        "groups": {},
        "snapshot": {"pools": []},
    },
    "checkpoint": {
        "step": 0,
        "recipe": 1,
        "manifest": 1,
        "manifest_hash": "0",
        "uri": None,
        "gpu_hours": None,
        "positions": 0,
        "cumulative": {},
        "closing": {"row": 0, "offset": 0},
        "turn": _POINTER,
        "lineage": {"depth": 0, "parent": None, "skip": None},
        "snapshot": {"pools": []},
    },
    "rewind": {"from_step": 0, "to_step": 0, "manifest": None, "discarded": {}},
}


def body(kind: str, **said: Any) -> dict[str, Any]:
    """The body of a row of a kind, with what is said."""
    return {"kind": kind, **_WHOLE[kind], **said}


def ledger(path: Path, bodies: list[dict]) -> Path:
    """A ledger of these rows after a run's first, which is longer than a block that is read at once."""
    first = first_line(body("created", run="ü" * 70_000), time="t")
    rows = chained(Row(0, parse_line(path, 0, first[:-1])), bodies, time="t")
    path.write_bytes(first + b"".join(canonical(row) + b"\n" for row in rows))
    return path
