"""Which part of its document a piece is of: head, middle or tail."""

from __future__ import annotations

from typing import Literal

import numpy as np

from recipe.config import Rule
from recipe.pools import Pool
from recipe.sequences.pieces import measure
from recipe.sequences.windows import region_at

Region = Literal["head", "middle", "tail"]
_NAMES: tuple[Region, ...] = ("head", "middle", "tail")


def region_of(pool: Pool, document: int, fresh: int, rule: Rule) -> Region | None:
    """The region in which a piece's first fresh token lies; None where one window holds the document.

    Head and tail are a document's first and last two windows of tokens, each at most a half of it.

    Args:
        pool: that the document is of.
        document: its number there.
        fresh: first fresh token of the piece.
        rule: by which it was cut.
    """
    measured = measure(pool, np.array([document], np.int64))
    tokens = int(measured.tokens[0])
    if tokens <= min(rule.window, rule.room - int(measured.fronts[0])):
        return None
    return _NAMES[region_at(fresh, tokens, rule.window)]
