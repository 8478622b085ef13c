"""A vocabulary for tests in which every id spells something, and where texts of it may be cut."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from recipe.pools import Pool, open_pool
from recipe.sequences.boundaries import edge_table, last_edge
from recipe.sequences.spelling import Edges

SPELT = ("a", "b ", "c1", "2", ".5", " it", ". ", "\n", "d", "\n\n", "天", "。", " e", "f!", " 7", "g")
"""Id i spells entry i modulo their number."""


@cache
def edges() -> Edges:
    """The table of the vocabulary, for no kind."""
    return edge_table([SPELT[i % len(SPELT)].encode() for i in range(4096)])


def open_spelt(path: Path, name: str) -> Pool:
    """A pool whose ids spell something."""
    pool = open_pool(path, name)
    pool.edges = edges
    return pool


@cache
def _may_cut(tokens: tuple[int, ...], align: str) -> list[bool]:
    table, array = edges().of(align), np.array(tokens, np.int64)
    return [last_edge(array, cut, cut, table, 0) == cut for cut in range(len(tokens) + 1)]


def may_cut(tokens: Sequence[int], cut: int, align: str) -> bool:
    """Whether a text may be cut before a token."""
    return _may_cut(tuple(tokens), align)[cut]
