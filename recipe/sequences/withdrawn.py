"""Documents of one pool that must not be read any more, each with the withdrawal that took it down.

Withdrawals of a run are numbered 1, 2, …; a document counts under the first one that names it.
A block is planned under the number of withdrawals of its pool at that time; those documents are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, slots=True)
class Withdrawn:
    """What was withdrawn of a pool.

    ``documents`` int64[n]: numbers in the pool, rising; ``numbers`` int64[n]: the withdrawal of each.
    """

    documents: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @property
    def number(self) -> int:
        """The last withdrawal that names a document of this pool; 0: none does."""
        return int(self.numbers.max(initial=0))

    def of(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[len(documents)]: the withdrawal that took each document down; 0 where none did.

        >>> Withdrawn(np.array([3, 8]), np.array([2, 1])).of(np.array([8, 5, 3, 9])).tolist()
        [1, 0, 2, 0]
        """
        if not len(self.documents):
            return np.zeros(len(documents), np.int64)
        at = np.searchsorted(self.documents, documents)
        at[at == len(self.documents)] = 0
        return np.where(self.documents[at] == documents, self.numbers[at], 0)


def from_the_start(documents: NDArray[np.int64]) -> tuple[Withdrawn, int]:
    """Documents that a pool was opened without, as its first withdrawal, and the number of that."""
    return Withdrawn(documents, np.ones(len(documents), np.int64)), 1


NOTHING = Withdrawn(np.empty(0, np.int64), np.empty(0, np.int64))
"""No document of the pool was withdrawn."""


def together(known: Iterable[Withdrawn]) -> Withdrawn:
    """What was withdrawn of pools that share a folder, for each of them: whichever one was named.

    >>> one, two = (Withdrawn(np.array([3, 8]), np.array([2, 1])), Withdrawn(np.array([3]), np.array([1])))
    >>> both = together([one, two])
    >>> both.documents.tolist(), both.numbers.tolist()
    ([3, 8], [1, 1])
    """
    some = [each for each in known if len(each.documents)]
    if len(some) < 2:
        return some[0] if some else NOTHING
    documents = np.concatenate([each.documents for each in some])
    numbers = np.concatenate([each.numbers for each in some])
    order = np.lexsort((numbers, documents))
    found, first = np.unique(documents[order], return_index=True)
    return Withdrawn(found, numbers[order][first])
