"""What the trainer was handed against what the run serves: batch digests, step by step.

The batches are assembled by the stream, the program that served them: this tells whether what reached
the trainer is what the record gives today, and not whether that program is right; that is what the
audit's own recomputation is for.
"""

from __future__ import annotations

import os
import random
import secrets
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recipe.errors import RecipeError
from recipe.pools import Finding
from recipe.pools.blocks import document_hash
from recipe.run.digests import Handed, Kept, digest_folder, read_digests
from recipe.run.opening import open_run
from recipe.run.stream import RunStream
from recipe.run.turns import turns_backwards
from recipe.sequences.digest import row_digests, step_digest

MOST_POSITIONS = 1 << 31
"""So many positions are assembled and hashed again, about half a minute on two cores, unless all are."""
GROUP = 32
"""Steps that are chosen together."""
_SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """What comparing digests gave."""

    kept: int
    """Steps of which the digests of all ranks are there."""
    compared: int
    """Of them, compared."""
    partial: int
    """Steps of which only some ranks' digests are there."""
    unreadable: int
    """Lines that say nothing."""
    impossible: int
    """Steps that cannot be assembled any more: their data was replaced, or is not there."""
    apart: int
    """Steps handed out that do not count: behind the last checkpoint, or before a turn that came later."""
    findings: tuple[Finding, ...]
    differing: int
    """Steps that differ; findings name the first ones."""

    @property
    def said(self) -> str:
        """In a sentence."""
        if not self.kept:
            return "batch digests: none of a whole step"
        agree = self.compared - self.differing
        said = (
            f"batch digests: in {agree:,} of {self.compared:,} steps compared the trainer was handed what "
            "the run serves (assembled by the stream itself, `recipe.mixing`, not by the audit's code)"
        )
        on_record = self.kept - self.apart
        if self.compared + self.impossible < on_record:
            chance = 100 * (self.compared + self.impossible) // on_record
            said += f"; {on_record:,} steps have digests: one that differs is met with probability {chance} %"
        others = [
            f"{number:,} {what}"
            for number, what in (
                (
                    self.impossible,
                    "steps cannot be assembled any more, their documents were replaced or erased",
                ),
                (self.apart, "steps were handed out before a turn or behind the last checkpoint"),
                (self.partial, "steps lack a rank"),
                (self.unreadable, "lines say nothing"),
            )
            if number
        ]
        return "; ".join([said, *others])


def compare_served(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    *,
    digests: str | Path | None = None,
    pools_root: str | Path | None = None,
    full: bool = False,
    seed: int | None = None,
    workers: int | None = None,
) -> Served:
    """Assemble steps again and compare them with the digests that the ranks kept; nothing is written.

    Args:
        path: the run's folder.
        digests: the folder of the digests; default: ``digests`` in the run's.
        pools_root: where the pools are on this machine.
        full: all steps; else as many as half a minute takes, chosen at random.
        seed: of the choice; default: drawn anew.
        workers: threads; default: one a core.

    Raises:
        RecipeError: no such folder of digests, or no run that can be opened.
    """
    folder = digest_folder(Path(path)) if digests is None else Path(digests)
    if not folder.is_dir():
        raise RecipeError.single(
            f"{path}: no batch digests",
            str(folder),
            given="no such folder",
            expected="the folder that `recipe.BatchDigests` writes while the run trains",
            fix="leave --served out, or say with --digests where they are",
        )
    kept = read_digests(folder)
    with open_run(path, pools_root=pools_root) as run:
        stream = run.stream()
        groups = _groups(_on_record(kept.steps, run.path / "ledger.jsonl", run.step))
        chosen = groups if full else _chosen(groups, stream, seed)
        with ThreadPoolExecutor(workers or os.cpu_count() or 1) as threads:
            answers = list(threads.map(lambda group: [_answer(stream, one) for one in group], chosen))
    apart = len(kept.steps) - sum(map(len, groups))
    return _served(kept, [answer for group in answers for answer in group], apart)


def _on_record(steps: Sequence[Handed], ledger: Path, step: int) -> list[Handed]:
    """Steps consumed before ``step``, unless the run turned at or before them after they were handed out."""
    turns = sorted((row.offset, row.end_step) for row in turns_backwards(ledger))
    counted = []
    for handed in steps:
        later = len(turns) if handed.ledger is None else bisect_left(turns, (handed.ledger, 0))
        if handed.step < step and (later == len(turns) or turns[later][1] > handed.step):
            counted.append(handed)
    return counted


def _groups(steps: Sequence[Handed]) -> list[Sequence[Handed]]:
    """Neighbours stay together: a walk to one step passes by the others."""
    return [steps[begin : begin + GROUP] for begin in range(0, len(steps), GROUP)]


def _chosen(
    groups: Sequence[Sequence[Handed]], stream: RunStream, seed: int | None
) -> list[Sequence[Handed]]:
    """Groups of ``MOST_POSITIONS`` positions in all, in order."""
    order = list(groups)
    random.Random(secrets.randbits(64) if seed is None else f"served {seed}").shuffle(order)
    taken: list[Sequence[Handed]] = []
    positions = 0
    for group in order:
        positions += sum(one.rows * stream.curriculum.stretch(one.step).context for one in group)
        if taken and positions > MOST_POSITIONS:
            break
        taken.append(group)
    return sorted(taken, key=lambda group: group[0].step)


def _answer(stream: RunStream, handed: Handed) -> str | Finding | None:
    """None where a step agrees; a finding where it does not; why it cannot be assembled."""
    try:
        batch = stream.batch(handed.step)
    except (RecipeError, ValueError) as error:
        return str(error)
    rows = len(batch["input_ids"])
    where = f"digests, step {handed.step}"
    if rows != handed.rows:
        return Finding("served", where, f"{rows} rows", f"{handed.rows} rows, all ranks together")
    found = step_digest(row_digests(batch, handed.step, np.arange(rows)))
    if found == handed.digest:
        return None
    if _holds_erased(stream.at(handed.step), handed):
        return "documents of it were erased"
    return Finding("served", where, f"{found}, of what is served", f"{handed.digest}, of what was handed")


def _holds_erased(stream: RunStream, handed: Handed) -> bool:
    """Whether a document of a step holds nothing but zeros, and did not when its pool was written."""
    pools = dict(zip(stream.pools, stream.ground.pools, strict=True))
    pieces = {
        (piece.pool, piece.document)
        for r in range(handed.rows)
        for piece in stream.provenance(handed.step, r)
    }
    for name, identity in pieces:
        pool = pools[name]
        number = pool.find(identity)
        body = pool.tokens(number)
        if not body.any() and document_hash(body) != pool.rows([number])[0].content_hash:
            return True
    return False


def _served(kept: Kept, answers: Sequence[str | Finding | None], apart: int) -> Served:
    findings = [answer for answer in answers if isinstance(answer, Finding)]
    impossible = sum(isinstance(answer, str) for answer in answers)
    return Served(
        kept=len(kept.steps),
        compared=len(answers) - impossible,
        partial=kept.partial,
        unreadable=kept.unreadable,
        impossible=impossible,
        apart=apart,
        findings=tuple(findings[:_SHOWN]),
        differing=len(findings),
    )
