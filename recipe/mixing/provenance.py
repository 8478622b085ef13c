"""Where the tokens of a row come from: documents, and places in them, left to right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recipe.config import Recipe
from recipe.mixing.reader import Span
from recipe.pools import Pool
from recipe.sequences.bundles import columns_of
from recipe.sequences.pieces import AHEAD, MARKER, Pieces
from recipe.sequences.region import Region, region_of
from recipe.sequences.sheet import MULTIPLE, TOKENS
from recipe.sequences.transform import segments_of


class PieceAt(NamedTuple):
    """Where a stretch of a row comes from: document tokens ``start..stop``, from column ``column`` on.

    Of a piece that is filled in the middle, prefix, suffix and middle are stretches of their own.
    """

    pool: str
    document: int | str
    start: int
    stop: int
    fresh: int
    column: int
    region: Region | None = None
    """Part of the document in which its first fresh token lies; None: one window holds the document."""


def pieces_of_row(recipe: Recipe, pools: Sequence[Pool], stage: str, span: Span, at: int) -> list[PieceAt]:
    """Stretches of documents in row ``at`` of a span of a stage; ``pools`` in the order of the recipe."""
    sheet = span.sheet
    pool = pools[int(sheet.pool[at])]
    multiple = int(span.sources.rules[sheet.pool[at], MULTIPLE])
    entries = sheet.pieces[sheet.ends[at] : sheet.ends[at + 1]]
    columns = columns_of(Pieces(*entries[:, :TOKENS].T), multiple)
    rule = recipe.rule(stage, pool.name)
    pieces = []
    for piece, column in zip(entries[:, :TOKENS].tolist(), columns.tolist(), strict=True):
        document, start, stop, fresh, flags = piece
        if flags & (AHEAD | MARKER):
            continue
        for a, b, offset in segments_of(start, stop, flags):
            identity = pool.ids([document])[0]
            new = min(max(a, fresh), b)
            region = region_of(pool, document, new, rule)
            pieces.append(PieceAt(pool.name, identity, a, b, new, column + offset, region))
    return pieces
