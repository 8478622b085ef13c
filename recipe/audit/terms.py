"""What steps are served under between two turns of a run: recipe, pools, withdrawn documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recipe.audit.account import Plain
from recipe.audit.intent import Intent
from recipe.sequences.withdrawn import NOTHING, Withdrawn


@dataclass(frozen=True, slots=True)
class Terms:
    """A turn gives new ones; a rewind brings back those of an earlier turn."""

    intent: Intent
    holdings: Mapping[str, Plain] = field(default_factory=dict)
    """The pools as rows state them."""
    withdrawn: Mapping[str, Withdrawn] = field(default_factory=dict)
    """By pool; pools of which nothing was withdrawn are left out."""
    withdrawals: int = 0
    is_known: bool = True
    """Whether this is the recipe in force; else its file is lost, and this is the one before."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the pools."""
        return self.intent.names


def and_then(
    known: Mapping[str, Withdrawn], number: int, documents: Mapping[str, NDArray[np.int64]]
) -> dict[str, Withdrawn]:
    """What is withdrawn after one more withdrawal; a document counts under the first one that names it."""
    after = dict(known)
    for name, given in documents.items():
        before = known.get(name, NOTHING)
        new = np.setdiff1d(given, before.documents)
        both = np.concatenate([before.documents, new])
        numbers = np.concatenate([before.numbers, np.full(len(new), number, np.int64)])
        order = np.argsort(both, kind="stable")
        if len(both):
            after[name] = Withdrawn(both[order], numbers[order])
    return after
