"""Blends that broke in Megatron's hands, as runs in Megatron's own builder; its files read by both sides."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.pools import open_pool
from tests.integrations.megatron.loop import built

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports warn of
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

FIRST = {"a": 1000, "b": 2000, "c": 3000}
"""Window k of a pool holds the id FIRST + k, four times."""


def begun(root: Path, windows: int, weights: dict[str, float], steps: int, **more: Any) -> Path:
    for name in weights:
        documents = [[FIRST[name] + k] * 4 for k in range(windows)]
        recipe.write_pool(root / name, documents, vocab_size=4000)
    plain = {
        "seed": 1,
        "pools_root": str(root),
        "pools": {name: {"path": name} for name in weights},
        "stages": {"one": {"context": 4, "batch": {"sequences": 1}, "steps": steps, "weights": weights}},
    }
    with recipe.start_run(recipe_from_plain(plain | more, source="test"), root / "run"):
        return root / "run"


def served(run: Path, first: int, stop: int) -> list[int]:
    """The id of every window, as Megatron's builder and a launch at ``first`` consumed samples serve them."""
    data = built([stop, 0, 0], sequence_length=4, blend=([str(run)], None), split="1,0,0")[0]
    return [int(item["tokens"][0]) for item in data.__getitems__(list(range(first, stop)))]


def of_pool(windows: list[int], name: str) -> list[int]:
    return [window for window in windows if FIRST[name] <= window < FIRST[name] + 1000]


def test_Q02_a_mixture_changed_at_a_checkpoint_loses_and_repeats_nothing(tmp_path):
    """1:1 for 60 windows, then 2:1 for 60, then a third pool: each launch asks for consumed samples only."""
    run = begun(tmp_path, 100, {"a": 1, "b": 1, "c": 0}, 150)
    windows = served(run, 0, 60)
    for step, weights in ((60, "{a: 2, b: 1, c: 0}"), (120, "{a: 1, b: 1, c: 1}")):
        with recipe.open_run(run) as opened:
            opened.checkpoint(step)
            opened.amend([f"stages.one.weights={weights}"], reason="another mixture")
        windows += served(run, step, step + 60 if step == 60 else 150)
    assert len(set(windows)) == 150
    assert [len(of_pool(windows[:120], name)) for name in "abc"] == [70, 50, 0]
    assert [len(of_pool(windows, name)) for name in "abc"] == [80, 60, 10]
    with recipe.open_run(run) as opened:
        assert windows == [int(opened.stream().batch(step)["input_ids"][0, 0]) for step in range(150)]


def test_M03_a_tiny_weight_is_not_served_too_early_and_no_window_too_many_is(tmp_path):
    run = begun(tmp_path, 10, {"a": 0.001, "b": 0.999}, 10, max_epochs=1)
    windows = served(run, 0, 10)
    assert of_pool(windows, "a") == [] and sorted(windows) == [2000 + k for k in range(10)]
    with pytest.raises(RecipeError, match=r"(?s)pools\.b.*needs 47 tokens.*stock of 40"):
        begun(tmp_path / "more", 10, {"a": 0.001, "b": 0.999}, 12, max_epochs=1)


def test_F01_two_pairs_of_megatrons_are_read_as_the_pair_it_merges_them_to(tmp_path):
    """Written, merged and read by Megatron-core itself: three documents, nine tokens."""
    shards = {"one": [[1, 2, 3], [4, 5]], "two": [[6, 7, 8, 9]]}
    (tmp_path / "parts").mkdir()
    merging = IndexedDatasetBuilder(str(tmp_path / "both.bin"), dtype=np.int32)
    for name, documents in shards.items():
        prefix = str(tmp_path / "parts" / name)
        builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.int32)
        for document in documents:
            builder.add_document(np.array(document, np.int32), [len(document)])
        builder.finalize(f"{prefix}.idx")
        merging.add_index(prefix)
    merging.finalize(str(tmp_path / "both.idx"))
    merged = IndexedDataset(str(tmp_path / "both"))
    assert merged.document_indices.tolist() == [0, 1, 2, 3] and merged.sequence_lengths.sum() == 9
    for path in (tmp_path / "both", tmp_path / "parts"):
        pool = open_pool(path, "a")
        assert (pool.num_documents, pool.num_tokens) == (3, 9)
        assert [pool.tokens(k).tolist() for k in range(3)] == [merged[k].tolist() for k in range(3)]
