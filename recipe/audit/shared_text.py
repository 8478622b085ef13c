"""Runs of tokens that documents of two pools share: proposed by hashes, proved token by token."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.ngrams import Table, body_hashes, find_windows, table_of, window_hashes
from recipe.pools import Pool
from recipe.sequences.pieces import body_starts, measure

SCAN_TOKENS = 16 << 20
"""Tokens of a pool that are looked at together."""
ANCHOR = 8
"""Tokens by which a document that is shorter than a stretch is looked for inside longer ones."""
_COMPARED = 1 << 14
"""Stretches that are compared at once."""


class Stretch(NamedTuple):
    """Some documents of a file: ``bodies`` int64[n, 2] says where each lies in ``tokens``."""

    tokens: NDArray[Any]
    documents: NDArray[np.int64]
    bodies: NDArray[np.int64]


class Run(NamedTuple):
    """Tokens ``start..stop`` of a file, in document ``at`` of a stretch; a slice's from ``held`` on."""

    at: int
    start: int
    stop: int
    held: int


class Slice(NamedTuple):
    """Documents of a held-out pool, one behind the other, and what is looked for of them.

    ``firsts``: first token of every stretch of n tokens; ``groups``: which hash of ``stretches`` it has.
    ``short_groups``: of every document that is shorter, which hash of ``shorts`` it has; -1 of the others.
    Entries of ``stretches`` are indices into ``firsts``; those of ``shorts`` are documents of the slice.
    ``anchors``: of every short document with ``ANCHOR`` tokens or more, its rarest stretch of so many; its
    entries are indices into ``anchored``, sorted lines of hash, document, and token of it where that stands.
    """

    pool: Pool
    documents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    bodies: NDArray[np.int64]
    firsts: NDArray[np.int64]
    groups: NDArray[np.int64]
    stretches: Table
    shorts: Table
    short_groups: NDArray[np.int64]
    anchors: Table
    anchored: NDArray[np.int64]

    def document_of(self, token: int) -> int:
        """Index of the document that holds a token of the slice."""
        return int(np.searchsorted(self.bodies[:, 1], token, side="right"))

    def tokens_of(self, seen: Seen, ngram: int) -> NDArray[np.bool_]:
        """bool[tokens]: which lie in something that was seen."""
        edges = np.zeros(len(self.tokens) + 1, np.int64)
        firsts = self.firsts[seen.stretches[self.groups]]
        np.add.at(edges, firsts, 1)
        np.add.at(edges, firsts + ngram, -1)
        short = self.short_groups >= 0
        whole = self.bodies[short][seen.shorts[self.short_groups[short]]]
        np.add.at(edges, whole[:, 0], 1)
        np.add.at(edges, whole[:, 1], -1)
        covered: NDArray[np.bool_] = np.cumsum(edges[:-1]) > 0
        return covered


class Seen:
    """Which texts of a slice were seen, by hash."""

    def __init__(self, part: Slice) -> None:
        """None yet."""
        self._part = part
        self.stretches = np.zeros(len(part.stretches.hashes), bool)
        self.shorts = np.zeros(len(part.shorts.hashes), bool)

    def note(self, run: Run, ngram: int) -> None:
        """A run, and with it every equal stretch."""
        part, size = self._part, run.stop - run.start
        if size < ngram:
            self.shorts[part.short_groups[part.document_of(run.held)]] = True
            return
        first = int(np.searchsorted(part.firsts, run.held))
        self.stretches[part.groups[first : first + size - ngram + 1]] = True

    def add(self, other: Seen) -> None:
        """What another one has seen of the same slice."""
        self.stretches |= other.stretches
        self.shorts |= other.shorts


def cut(pool: Pool, size: int) -> Iterator[tuple[int, int]]:
    """Documents first..last of about so many tokens, over a whole pool."""
    first = 0
    while first < pool.num_numbers:
        wanted = int(pool.offsets[first]) + size
        last = max(first + 1, int(np.searchsorted(pool.offsets, wanted, side="right")) - 1)
        last = min(last, pool.num_numbers)
        yield first, last
        first = last


def stretches_of(pool: Pool, left_out: NDArray[np.int64]) -> Iterator[Stretch]:
    """A pool's documents but those left out or erased, file by file, some at a time."""
    left_out = np.union1d(left_out, pool.erased)
    for first, last in cut(pool, SCAN_TOKENS):
        parts = np.searchsorted(pool.part_documents, np.arange(first, last), side="right") - 1
        for index in np.unique(parts).tolist():
            documents = first + np.flatnonzero(parts == index)
            documents = documents[pool.holds(documents) & ~np.isin(documents, left_out)]
            measured = measure(pool, documents)
            starts = body_starts(pool, documents, measured) - pool.part_offsets[index]
            bodies = np.stack([starts, starts + measured.tokens], axis=1)
            if pool.layout.remote is None:
                yield Stretch(pool.part(index), documents, bodies)
            elif len(bodies):  # of a pool in a store no more is read than this holds
                low, high = int(bodies[:, 0].min()), int(bodies[:, 1].max())
                yield Stretch(pool.span(index, low, high), documents, bodies - low)


def slice_of(pool: Pool, documents: NDArray[np.int64], ngram: int) -> Slice:
    """Some documents of a held-out pool, with tables of their stretches, and of short ones as a whole.

    Equal hashes in a table are equal texts: where they are not, all are hashed again, otherwise.
    """
    texts = [np.asarray(pool.tokens(document)).astype(np.int64) for document in documents.tolist()]
    tokens = np.concatenate([*texts, np.empty(0, np.int64)])
    edges = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)])
    bodies = np.stack([edges[:-1], edges[1:]], axis=1)
    firsts, short = _firsts(edges, ngram), np.flatnonzero((np.diff(edges) < ngram) & (np.diff(edges) > 0))
    for salt in count():
        hashes, of_shorts = window_hashes(tokens, ngram, salt), body_hashes(tokens, bodies[short], salt)
        stretches = table_of(hashes[firsts], np.arange(len(firsts)), salt)
        shorts = table_of(of_shorts, short, salt)
        groups = np.searchsorted(stretches.hashes, hashes[firsts])
        short_groups = np.full(len(documents), -1, np.int64)
        short_groups[short] = np.searchsorted(shorts.hashes, of_shorts)
        same = shorts.entries[short_groups[short]]
        if _are_equal(tokens, (firsts, firsts[stretches.entries[groups]]), ngram) and all(
            np.array_equal(texts[one], texts[other])
            for one, other in zip(short.tolist(), same.tolist(), strict=True)
            if one != other
        ):
            break
    once = np.unique(shorts.entries)
    return Slice(
        pool, documents, tokens, bodies, firsts, groups, stretches, shorts, short_groups,
        *_anchors(tokens, bodies, once),
    )  # fmt: skip


def _anchors(
    tokens: NDArray[np.int64], bodies: NDArray[np.int64], short: NDArray[np.int64]
) -> tuple[Table, NDArray[np.int64]]:
    """By what short documents are looked for inside longer ones: of each, its rarest few tokens."""
    hashes = window_hashes(tokens, ANCHOR)
    short = short[bodies[short, 1] - bodies[short, 0] >= ANCHOR]
    places = [np.arange(a, b - ANCHOR + 1) for a, b in bodies[short].tolist()]
    known, counts = np.unique(hashes[np.concatenate([*places, np.empty(0, np.int64)])], return_counts=True)
    rarest = [int(of[np.argmin(counts[np.searchsorted(known, hashes[of])])]) for of in places]
    at = np.array(rarest, np.int64)
    lines = np.stack([hashes[at].view(np.int64), short, at - bodies[short, 0]], axis=1)
    lines = lines[np.argsort(hashes[at], kind="stable")]
    return table_of(lines[:, 0].view(np.uint64), np.arange(len(lines))), lines


def _firsts(edges: NDArray[np.int64], ngram: int) -> NDArray[np.int64]:
    """First tokens of the stretches that lie in one text; ``edges``: where texts begin, and the end."""
    inside = np.ones(max(0, int(edges[-1]) - ngram + 1), bool)
    for edge in edges[1:-1].tolist():
        inside[max(0, edge - ngram + 1) : edge] = False
    return np.flatnonzero(inside)


def _are_equal(
    tokens: NDArray[np.int64], pairs: tuple[NDArray[np.int64], NDArray[np.int64]], ngram: int
) -> bool:
    """Whether stretches that begin at the ones are those that begin at the others."""
    ones, others = pairs
    differing, inside = np.flatnonzero(ones != others), np.arange(ngram)
    for at in range(0, len(differing), _COMPARED):
        some = differing[at : at + _COMPARED, None]
        if not np.array_equal(tokens[ones[some] + inside], tokens[others[some] + inside]):
            return False
    return True


def shared_runs(part: Slice, stretch: Stretch, ngram: int) -> Iterator[Run]:
    """What documents of a file share with a slice: runs of n tokens or more, short documents whole."""
    yield from _long_runs(part, stretch, ngram)
    yield from _tiny(part, stretch)
    found = find_windows(stretch.tokens, stretch.bodies, ANCHOR, part.anchors)
    order = np.argsort(found.entry, kind="stable")
    entries, firsts = np.unique(found.entry[order], return_index=True)
    of_entries = np.split(found.place[order], firsts[1:])  # a single empty one where nothing was found
    for entry, places in zip(entries.tolist(), of_entries, strict=False):
        for _, document, offset in _same_hash(part.anchored, entry):
            yield from _whole(part, stretch, (document, offset), places)


def _same_hash(lines: NDArray[np.int64], first: int) -> list[list[int]]:
    last = first
    while last < len(lines) and lines[last, 0] == lines[first, 0]:
        last += 1
    same: list[list[int]] = lines[first:last].tolist()
    return same


def _whole(
    part: Slice, stretch: Stretch, anchor: tuple[int, int], places: NDArray[np.int64]
) -> Iterator[Run]:
    """Where a short document stands as a whole, of places where its anchor does."""
    (first, last), starts = part.bodies[anchor[0]].tolist(), places - anchor[1]
    at = np.searchsorted(stretch.bodies[:, 1], places, side="right")
    inside = (starts >= stretch.bodies[at, 0]) & (starts + last - first <= stretch.bodies[at, 1])
    starts, at, text = starts[inside], at[inside], part.tokens[first:last]
    for some in range(0, len(starts), _COMPARED):
        read = stretch.tokens[starts[some : some + _COMPARED, None] + np.arange(last - first)]
        for hit in (some + np.flatnonzero((read == text).all(axis=1))).tolist():
            yield Run(int(at[hit]), int(starts[hit]), int(starts[hit]) + last - first, first)


def _tiny(part: Slice, stretch: Stretch) -> Iterator[Run]:
    """Documents with fewer tokens than an anchor, where a whole document is the same."""
    sizes = stretch.bodies[:, 1] - stretch.bodies[:, 0]
    tiny = np.flatnonzero((sizes < ANCHOR) & (sizes > 0))
    if not len(part.shorts.hashes) or not len(tiny):
        return
    hashes = body_hashes(stretch.tokens, stretch.bodies[tiny], part.shorts.salt)
    places = np.minimum(np.searchsorted(part.shorts.hashes, hashes), len(part.shorts.hashes) - 1)
    for at in np.flatnonzero(part.shorts.hashes[places] == hashes).tolist():
        start, stop = stretch.bodies[tiny[at]].tolist()
        first, last = part.bodies[part.shorts.entries[places[at]]].tolist()
        if np.array_equal(stretch.tokens[start:stop], part.tokens[first:last]):
            yield Run(int(tiny[at]), start, stop, first)


def _long_runs(part: Slice, stretch: Stretch, ngram: int) -> Iterator[Run]:
    place, entry = find_windows(stretch.tokens, stretch.bodies, ngram, part.stretches)
    if not len(place):
        return
    held, at = part.firsts[entry], np.searchsorted(stretch.bodies[:, 1], place, side="right")
    document = np.searchsorted(part.bodies[:, 1], held, side="right")
    goes_on = (np.diff(place) == 1) & (np.diff(held) == 1) & (np.diff(at) == 0) & (np.diff(document) == 0)
    edges = [0, *(np.flatnonzero(~goes_on) + 1).tolist(), len(place)]
    for first, last in pairwise(edges):
        run = Run(int(at[first]), int(place[first]), int(place[last - 1]) + ngram, int(held[first]))
        yield from _proved(part, stretch, run, ngram)


def _proved(part: Slice, stretch: Stretch, run: Run, ngram: int) -> Iterator[Run]:
    """The run, or where tokens differ although hashes do not, what is left of it."""
    size = run.stop - run.start
    differing = np.flatnonzero(
        stretch.tokens[run.start : run.stop] != part.tokens[run.held : run.held + size]
    ).tolist()
    for before, after in pairwise([-1, *differing, size]):
        if after - before - 1 >= ngram:
            yield Run(run.at, run.start + before + 1, run.start + after, run.held + before + 1)
