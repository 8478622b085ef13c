"""Where documents of a run were read.

Worked out from the recipe, the pools and a few snapshots on record: nothing was logged when the steps
were served. What a run serves later is found the same way, by walking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from recipe.errors import Problem, RecipeError
from recipe.mixing.cursor_block import BlockCache
from recipe.mixing.row_pieces import Hit
from recipe.mixing.tracing import Search, Stretch, merged
from recipe.pools import Pool
from recipe.run.tracing.courses import Course, Lineage
from recipe.run.tracing.documents import DocumentAt, Ways, chosen, find_ids, find_text, unknown_ids, ways_of
from recipe.run.tracing.nearest import Id
from recipe.run.tracing.tokenizers import TokenizerOf, tokenizers
from recipe.run.tracing.values import Progress, Reading, Trace, Traced, watch_nothing
from recipe.sequences.pieces import measure

Until = int | Literal["end"] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which documents are meant: by id, or by the whole text of one."""

    ids: tuple[Id, ...] = ()
    """Numbers or texts; a text of digits is also looked for as a number."""
    text: str | None = None
    """Every document whose tokens are those of this text; where none is, of it without its last line end."""
    tokenizer: str | None = None
    """For ``text``: ``bytes`` or a path; default: the recipe's."""
    pool: str | None = None
    """Only in this pool; default: in all of them."""

    @property
    def ways(self) -> list[Ways]:
        """The ids, each in the ways it can be read."""
        return [ways_of(one) for one in dict.fromkeys(self.ids)]


def trace_document(
    path: str | Path,
    id: Id,
    *,
    pool: str | None = None,
    until: Until = None,
    pools_root: str | Path | None = None,
) -> list[Reading]:
    """Every reading of a document in a run, in the order of steps, rows and columns.

    Args:
        path: the run's folder.
        id: of the document: a number, or a text (one of digits is also looked for as a number).
        pool: only in this pool; default: in every pool that has the id.
        until: steps to look at; default: those on record, up to the last checkpoint; ``"end"``: the whole
            run. Later ones are walked: they are what the run will serve if nothing changes its course.
        pools_root: where the pools are on this machine; default: where they were.

    Raises:
        RecipeError: no run, a pool that is missing or changed, no such document, or steps that cannot
            be traced (:func:`trace_documents` gives the others).
    """
    trace = trace_documents(path, Wanted(ids=(id,), pool=pool), until=until, pools_root=pools_root)
    if trace.gaps:
        fix = "put back what is missing; recipe trace (recipe.trace_documents) gives the other steps"
        problems = [
            Problem(f"run {gap.run}", gap.why, f"steps {gap.first_step}..{gap.stop_step - 1} to walk", fix)
            for gap in trace.gaps
        ]
        raise RecipeError(f"{path}: steps that cannot be traced", problems)
    return [one for document in trace.documents for one in document.readings]


def trace_documents(
    path: str | Path,
    wanted: Wanted,
    *,
    until: Until = None,
    pools_root: str | Path | None = None,
    progress: Progress = watch_nothing,
) -> Trace:
    """Where some documents were read in a run; nothing is locked or written.

    Args:
        path: the run's folder.
        wanted: which documents.
        until: as for :func:`trace_document`.
        pools_root: where the pools are on this machine; default: where they were.
        progress: called while steps are walked.

    Raises:
        RecipeError: no run, a pool that is missing or changed, or documents that no pool has.
    """
    with Lineage(Path(path), None if pools_root is None else Path(pools_root)) as lineage:
        end = _end(lineage, until)
        tokens: dict[tuple[str, Id], int] = {}
        readings: dict[tuple[str, Id], list[Reading]] = {}
        withdrawn: dict[tuple[str, Id], int] = {}
        for course, found in _documents(lineage, wanted):
            names = _names(course, found)
            now = {at: (lineage.name_now(course, at.pool), name) for at, name in names.items()}
            tokens |= _tokens(course, now)
            gone = _withdrawn(course, now)
            withdrawn = {name: withdrawn.get(name, course.first_step) for name in gone}
            for hit in _hits(course, found, (lineage, end), progress):
                at = DocumentAt(course.stream.pools[hit.pool], hit.document)
                one = _reading(course, hit, (at.pool, names[at]), lineage.step)
                readings.setdefault(now[at], []).append(one)
        return Trace(
            run=lineage.run,
            step=lineage.step,
            until=end,
            documents=tuple(
                Traced(
                    pool=name[0],
                    document=name[1],
                    tokens=size,
                    readings=tuple(readings.get(name, ())),
                    withdrawn=withdrawn.get(name),
                )
                for name, size in tokens.items()
            ),
            gaps=tuple(gap for gap in lineage.gaps if gap.first_step < end),
        )


def _end(lineage: Lineage, until: Until) -> int:
    """The step up to which is looked."""
    num_steps = lineage.last.stream.num_steps
    if until is None:
        return lineage.step
    if until == "end":
        return num_steps
    if not 0 <= until <= num_steps:
        raise RecipeError.single(
            f"{lineage.run}: no such step",
            "until",
            given=until,
            expected=f"0..{num_steps}, or end",
            fix="leave it out for what is on record, or say end for the whole run",
        )
    return until


def _documents(lineage: Lineage, wanted: Wanted) -> list[tuple[Course, list[DocumentAt]]]:
    """The documents that are meant, as the pools of each course have them.

    Raises:
        RecipeError: an id, or a text, that is in no pool of any course.
    """
    current = chosen(lineage.last.pools, wanted.pool)
    found: list[tuple[Course, list[DocumentAt]]] = []
    unknown = wanted.ways
    for course in lineage.courses:
        known, missed = find_ids(_pools(lineage, course, wanted), wanted.ways) if wanted.ids else ([], [])
        unknown = [ways for ways in unknown if ways in missed]
        found.append((course, known))
    if unknown:
        raise unknown_ids(current, unknown)
    if wanted.text is None:
        return found
    for text in (wanted.text, wanted.text.removesuffix("\n")):
        same = [_with_text(lineage, course, wanted, text) for course in lineage.courses]
        if any(same):
            return [(course, [*known, *more]) for (course, known), more in zip(found, same, strict=True)]
    raise _no_text(current, tokenizers(lineage.last.stream.recipe, wanted.tokenizer))


def _pools(lineage: Lineage, course: Course, wanted: Wanted) -> dict[str, Pool]:
    """The pools of a course in which is to be looked."""
    return {k: pool for k, pool in course.pools.items() if wanted.pool in (None, lineage.name_now(course, k))}


def _with_text(lineage: Lineage, course: Course, wanted: Wanted, text: str) -> list[DocumentAt]:
    tokenizer_of = tokenizers(course.stream.recipe, wanted.tokenizer)
    return find_text(_pools(lineage, course, wanted), text, tokenizer_of)


def _no_text(pools: Mapping[str, Pool], tokenizer_of: TokenizerOf) -> RecipeError:
    left_out = [name for name, pool in pools.items() if tokenizer_of(pool) is None]
    looked = [name for name in pools if name not in left_out]
    fix = "give the whole text of a document as it was prepared, up to its last line end"
    if left_out:
        fix = f"name the tokenizer of {', '.join(left_out)} with --tokenizer; or {fix}"
    return RecipeError.single(
        "no document has this text",
        "text",
        given=f"no document with its tokens in {', '.join(looked)}"
        if looked
        else "pools without a tokenizer here",
        expected="the text of a document",
        fix=fix,
    )


def _names(course: Course, found: Sequence[DocumentAt]) -> dict[DocumentAt, Id]:
    """Ids of documents."""
    names: dict[DocumentAt, Id] = {}
    for name, pool in course.pools.items():
        of = [document for document in found if document.pool == name]
        ids = pool.ids([document.number for document in of]) if of else []
        names |= dict(zip(of, ids, strict=True))
    return names


def _tokens(course: Course, names: Mapping[DocumentAt, tuple[str, Id]]) -> dict[tuple[str, Id], int]:
    """Tokens of documents, marks not counted."""
    return {
        name: int(measure(course.pools[at.pool], np.array([at.number])).tokens[0])
        for at, name in names.items()
    }


def _withdrawn(course: Course, names: Mapping[DocumentAt, tuple[str, Id]]) -> set[tuple[str, Id]]:
    """The documents that are withdrawn in a course."""
    known = {pool: set(course.stream.ground.withdrawn_of(pool).documents.tolist()) for pool in course.pools}
    return {name for at, name in names.items() if at.number in known[at.pool]}


def _hits(
    course: Course, found: Sequence[DocumentAt], span: tuple[Lineage, int], progress: Progress
) -> Iterator[Hit]:
    """What was read of some documents in a course, up to a step."""
    lineage, end = span
    whole = end
    if course is not lineage.last:
        end = min(end, course.stop_step)
    names = course.stream.pools
    wanted = {
        names.index(name): [d.number for d in found if d.pool == name] for name in {d.pool for d in found}
    }
    if not wanted or end <= course.first_step:
        return
    blocks = BlockCache(2 * len(names) + 4)  # of its own, let go after the course: a run may have many
    search = Search(replace(course.stream.ground, blocks=blocks), wanted)
    recorded = (search.stretches(low, high, course.record.between) for low, high in course.pairs)
    rest = Stretch(course.marks[-1].snapshot, end)
    stretches = chain(chain.from_iterable(recorded), [rest] if rest.start.step < end else [])
    for stretch in merged(stretch for stretch in stretches if stretch.start.step < end):
        for at, hits in search.walk(Stretch(stretch.start, min(stretch.stop_step, end))):
            progress(at.step, whole)
            yield from hits


def _reading(course: Course, hit: Hit, name: tuple[str, Id], on_record: int) -> Reading:
    curriculum = course.stream.curriculum
    return Reading(
        run=course.run,
        pool=name[0],
        document=name[1],
        epoch=hit.epoch,
        step=hit.step,
        row=hit.row,
        columns=(hit.column, hit.column + hit.stop - hit.start),
        start=hit.start,
        stop=hit.stop,
        fresh=hit.fresh,
        stage=curriculum.stages[curriculum.stretch(hit.step).stage].name,
        recipe=course.version,
        status="read" if hit.step < on_record else "will be read",
    )
