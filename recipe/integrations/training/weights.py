"""The trainer's checkpoints: whole files, named by their step, that the run's manifests point to.

A file holds nothing but what training made: of a run that was killed and went on, the same bytes, on a
processor, as of one that never stopped. The hours by the clock stand in the manifests.
"""

from __future__ import annotations

import hashlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from recipe.errors import RecipeError
from recipe.run.files import SEQUENCES
from recipe.run.folder import RunFolder
from recipe.run.manifest import read_manifest
from recipe.run.words import manifest_at
from recipe.run.writes import make_folder, replace_file

FOLDER = "checkpoints"
FORMAT = 2
_READ = (1, FORMAT)
"""Formats that are read; 1 had the seconds by the clock too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """A checkpoint that a manifest states."""

    path: Path
    digest: str | None
    gpu_hours: float
    """What training took up to it, over the run's lineage."""


def save(run_folder: Path, step: int, content: dict[str, Any]) -> tuple[str, str]:
    """Put a checkpoint on disk in one instant.

    Returns:
        Its URI, relative to the run's folder, and its SHA-256: for the manifest.

    Raises:
        RecipeError: the system refuses, as where the disk is full; nothing is left behind.
    """
    buffer = io.BytesIO()
    torch.save(_apart({"format": FORMAT, **content}), buffer)
    data = buffer.getvalue()
    folder = run_folder / FOLDER
    make_folder(folder)
    path = folder / f"step-{step:09d}.pt"
    replace_file(path, data)
    return f"{FOLDER}/{path.name}", hashlib.sha256(data).hexdigest()


def load(weights: Weights, device: torch.device | str) -> dict[str, Any]:
    """Read a checkpoint: tensors and plain values, no code.

    Raises:
        RecipeError: the file is missing, or is not the one that was put on record.
    """
    try:
        data = weights.path.read_bytes()
    except OSError as error:
        raise _refused(weights.path, error.strerror or "cannot be read", "the file as it was saved") from None
    if weights.digest is not None and hashlib.sha256(data).hexdigest() != weights.digest:
        raise _refused(weights.path, "other bytes", f"the file whose SHA-256 is {weights.digest[:16]}…")
    content: dict[str, Any] = torch.load(io.BytesIO(data), map_location=device, weights_only=True)
    if content.get("format") not in _READ:
        raise _refused(weights.path, f"format {content.get('format')}", f"format {FORMAT}")
    return content


def _apart(value: Any) -> Any:
    """Equal values that share no object but their keys: what is shared would show in the file's bytes."""
    if isinstance(value, dict):
        return {sys.intern(key) if isinstance(key, str) else key: _apart(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_apart(own) for own in value])
    return value


def weights_at(run_folder: Path, step: int) -> Weights | None:
    """The run's weights at a step on record: its own, or those of the manifest that it branched from.

    None for a run that begins with weights of its own.

    Raises:
        RecipeError: steps were consumed, and nobody said where the weights are, or they are none of the
            reference trainer's.
    """
    folder = RunFolder(run_folder)
    manifest, home = manifest_at(folder, step), run_folder
    if manifest is None and folder.parent.is_file():
        manifest = read_manifest(folder.parent)
        home = Path(yaml.safe_load(folder.identity.read_bytes())["parent"]["path"])
        home = home if home.is_absolute() else run_folder / home
    if manifest is None:
        return None
    said = manifest["checkpoint"]
    if said["uri"] is None:
        if step == 0:
            return None
        raise _refused(home, f"manifest {manifest['number']} without a URI", "where the weights were saved")
    if not said["uri"].startswith(f"{FOLDER}/"):
        raise _not_trained(home, said["uri"])
    hours = float(manifest["gpu_hours"] or 0)
    return Weights(path=home / said["uri"], digest=said["digest"], gpu_hours=hours)


def files(run_folder: Path) -> list[Path]:
    """The checkpoints that are there."""
    return sorted((run_folder / FOLDER).glob("step-*.pt"))


def branched_from(run_folder: Path) -> set[str]:
    """URIs of checkpoints that branches beside the run start from and have not gone on from yet."""
    name, found = yaml.safe_load(RunFolder(run_folder).identity.read_bytes())["name"], set[str]()
    for other in run_folder.absolute().parent.iterdir():
        branch = RunFolder(other)
        if branch.parent.is_file() and not files(other):
            manifest = read_manifest(branch.parent)
            if manifest["run"] == name and manifest["checkpoint"]["uri"]:
                found.add(manifest["checkpoint"]["uri"])
    return found


def _not_trained(run: Path, uri: str) -> RecipeError:
    files = uri.startswith(f"{SEQUENCES}/")
    return RecipeError.single(
        f"{run}: no weights to go on from",
        "checkpoint",
        given=f"{uri}: this run was written by {'sink files (parquet)' if files else 'another trainer'}",
        expected="a run of the reference trainer",
        fix="train one from its recipe under another name: recipe run RECIPE sink=train --name NAME",
    )


def _refused(where: Path, given: str, expected: str) -> RecipeError:
    fix = "bring it back from a copy, or branch from a checkpoint whose weights are there"
    return RecipeError.single(
        f"{where}: no weights to go on from", "checkpoint", given=given, expected=expected, fix=fix
    )
