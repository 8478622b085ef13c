"""Pools of a store: found as a set, and exported as the same pools here."""

from __future__ import annotations

from pathlib import Path

import fsspec
import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain
from recipe.integrations.exporting import PoolWanted, export_pool
from recipe.integrations.exporting.pools import WRITERS
from recipe.pools import open_pool
from tests.pools.loopback import store, upload


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_pools_of_a_store_are_a_set_and_are_exported_as_those_of_a_disk(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RECIPE_CACHE", str(tmp_path / "cache"))
    documents = [np.arange(k % 30) for k in range(60)]
    with (
        recipe.write_pool(
            tmp_path / "pool", documents, vocab_size=100, eos=99, part_tokens=400,
            tags=[{"lang": "no"}] * 30 + [{}] * 30,
        ) as here,
        store(),
    ):  # fmt: skip
        fsspec.filesystem("s3").mkdir("pools")
        for name in ("no", "en"):
            upload(here.path, f"s3://pools/multilingual/{name}")
        stage = {"tokens": 512, "context": 32, "batch": {"sequences": 2}, "quotas": {"lang_*": "100%"}}
        plain = {"seed": 1, "pools": {"lang_*": {"path": "multilingual/*"}}, "stages": {"main": stage}}
        loaded = recipe_from_plain({**plain, "pools_root": "s3://pools"}, source="test")
        assert [(name, pool.path) for name, pool in loaded.pools.items()] == [
            ("lang_en", "multilingual/en"),
            ("lang_no", "multilingual/no"),
        ]
        with open_pool(loaded.pool_path("lang_no"), "lang_no") as away:
            assert away.fingerprint == here.fingerprint
            for format in WRITERS:
                wanted = PoolWanted(format=format, tokens_per_file=300)
                export_pool(away, tmp_path / "away" / format, wanted)
                export_pool(here, tmp_path / "here" / format, wanted)
                assert contents(tmp_path / "away" / format) == contents(tmp_path / "here" / format)
        words = ["--format", "npy", "--out", str(tmp_path / "out"), "--where", "lang=no"]
        assert main(["export", "s3://pools/multilingual/en", *words]) == 0
        assert "30 documents" in capsys.readouterr().out
        with pytest.raises(recipe.RecipeError, match="s3://pools/nowhere"):
            recipe_from_plain({**plain, "pools": {"x_*": {"path": "s3://pools/nowhere/*"}}}, source="test")
