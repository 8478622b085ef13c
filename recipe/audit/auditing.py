"""The audit of a run: everything on record, computed again by other code, and what differs.

What no audit of the folder alone can tell: the trainer's own words (URI, metrics, GPU-hours) and
the clock, once every hash over them was made anew; rows cut off the end together with their
manifests; and whether the trainer used the batches that it asked for.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from recipe.audit.account import KINDS
from recipe.audit.chain import read_text
from recipe.audit.course import Course
from recipe.audit.files import check_files
from recipe.audit.findings import Audit, Coverage, Finding, once
from recipe.audit.holdings import Found, find_pools, verify_contents
from recipe.audit.manifests import check_manifests
from recipe.audit.reading import books_of
from recipe.audit.recompute import Bench, Outcome, recompute
from recipe.audit.record import check_identity, read_recipe
from recipe.audit.replay import Ground
from recipe.audit.sampling import Depth, chosen, slices
from recipe.audit.segments import Segment
from recipe.errors import RecipeError

MOST_MANIFESTS = 400
"""Contents of more manifests than this are compared by sample, unless everything is."""


def audit_run(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    *,
    full: bool = False,
    sample: float | int | None = None,
    workers: int | None = None,
    pools_root: str | Path | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Check everything a run has on record; nothing is locked, written or repaired.

    Hashes, chain, sums and manifests are always checked in full. Rows are computed again from the
    snapshot before them, on all cores: all of them, or, when that would take more than about a
    minute, a random choice.

    Args:
        path: the run's folder.
        full: compute every row again and compare every byte of the pools with its hash.
        sample: share (float) or number (int) of rows to compute again.
        workers: threads; default: one a core.
        pools_root: where the pools are on this machine; default: where the record says.
        seed: of the choice of rows and blocks; default: drawn anew, so that it cannot be foreseen.
        progress: called with positions computed again so far, and all of them.

    Raises:
        RecipeError: the folder is no run.
        ValueError: a sample or a number of workers that is none.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; it is a number of threads, at least 1")
    if sample is not None and (sample <= 0 or (isinstance(sample, float) and sample > 1)):
        raise ValueError(f"sample is {sample!r}; it is a share in 0..1 (float) or a number of rows (int)")
    folder = Path(path)
    _check_is_run(folder)
    depth = Depth(
        full, sample, workers or os.cpu_count() or 1, secrets.randbits(32) if seed is None else seed
    )
    return _audit(folder, depth, None if pools_root is None else Path(pools_root), progress)


def _check_is_run(folder: Path) -> None:
    if (folder / "run.yaml").is_file() or (folder / "ledger.jsonl").is_file():
        return
    raise RecipeError.single(
        f"{folder}: no run",
        str(folder),
        given="a folder without run.yaml and ledger.jsonl" if folder.is_dir() else "no such folder",
        expected="a run folder, as `recipe run` makes it",
        fix="give the path of a run",
    )


def _audit(
    folder: Path, depth: Depth, pools_root: Path | None, progress: Callable[[int, int], None] | None
) -> Audit:
    ledger = folder / "ledger.jsonl"
    if not ledger.is_file():
        return _without_course(
            folder, [Finding("chain", "ledger.jsonl", "a file that can be read", "no file")]
        )
    text, findings = read_text(ledger)
    first = text.entries[0] if text.entries else None
    created = text.row(first) if first is not None and first.computed is not None else {}
    if created.get("kind") != "created":
        findings.append(Finding("chain", "ledger.jsonl row 0: kind", "created", str(created.get("kind"))))
        return _without_course(folder, findings, len(text.entries))
    findings += check_identity(folder, created)
    intent, faults = read_recipe(folder, created)
    findings += faults
    if intent is None:
        return _without_course(folder, findings, len(text.entries))
    course = Course(text, intent)
    course.follow()
    of_course, found, outcome, coverage = _followed(folder, course, depth, pools_root, progress)
    return Audit(
        run=str(folder),
        findings=once([*findings, *of_course, *outcome.apart, *found.findings]),
        tokens=_tokens(course),
        drift=_drift(course),
        largest_drift=outcome.furthest,
        checked=coverage,
    )


def _followed(
    folder: Path,
    course: Course,
    depth: Depth,
    pools_root: Path | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[Finding], Found, Outcome, Coverage]:
    """Findings of rows and manifests, the pools, what was computed again, and how much was."""
    parsed = set(_parsed(course, depth))
    of_manifests = check_manifests(folder, course, parsed)
    of_files, files = check_files(folder, course, full=depth.full)
    found = verify_contents(find_pools(folder, course, pools_root), full=depth.full, seed=depth.seed)
    segments = _possible(course, found)
    picked = chosen(segments, depth)
    outcome = _recomputed(course, found, picked, depth, progress)
    for pool in found.pools.values():
        pool.close()
    replayable = sum(len(segment.stops) for segment in segments)
    coverage = Coverage(
        rows=len(course.text.entries),
        chunk_rows=sum(entry.kind == "chunk" for entry in course.text.entries),
        replayed=tuple(sorted(outcome.findings)),
        replayable=replayable,
        unavailable=sum(len(segment.stops) for segment in course.segments) - replayable,
        sample_seed=None if len(picked) == len(segments) else depth.seed,
        positions=outcome.positions,
        blocks=outcome.blocks,
        manifests=len(course.manifests),
        manifests_parsed=len(parsed),
        pools=found.covered,
        files=files,
        left=_left(course),
    )
    return [*_of_rows(course, outcome), *of_manifests, *of_files], found, outcome, coverage


def _without_course(folder: Path, findings: Sequence[Finding], rows: int = 0) -> Audit:
    """What can be said when the rows cannot be followed at all."""
    return Audit(
        run=str(folder),
        findings=once(findings),
        tokens={},
        drift={},
        largest_drift={},
        checked=Coverage(rows=rows),
    )


def _parsed(course: Course, depth: Depth) -> Iterable[int]:
    """Numbers of the manifests whose contents are compared."""
    numbers = list(course.manifests)
    if depth.full or len(numbers) <= MOST_MANIFESTS:
        return numbers
    step = len(numbers) / MOST_MANIFESTS
    return {numbers[-1], *(numbers[int(k * step)] for k in range(MOST_MANIFESTS))}


def _possible(course: Course, found: Found) -> list[Segment]:
    """Segments whose pools are there, as they were when the rows were written."""
    marks = {name: pool.fingerprint for name, pool in found.pools.items()}
    possible = []
    for segment in course.segments:
        parts = course.intent.layouts[segment.stage].parts
        drawn = [name for name, part in zip(course.intent.names, parts, strict=True) if part]
        if all(marks.get(name) == segment.holdings.get(name, {}).get("fingerprint") for name in drawn):
            possible.append(segment)
    return possible


def _recomputed(
    course: Course,
    found: Found,
    segments: Sequence[Segment],
    depth: Depth,
    progress: Callable[[int, int], None] | None,
) -> Outcome:
    """All chosen segments computed again; threads, since the work is done outside the interpreter lock."""
    ground = Ground(course.intent.layouts, books_of(course.intent.recipe, found.pools))
    bench = Bench(course.text, course.intent, ground)
    total, wanted = Outcome(), sum(segment.positions for segment in segments)
    work = slices(segments, depth.workers)
    with ThreadPoolExecutor(depth.workers) as threads:
        for outcome in threads.map(lambda some: recompute(bench, some), work):
            total.add(outcome)
            if progress is not None:
                progress(total.positions, wanted)
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


def _tokens(course: Course) -> dict[str, dict[str, int]]:
    last = course.lineage.furthest()[1]
    if last is None:
        return {}
    return {
        name: {kind: pool.counts[kind] for kind in KINDS}
        for name, pool in zip(course.intent.names, last.pools, strict=True)
    }


def _left(course: Course) -> dict[str, int]:
    """Pools that ran dry and left: ``{"stage S: pool P": the step of the row that first says so}``."""
    left: dict[str, int] = {}
    for mark in course.lineage.marks:
        state = course.lineage.snapshot(mark.entry)
        for pool in state.left if state is not None else ():
            stage, name = course.intent.layouts[mark.stage].name, course.intent.names[pool]
            left.setdefault(f"stage {stage}: pool {name}", mark.step)
    return left


def _drift(course: Course) -> dict[str, dict[str, int]]:
    """By stage and pool: spent less owed at the row end where it is largest, over the lineage."""
    table: dict[str, dict[str, int]] = {}
    for mark in course.lineage.marks:
        if mark.drift:
            stage = table.setdefault(
                course.intent.layouts[mark.stage].name, dict.fromkeys(course.intent.names, 0)
            )
            for name, tokens in zip(course.intent.names, mark.drift, strict=True):
                stage[name] = max(stage[name], tokens, key=abs)
    return table
