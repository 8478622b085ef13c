"""What kind of place a cut is: the coarsest that permits it, or what it goes through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools import Pool
from recipe.sequences.boundaries import last_edge
from recipe.sequences.spelling import ALIGN, Edges, is_inside

_COARSEST_FIRST: tuple[str, ...] = tuple(reversed(ALIGN[2:]))
"""section … word: a cut that none permits goes through something."""
PLACES = (*_COARSEST_FIRST, "inside a word", "inside a number", "inside a character")
"""Places of cuts, from the coarsest kind down to what no cut should go through."""

Tables = Mapping[str, Edges]


def tables_of(pool: Pool) -> Tables:
    """The table of a pool's tokenizer, for every kind of place.

    Raises:
        RecipeError: nobody said what the pool's tokens spell.
    """
    assert pool.edges is not None, "give_edges comes before"
    table: Edges = pool.edges()
    return {kind: table.of(kind, pool.sections) for kind in ALIGN[1:]}


def place_of_cut(tokens: NDArray[Any], cut: int, tables: Tables, stored: int) -> str:
    """The kind of place between tokens ``cut - 1`` and ``cut`` of a document.

    Args:
        tokens: body tokens of the document.
        cut: in ``1..len(tokens) - 1``.
        tables: of its pool, by kind.
        stored: where token 0 is stored, counted over the pool.

    >>> from recipe.sequences.boundaries import edge_table
    >>> bytes_alone = edge_table([bytes([value]) for value in range(256)])
    >>> of = {kind: bytes_alone.of(kind) for kind in ALIGN[1:]}
    >>> text = np.frombuffer("Am 61.6 é.\\n\\nBo".encode(), np.uint8)
    >>> [place_of_cut(text, cut, of, 0) for cut in (1, 2, 5, 9, 12, 13)]
    ['inside a word', 'word', 'inside a number', 'inside a character', 'line', 'paragraph']
    """
    for kind in _COARSEST_FIRST:
        if last_edge(tokens, cut, cut, tables[kind], stored) == cut:
            return kind
    if last_edge(tokens, cut, cut, tables["number"], stored) == cut:
        return "inside a word"
    return "inside a character" if is_inside(tokens, cut, tables["number"]) else "inside a number"


def places_of_cuts(pool: Pool, cuts: NDArray[np.int64], tables: Tables) -> dict[str, int]:
    """How many cuts are at each kind of place.

    Args:
        pool: tokens near the cuts are read.
        cuts: int64[n, 2]: document of the pool, and body token.
        tables: of the pool.
    """
    counts = dict.fromkeys(PLACES, 0)
    edges = np.flatnonzero(np.diff(cuts[:, 0], prepend=-1))
    for some in np.split(cuts, edges[1:]):
        if len(some):
            document = int(some[0, 0])
            tokens, fronts = pool.tokens(document), pool.fronts(np.array([document]))
            stored = int(pool.offsets[document]) + int(fronts[0])
            for cut in some[:, 1].tolist():
                counts[place_of_cut(tokens, cut, tables, stored)] += 1
    return counts
