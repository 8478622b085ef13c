"""Pairs of every type that Megatron's own builder writes, as pools."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports warn of
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder

DOCUMENTS = [[1, 2, 3], [4], [5, 6]]


@pytest.mark.parametrize("type_", list(DType), ids=lambda type_: type_.name)
def test_every_integer_type_is_read_and_every_other_is_refused(tmp_path, type_):
    dtype = DType.dtype_from_code(type_.value)
    builder = IndexedDatasetBuilder(str(tmp_path / "p.bin"), dtype=dtype)
    for document in DOCUMENTS:
        builder.add_document(np.array(document), [len(document)])
    builder.finalize(str(tmp_path / "p.idx"))
    if np.dtype(dtype).kind == "f":
        with pytest.raises(RecipeError, match="an integer type"):
            open_pool(tmp_path / "p", "p")
        return
    pool = open_pool(tmp_path / "p", "p")
    assert pool.token_dtype == dtype
    assert [pool.tokens(number).tolist() for number in range(pool.num_documents)] == DOCUMENTS
