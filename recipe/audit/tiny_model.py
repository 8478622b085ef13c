"""A language model so small that its loss can be worked out by hand: the next token from the last one.

What it loses on a document is the sum over neighbouring tokens. A row that shows it the right tokens and
labels makes it lose exactly that, piece by piece; a label from another document, one that is missing or one
too many, makes another number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recipe.audit.infilling import IGNORED
from recipe.audit.parts import Text
from recipe.audit.seams import Held
from recipe.pools import Finding

CLASSES = 64
"""Ids fall into so many classes, by their remainder."""


def _table() -> NDArray[np.float64]:
    """Losses of every class behind every other: minus the logarithm of a softmax of whole numbers."""
    last, following = np.arange(CLASSES)[:, None], np.arange(CLASSES)[None, :]
    logits = ((31 * last + 17 * following + last * following) % 23) / 4
    losses: NDArray[np.float64] = np.log(np.exp(logits).sum(axis=1, keepdims=True)) - logits
    return losses


LOSSES = _table()


def losses_of(last: NDArray[np.int64], following: NDArray[np.int64]) -> NDArray[np.float64]:
    """What the model loses at each place.

    >>> losses_of(np.array([0, 1]), np.array([1, 65])).round(3).tolist()
    [3.817, 7.313]
    """
    found: NDArray[np.float64] = LOSSES[last % CLASSES, following % CLASSES]
    return found


def loss_fault(name: str, pieces: Sequence[Held], text: Text) -> Finding | None:
    """The first piece of a document whose labels make the model lose something else than its text does.

    Args:
        name: of the document, as a finding shows it.
        pieces: of one reading, in any order; those of an overlap carry no labels.
        text: the document.
    """
    tokens = np.asarray(text.tokens, np.int64)
    known = tokens if text.eos is None else np.append(tokens, text.eos)
    for number, held in enumerate(sorted(pieces, key=lambda one: one.piece.start)):
        piece = held.piece
        last = min(piece.stop, len(known) - 1)
        by_hand = float(losses_of(known[piece.fresh : last], known[piece.fresh + 1 : last + 1]).sum())
        labels = np.asarray(held.labels, np.int64)
        is_label = labels != IGNORED
        if last < piece.stop:
            is_label[-1] = False  # nothing follows in the document; it may predict the next one
        served = float(losses_of(np.asarray(held.ids, np.int64)[is_label], labels[is_label]).sum())
        if not np.isclose(by_hand, served, rtol=1e-9, atol=1e-9):
            where = f"{name}, piece {number + 1} of {len(pieces)}, which starts at token {piece.start}"
            said = f"{served:.6f} over {int(is_label.sum())} labels"
            wanted = f"a loss of {by_hand:.6f} over {max(0, last - piece.fresh)} labels"
            return Finding("loss", f"{where} ({held.where})", wanted, said)
    return None
