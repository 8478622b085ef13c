"""A trainer's checkpoints on a run's record: whose weights they are, their bytes, and those that are gone."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.run.folder import RunFolder
from recipe.run.handover.staging import sha256_of
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.manifests import ManifestStatus, manifests_backwards, run_manifests
from recipe.run.opening import open_run
from recipe.run.run import Run
from recipe.run.state import State
from recipe.run.weights import local_path


def course_of(run: Run) -> dict[str, str]:
    """Whose rows the weights of a trainer's checkpoint have seen: the ``run`` and its last ``turn``."""
    state = State.from_bytes(run.state())
    return {"run": state.run, "turn": state.turn.mark}


def opened_at(run: Run, step: int, told: Any, resume: str) -> Run:
    """The run where the trainer's weights are.

    A record that is ahead of them is opened at their step, with a warning of what that discards. Weights that
    are ahead of the record are gone on from where they are this run's own, as where the trainer was killed
    between saving them and their record.

    Args:
        run: as it was opened.
        step: of the weights.
        told: what :func:`course_of` said when they were saved.
        resume: how to go on from the trainer's last checkpoint.

    Raises:
        RecipeError: the weights saw rows that this run's record says nothing of.
    """
    if step == run.step:
        return run
    if step < run.step:
        warnings.warn(
            f"{run.path}: the record is at step {run.step}, the weights at step {step}. Steps {step} to "
            f"{run.step - 1} are trained again, and what the record says of them is discarded; "
            f"{resume} goes on from the trainer's last checkpoint",
            stacklevel=3,
        )
        return open_run(run.path, state=run.state(step))
    known, own = isinstance(told, dict) and "run" in told, course_of(run)
    recorded = max((each.step for each in run_manifests(run.path) if not each.discarded), default=0)
    if known and told == own and recorded <= run.step:
        return run
    whose = f"saved by run {told['run']}" if known else "which do not say whose they are"
    if known and told["run"] == own["run"]:
        is_older = told == own
        whose = (
            f"of this run, opened at step {run.step}" if is_older else "saved on another course of this run"
        )
    raise RecipeError.single(
        f"{run.path}: weights that are ahead of the record",
        "step",
        given=f"weights of step {step}, {whose}",
        expected=f"weights of step {run.step}, where the run stands, or later ones that were trained on it",
        fix=f"give the trainer its checkpoint of step {run.step} (recipe status RUN --manifests all), or "
        f"open or branch the run at step {step}; if its rows were seen: first run.checkpoint({step}, uri)",
    )


def digest_of(path: str | Path) -> str | None:
    """SHA-256 of a file, in hexadecimal; None for a folder, or an address elsewhere."""
    file = local_path(str(path))
    if file is None or not file.is_file():
        return None
    return sha256_of(file)


def check_digest(run: Run, path: str | Path) -> None:
    """Refuse a file that is not the one on record under its path, with the run or the one it branched from.

    Raises:
        RecipeError: it has other bytes.
    """
    stated = next((each for each in _stated(run, str(path)) if each is not None), None)
    if stated is not None and (found := digest_of(path)) is not None and found != stated:
        raise RecipeError.single(
            f"{path}: other weights than those on record",
            "checkpoint",
            given=f"a file of SHA-256 {found[:16]}…",
            expected=f"that of SHA-256 {stated[:16]}…, as {run.path} has it on record",
            fix="bring it back from a copy, or go on from a checkpoint whose weights are there: "
            "recipe status RUN --manifests all lists them",
        )


def _stated(run: Run, uri: str) -> Iterator[str | None]:
    """Digests on record of the weights at a place, the last one first."""
    for told in _kept(run, {uri}):
        yield read_manifest(manifest_path(run.path, told.manifest))["checkpoint"]["digest"]
    parent = RunFolder(run.path).parent
    if parent.is_file() and (said := read_manifest(parent)["checkpoint"])["uri"] == uri:
        yield said["digest"]


def forget_weights(run: Run, uris: Collection[str], reason: str, *, but: int | None = None) -> None:
    """Put on record that no manifest's weights are at these places any more, but those of one manifest."""
    for told in _kept(run, uris):
        if told.manifest != but:
            run.forget(told.manifest, reason=reason)


def forget_removed(run: Run, folder: Path) -> None:
    """Put on record which weights of a folder are not there any more."""
    for told in _kept(run):
        path = None if told.uri is None else local_path(told.uri)
        if path is not None and path.parent == folder and not path.exists():
            run.forget(told.manifest, reason="removed by the trainer")


def _kept(run: Run, uris: Collection[str] | None = None) -> Iterator[ManifestStatus]:
    """Manifests that count and whose weights are not known to be gone, the last one first."""
    for told in list(manifests_backwards(RunFolder(run.path).ledger)):  # callers write to it
        if told.forgotten is None and not told.discarded and (uris is None or told.uri in uris):
            yield told
