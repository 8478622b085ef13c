"""Ids that no model has, in files that nobody checked, stop a run at the first row that holds one."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipe.errors import RecipeError
from recipe.mixing.opening import open_pools, settle_with
from recipe.mixing.stream import Stream
from tests.mixing.build import make, stage
from tests.pools.megatron_files import write_pair


def stream(root: Path, code: int, wrong: int) -> Stream:
    """Twenty documents of ten ids, the seventeenth with one that is wrong at its fourth place."""
    documents = [[[number * 10 + k for k in range(10)]] for number in range(20)]
    documents[16][0][3] = wrong
    write_pair(root / "web" / "text", documents, code)
    loaded = make(root, {"web": "web"}, [stage(16, {"web": 1}, batch=2, steps=6)])
    loaded = loaded.model_copy(update={"pools_root": str(root)})
    opened = open_pools(loaded)
    return Stream(settle_with(loaded, opened), opened)


@pytest.mark.parametrize(("code", "wrong"), [(4, -7), (5, -1), (5, 1 << 40), (3, -100)])
def test_N07_an_id_no_model_has_is_refused_where_it_stands(tmp_path: Path, code: int, wrong: int):
    """int16, int32 and int64 as Megatron writes them; nothing says how many ids the model has."""
    found = stream(tmp_path, code, wrong)
    where = rf"part text\.bin: document 16, token 3 \(position 163 of the part\)\n +given +id {wrong}\n"
    with pytest.raises(RecipeError, match=where):
        list(found.batches())


def test_N07_every_id_that_a_type_holds_and_a_model_may_have_is_served(tmp_path: Path):
    found = stream(tmp_path, 4, (1 << 31) - 1)
    assert max(int(batch["input_ids"].max()) for _, batch in found.batches()) == (1 << 31) - 1


def test_N07_an_id_that_is_only_a_label_is_refused_too(tmp_path: Path):
    """Windows of three of a document of four, whose last piece is dropped: its last id is never an input."""
    documents = [[[1, 2, 3, -5]]] * 4
    write_pair(tmp_path / "web" / "text", documents, 4)
    drawn = stage(3, {"web": 1}, batch=1, steps=2, slicing={"tail": "drop"})
    loaded = make(tmp_path, {"web": "web"}, [drawn]).model_copy(update={"pools_root": str(tmp_path)})
    opened = open_pools(loaded)
    with pytest.raises(RecipeError, match=r"token 3 \(position \d+ of the part\)\n +given +id -5\n"):
        list(Stream(settle_with(loaded, opened), opened).batches())
