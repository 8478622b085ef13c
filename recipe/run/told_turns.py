"""The turns of a run and the decisions about it, told for a person: what, where, why, and who said so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recipe.errors import RecipeError, counted
from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail, row_at
from recipe.run.row import Row
from recipe.run.rows_of_kind import rows_of_kind
from recipe.run.sayings import counted_checkpoint
from recipe.run.turns import TurnAt, turn_before


def told_turns(folder: RunFolder, turn: TurnAt) -> Iterator[Plain]:
    """The turns of the lineage from one back to the run's creation, last first.

    Each with its ``kind``, ``step``, ``what`` it did in words, the recipe ``version`` from there on,
    ``reason``, ``approved_by``, ``time``, and the ``manifest`` that was written with it, if one was.

    Raises:
        RecipeError: a row names no turn: the ledger is damaged.
    """
    row: Row | None = row_at(folder.ledger, turn.offset)
    while row is not None:
        data = row.data
        yield {
            "kind": "branch" if data.get("parent") else row.kind,
            "step": row.end_step,
            "what": _what(data),
            "version": int(data["recipe"]),
            "reason": data.get("reason"),
            "approved_by": data.get("approved_by"),
            "time": data["time"],
            "manifest": _manifest_with(folder.ledger, row),
        }
        row = turn_before(folder.ledger, row)


def told_decisions(folder: RunFolder) -> list[Plain]:
    """Decisions on record that count, last first; those about another run's manifest do."""
    own = row_at(folder.ledger, 0).data["id"]
    return [
        {key: row.data[key] for key in ("as", "run", "manifest", "reason", "approved_by", "time", "evidence")}
        for row in reversed(list(rows_of_kind(folder.ledger, "decision")))
        if row.data["id"] != own or _counts(folder, int(row.data["manifest"]))
    ]


def _counts(folder: RunFolder, manifest: int) -> bool:
    try:
        counted_checkpoint(folder, read_tail(folder.ledger), manifest)
    except RecipeError:
        return False
    return True


def _what(data: Plain) -> str:
    """What a turn did, in a few words."""
    kind = data["kind"]
    if kind == "amend":
        by = {"policy": ", by the policy", "adoption": ", which adopts a branch"}.get(data["by"], "")
        return f"recipe version {data['recipe']}{by}"
    if kind == "skip":
        first, stop = data["steps"]
        return f"steps {first}..{stop} {'returned' if data['returned'] else 'dropped'}"
    if kind == "withdraw":
        ticket = f", {data['ticket']}" if data["ticket"] else ""
        documents = sum(data["documents"].values())
        return f"{counted(documents, 'document')}{ticket}"
    if kind == "data":
        return f"new data of {', '.join(data['pools'])}"
    parent = data.get("parent")
    return f"from {parent['run']}, manifest {parent['manifest']}" if parent else "the run's beginning"


def _manifest_with(ledger: Path, turn: Row) -> int | None:
    """The number of the manifest that stands behind a turn; only warnings may stand between them."""
    with ledger.open("rb") as file:
        file.seek(turn.offset)
        file.readline()
        end = ledger.stat().st_size
        while (offset := file.tell()) < end:
            if not file.readline().endswith(b"\n"):
                return None
            row = row_at(ledger, offset)
            if row.kind != "warning":
                return int(row.data["manifest"]) if row.kind == "checkpoint" else None
    return None
