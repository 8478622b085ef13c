"""Pieces filled in the middle, worked out anew: which ones, where they are cut, what then stands in a row.

In plain lists and whole numbers, from the rule's words; nothing here is shared with what packs and copies
rows but the pure draws of :mod:`recipe.maths`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.maths.draws import draw
from recipe.maths.order import key

IGNORED = -100
"""A label that is none."""
EXTRA = 3
"""Markers of a transformed piece."""


class Cuts(NamedTuple):
    """A piece in three: document tokens ``start..a``, ``a..b``, ``b..stop``."""

    a: int
    b: int
    suffix_first: bool


def draw_key(seed: int, epoch: int, order_name: str) -> int:
    """The key of a pool's draws in an epoch."""
    return key(seed, epoch, "transform", order_name)


def cuts_of(rule: Rule, order_key: int, document: int, span: tuple[int, int, int]) -> Cuts | None:
    """How a piece (start, stop, fresh) is transformed; None where it is left alone."""
    start, stop, fresh = span
    if rule.fim is None or fresh != start or start == stop:
        return None
    chosen, order, one, two = draw(order_key, (document, start), 4)
    if chosen * rule.fim.rate.denominator >= rule.fim.rate.numerator << 64:
        return None
    a, b = sorted((start + one % (stop - start + 1), start + two % (stop - start + 1)))
    return Cuts(a, b, order * rule.fim.spm.denominator < rule.fim.spm.numerator << 64)


def values(
    rule: Rule,
    tokens: NDArray[Any],
    span: tuple[int, int],
    cuts: Cuts,
    marks: tuple[int | None, int | None, bool],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and labels of a transformed piece.

    Args:
        rule: with the markers.
        tokens: body tokens of the document.
        span: the piece.
        cuts: where it is cut.
        marks: BOS where it has a position; EOS where the document ends here; whether EOS has a position.
    """
    assert rule.fim is not None
    (start, stop), (a, b, suffix_first), (bos, eos, eos_has_place) = span, cuts, marks
    prefix, middle, suffix = (int(marker) for marker in rule.fim.ids)

    def body(first: int, last: int) -> list[tuple[int, int]]:
        return [(place, int(tokens[place])) for place in range(first, last)]

    # every id with its place in the document, -1 for what is not of it
    if suffix_first:
        order = [(-1, prefix), (-1, suffix), *body(b, stop), (-1, middle), *body(start, b)]
    else:
        order = [(-1, prefix), *body(start, a), (-1, suffix), *body(b, stop), (-1, middle), *body(a, b)]
    order = ([(-1, bos)] if bos is not None else []) + order
    if eos is not None and eos_has_place:
        order.append((-1, eos))
    ahead = rule.specials == "document"  # the piece before reads its last label ahead
    told = [IGNORED if ahead and place == start > 0 else token for place, token in order]
    ids = [token for _, token in order]
    if rule.labels == "inputs":
        labels = [IGNORED, *told[1:]]
    else:
        labels = [*told[1:], eos if eos is not None and not eos_has_place else IGNORED]
    return np.array(ids, np.int64), np.array(labels, np.int64)
