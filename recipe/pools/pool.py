"""A pool: a named, read-only set of tokenised documents, opened lazily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import Problem, RecipeError
from recipe.pools.blocks import document_hash
from recipe.pools.card import ALL, NONE, Card, Marks, MaxId
from recipe.pools.erased import explained
from recipe.pools.finding import Finding
from recipe.pools.mapped import map_array
from recipe.pools.origins import AS_WRITTEN
from recipe.pools.table import SCHEMA, DocumentTable, Row, either, rows_from
from recipe.pools.verify import verify_own, verify_pairs

if TYPE_CHECKING:
    from recipe.pools.remote.folder import StoredFolder

_SCAN_TOKENS = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where a pool's contents lie and how to get at them; what an opener hands to ``Pool``."""

    fingerprint: str
    token_dtype: np.dtype[Any]
    folder: Path
    part_names: tuple[str, ...]
    """Files of the folder, without their endings."""
    part_documents: NDArray[np.int64]
    part_offsets: NDArray[np.int64]
    num_units: int
    extent_units: int
    bos: int | None
    eos: int | None
    bos_stored: str
    eos_stored: str
    load_card: Callable[[Pool], Card]
    load_offsets: Callable[[], NDArray[np.int64]]
    load_units: Callable[[], NDArray[np.int64]] | None
    load_sections: Callable[[], NDArray[np.int64]] | None = None
    load_needs: Callable[[], NDArray[np.int64]] | None = None
    load_repeats: Callable[[], NDArray[np.int64]] | None = None
    load_leads: Callable[[], NDArray[np.uint32]] | None = None
    load_erased: Callable[[], NDArray[np.int64]] | None = None
    table: Path | None
    reopen: Callable[..., Pool]
    declared: Marks
    """The eos and bos the opener was given; ``reopen`` gets them again."""
    load_part: Callable[[int], NDArray[Any]] | None = None
    """The stored tokens of a part, by its number, as one array that stays where it is in memory; None: the
    token file, mapped."""
    part_files: tuple[tuple[Path, ...], ...] | None = None
    """All files of each part, the one with its tokens first; None: ``.bin`` and ``.idx`` in the folder."""
    prefix: Callable[[int, int], str] | None = None
    """Of imported files: the fingerprint of the pool that parts ``[first, end)`` are alone."""
    check: Callable[[bool], list[Finding]] | None = None
    """Of imported files: what is wrong with them, looked at in full if True; None: indices of pairs are
    compared with token files."""
    remote: StoredFolder | None = None
    """Where its files lie in a store: ``folder`` then holds copies of those that somebody opened."""

    notes: tuple[str, ...] = ()
    """What whoever uses the pool should know of its files."""

    def table_file(self) -> Path:
        """The document table of an own pool."""
        assert self.table is not None
        return self.table

    def files(self, index: int) -> tuple[Path, ...]:
        """The files of a part, the one with its tokens first."""
        if self.part_files is not None:
            return self.part_files[index]
        return tuple(self.folder / f"{self.part_names[index]}{ending}" for ending in (".bin", ".idx"))

    def part_path(self, index: int) -> Path:
        """Token file of a part."""
        return self.files(index)[0]

    def file_name(self, index: int) -> str:
        """Token file of a part, as its folder has it, and which part of the file if it holds several."""
        if self.part_files is not None:
            return self.part_names[index]
        return self.part_path(index).relative_to(self.folder).as_posix()


class Pool:
    """Documents of one pool, by number; files are opened when something in them is asked for.

    Safe to share between threads and to use after a fork; pickling reopens it by its path.
    """

    def __init__(self, name: str, path: Path, layout: Layout) -> None:
        """Made by ``open_pool``."""
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
        self.layout = layout
        self.edges: Callable[[], Any] | None = None
        """What tells where its texts may be cut: set by whoever opens it to read under a rule that aligns."""
        self.before: dict[str, Pool] = {}
        """Pools of the same folder that come before it, by what their orders are keyed on."""
        self.shares: dict[str, bool] = {}
        """Of these, whether they hold any of its documents: once somebody looked."""
        self._parts: list[NDArray[Any] | None] = [None] * len(layout.part_names)
        self._offsets: NDArray[np.int64] | None = None
        self._units: NDArray[np.int64] | None = None
        self._sections: NDArray[np.int64] | None = None
        self._needs: NDArray[np.int64] | None = None
        self._repeats: NDArray[np.int64] | None = None
        self._leads: NDArray[np.uint32] | None = None
        self._erased: NDArray[np.int64] | None = None
        self._card: Card | None = None
        self._table: DocumentTable | None = None

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
        return len(self._parts)

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

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64[num_documents + 1]: first stored token of each document over all parts, then their number."""
        if self._offsets is None:
            self._offsets = self.layout.load_offsets()
        return self._offsets

    @property
    def units(self) -> NDArray[np.int64] | None:
        """int64[num_units + 1]: first document of each unit; None when each document is a unit."""
        if self._units is None and self.layout.load_units is not None:
            self._units = self.layout.load_units()
        return self._units

    @property
    def sections(self) -> NDArray[np.int64] | None:
        """int64[n]: stored tokens, counted over the pool, at which sections begin, rising, without the starts
        of documents; None where the pool says nothing of sections."""
        if self._sections is None and self.layout.load_sections is not None:
            self._sections = self.layout.load_sections()
        return self._sections

    @property
    def needs(self) -> NDArray[np.int64] | None:
        """int64[m, 4]: section ``[a, b)`` needs section ``[c, d)``, stored tokens counted over the pool; see
        `recipe.pools.sections`. None where no section needs another."""
        if self._needs is None and self.layout.load_needs is not None:
            self._needs = self.layout.load_needs()
        return self._needs

    @property
    def leads(self) -> NDArray[np.uint32] | None:
        """uint32[documents], by number: special tokens in front of each one's body, BOS among them; None
        where no document has more than BOS there."""
        if self._leads is None and self.layout.load_leads is not None:
            self._leads = self.layout.load_leads()
        return self._leads

    @property
    def erased(self) -> NDArray[np.int64]:
        """int64[n]: numbers of the documents that were withdrawn from the pool and erased, rising; they hold
        zeros, and whoever reads the pool leaves them out."""
        if self._erased is None:
            load = self.layout.load_erased
            self._erased = np.empty(0, np.int64) if load is None else load()
        return self._erased

    def fronts(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: stored tokens in front of the body of documents."""
        if self.leads is not None:
            return self.leads[documents].astype(np.int64)
        return self.stored_marks(documents)[0].astype(np.int64)

    @property
    def repeats(self) -> NDArray[np.int64] | None:
        """int64[n, 2]: spans of stored tokens, counted over the pool, rising and disjoint, that repeat what
        stands earlier in the same unit; see `recipe.pools.repeats`. None where nobody looked for them."""
        if self._repeats is None and self.layout.load_repeats is not None:
            self._repeats = self.layout.load_repeats()
        return self._repeats

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
        tokens = self._parts[index]
        if tokens is None:
            # two threads may both map the part; either map serves
            if self.layout.load_part is not None:
                tokens = self.layout.load_part(index)
            else:
                count = int(self.part_offsets[index + 1] - self.part_offsets[index])
                tokens = map_array(self.layout.part_path(index), self.token_dtype, count)
            self._parts[index] = tokens
        return tokens

    def span(self, index: int, start: int, stop: int) -> NDArray[Any]:
        """Stored tokens ``start..stop`` of one part."""
        if self.layout.remote is None:
            return self.part(index)[start:stop]
        width = self.token_dtype.itemsize
        data = self.layout.remote.read(self.layout.file_name(index), start * width, stop * width)
        return np.frombuffer(data, self.token_dtype)

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
        starts, stops = self.offsets[documents], self.offsets[documents + 1]
        has_eos = self._token_is(layout.eos, stops - 1, stops > starts)
        has_bos = self._token_is(layout.bos, starts, stops - has_eos > starts)
        return has_bos, has_eos

    def ids(self, documents: Sequence[int] | NDArray[np.int64]) -> list[int | str]:
        """Ids of the documents, whole numbers and texts as they were given."""
        numbers = self._numbers(documents)
        if self._ids_are_numbers():
            return list(numbers.tolist())
        return either(self._rows_table().read(numbers, ("id_int", "id_str")), "id")

    def rows(self, documents: Sequence[int] | NDArray[np.int64]) -> list[Row]:
        """Rows of the document table, in the order given."""
        numbers = self._numbers(documents)
        names = self.layout.part_names
        if self.layout.table is None:
            return [self._imported_row(number, names) for number in numbers.tolist()]
        return rows_from(self._rows_table().read(numbers, SCHEMA.names), numbers.tolist(), names)

    def find(self, id: int | str) -> int:
        """Number of the document with this id.

        Raises:
            RecipeError: the pool has no such document.
        """
        if self._ids_are_numbers():
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
        largest = -1
        found = None
        for index in range(self.num_parts):
            for start, tokens in self._stretches(index):
                at = int(tokens.argmax())
                if int(tokens[at]) > largest:
                    largest = int(tokens[at])
                    found = MaxId(id=largest, part=self.layout.file_name(index), position=start + at)
        return found

    def check_ids(self, limit: int) -> list[Problem]:
        """Ids that a model of ``limit`` ids has no row for, and negative ones: the first place of each.

        Raises nothing; ids of own pools are known from the card, imported ones are scanned.
        """
        if self.layout.table is not None:
            most = self.card.max_id
            return [] if most is None or most.id < limit else [self._id_problem(most, limit)]
        problems = []
        for high in (True, False):
            if (place := self._first_outside(limit, high)) is not None:
                problems.append(self._id_problem(place, limit))
        return problems

    def verify(
        self, *, full: bool = False, sample: float | int = 0.01, seed: int = 0, erased: bool = True
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
        self._parts = [None] * len(self._parts)
        self._offsets = self._units = self._sections = self._needs = self._repeats = self._table = None
        self._leads = self._erased = None

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

    def _ids_are_numbers(self) -> bool:
        return self.layout.table is None or self.card.ids == "number"

    def _rows_table(self) -> DocumentTable:
        if self._table is None:
            assert self.layout.table is not None
            self._table = DocumentTable(self.layout.table)
        return self._table

    def _numbers(self, documents: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        numbers = np.asarray(documents, dtype=np.int64)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= self.num_numbers):
            raise IndexError(f"documents {numbers.min()}..{numbers.max()} of a pool with {self.num_numbers}")
        return numbers

    def _part_of(self, document: int) -> int:
        return int(np.searchsorted(self.part_documents, document, side="right")) - 1

    def _token_is(
        self, mark: int | None, positions: NDArray[np.int64], valid: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        found = np.zeros(len(positions), dtype=np.bool_)
        if mark is not None:
            found[valid] = self._gather(positions[valid]) == mark
        return found

    def _gather(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Stored tokens at positions of the pool."""
        if not len(positions):
            return np.empty(0, dtype=self.token_dtype)
        parts = np.searchsorted(self.part_offsets, positions, side="right") - 1
        if self.layout.remote is not None:
            width = self.token_dtype.itemsize
            starts = (positions - self.part_offsets[parts]) * width
            names = [self.layout.file_name(index) for index in range(self.num_parts)]
            memory, runs = self.layout.remote.gather(names, np.stack([parts, starts, starts + width], axis=1))
            gathered: NDArray[Any] = memory.view(self.token_dtype)[runs.place // width]
            return gathered
        order = np.argsort(parts, kind="stable")
        found, cuts = np.unique(parts[order], return_index=True)
        tokens = np.empty(len(positions), dtype=self.token_dtype)
        for index, members in zip(found.tolist(), np.split(order, cuts[1:]), strict=True):
            tokens[members] = self.part(index)[positions[members] - self.part_offsets[index]]
        return tokens

    def _stretches(self, index: int) -> list[tuple[int, NDArray[Any]]]:
        count = int(self.part_offsets[index + 1] - self.part_offsets[index])
        starts = range(0, count, _SCAN_TOKENS)
        return [(start, self.span(index, start, min(start + _SCAN_TOKENS, count))) for start in starts]

    def _first_outside(self, limit: int, high: bool) -> MaxId | None:
        for index in range(self.num_parts):
            for start, tokens in self._stretches(index):
                if int(tokens.max()) < limit if high else int(tokens.min()) >= 0:
                    continue
                at = int(np.argmax(tokens >= limit if high else tokens < 0))
                return MaxId(id=int(tokens[at]), part=self.layout.file_name(index), position=start + at)
        return None

    def _id_problem(self, place: MaxId, limit: int) -> Problem:
        return Problem(
            f"pools.{self.name}",
            f"id {place.id} at position {place.position} of {self.layout.folder / place.part}",
            f"ids in 0..{limit - 1}",
            "check that the pool was tokenised with the model's tokenizer, or correct model.vocab_size",
        )

    def _imported_row(self, document: int, names: Sequence[str]) -> Row:
        body = self.tokens(document)
        part = names[self._part_of(document)]
        return Row(document, document, part, len(body), None, {}, None, document_hash(body))
