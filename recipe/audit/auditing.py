"""The audit of a run: everything on record, computed again by other code, and what differs.

What no audit of the folder alone can tell is said by :mod:`recipe.audit.limits`, with every answer.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from recipe.audit.answer import Audit
from recipe.audit.budget import budget_of
from recipe.audit.chain import NAME, Text, read_text
from recipe.audit.chain_only import check_chain
from recipe.audit.course import Course
from recipe.audit.coverage import Coverage
from recipe.audit.documents import check_erased, check_first, check_lists
from recipe.audit.files import check_files
from recipe.audit.findings import once
from recipe.audit.holdings import Found, find_pools, leave_contents, verify_contents
from recipe.audit.manifests import check_manifests
from recipe.audit.owners import check_owners
from recipe.audit.pool_reading import readings_of
from recipe.audit.recompute import Bench, Outcome
from recipe.audit.record import check_identity, read_recipe
from recipe.audit.sampling import Depth, chosen, detection, slices
from recipe.audit.scope import Scope, within
from recipe.audit.seal import Published, check_published, read_published
from recipe.audit.segments import Segment
from recipe.audit.taken_down import in_folders, taken_down
from recipe.audit.totals import largest_drifts, pools_that_left, tokens_on_record
from recipe.audit.workers import computed
from recipe.errors import RecipeError
from recipe.pools import Finding

MOST_MANIFESTS = 400
"""Contents of more manifests than this are compared by sample, unless everything is."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What was asked for."""

    depth: Depth
    scope: Scope
    published: Published | None
    pools_root: Path | None
    metadata_only: bool
    tokenizer: str | None
    progress: Progress | None


def audit_run(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    *,
    full: bool = False,
    sample: Fraction | float | int | None = None,
    workers: int | None = None,
    pools_root: str | Path | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    chain_only: bool = False,
    since: int | str | None = None,
    stage: str | None = None,
    head: str | None = None,
    metadata_only: bool = False,
    tokenizer: str | Path | None = None,
) -> Audit:
    """Check everything a run has on record; nothing is locked, written or repaired.

    Hashes, chain, sums and manifests are always checked in full. Rows are computed again from the
    snapshot before them, on all cores: all of them, or, when that would take more than about a
    minute, a random choice; the answer then says what the choice finds, and with what probability.

    Args:
        path: the run's folder.
        full: compute every row again and compare every byte of the pools with its hash.
        sample: share (float) or number (int) of rows to compute again.
        workers: threads, or processes where there is much to compute; default: one a core.
        pools_root: where the pools are on this machine; default: where the record says.
        seed: of the choice of rows and blocks; default: drawn anew, so that it cannot be foreseen.
        progress: called with positions computed again so far, and all of them.
        chain_only: look at hashes, order and numbers alone: seconds, whatever the run's size.
        since: compute only rows behind a step, or behind a manifest (``"@12"``).
        stage: compute only rows of one stage.
        head: hash of a row or a manifest, or a line of ``recipe seal``, that was published: what came
            before it is then proved.
        metadata_only: open no token file; pools may lack them (see ``recipe.pools.metadata``).
        tokenizer: ``bytes`` or a path, for cuts that are aligned at texts; default: the recipe's.

    Raises:
        RecipeError: the folder is no run; the run has no such step, manifest or stage; no hash.
        ValueError: a sample or a number of workers that is none; options that exclude each other.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; it is a whole number, at least 1")
    if sample is not None and (sample <= 0 or (not isinstance(sample, int) and sample > 1)):
        raise ValueError(f"sample is {sample!r}; it is a share in 0..1 (float) or a number of rows (int)")
    scope = Scope(since, stage)
    if chain_only and (full or metadata_only or sample is not None or not scope.is_whole):
        raise ValueError("chain_only computes no row: no full, sample, since, stage or metadata_only with it")
    folder = Path(path)
    _check_is_run(folder)
    drawn = secrets.randbits(32) if seed is None else seed
    wanted = _Wanted(
        depth=Depth(full, sample, workers or os.cpu_count() or 1, drawn, seed is not None),
        scope=scope,
        published=None if head is None else read_published(head),
        pools_root=None if pools_root is None else Path(pools_root),
        metadata_only=metadata_only,
        tokenizer=None if tokenizer is None else str(tokenizer),
        progress=progress,
    )
    try:
        return _chain_alone(folder, wanted.published) if chain_only else _audit(folder, wanted)
    except OSError as error:
        return Audit(run=str(folder), findings=(_unreadable(folder, error),))


def _check_is_run(folder: Path) -> None:
    if (folder / "run.yaml").is_file() or (folder / NAME).is_file():
        return
    raise RecipeError.single(
        f"{folder}: no run",
        str(folder),
        given=f"a folder without run.yaml and {NAME}" if folder.is_dir() else "no such folder",
        expected="a run folder, as `recipe run` makes it",
        fix="give the path of a run",
    )


def _unreadable(folder: Path, error: OSError) -> Finding:
    """A file or folder of the record that the system does not give."""
    place = Path(str(error.filename or folder))
    where = str(place.relative_to(folder)) if place.is_relative_to(folder) else str(place)
    return Finding("file", where, "something that can be read", error.strerror or str(error))


def _chain_alone(folder: Path, published: Published | None) -> Audit:
    if not (folder / NAME).is_file():
        return Audit(run=str(folder), findings=(_no_ledger(),))
    text, findings, checked = check_chain(folder)
    of_head, proved = _head(text, published)
    return Audit(run=str(folder), findings=once([*findings, *of_head]), checked=replace(checked, head=proved))


def _no_ledger() -> Finding:
    return Finding("chain", NAME, "a file that can be read", "no file")


def _head(text: Text, published: Published | None) -> tuple[list[Finding], str]:
    return ([], "") if published is None else check_published(text, published)


def _audit(folder: Path, wanted: _Wanted) -> Audit:
    if not (folder / NAME).is_file():
        return Audit(run=str(folder), findings=(_no_ledger(),))
    text, findings = read_text(folder / NAME)
    of_head, proved = _head(text, wanted.published)
    findings += of_head
    bare = Coverage(rows=len(text.entries), head=proved)
    first = text.entries[0] if text.entries else None
    created = text.row(first) if first is not None and first.computed is not None else {}
    if created.get("kind") != "created":
        findings.append(Finding("chain", f"{NAME} row 0: kind", "created", str(created.get("kind"))))
        return Audit(run=str(folder), findings=once(findings), checked=bare)
    findings += check_identity(folder, created)
    intent, faults = read_recipe(folder, created)
    findings += faults
    if intent is None:
        return Audit(run=str(folder), findings=once(findings), checked=bare)
    course = Course(text, intent, folder)
    course.follow()
    audit = _followed(folder, course, wanted)
    checked = replace(audit.checked, head=proved)
    return replace(audit, findings=once([*findings, *audit.findings]), checked=checked)


def _followed(folder: Path, course: Course, wanted: _Wanted) -> Audit:
    """Rows and manifests against each other and against the pools."""
    depth = wanted.depth
    asked = within(course, course.segments, wanted.scope)
    parsed = _parsed(course, depth)
    found_apart = check_manifests(folder, course, parsed)
    of_files, files = check_files(folder, course, full=depth.full)
    found = _pools(folder, course, wanted)
    try:
        bench = Bench(course.text, found.pools)
        segments = [segment for segment in asked if bench.can(segment)]
        picked = chosen(segments, depth)
        outcome = _recomputed(bench, picked, wanted)
        reading = readings_of(folder, course, found.pools)
        lists = [*check_first(course, bench), *check_erased(course, bench)]
        lists += [*check_lists(course, bench), *check_owners(course, bench)]
    finally:
        for pool in found.pools.values():
            pool.close()
    checked = Coverage(
        rows=len(course.text.entries),
        chunk_rows=sum(entry.kind == "chunk" for entry in course.text.entries),
        replayed=tuple(sorted(outcome.findings)),
        replayable=_num_rows(segments),
        unavailable=_num_rows(asked) - _num_rows(segments),
        scope=wanted.scope.said,
        outside=_num_rows(course.segments) - _num_rows(asked),
        sample_seed=None if len(picked) == len(segments) else depth.seed,
        seed_given=depth.foreseen,
        detection=detection(segments, picked),
        positions=outcome.positions,
        blocks=outcome.blocks,
        manifests=len(course.manifests),
        manifests_parsed=len(parsed),
        metadata_only=wanted.metadata_only,
        pools=found.covered,
        files=files,
        left=pools_that_left(course),
        parent=course.of_parent,
    )
    rows = [*_of_rows(course, outcome), *lists]
    return Audit(
        run=str(folder),
        findings=(*rows, *found_apart, *of_files, *outcome.apart, *found.findings),
        tokens=tokens_on_record(course),
        drift=largest_drifts(course),
        largest_drift=outcome.furthest,
        reading=reading,
        budget=budget_of(course),
        checked=checked,
    )


def _pools(folder: Path, course: Course, wanted: _Wanted) -> Found:
    """The pools that are there, their contents compared as far as that was asked for."""
    found = find_pools(
        folder,
        course,
        wanted.pools_root,
        metadata_only=wanted.metadata_only,
        tokenizer=wanted.tokenizer,
    )
    if wanted.metadata_only:
        return leave_contents(found)
    depth = wanted.depth
    gone = in_folders(taken_down(folder, course.text), course.recipes)
    return verify_contents(found, gone, full=depth.full, seed=depth.seed)


def _num_rows(segments: Sequence[Segment]) -> int:
    return sum(len(segment.stops) for segment in segments)


def _parsed(course: Course, depth: Depth) -> set[int]:
    """Numbers of the manifests whose contents are compared: all, or a choice that cannot be foreseen."""
    numbers = list(course.manifests)
    if depth.full or len(numbers) <= MOST_MANIFESTS:
        return set(numbers)
    return {numbers[-1], *random.Random(f"manifests {depth.seed}").sample(numbers[:-1], MOST_MANIFESTS - 1)}


def _recomputed(bench: Bench, segments: Sequence[Segment], wanted: _Wanted) -> Outcome:
    """All chosen segments computed again, on all cores."""
    total, positions = Outcome(), sum(segment.positions for segment in segments)
    work = slices(segments, wanted.depth.workers)
    for outcome in computed(bench, work, wanted.depth.workers):
        total.add(outcome)
        if wanted.progress is not None:
            wanted.progress(total.positions, positions)
    return total


def _of_rows(course: Course, outcome: Outcome) -> list[Finding]:
    """Findings in the order of rows; a chunk row computed again is named by that alone."""
    found = []
    for line, said in course.findings.items():
        again = outcome.findings.get(line)
        if again is not None and course.text.entries[line].kind == "chunk":
            said = [finding for finding in said if finding.check != "sums"]
        named = {finding.where for finding in again or ()}
        found += [*(again or ()), *(finding for finding in said if finding.where not in named)]
    return found
