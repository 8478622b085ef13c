"""Acceptance on a run's own data: rows, whole documents, labels, text, resume, ranks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recipe.audit.rows import ARRAYS
from recipe.audit.verify import Acceptance, Check, check_rows, check_seams, claim, open_claim
from recipe.errors import RecipeError
from recipe.integrations.acceptance.gathering import ROWS, STEPS, Gathered, Span, some
from recipe.integrations.acceptance.text import check_text
from recipe.pools import Finding
from recipe.run.opening import open_run
from recipe.run.state import stream_from
from recipe.run.tracing.courses import Lineage

MOST_COURSES = 8
"""Turns of a run that are looked at, the latest of them."""
RESUMES = 3
"""Steps whose state is saved and opened apart."""
AHEAD = 64
"""Steps that are looked at where fewer were served."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """What is looked at."""

    documents: int = 256
    """Documents that are put together again from all their pieces."""
    seed: int | None = None
    """Of the choice; None: drawn anew, so that it cannot be foreseen."""


def verify_run(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    *,
    sample: Sample | None = None,
    pools_root: str | Path | None = None,
    tokenizer: str | Path | None = None,
    sources: Sequence[str | Path] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Acceptance:
    """Hold what a run serves against its documents; nothing is locked or written.

    Args:
        path: the run's folder.
        sample: how much is looked at, and by which choice.
        pools_root: where the pools are on this machine; default: where the record says.
        tokenizer: what turns ids into text; default: the recipe's.
        sources: folders that held the texts which the pools were made from.
        progress: called with the rows read so far, and about how many there will be.

    Raises:
        RecipeError: no run, a damaged record, pools that are missing or other ones.
    """
    sample = sample or Sample()
    if sample.documents < 1:
        raise ValueError(f"sample is {sample.documents}; it is a number of documents, at least 1")
    seed = secrets.randbits(32) if sample.seed is None else sample.seed
    chance = np.random.default_rng(seed)
    with Lineage(Path(path), None if pools_root is None else Path(pools_root)) as lineage:
        spans = _spans(lineage)
        gathered = Gathered(
            chance, lambda done: progress(done, len(spans) * STEPS * ROWS + 2 * sample.documents)
        )
        for span in spans:
            gathered.read(span, -(-sample.documents // len(spans)))
        checks = [
            check_rows(gathered.rows, gathered.steps),
            *check_seams(gathered.readings),
            check_text(gathered.readings, lineage.last, tokenizer, sources),
            _check_resume(path, pools_root, some(chance, spans[0].steps, RESUMES)),
            _check_ranks(spans[0], chance),
        ]
        gaps = [
            open_claim("gap", f"steps {gap.first_step}..{gap.stop_step - 1} of {gap.run}: {gap.why}")
            for gap in lineage.gaps
        ]
    return Acceptance(str(path), (*checks, *gaps), seed)


def _spans(lineage: Lineage) -> list[Span]:
    """The latest courses with their steps, latest first; the last one goes on for some that are to come."""
    last = lineage.last
    ahead = min(last.stream.num_steps, max(lineage.step, last.first_step + AHEAD))
    earlier = [Span(course, course.first_step, course.stop_step) for course in lineage.courses[-2::-1]]
    return [Span(last, last.first_step, ahead), *earlier][:MOST_COURSES]


def _check_resume(path: str | Path, pools_root: str | Path | None, steps: Sequence[int]) -> Check:
    """State bytes, opened apart, go on with the same batches (F4)."""
    findings, compared = list[Finding](), 0
    with open_run(path, pools_root=pools_root) as run:
        for step in steps:
            try:
                expected = {
                    after: run.stream().batch(after) for after in (step, step + 1)[: run.num_steps - step]
                }
                state = run.state(step)
            except (ValueError, RecipeError):
                break
            with closing(stream_from(state)) as other:
                compared += 1
                for after, batch in expected.items():
                    where = f"step {after}, from the state of step {step}"
                    findings += _unequal(where, batch, other.batch(after))
    if not compared:
        return open_claim("resume", "no step can be served")
    return claim("resume", f"{compared} states saved and opened apart: the same batches follow", findings)


def _check_ranks(span: Span, chance: np.random.Generator) -> Check:
    """What ranks are dealt is the global batch, each row once."""
    findings, sizes = list[Finding](), set[int]()
    for step in some(chance, span.steps, 1):
        batch = span.stream.curriculum.stretch(step).batch
        try:
            whole = span.stream.batch(step)
        except ValueError:
            break
        for size in [size for size in (1, 2, 3, 4, 8, batch) if batch % size == 0]:
            parts = [span.stream.batch(step, rank, size, rows=True) for rank in range(size)]
            places = np.argsort(np.concatenate([part["rows"] for part in parts]), kind="stable")
            together = {name: np.concatenate([part[name] for part in parts])[places] for name in ARRAYS}
            findings += _unequal(f"step {step}, {size} ranks", whole, together)
            sizes.add(size)
    if not sizes:
        return open_claim("ranks", "no step can be served")
    said = f"{', '.join(map(str, sorted(sizes)))} ranks: together they hold the global batch, row by row"
    return claim("ranks", said, findings)


def _unequal(where: str, expected: Mapping[str, Any], observed: Mapping[str, Any]) -> list[Finding]:
    """Arrays of two batches that differ: the first place of each."""
    found = []
    for name in ARRAYS:
        a, b = expected[name], observed[name]
        if a.shape != b.shape:
            found.append(Finding("batches", f"{where}: {name}", str(a.shape), str(b.shape)))
        elif (wrong := np.argwhere(a != b)).size:
            row, column = wrong[0].tolist()
            place = f"{where}, row {row}, column {column}: {name}"
            found.append(Finding("batches", place, str(a[row, column]), str(b[row, column])))
    return found
