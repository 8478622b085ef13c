"""Checkpoints whose weights were deleted: nothing starts from them, or goes back to them."""

from __future__ import annotations

from recipe.errors import RecipeError
from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder
from recipe.run.head import read_head
from recipe.run.ledger import Tail, read_tail
from recipe.run.row import Row
from recipe.run.rows_of_kind import rows_of_kind
from recipe.run.sayings import counted_checkpoint, say
from recipe.run.statement import text_on_record
from recipe.run.surviving import surviving

_SHOWN = 5


def forget_weights(folder: RunFolder, manifest: int, reason: str) -> None:
    """Put on record that the weights of a checkpoint are gone.

    Raises:
        RecipeError: the run has no such manifest that counts, or the folder cannot be written.
    """
    text = text_on_record("reason", reason)

    def body(tail: Tail) -> Plain:
        row = counted_checkpoint(folder, tail, manifest)
        marks = {"manifest": manifest, "manifest_hash": row.data["manifest_hash"]}
        return {"kind": "forgotten", **marks, "step": row.end_step, "reason": text}

    say(folder, body)


def is_forgotten(folder: RunFolder, checkpoint: Row) -> bool:
    """Whether a row says that the checkpoint was deleted."""
    return checkpoint.data["manifest"] in _sayings(folder, checkpoint)


def refuse_forgotten(folder: RunFolder, checkpoint: Row) -> None:
    """Raise RecipeError if a row says that the checkpoint was deleted."""
    said = _sayings(folder, checkpoint).get(checkpoint.data["manifest"])
    if said is not None:
        raise _forgotten(folder, checkpoint, said)


def refuse_forgotten_step(folder: RunFolder, step: int) -> None:
    """Raise RecipeError if the weights that a run stands on at a step were deleted."""
    checkpoint = read_head(folder.ledger, step).parent
    if checkpoint is not None and checkpoint.end_step == step:
        refuse_forgotten(folder, checkpoint)


def _sayings(folder: RunFolder, since: Row | None = None) -> dict[int, Plain]:
    """What was said of deleted checkpoints, by manifest."""
    return {row.data["manifest"]: row.data for row in rows_of_kind(folder.ledger, "forgotten", since)}


def _forgotten(folder: RunFolder, checkpoint: Row, said: Plain) -> RecipeError:
    gone = _sayings(folder)
    known = [row for row in surviving(folder.ledger, read_tail(folder.ledger)) if row.kind == "checkpoint"]
    others = [row for row in known if row.data["manifest"] not in gone]
    near = sorted(others, key=lambda row: abs(row.end_step - checkpoint.end_step))[:_SHOWN]
    near.sort(key=lambda row: int(row.data["manifest"]))
    shown = ", ".join(f"{row.data['manifest']} (step {row.end_step:,})" for row in near)
    why = f": {said['reason']}" if said.get("reason") else ""
    return RecipeError.single(
        f"{folder.path}: a checkpoint that is gone",
        "RUN@MANIFEST",
        given=f"manifest {checkpoint.data['manifest']}, forgotten at {said['time']}{why}",
        expected=f"a checkpoint whose weights are there; others are {shown or 'none'}",
        fix="start from another one; the record of this one stays, its weights were deleted",
    )
