"""What repeats inside the units of a pool: computed once, when its parts are written, and kept beside them.

``repeats.npy`` int64[2 n]: spans ``a, b`` of stored tokens, counted over the pool, rising and disjoint, none
across two documents. Every token of them lies in a stretch of a certain number of body tokens that stands,
token by token, earlier in the same unit (group, or document): see `recipe.maths.repeats`. The number is in
the card's ``source``.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.maths.repeats import find_repeats
from recipe.pools.leads import part_leads
from recipe.pools.mapped import map_array
from recipe.pools.megatron import read_index
from recipe.pools.part import FinishedPart
from recipe.pools.pool import Pool
from recipe.pools.settings import PoolSettings
from recipe.pools.workplace import write_durably

REPEATS = "repeats"
"""Key of a card's ``source``: tokens of a stretch."""


def repeats_path(folder: Path, name: str) -> Path:
    """What repeats in the units that begin in a part, until the pool's file is made of it."""
    return folder / f"{name}.repeats"


def stretch_of(path: Path, given: int | None, extends: Pool | None) -> int | None:
    """Tokens of a stretch in a pool that is written: as given, or those of the pool that it extends.

    Raises:
        RecipeError: fewer than one, or others than in the pool that is extended.
    """
    before = None if extends is None or extends.repeats is None else extends.card.source.get(REPEATS)
    if given is not None and given < 1:
        expected, fix = "1 or more tokens", "write 64, or leave it out"
        raise RecipeError.single(str(path), REPEATS, given=given, expected=expected, fix=fix)
    if given is not None and before not in (None, given):
        raise RecipeError.single(
            str(path), REPEATS, given=given, expected=f"{before}, as in {extends.path if extends else ''}",
            fix="leave it out: what repeats is found in the new documents as in the old ones",
        )  # fmt: skip
    return before if given is None else given


def repeats_of(
    folder: Path,
    settings: PoolSettings,
    parts: Sequence[FinishedPart],
    units: NDArray[np.int64] | None,
    extends: Pool | None,
) -> NDArray[np.int64] | None:
    """int64[n, 2]: what repeats in a pool whose parts are written; None where nobody asked.

    Found part by part, of the units that begin there, each kept when it is found: an interrupted search
    goes on. The parts of a pool that is extended have what they had, if it was looked for.
    """
    size = settings.repeats
    if size is None:
        return None
    known = None if extends is None else extends.repeats
    found = [np.empty((0, 2), np.int64)] if known is None else [known]
    done = 0 if known is None or extends is None else extends.num_parts
    stored = _Stored(folder, settings, parts)
    edges = np.arange(stored.documents[-1] + 1) if units is None else units
    for number in range(done, len(parts)):
        path = repeats_path(folder, parts[number].record.name)
        if not path.is_file():
            first, last = np.searchsorted(edges[:-1], stored.documents[number : number + 2]).tolist()
            write_durably(path, _as_file(stored.repeats(number, edges[first : last + 1], size)))
        found.append(np.load(path))
    return np.concatenate(found)


def _as_file(spans: NDArray[np.int64]) -> bytes:
    file = io.BytesIO()
    np.save(file, spans)
    return file.getvalue()


class _Stored:
    """The tokens of a pool that is being written, and where its documents are."""

    def __init__(self, folder: Path, settings: PoolSettings, parts: Sequence[FinishedPart]) -> None:
        self._dtype, self._marks = settings.token_dtype, (settings.has_bos, settings.has_eos)
        self._folder, self._written, self._has_bos = folder, parts, settings.has_bos
        self._paths = [folder / f"{part.record.name}.bin" for part in parts]
        self.documents = np.cumsum([0, *(part.record.documents for part in parts)])
        self._tokens = np.cumsum([0, *(part.record.tokens for part in parts)])

    def repeats(self, number: int, units: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """int64[n, 2]: what repeats in units that begin in a part, over the pool; ``units`` their edges."""
        stop = int(np.searchsorted(units, self.documents[number + 1], side="right"))
        return np.concatenate(
            [
                self._among(number, units[:stop], size),
                # the last one may go on in the next parts: its tokens alone are copied
                self._among(number, units[max(0, stop - 1) :], size),
            ]
        )

    def _among(self, number: int, units: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Of units that begin in a part: either they all lie in it, or it is one that does not."""
        if len(units) < 2:
            return np.empty((0, 2), np.int64)
        offsets = self._offsets(number, int(units[0]), int(units[-1]))
        fronts = self._fronts(number, int(units[0]), int(units[-1]))
        bodies = np.column_stack([offsets[:-1] + fronts, offsets[1:] - self._marks[1]])
        first, stop = int(offsets[0]), int(offsets[-1])
        parts = range(number, int(np.searchsorted(self._tokens, stop)))
        held = [self._part(k, max(first, int(self._tokens[k])), stop) for k in parts]
        tokens = held[0] if len(held) == 1 else np.concatenate([*held, np.empty(0, self._dtype)])
        return find_repeats(tokens, bodies - first, units - units[0], size) + first

    def _part(self, k: int, first: int, stop: int) -> NDArray[Any]:
        """Tokens of a part from ``first`` to ``stop``, counted over the pool, as far as they lie in it."""
        begin, end = self._tokens[k : k + 2].tolist()
        return map_array(self._paths[k], self._dtype, end - begin)[first - begin : min(stop, end) - begin]

    def _fronts(self, k: int, first: int, stop: int) -> NDArray[np.int64]:
        """Special tokens in front of documents ``first`` to ``stop - 1``, the first of which is in part k."""
        base, found = int(self.documents[k]), []
        while self.documents[k] < stop:
            found.append(part_leads(self._folder, self._written[k], self._has_bos))
            k += 1
        return np.concatenate(found)[first - base : stop - base].astype(np.int64)

    def _offsets(self, k: int, first: int, stop: int) -> NDArray[np.int64]:
        """First stored tokens, over the pool, of documents ``first`` to ``stop``, which begin in part k."""
        found = [np.array([self._tokens[k]])]
        while self.documents[k] < stop:
            found.append(read_index(self._paths[k].with_suffix(".idx")).offsets()[1:] + self._tokens[k])
            k += 1
        base = int(self.documents[k - len(found) + 1])
        return np.concatenate(found)[first - base : stop - base + 1]
