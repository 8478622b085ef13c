"""Tokens near cuts: which parts of a pool have to be mapped so that its documents can be cut at edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.pools.remote.ranges import Runs
from recipe.sequences.boundaries import section_table
from recipe.sequences.glimpses import IS_FULL, UNSEEN, WANTED, Glimpses
from recipe.sequences.pieces import Documents, body_starts
from recipe.sequences.slicing import Sliced
from recipe.sequences.spelling import Edges
from recipe.sequences.windows import Reading

WIDTHS = {"number": 24, "word": 24, "sentence": 64, "line": 128, "paragraph": 256}
"""Tokens before a window's end in which a cut of each kind is looked for at first, in a pool in a store."""
THROUGH_BYTES = 1 << 12
"""Bytes between two places looked at that are read through; small windows are looked at together, so many."""
ROUNDS = 24
"""Windows of a document that are looked at one after the other; of one with more, several at once."""


def edges_of(pool: Pool, rule: Rule) -> Edges:
    """Where a pool's documents may be cut under a rule that aligns.

    Raises:
        RecipeError: it has no sections, or nobody said what its tokens spell.
    """
    if rule.align == "section":
        if pool.sections is None:
            raise RecipeError.single(
                f"pool {pool.name}",
                f"pools.{pool.name}",
                given="a pool without sections",
                expected="sections: its documents are cut there",
                fix="prepare the pool with --sections or --units-key, or align at paragraphs",
            )
        return section_table(pool.sections)
    if pool.edges is None:
        raise RecipeError.single(
            f"pool {pool.name}",
            "tokenizer",
            given=f"nothing, with align: {rule.align}",
            expected="the tokenizer that made the pool",
            fix="write tokenizer: {path: FOLDER}, or leave out align",
        )
    table: Edges = pool.edges()
    return table.of(rule.align, pool.sections)


def reading_of(
    pool: Pool, rule: Rule, of: tuple[NDArray[np.int64], Documents], runs: NDArray[np.int64]
) -> tuple[Reading, list[NDArray[np.generic]]]:
    """What the compiled loop reads to cut some runs.

    Args:
        pool: parts with documents that may be cut, or begin inside an overlap, are mapped; others are not.
            Of one in a store nothing is: what is looked at has to be fetched.
        rule: how they are cut.
        of: int64[n] numbers of the documents that runs index, and their lengths and marks.
        runs: int64[k, 3]: (document, a, b).

    Returns:
        the reading, and the parts it points into: hold them while it is used.

    Raises:
        RecipeError: a document that was cut before it was withdrawn has been erased since: where its cuts
            were, and with them the rows of its block, cannot be told any more.
    """
    numbers, measured = of
    stored = body_starts(pool, numbers, measured)
    addresses, held = np.zeros(len(numbers), np.uint64), list[NDArray[np.generic]]()
    if rule.align != "section":
        index = np.unique(runs[_are_cut(rule, measured, runs), 0])
        if len(pool.erased):
            _refuse_erased(pool, numbers[index])
        part_of = np.searchsorted(pool.part_documents, numbers[index], side="right") - 1
        for part in [] if pool.layout.remote is not None else np.unique(part_of).tolist():
            tokens = pool.part(part)
            held.append(tokens)
            here = index[part_of == part]
            at = (stored[here] - int(pool.part_offsets[part])) * tokens.itemsize
            addresses[here] = (at + tokens.__array_interface__["data"][0]).astype(np.uint64)
    marker = np.empty(0, pool.token_dtype)
    return Reading(marker, addresses, stored, edges_of(pool, rule)), held


def _are_cut(rule: Rule, measured: Documents, runs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[k]: runs that are longer than a window, or begin inside a document."""
    first = np.minimum(rule.window - 1, rule.room - measured.fronts)
    cut: NDArray[np.bool_] = (runs[:, 1] > 0) | (runs[:, 2] > first[runs[:, 0]])
    return cut


def _refuse_erased(pool: Pool, cut: NDArray[np.int64]) -> None:
    gone = np.intersect1d(cut, pool.erased)
    if len(gone):
        raise RecipeError.single(
            f"pool {pool.name}",
            str(pool.path),
            given=f"{len(gone)} erased documents at whose texts cuts of a block were aligned before they "
            f"were withdrawn: {', '.join(map(repr, pool.ids(gone[:5])))}",
            expected="their texts, as long as blocks that were arranged with them are read",
            fix="put the folder back that holds them until the run has read these blocks to their end; what "
            "was served of them before can only be computed again with it",
        )


def cut_near(
    of: tuple[Pool, Rule, NDArray[np.int64]],
    measured: Documents,
    runs: NDArray[np.int64],
    cut: Callable[[NDArray[np.int64], Reading | None], Sliced],
) -> Sliced:
    """Cut runs, with the tokens near their cuts where a rule aligns them.

    Args:
        of: the pool, how it is cut, and int64[n] numbers of the documents that runs index.
        measured: lengths and marks of the documents.
        runs: int64[k, 3]: (document, a, b).
        cut: cuts some of the runs.
    """
    pool, rule, numbers = of
    if rule.align == "none":
        return cut(runs, None)
    reading, _held = reading_of(pool, rule, (numbers, measured), runs)
    if pool.layout.remote is None or rule.align == "section":
        return cut(runs, reading)
    looked = np.zeros(2, np.int64)

    def fetch(wants: NDArray[np.int64]) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        memory, read = _fetched(pool, (numbers, runs, reading.places), wants)
        looked[:] += (read.num_requests, read.num_bytes)
        return memory, read.place

    seen = nothing_seen(rule, measured, runs, THROUGH_BYTES // pool.token_dtype.itemsize)
    sliced = cut_seen(seen, fetch, lambda seen: cut(runs, reading._replace(glimpses=seen)))
    return sliced._replace(looked=(int(looked[0]), int(looked[1])))


def cut_seen(
    seen: Glimpses,
    fetch: Callable[[NDArray[np.int64]], tuple[NDArray[np.generic], NDArray[np.int64]]],
    cut: Callable[[Glimpses], Sliced],
) -> Sliced:
    """Cut runs whose texts are not at hand.

    Args:
        seen: of :func:`nothing_seen`.
        fetch: of int64[n, 3] run, first token and end, sorted by run: memory that holds these tokens, and
            int64[n] at which byte of it each stretch begins.
        cut: cuts the runs as far as the tokens seen let it.
    """
    while True:
        sliced = cut(seen)
        wants = seen.wants[: int(seen.cursor[WANTED])]
        if not (len(wants) or seen.cursor[IS_FULL]):
            return sliced
        if seen.cursor[IS_FULL]:
            seen = _with_slots(seen)
        memory, place = fetch(wants)
        seen = seen._replace(
            cursor=np.zeros(4, np.int64),
            views=np.ascontiguousarray(wants[:, 1:]),
            view_of=np.searchsorted(wants[:, 0], np.arange(len(seen.slots))),
            addresses=(place + memory.__array_interface__["data"][0]).astype(np.uint64),
            wants=np.empty_like(seen.wants),
        )


def nothing_seen(rule: Rule, measured: Documents, runs: NDArray[np.int64], through: int = 0) -> Glimpses:
    """The first look at runs of a pool in a store; windows in ``through`` tokens are looked at together."""
    strides = rule.strides or (rule.stride,) * 3
    windows = (runs[:, 2] - runs[:, 1]) // min(strides) + 1
    windows[~_are_cut(rule, measured, runs)] = 0
    depth = np.minimum(np.maximum(-(-windows // ROUNDS), through // rule.stride), windows)
    # of each window its cut and its start; more where cuts move back far
    slots = np.zeros(len(runs) + 1, np.int64)
    np.cumsum(3 * windows + 2, out=slots[1:])
    room = int((3 * depth + 4).sum())
    return Glimpses(
        cursor=np.zeros(4, np.int64),
        slots=slots,
        answers=np.full(slots[-1], UNSEEN, np.int64),
        views=np.empty((0, 2), np.int64),
        view_of=np.zeros(len(runs) + 1, np.int64),
        addresses=np.empty(0, np.uint64),
        wants=np.empty((room, 3), np.int64),
        depth=depth,
        width=WIDTHS[rule.align],
        stride=rule.stride,
        window=rule.window,
    )


def _with_slots(seen: Glimpses) -> Glimpses:
    """The same with twice the slots for every run."""
    before, sizes = seen.slots, np.diff(seen.slots)
    slots = np.zeros(len(before), np.int64)
    np.cumsum(2 * sizes, out=slots[1:])
    answers = np.full(slots[-1], UNSEEN, np.int64)
    answers[np.arange(before[-1]) + np.repeat(slots[:-1] - before[:-1], sizes)] = seen.answers
    return seen._replace(slots=slots, answers=answers)


def _fetched(
    pool: Pool, of: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], wants: NDArray[np.int64]
) -> tuple[NDArray[np.generic], Runs]:
    """Stretches of documents of a pool in a store, in memory, and where they are in it.

    ``of``: numbers of documents, the runs, and where each document's body begins, counted over the pool.
    """
    assert pool.layout.remote is not None
    numbers, runs, places = of
    index, width = runs[wants[:, 0], 0], pool.token_dtype.itemsize
    parts = np.searchsorted(pool.part_documents, numbers[index], side="right") - 1
    begin = places[index] - pool.part_offsets[parts]
    spans = np.stack([parts, *((begin[:, None] + wants[:, 1:]) * width).T], axis=1)
    names = [pool.layout.file_name(part) for part in range(pool.num_parts)]
    return pool.layout.remote.gather(names, spans, THROUGH_BYTES)
