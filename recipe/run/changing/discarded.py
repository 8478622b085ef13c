"""What going back to a step discards that people have had a say in: metrics, decisions, turns."""

from __future__ import annotations

from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail, row_at
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.row import TURN_KINDS, Row, is_aside
from recipe.run.surviving import surviving


def discarded_manifests(folder: RunFolder, step: int) -> tuple[Plain, ...]:
    """The manifests after a step that have metrics, that a decision is about, or that a turn wrote; in order.

    Each with its ``manifest``, ``step``, the ``metrics`` sets, the ``decisions`` (``trunk``, ``amend``) and
    the ``turns`` (``amend``, ``skip`` …, and ``adoption`` for an amendment that adopts a branch).
    """
    own = row_at(folder.ledger, 0).data["id"]
    said: dict[int, list[Row]] = {}
    found: list[Plain] = []
    for row in surviving(folder.ledger, read_tail(folder.ledger)):
        if row.kind in ("metrics", "decision") and row.data.get("id", own) == own:
            said.setdefault(row.data["manifest"], []).append(row)
        elif row.kind in TURN_KINDS[1:] and row.end_step > step and found:
            found[-1]["turns"].append("adoption" if row.data.get("by") == "adoption" else row.kind)
        elif row.kind == "checkpoint":
            if row.end_step <= step and not is_aside(row):
                break
            if row.end_step > step:
                found.append(_told(folder, row, said.get(row.data["manifest"], [])))
    return tuple(one for one in reversed(found) if one["metrics"] or one["decisions"] or one["turns"])


def _told(folder: RunFolder, checkpoint: Row, said: list[Row]) -> Plain:
    number = int(checkpoint.data["manifest"])
    manifest = read_manifest(manifest_path(folder.path, number), checkpoint.data["manifest_hash"])
    sets = set(manifest["metrics"] or ())
    for row in said:
        sets |= set(row.data["metrics"]) if row.kind == "metrics" else set()
    return {
        "manifest": number,
        "step": checkpoint.end_step,
        "metrics": sorted(sets),
        "decisions": [str(row.data["as"]) for row in reversed(said) if row.kind == "decision"],
        "turns": [],
    }
