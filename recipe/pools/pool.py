"""A pool: a named, read-only set of tokenised documents, opened lazily.

What is asked of it is answered from its layout, its stored tokens and its document table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import Problem, RecipeError
from recipe.pools.arrays import PoolArrays
from recipe.pools.card import ALL, NONE, Card, MaxId
from recipe.pools.erased import explained
from recipe.pools.finding import Finding
from recipe.pools.id_range import id_problem, largest_id, outside
from recipe.pools.layout import Layout
from recipe.pools.origins import AS_WRITTEN
from recipe.pools.stored_marks import marks_at_ends
from recipe.pools.stored_tokens import StoredTokens
from recipe.pools.table import SCHEMA, DocumentTable, Row, either, row_of, rows_from
from recipe.pools.verify import verify_own, verify_pairs


class Pool(PoolArrays):
    """Documents of one pool, by number; files are opened when something in them is asked for.

    Safe to share between threads and to use after a fork; pickling reopens it by its path.
    """

    def __init__(self, name: str, path: Path, layout: Layout) -> None:
        """Made by ``open_pool``."""
        super().__init__(layout)
        self.name = name
        """Name in the recipe; order and shuffle are keyed on it."""
        self.path = path
        self.fingerprint = layout.fingerprint
        """Content hash: tokens, boundaries, documents, marks."""
        self.token_dtype = layout.token_dtype
        self.part_documents = layout.part_documents
        """int64[num_parts + 1]: first document of each part."""
        self.part_offsets = layout.part_offsets
        """int64[num_parts + 1]: first token of each part."""
        self.edges: Callable[[], Any] | None = None
        """What tells where its texts may be cut: set by whoever opens it to read under a rule that aligns."""
        self.before: dict[str, Pool] = {}
        """Pools of the same folder that come before it, by what their orders are keyed on."""
        self.shares: dict[str, bool] = {}
        """Of these, whether they hold any of its documents: once somebody looked."""
        self.token_files = StoredTokens(layout)
        """Its stored tokens by place, whatever document they are of."""
        self._card: Card | None = None

    @property
    def num_units(self) -> int:
        """Units in the pool."""
        return self.layout.num_units

    @property
    def extent_units(self) -> int:
        """Units that are read together."""
        return self.layout.extent_units

    @property
    def num_documents(self) -> int:
        """Documents in the pool."""
        return self.num_numbers

    @property
    def num_numbers(self) -> int:
        """Documents of its folder: their numbers lie below it, also where the pool is a view of some."""
        return int(self.part_documents[-1])

    @property
    def members(self) -> NDArray[np.int64] | None:
        """int64[num_units]: of a view, the units of its folder that it holds, rising; None: all."""
        return None

    def holds(self, documents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these documents, by number, are the pool's; all, unless it is a view."""
        return np.ones(len(documents), np.bool_)

    @property
    def num_parts(self) -> int:
        """Token files of the pool."""
        return len(self.layout.part_names)

    @property
    def num_tokens(self) -> int:
        """Stored tokens, marks included."""
        return int(self.part_offsets[-1])

    @property
    def bos(self) -> int | None:
        """Id of the begin mark, if the pool has one; known without the card."""
        return self.layout.bos

    @property
    def eos(self) -> int | None:
        """Id of the end mark, if the pool has one; known without the card."""
        return self.layout.eos

    @property
    def stock(self) -> int:
        """Body tokens: what one epoch can serve."""
        return self.card.body_tokens

    @property
    def card(self) -> Card:
        """What the pool says of itself; of an imported pool, what its index and a look at its marks say."""
        if self._card is None:
            self._card = self.layout.load_card(self)
        return self._card

    def fronts(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: stored tokens in front of the body of documents."""
        if self.leads is not None:
            return self.leads[documents].astype(np.int64)
        return self.stored_marks(documents)[0].astype(np.int64)

    def part(self, index: int) -> NDArray[Any]:
        """Stored tokens of one part, mapped; token k of the pool is ``part(i)[k - part_offsets[i]]``.

        Raises:
            RecipeError: the pool lies in a store, where :meth:`span` reads stretches of a part.
        """
        if self.layout.remote is not None:
            raise RecipeError.single(
                f"pool {self.name}", str(self.path), given="a pool in a store",
                expected="one on this machine: here whole token files are read",
                fix="copy the pool to this machine, and name the copy",
            )  # fmt: skip
        return self.token_files.part(index)

    def span(self, index: int, start: int, stop: int) -> NDArray[Any]:
        """Stored tokens ``start..stop`` of one part."""
        return self.token_files.span(index, start, stop)

    def tokens(self, document: int) -> NDArray[Any]:
        """Body tokens of one document, stored marks left out."""
        one = self._numbers([document])
        (front,), (has_eos,) = self.fronts(one), self.stored_marks(one)[1]
        stored = self.stored(document)
        return stored[int(front) : len(stored) - int(has_eos)]

    def stored(self, document: int) -> NDArray[Any]:
        """Stored tokens of one document, marks included."""
        start, stop = self.offsets[document : document + 2].tolist()
        index = self._part_of(document)
        base = int(self.part_offsets[index])
        return self.span(index, start - base, stop - base)

    def stored_marks(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which documents begin with a stored BOS and which end with a stored EOS.

        Constant where the card says so; else looked up, one token a document. A document of a
        single token that is both marks is an EOS.
        """
        count, layout = len(documents), self.layout
        if layout.bos_stored in (ALL, NONE) and layout.eos_stored in (ALL, NONE):
            return np.full(count, layout.bos_stored == ALL), np.full(count, layout.eos_stored == ALL)
        return marks_at_ends(self.token_files, self.offsets[documents], self.offsets[documents + 1])

    def ids(self, documents: Sequence[int] | NDArray[np.int64]) -> list[int | str]:
        """Ids of the documents, whole numbers and texts as they were given."""
        numbers = self._numbers(documents)
        if self.layout.ids_are_numbers:
            return list(numbers.tolist())
        return either(self._rows_table().read(numbers, ("id_int", "id_str")), "id")

    def rows(self, documents: Sequence[int] | NDArray[np.int64]) -> list[Row]:
        """Rows of the document table, in the order given."""
        numbers = self._numbers(documents)
        names = self.layout.part_names
        if self.layout.table is None:
            return [row_of(n, names[self._part_of(n)], self.tokens(n)) for n in numbers.tolist()]
        return rows_from(self._rows_table().read(numbers, SCHEMA.names), numbers.tolist(), names)

    def find(self, id: int | str) -> int:
        """Number of the document with this id.

        Raises:
            RecipeError: the pool has no such document.
        """
        if self.layout.ids_are_numbers:
            found = id if isinstance(id, int) and 0 <= id < self.num_documents else None
        else:
            found = self._rows_table().find(id)
        if found is None:
            raise RecipeError.single(
                f"pool {self.name}", str(self.path), given=f"document id {id!r}",
                expected=f"the id of one of its {self.num_documents} documents",
                fix="check the spelling, and whether it is a number or a text",
            )  # fmt: skip
        return found

    def max_id(self) -> MaxId | None:
        """The largest stored id and its first place, exact; scans the tokens of imported pools once."""
        if self.layout.table is not None:
            return self.card.max_id
        return largest_id(self.token_files)

    def check_ids(self, limit: int) -> list[Problem]:
        """Ids that a model of ``limit`` ids has no row for, and negative ones: the first place of each.

        Raises nothing; ids of own pools are known from the card, imported ones are scanned.
        """
        if self.layout.table is not None:
            most = self.card.max_id
            places = [] if most is None or most.id < limit else [most]
        else:
            places = outside(self.token_files, limit)
        return [id_problem(self.name, self.layout.folder, place, limit) for place in places]

    def verify(
        self,
        *,
        full: bool = False,
        sample: Fraction | float | int = Fraction(1, 100),
        seed: int = 0,
        erased: bool = True,
    ) -> list[Finding]:
        """Compare contents with the hashes and counts the pool was written with.

        Args:
            full: read everything; else a seeded choice of blocks.
            sample: share (float) or number (int) of blocks.
            seed: of the choice.
            erased: documents that the card says were erased may hold zeros.

        Returns:
            what is wrong, naming part, block and bytes; empty if nothing is. Imported pairs carry no
            hashes: their indices are compared with their token files.
        """
        if self.layout.check is not None:
            return self.layout.check(full)
        if self.layout.table is None:
            return verify_pairs(self.layout.folder / f"{name}.idx" for name in self.layout.part_names)
        found = verify_own(self.layout.folder, self.card, sample=None if full else sample, seed=seed)
        if not (found and erased and len(self.erased)):
            return found
        # of what the files hold now there are hashes, too: only what they held may be another
        lost = [one for one in found if AS_WRITTEN in one.where]
        return [*(one for one in found if one not in lost), *explained(self, lost, self.erased)[0]]

    def close(self) -> None:
        """Let go of mapped files; what is asked for later is opened again."""
        super().close()
        self.token_files.close()

    def __enter__(self) -> Pool:
        """The pool itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Name, place and size."""
        size = f"{self.num_documents} documents, {self.num_tokens} tokens"
        return f"Pool({self.name!r}, {str(self.path)!r}, {size})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Reopened by path on the other side, and refused there if it is another pool."""
        given = (self.path, self.name, self.layout.declared, self.fingerprint)
        return self.layout.reopen, given, {"edges": self.edges, "before": self.before}

    def _rows_table(self) -> DocumentTable:
        return self._once("table", lambda: DocumentTable(self.layout.table_file()))

    def _numbers(self, documents: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        numbers = np.asarray(documents, dtype=np.int64)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= self.num_numbers):
            raise IndexError(f"documents {numbers.min()}..{numbers.max()} of a pool with {self.num_numbers}")
        return numbers

    def _part_of(self, document: int) -> int:
        return int(np.searchsorted(self.part_documents, document, side="right")) - 1
