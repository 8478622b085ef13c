"""Skips: steps whose data is left out, as after a loss spike; what they held is burnt or comes later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.opening import close_pools, open_pools
from recipe.mixing.outlook import Outlook, outlook
from recipe.mixing.skipping import skipped
from recipe.mixing.snapshot import Snapshot
from recipe.run.canonical import Plain
from recipe.run.changing.discarded import discarded_manifests
from recipe.run.changing.naming import check_step
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.forgotten import refuse_forgotten_step
from recipe.run.head import read_head
from recipe.run.holdings import changed, known_paths, refuse_changed
from recipe.run.opening import handle
from recipe.run.place import Place, stream_of, subject_of
from recipe.run.standing import Turning
from recipe.run.statement import text_on_record
from recipe.run.words import words_at


@dataclass(frozen=True, kw_only=True)
class Skip:
    """A skip worked out."""

    path: str
    steps: tuple[int, int]
    """The first step whose data is skipped, and the first whose data is not."""
    returned: bool
    sequences: Mapping[str, int]
    tokens: Mapping[str, int]
    """By pool: fresh document tokens."""
    discards: int
    """Steps on record that going on from the first one discards."""
    before: Outlook
    """The rest of the run with the steps."""
    after: Outlook
    """The rest of the run without them: as many steps, filled from what comes later."""
    discarded: tuple[Plain, ...] = ()
    """Manifests among them that have metrics, that a decision is about, or that a turn wrote."""
    manifest: int | None = None
    """Number of the manifest that put it on record."""

    def to_plain(self) -> Plain:
        """Plain values for ``recipe skip --json``."""
        return {
            "run": self.path,
            "steps": list(self.steps),
            "returned": self.returned,
            "sequences": dict(self.sequences),
            "tokens": dict(self.tokens),
            "discards": self.discards,
            "discarded": list(self.discarded),
            "before": self.before.to_plain(),
            "after": self.after.to_plain(),
            "manifest": self.manifest,
        }


def skip_run(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    steps: tuple[int, int],
    *,
    reason: str,
    returned: bool = False,
    approved_by: str | None = None,
    pools_root: str | Path | None = None,
    confirm: Callable[[Skip], bool] = lambda skip: True,
) -> Skip:
    """Leave out the data of some steps: the run goes on at the first of them with the data after the last.

    The run is as long as before; the steps are served anew, from what would have come later.

    Args:
        path: the run's folder.
        steps: the first step to skip, which has a checkpoint, and the first one that is not skipped; both
            in one stage.
        reason: why.
        returned: the pools give the sequences later, before their epoch turns; else they are dropped.
        approved_by: who said so.
        pools_root: where the pools are on this machine.
        confirm: asked with the skip worked out; nothing is written unless it says yes.

    Raises:
        RecipeError: no checkpoint at the first step, steps of several stages or after the run's end.
        ValueError: a step below zero.
    """
    check_step("steps", min(steps))
    folder = RunFolder(Path(path))
    folder.check()
    said = {
        "reason": text_on_record("reason", reason),
        "approved_by": None if approved_by is None else text_on_record("approved_by", approved_by),
    }
    start, stop = steps
    place = find_place(folder, start)
    refuse_forgotten_step(folder, start)
    state = place.state
    _check(folder, place, stop)
    root = None if pools_root is None else Path(pools_root)
    pools = open_pools(state.recipe, known_paths(state.recipe, state.holdings, root))
    try:
        refuse_changed(changed(state.holdings, pools), fix="put the data back that the run was served from")
        subject = subject_of(place, pools)
        stream = stream_of(folder, subject, pools, state.snapshot)
        after = _state_after(folder, stream.snapshot, stop)
        left_out = skipped(stream.ground, state.snapshot, after, returned=returned)
        skip = Skip(
            path=str(folder.path),
            steps=steps,
            returned=returned,
            sequences=left_out.sequences,
            tokens=left_out.tokens,
            discards=max(0, read_head(folder.ledger).reached.end_step - start),
            before=outlook(state.recipe, pools, state.snapshot),
            after=outlook(state.recipe, pools, left_out.snapshot),
            discarded=discarded_manifests(folder, start),
        )
        if not confirm(skip):
            return skip
        body = {**said, **{key: skip.to_plain()[key] for key in ("steps", "returned", "sequences", "tokens")}}
        turning = Turning(kind="skip", body=body, at=state.snapshot, base=left_out.snapshot, before=subject)
        run = handle(folder, place, subject, pools, turning)
        return replace(skip, manifest=run.put_on_record(words_at(folder, start)))
    finally:
        close_pools(pools.values())


def _check(folder: RunFolder, place: Place, stop: int) -> None:
    """Raise RecipeError unless the steps up to ``stop`` are steps of one stage."""
    start, curriculum = place.state.snapshot.step, Curriculum.from_recipe(place.state.recipe)
    if start == curriculum.num_steps:
        given, expected = f"{start}..{stop}", f"steps before {curriculum.num_steps}, the run's end"
    else:
        layout = curriculum.stages[curriculum.stretch(start).stage]
        if start < stop <= layout.stop_step:
            return
        given = f"{start}..{stop}"
        expected = f"{start}..STOP with STOP in {start + 1}..{layout.stop_step}: steps of stage {layout.name}"
    raise RecipeError.single(
        f"{folder.path}: no steps to skip",
        "steps",
        given=given,
        expected=expected,
        fix="give the first step skipped and the first one that is not, both in one stage",
    )


def _state_after(folder: RunFolder, snapshot: Callable[[int], Snapshot], stop: int) -> Snapshot:
    try:
        return snapshot(stop)
    except ValueError as error:
        raise RecipeError.single(
            f"{folder.path}: no steps to skip",
            "steps",
            given=f"up to {stop}",
            expected="steps that the run has",
            fix=f"{error}: skip fewer steps",
        ) from error
