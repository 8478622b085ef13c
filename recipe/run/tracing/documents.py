"""Documents that somebody asks for, found in the pools of a run: by id, or by their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recipe.errors import Problem, RecipeError
from recipe.pools import Pool, View
from recipe.pools.blocks import document_hash
from recipe.pools.table import DocumentTable
from recipe.run.tracing.nearest import Id, id_groups, likeness, nearest_id

if TYPE_CHECKING:
    from recipe.text.tokenizers import Tokenizer

_ONE_BY_ONE = 16
"""Up to so many ids are looked up each; more of them in one pass over the table."""
_STRETCH = 1 << 22
_MOST_PROBLEMS = 20
_ALIKE, _CLOSE = 0.6, 8
"""How alike an id must be to be named in place of another, or how close a number."""
_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, order=True, slots=True)
class DocumentAt:
    """A document of a pool, by its number there."""

    pool: str
    number: int


def chosen(pools: Mapping[str, Pool], name: str | None) -> dict[str, Pool]:
    """All pools, or the one that was named.

    Raises:
        RecipeError: no pool has that name.
    """
    if name is None:
        return dict(pools)
    if name in pools:
        return {name: pools[name]}
    near = get_close_matches(name, pools, n=1)
    raise RecipeError.single(
        "no such pool",
        "pool",
        given=name,
        expected=f"one of {', '.join(pools)}",
        fix=f"did you mean {near[0]}?" if near else "leave it out to look in all of them",
    )


Ways = tuple[Id, ...]
"""An id, in the few ways it can be read: as a number, as a text."""


def ways_of(one: Id) -> Ways:
    """An id in the ways it can be read: a text of digits is a number too."""
    is_number = isinstance(one, str) and re.fullmatch(r"-?[0-9]{1,19}", one, re.ASCII) is not None
    return (int(one), one) if is_number else (one,)


def find_ids(pools: Mapping[str, Pool], asked: Sequence[Ways]) -> tuple[list[DocumentAt], list[Ways]]:
    """The documents with these ids, in every pool that has one of them; and the ids that none has."""
    known = {name: _numbers_of(pool, {way for ways in asked for way in ways}) for name, pool in pools.items()}
    unknown = [ways for ways in asked if not any(way in found for found in known.values() for way in ways)]
    found = sorted({DocumentAt(name, number) for name, of in known.items() for number in of.values()})
    return found, unknown


def unknown_ids(pools: Mapping[str, Pool], unknown: Sequence[Ways]) -> RecipeError:
    """The error that no pool has some ids, each with the nearest that there is."""
    problems = [_unknown(pools, ways) for ways in unknown[:_MOST_PROBLEMS]]
    more = f" ({len(unknown) - len(problems)} more are unknown)" if len(unknown) > len(problems) else ""
    return RecipeError(f"no such document{more}", problems)


def _numbers_of(pool: Pool, ids: set[Id]) -> dict[Id, int]:
    """Numbers of the documents of a pool that have one of these ids."""
    if len(ids) <= _ONE_BY_ONE or pool.layout.table is None or pool.card.ids == "number":
        found = {one: _number_of(pool, one) for one in ids}
        return {one: number for one, number in found.items() if number is not None}
    numbers: dict[Id, int] = {}
    for kind, column in ((int, "id_int"), (str, "id_str")):
        wanted = [one for one in ids if isinstance(one, kind) and (kind is str or one in _INT64)]
        if wanted:
            values = pa.array(wanted, pa.int64() if kind is int else pa.string())
            for first, table in id_groups(pool.layout.table):
                at = pc.index_in(table[column], value_set=values)
                rows = np.flatnonzero(at.is_valid().to_numpy())
                for row in rows[pool.holds(first + rows)].tolist():
                    numbers[wanted[at[row].as_py()]] = first + row
    return numbers


def _number_of(pool: Pool, one: Id) -> int | None:
    try:
        return pool.find(one) if isinstance(one, str) or one in _INT64 else None
    except RecipeError:
        return None


def _unknown(pools: Mapping[str, Pool], ways: tuple[Id, ...]) -> Problem:
    for name, pool in pools.items():
        if isinstance(pool, View) and _numbers_of(pool.parent, set(ways)):
            return Problem(
                "document",
                " or ".join(repr(way) for way in ways),
                f"the id of a document of {', '.join(pools)}",
                f"it is in the folder of {name}, whose filter leaves it out, as do those of others asked",
            )
    nearest = [(name, nearest_id(pool, ways)) for name, pool in pools.items()]
    near = [(name, one) for name, one in nearest if one is not None and _is_near(one, ways)]
    near.sort(key=lambda pair: likeness(str(pair[1]), str(ways[0])), reverse=True)
    return Problem(
        "document",
        " or ".join(repr(way) for way in ways),
        f"the id of a document of {', '.join(pools)}",
        f"the nearest is {near[0][1]!r}, in pool {near[0][0]}" if near else "check the id",
    )


def _is_near(one: Id, ways: Ways) -> bool:
    """Whether somebody may have meant this id."""
    close = isinstance(one, int) and any(isinstance(way, int) and abs(way - one) <= _CLOSE for way in ways)
    return close or likeness(str(one), str(ways[0])) >= _ALIKE


def find_text(
    pools: Mapping[str, Pool], text: str, tokenizer_of: Callable[[Pool], Tokenizer | None]
) -> list[DocumentAt]:
    """The documents whose tokens are those of a text, in every pool, by the hash of their contents.

    Args:
        pools: where to look.
        text: a whole document's.
        tokenizer_of: the tokenizer of a pool; None leaves the pool out.

    Returns:
        the documents; none where nothing has this content.
    """
    found: list[DocumentAt] = []
    for name, pool in pools.items():
        tokenizer = tokenizer_of(pool)
        if tokenizer is not None:
            [tokens] = tokenizer.encode_batch([text])
            found += [DocumentAt(name, number) for number in _same_content(pool, tokens)]
    return found


def _same_content(pool: Pool, tokens: NDArray[Any]) -> list[int]:
    """Documents with exactly these body tokens: of the right length first, then by hash."""
    same = _of_length(pool, len(tokens))
    digest = document_hash(tokens)
    if pool.layout.table is None:
        return [number for number in same.tolist() if document_hash(pool.tokens(number)) == digest]
    hashes = DocumentTable(pool.layout.table).read(same, ("content_hash",))["content_hash"].to_pylist()
    return [n for n, held in zip(same.tolist(), hashes, strict=True) if held.hex() == digest]


def _of_length(pool: Pool, num_tokens: int) -> NDArray[np.int64]:
    """Numbers of the documents with so many body tokens."""
    found = []
    for first in range(0, pool.num_numbers, _STRETCH):
        stored = np.diff(pool.offsets[first : first + _STRETCH + 1])
        most = 2 if pool.leads is None else 1 + int(pool.leads[first : first + _STRETCH].max(initial=0))
        near = first + np.flatnonzero((stored >= num_tokens) & (stored <= num_tokens + most))
        near = near[pool.holds(near)]
        _, eos = pool.stored_marks(near)
        found.append(near[stored[near - first] - pool.fronts(near) - eos == num_tokens])
    return np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64)
