"""Views: some documents of a pool's folder as a pool of their own, in an order of their own.

Nothing is copied. A view has the numbers of its folder's documents; which units it holds is a rising list
(``members``), and where a unit is held in part, a mask says which of its documents. Its fingerprint is that
of the folder's pool and of the filter. A pool that grows leaves the units that its views had in front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recipe.config.view import Filter, families, filter_of, parent_name
from recipe.errors import Problem, RecipeError
from recipe.pools.card import Card, MaxId, content_hash, extent_units
from recipe.pools.finding import Finding
from recipe.pools.foreign.form import form_of
from recipe.pools.offsets import Offsets
from recipe.pools.pool import Pool
from recipe.pools.selection import Selection, select, units_of

if TYPE_CHECKING:
    from recipe.config import Recipe

_PIECE = 1 << 20
"""Documents that are looked at together."""


class View(Pool):
    """Documents of a folder that pass a filter; see :class:`~recipe.pools.Pool`."""

    def __init__(self, parent: Pool, chosen: Filter) -> None:
        """A view called as ``parent`` is, which is the whole folder, opened under that name."""
        own = view_fingerprint(parent.fingerprint, chosen)
        super().__init__(parent.name, parent.path, replace(parent.layout, fingerprint=own))
        self.parent = parent
        """All of the folder."""
        self.filter = chosen
        self._selection: Selection | None = None
        self._extent: int | None = None

    @property
    def selection(self) -> Selection:
        """What it holds; looked up once.

        Raises:
            RecipeError: a column that no document has, or no document passes.
        """
        if self._selection is None:
            self._selection = select(self.parent, self.filter)
        return self._selection

    @property
    def num_units(self) -> int:
        """Units of which it holds something."""
        return len(self.selection.units)

    @property
    def extent_units(self) -> int:
        """Units that are read together: as in a pool that holds nothing else."""
        if self._extent is None:
            selection = self.selection
            self._extent = extent_units(selection.body + selection.special, len(selection.units))
        return self._extent

    @property
    def num_documents(self) -> int:
        """Documents that it holds."""
        return self.selection.documents

    @property
    def offsets(self) -> NDArray[np.int64] | Offsets:
        """Of the folder; see `Pool.offsets`."""
        return self.parent.offsets

    @property
    def units(self) -> NDArray[np.int64] | None:
        """Of the folder; see `Pool.units`."""
        return self.parent.units

    @property
    def members(self) -> NDArray[np.int64]:
        """int64[num_units]: its units in the folder, rising."""
        return self.selection.units

    @property
    def card(self) -> Card:
        """The folder's card with what the view holds."""
        if self._card is None:
            selection = self.selection
            self._card = replace(
                self.parent.card,
                num_documents=selection.documents,
                num_units=len(selection.units),
                body_tokens=selection.body,
                special_tokens=selection.special,
                counted="exact",
                max_document_tokens=selection.longest,
                length_histogram=selection.histogram,
                extent_units=self.extent_units,
            )
        return self._card

    def holds(self, documents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these documents it holds, by their numbers in the folder."""
        selection = self.selection
        if selection.mask is not None:
            held: NDArray[np.bool_] = selection.mask[documents]
            return held
        return _among(selection.units, units_of(self, documents))

    def find(self, id: int | str) -> int:
        """Number of the document with this id.

        Raises:
            RecipeError: the folder has none, or the view leaves it out.
        """
        number = self.parent.find(id)
        if not self.holds(np.array([number]))[0]:
            raise RecipeError.single(
                f"pool {self.name}", str(self.path), given=f"document id {id!r}",
                expected=f"the id of one of its {self.num_documents} documents: it is in the folder, but "
                "does not pass the pool's filter", fix="ask the pool that holds it",
            )  # fmt: skip
        return number

    def max_id(self) -> MaxId | None:
        """The largest stored id of the folder."""
        return self.parent.max_id()

    def check_ids(self, limit: int) -> list[Problem]:
        """As of the folder: every id in it is looked at."""
        return self.parent.check_ids(limit)

    def verify(
        self,
        *,
        full: bool = False,
        sample: Fraction | float | int = Fraction(1, 100),
        seed: int = 0,
        erased: bool = True,
    ) -> list[Finding]:
        """As of the folder: files are compared, not documents."""
        return self.parent.verify(full=full, sample=sample, seed=seed, erased=erased)

    def close(self) -> None:
        """Let go of mapped files; what it holds is remembered."""
        super().close()
        self.parent.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from the folder, which is looked for by its path; what it holds goes along."""
        state = {"edges": self.edges, "before": self.before, "_selection": self._selection}
        return View, (self.parent, self.filter), state


def open_as(recipe: Recipe, name: str, path: Path, opened: Callable[..., Pool]) -> Pool:
    """A pool of a recipe, or the view that it is.

    Args:
        recipe: which says what it holds.
        name: of the pool.
        path: of its folder.
        opened: opens the folder; called as ``open_pool``.

    Raises:
        RecipeError: as whatever opens it.
    """
    folder = recipe.pools[parent_name(recipe.pools, name)]
    pool = opened(path, name, eos=folder.eos, bos=folder.bos, form=form_of(folder))
    chosen = filter_of(recipe.pools[name])
    return pool if chosen is None else View(pool, chosen)


def join_families(recipe: Recipe, pools: Mapping[str, Pool]) -> None:
    """Let pools of one folder know those that come before them, as far as they are there."""
    for members in families(recipe.pools):
        there = [name for name in members if name in pools]
        for at, name in enumerate(there):
            for other in there[:at]:
                key = recipe.order_name(other)
                if pools[name].before.get(key) is not pools[other]:
                    pools[name].before[key] = pools[other]
                    pools[name].shares.pop(key, None)


def view_fingerprint(of_folder: str, chosen: Filter) -> str:
    """Content hash of a view: of its folder's and of its filter."""
    return content_hash(["view", of_folder, chosen.to_plain()])


def shared_with(pool: Pool, other: Pool) -> bool:
    """Whether two pools of one folder hold a document both."""
    if isinstance(pool, View) and isinstance(other, View):
        one, two = sorted((pool, other), key=lambda view: view.num_units)
        if not _among(two.members, one.members).any():
            return False
        if one.selection.mask is None and two.selection.mask is None:
            return True
    return any(other.holds(documents).any() for documents in held_documents(pool))


def held_documents(pool: Pool) -> Iterator[NDArray[np.int64]]:
    """Numbers of the documents of a pool, rising, in pieces."""
    for start in range(0, pool.num_numbers, _PIECE):
        numbers = np.arange(start, min(start + _PIECE, pool.num_numbers))
        yield numbers[pool.holds(numbers)]


def _among(rising: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    at = np.searchsorted(rising, numbers)
    at[at == len(rising)] = 0
    found: NDArray[np.bool_] = rising[at] == numbers
    return found
