"""What was said at the checkpoint of a step: its manifest, and the trainer's words in it."""

from __future__ import annotations

from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder
from recipe.run.head import read_head
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.statement import Statement


def manifest_at(folder: RunFolder, step: int) -> Plain | None:
    """The manifest of the lineage at a step; None where there is none."""
    head = read_head(folder.ledger, step)
    if head.parent is None or head.parent.end_step != step:
        return None
    path = manifest_path(folder.path, int(head.parent.data["manifest"]))
    return read_manifest(path, head.parent.data["manifest_hash"])


def words_at(folder: RunFolder, step: int) -> Statement:
    """What the trainer said at the checkpoint of a step: it holds for the same weights again."""
    manifest = manifest_at(folder, step)
    if manifest is None:
        return Statement()
    return Statement(
        uri=manifest["checkpoint"]["uri"],
        digest=manifest["checkpoint"]["digest"],
        gpu_hours=manifest["gpu_hours"],
        metrics=manifest["metrics"],
    )
