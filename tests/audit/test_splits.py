"""Held-out documents against what is trained on: an overlap is named whole, a split by document has none."""

from __future__ import annotations

import numpy as np
import pytest

import recipe
from recipe.audit.leakage import find_leakage
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.pools.dedup import dedup_pools


def documents(first: int, last: int) -> list[np.ndarray]:
    """Documents of twelve tokens, no two of which share eight in a row."""
    return [np.random.default_rng(number).integers(0, 60_000, 12) for number in range(first, last)]


def write(folder, texts):
    return recipe.write_pool(folder, texts, vocab_size=60_001, eos=60_000)


def test_V01_validation_that_reaches_into_training_is_named_document_by_document(tmp_path):
    """The first 50 of 100 documents are held out, training starts at document 10: 40 are in both."""
    held = {"val": write(tmp_path / "val", documents(0, 50))}
    found = find_leakage({"train": write(tmp_path / "train", documents(10, 100))}, held)
    assert not found.ok and found.held["val"].leaked_documents == found.num_leaks == 40
    assert sorted(leak.held.document for leak in found.leaks) == list(range(10, 50))
    assert all(leak.whole for leak in found.leaks)
    assert find_leakage({"rest": write(tmp_path / "rest", documents(50, 100))}, held).ok


def test_V01_a_run_is_not_started_on_documents_that_it_is_measured_by(tmp_path):
    """The same two pools as recipe: 40 of the 50 held-out documents are trained on."""
    write(tmp_path / "val", documents(0, 50))
    write(tmp_path / "train", documents(10, 100))
    stage = {"steps": 1, "context": 128, "batch": {"sequences": 1}}
    plain = {
        "seed": 1,
        "pools": {"train": {"path": str(tmp_path / "train")}},
        "evaluation": {"pools": {"val": str(tmp_path / "val")}, "stride": 48},
        "stages": {"one": stage | {"quotas": {"train": "100%"}}},
    }
    with pytest.raises(RecipeError, match="40 of 50 documents that pool 'train' has too"):
        recipe.start_run(recipe_from_plain(plain, source="here"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    dedup_pools([tmp_path / "val", tmp_path / "train"], tmp_path / "unique")
    plain["pools"]["train"]["path"] = str(tmp_path / "unique" / "train")
    recipe.start_run(recipe_from_plain(plain, source="here"), tmp_path / "run").close()


def test_V02_a_split_before_oversampling_keeps_every_copy_out(tmp_path):
    """A tenth of 10,000 and of 1,000 documents is held out first; then both pools are drawn alike."""
    big, small = documents(0, 10_000), documents(10_000, 11_000)
    held = {"big": write(tmp_path / "v1", big[::10]), "small": write(tmp_path / "v2", small[::10])}
    assert sum(pool.num_documents for pool in held.values()) == 1_100
    trained = {
        "a": write(tmp_path / "a", [text for k, text in enumerate(big) if k % 10]),
        "b": write(tmp_path / "b", [text for k, text in enumerate(small) if k % 10]),
    }
    assert find_leakage(trained, held).ok
    stage = {"steps": 60, "context": 128, "batch": {"sequences": 32}, "weights": {"a": 1, "b": 1}}
    plain = {
        "seed": 1,
        "pools": {name: {"path": str(pool.path)} for name, pool in trained.items()},
        "max_epochs": 99,
        "evaluation": {"pools": {name: str(pool.path) for name, pool in held.items()}, "stride": 48},
        "stages": {"one": stage},
    }
    kept = {text.tobytes() for pool in held.values() for text in whole_texts(pool)}
    with recipe.start_run(recipe_from_plain(plain, source="here"), tmp_path / "run") as run:
        seen = [
            at for step, _ in run.stream().batches() for row in range(32) for at in pieces(run, step, row)
        ]
    counts = np.bincount([document for pool, document in seen if pool == "b"])
    assert counts.min() >= 8, "b is read again and again"
    assert not {whole_texts(trained[pool], document)[0].tobytes() for pool, document in seen} & kept


def pieces(run, step: int, row: int) -> list[tuple[str, int]]:
    return [(at.pool, int(at.document)) for at in run.stream().provenance(step, row)]


def whole_texts(pool, *numbers: int) -> list[np.ndarray]:
    return [
        np.asarray(pool.tokens(number)).astype(np.int64) for number in numbers or range(pool.num_documents)
    ]
