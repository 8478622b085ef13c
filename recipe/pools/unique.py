"""Ids that occur once and groups that stand together, checked in eight bytes a key."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.errors import ContentError, Problem
from recipe.pools.table import either

_SHOWN = 5
_NEW_GROUPS = "give them another group, or make one pool anew of all documents, the old ones too"


class Keys:
    """Hashes of the ids (of every document) or groups (of every unit's first document) seen."""

    def __init__(self, name: str) -> None:
        """``name`` is ``id`` or ``group``."""
        self._name = name
        self._hashes = array("q")  # grows where it is: no second copy
        self._chosen: list[NDArray[np.uint8]] = []

    def take(self, rows: pa.Table, chosen: NDArray[np.bool_]) -> None:
        """Take the keys of the chosen rows; rows without one are left out."""
        self._hashes.frombytes(_hashes(rows, self._name)[chosen & _present(rows, self._name)].tobytes())
        self._chosen.append(np.packbits(chosen))

    def check(self, folder: Path, tables: Callable[[], Iterable[pa.Table]], extended: int = 0) -> None:
        """Look for keys that came twice; equal hashes are settled by the rows themselves.

        ``extended``: first documents that are those of a pool that is extended.

        Raises:
            ContentError: naming the first keys at fault and both documents.
        """
        hashes = np.frombuffer(self._hashes, np.int64)
        hashes.sort()
        twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if not len(twice):
            return
        problems = self._repeated(twice, tables(), extended)
        if problems:
            raise ContentError(str(folder).removesuffix(".partial"), problems)

    def _repeated(self, twice: NDArray[np.int64], tables: Iterable[pa.Table], extended: int) -> list[Problem]:
        first: dict[int | str, int] = {}
        problems: list[Problem] = []
        number = 0
        for rows, packed in zip(tables, self._chosen, strict=True):
            chosen = np.unpackbits(packed, count=rows.num_rows).astype(np.bool_)
            suspect = chosen & _present(rows, self._name) & np.isin(_hashes(rows, self._name), twice)
            at = np.flatnonzero(suspect)
            for key, row in zip(either(rows.take(pa.array(at)), self._name), at.tolist(), strict=True):
                if key in first and len(problems) < _SHOWN:
                    problems.append(self._problem(key, first[key], number + row, extended))
                first.setdefault(key, number + row)
            number += rows.num_rows
        return problems

    def _problem(self, key: int | str, first: int, second: int, extended: int) -> Problem:
        where, given = f"document {second}", f"{self._name} {key!r}, as document {first} has"
        is_old = first < extended <= second
        given += ", of the extended pool" if is_old else ""
        if self._name == "id":
            return Problem(where, given, "ids that occur once", "give each document an id of its own")
        expected, fix = "a group's documents one after another", "sort the documents by group"
        if is_old:
            expected, fix = "groups that the extended pool does not have", _NEW_GROUPS
        else:
            given += ", with other documents between"
        return Problem(where, given, expected, fix)


def _present(rows: pa.Table, name: str) -> NDArray[np.bool_]:
    present = np.zeros(rows.num_rows, dtype=np.bool_)
    for column in (f"{name}_int", f"{name}_str"):
        present |= np.asarray(rows[column].is_valid().to_numpy(), dtype=np.bool_)
    return present


def _hashes(rows: pa.Table, name: str) -> NDArray[np.int64]:
    """int64[rows]: the number itself, or this process's hash of the text; 0 where there is neither."""
    numbers = np.asarray(rows[f"{name}_int"].fill_null(0).to_numpy(), dtype=np.int64)
    texts = rows[f"{name}_str"]
    if texts.null_count == rows.num_rows:
        return numbers
    hashed = [0 if text is None else hash(text) for text in texts.to_pylist()]
    return numbers + np.array(hashed, dtype=np.int64)
