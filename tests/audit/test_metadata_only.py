"""The audit of somebody who may not have the tokens: lengths alone, and no token file is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

import recipe
from recipe.pools import open_pool
from recipe.pools.metadata import copy_metadata
from tests.audit.runs import forge, plain_recipe, read_rows, write_pools

NAMES = ("web", "code", "maths")


@pytest.fixture(scope="module")
def bare(recorded, tmp_path_factory) -> Path:
    """The metadata of the recorded run's pools, as they are handed over."""
    root = tmp_path_factory.mktemp("handed over")
    for name in NAMES:
        copy_metadata(open_pool(recorded.parent / "pools" / name, name), root / "pools" / name)
    return root


def test_every_row_is_computed_again_without_a_token(recorded, bare):
    audit = recipe.audit_run(recorded, metadata_only=True, pools_root=bare, full=True)
    assert audit.ok and not list(bare.rglob("*.bin")) and not list(bare.rglob("*.idx"))
    whole = recipe.audit_run(recorded, full=True)
    assert audit.checked.replayed == whole.checked.replayed and audit.tokens == whole.tokens
    assert audit.drift == whole.drift and audit.largest_drift == whole.largest_drift


def test_contents_are_said_not_to_be_looked_at(recorded, bare):
    audit = recipe.audit_run(recorded, metadata_only=True, pools_root=bare)
    assert all("contents not looked at (metadata only)" in how for how in audit.checked.pools.values())
    assert any("Token files were not opened" in line for line in audit.cannot_prove)


def test_a_forgery_is_found_by_lengths_alone(recorded, bare, changed):
    def change(rows):
        for name, tokens in (("web", 10), ("code", -10)):
            rows[4]["pools"][name]["spent"] += tokens
            rows[4]["pools"][name]["body"] += tokens

    audit = changed(lambda run: forge(run, change), metadata_only=True, pools_root=bare)
    assert "ledger.jsonl row 4: pools.web.spent" in [finding.where for finding in audit.findings]


def test_the_metadata_of_another_pool_are_not_taken_for_it(recorded, tmp_path):
    write_pools(tmp_path / "other", dict.fromkeys(NAMES, 120), seed=5)
    for name in NAMES:
        pool = open_pool(tmp_path / "other" / "pools" / name, name)
        copy_metadata(pool, tmp_path / "bare" / "pools" / name)
    audit = recipe.audit_run(recorded, metadata_only=True, pools_root=tmp_path / "bare")
    assert {finding.check for finding in audit.findings} == {"pools"}
    assert audit.checked.replayed == () and audit.checked.unavailable == len(read_rows(recorded)) - 2


def test_pools_under_their_own_names_are_found_too(recorded, bare):
    audit = recipe.audit_run(recorded, metadata_only=True, pools_root=bare / "pools")
    assert audit.ok and audit.checked.unavailable == 0


def test_imported_pairs_are_not_covered_and_that_is_said(tmp_path):
    """Which marks they store is looked up in their tokens."""
    from recipe.config import recipe_from_plain

    write_pools(tmp_path, {"web": 60})
    (tmp_path / "pairs").mkdir()
    for ending in ("bin", "idx"):
        source = tmp_path / "pools/web" / f"part-00000.{ending}"
        (tmp_path / "pairs" / f"a.{ending}").write_bytes(source.read_bytes())
    stages = {"one": {"tokens": 2000, "context": 32, "batch": {"sequences": 2}, "quotas": {"web": "100%"}}}
    plain = plain_recipe(tmp_path, stages, pools={"web": {"eos": 255}})
    plain["pools"]["web"]["path"] = "pairs"
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
    (tmp_path / "pairs" / "a.bin").unlink()
    audit = recipe.audit_run(tmp_path / "run", metadata_only=True)
    assert audit.ok
    assert "not covered" in audit.checked.pools["web"] and audit.checked.unavailable > 0
    assert len(audit.checked.unchecked) == 1
