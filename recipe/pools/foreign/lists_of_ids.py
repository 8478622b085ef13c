"""Rows of token ids, as they come out of tables and samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from recipe.pools.foreign.token_file import refuse


class Rows(NamedTuple):
    """Some rows of a file: their ids one after another, and how many each has."""

    ids: NDArray[Any]
    lengths: NDArray[np.int64]


def rows_of(path: Path, lists: Any, place: tuple[str, int]) -> Rows:
    """The ids and lengths of an Arrow array of lists; nothing is copied.

    Args:
        path: of the file, for messages.
        lists: the array.
        place: name of the column, and number of the first row.

    Raises:
        RecipeError: a row without a list, or a list without an id.
    """
    name, first = place
    fix = "correct the file: every row is a list of ids, an empty one if it has none"
    if lists.null_count:
        row = first + pc.index(lists.is_null(), True).as_py()
        raise refuse(path, given=f"nothing in column {name} of row {row}", expected="a list of ids", fix=fix)
    values = lists.flatten()
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    if values.null_count:
        at = pc.index(values.is_null(), True).as_py()
        row = first + int(np.searchsorted(np.cumsum(lengths), at, side="right"))
        raise refuse(
            path, given=f"a missing id in column {name} of row {row}", expected="whole numbers", fix=fix
        )
    return Rows(values.to_numpy(zero_copy_only=False), lengths)
