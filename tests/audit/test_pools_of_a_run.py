"""The pools under an audit: missing, moved, replaced, damaged, imported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import recipe
from recipe.config import recipe_from_plain
from tests.audit.runs import TWO_STAGES, plain_recipe, read_rows, start, write_pools


@pytest.fixture
def world(tmp_path):
    """A run in a folder with its pools, which a test may damage."""
    write_pools(tmp_path, {"web": 60, "code": 50, "maths": 30})
    with start(tmp_path) as run:
        run.checkpoint(9)
        run.checkpoint(run.num_steps)
    assert recipe.audit_run(tmp_path / "run").ok
    return tmp_path


def found(root: Path, **options):
    audit = recipe.audit_run(root / "run", **options)
    return audit, [f"{finding.check}: {finding.where}" for finding in audit.findings]


def test_a_missing_pool_is_named_and_rows_that_draw_it_are_said_to_be_not_computed(world):
    shutil.rmtree(world / "pools/maths")
    audit, where = found(world)
    assert where and all(line.startswith("pools: pools.maths") for line in where)
    assert audit.checked.unavailable > 0 and audit.checked.replayable == 0
    assert audit.checked.pools["maths"] == "not there, nothing compared"


def test_a_place_that_cannot_be_read_is_a_finding_that_names_it(world):
    too_long = world / ("x" * 300)
    for options in ({}, {"metadata_only": True}):
        audit, where = found(world, pools_root=too_long, **options)
        assert [line.split(":")[1].strip() for line in where] == ["pools.web", "pools.code", "pools.maths"]
        assert all("too long" in finding.observed for finding in audit.findings)


def test_pools_that_were_moved_are_found_below_another_root(world):
    shutil.move(world / "pools", world / "elsewhere" / "pools")
    audit = found(world)[0]
    assert not audit.ok and all("--pools-root DIR" in finding.expected for finding in audit.findings)
    assert found(world, pools_root=world / "elsewhere")[0].ok


def test_a_moved_pool_is_found_where_the_finding_says_a_link_to_it_may_be(world):
    shutil.move(world / "pools/web", world / "moved")
    [finding] = found(world)[0].findings
    assert finding.expected.endswith("is the pool or a link to it") and "DIR/web" in finding.expected
    root = world / "links"
    root.mkdir()
    (root / "web").symlink_to(world / "moved")
    for name in ("code", "maths"):
        (root / name).symlink_to(world / "pools" / name)
    assert found(world, pools_root=root)[0].ok


def test_another_pool_in_its_place_is_named_with_both_fingerprints(world):
    shutil.rmtree(world / "pools/code")
    write_pools(world, {"code": 50}, seed=9)
    audit, where = found(world)
    assert where == [f"pools: pools.code: fingerprint of {world / 'pools/code'}"]
    assert audit.findings[0].expected != audit.findings[0].observed


@pytest.mark.parametrize("file", ["part-00000.bin", "offsets.npy", "documents.parquet", "card.json"])
def test_a_damaged_byte_of_a_pool_is_found_and_its_file_named(world, file):
    path = world / "pools/web" / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert any(line.startswith("pools: pools.web") and file in line for line in found(world)[1])


def test_a_missing_part_is_named(world):
    (world / "pools/web/part-00000.bin").unlink()
    assert any("part-00000.bin" in line for line in found(world)[1])


def test_imported_pools_without_hashes_are_said_to_be_not_covered(tmp_path):
    write_pools(tmp_path, {"web": 40})
    imported = tmp_path / "pools/plain"
    imported.mkdir()
    for ending in ("bin", "idx"):
        shutil.copy(tmp_path / f"pools/web/part-00000.{ending}", imported / f"x.{ending}")
    stages = {"a": {"steps": 6, "context": 64, "batch": {"sequences": 2}, "weights": {"plain": 1}}}
    plain = plain_recipe(tmp_path, stages, pools={"plain": {"eos": 255}})
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        run.checkpoint(6)
    audit, where = found(tmp_path)
    assert where == [] and "not covered" in audit.checked.pools["plain"]


def test_accepted_new_data_is_followed(world):
    """What was served from data that is gone cannot be computed again, and is not said to be wrong."""
    shutil.rmtree(world / "pools/code")
    write_pools(world, {"code": 55}, seed=9)
    with recipe.open_run(world / "run", step=9, accept_data_change=True) as run:
        run.checkpoint(20)
        run.checkpoint(run.num_steps)
    audit, where = found(world)
    assert where == []
    assert audit.checked.unavailable > 0 and len(audit.checked.replayed) == audit.checked.replayable > 0
    assert any("could not be computed again" in line for line in audit.checked.lines())


@pytest.mark.parametrize("policy", ["stop", "redistribute"])
def test_E05_exhaustion_is_followed_under_every_policy(tmp_path, policy):
    """stop ends the run early; redistribute lets the pool leave, and both can be computed again."""
    write_pools(tmp_path, {"web": 90, "code": 80, "maths": 12})
    with start(tmp_path, TWO_STAGES, on_exhausted=policy, max_epochs=1) as run:
        steps = [step for step, _ in run.stream().batches()]
        run.checkpoint(len(steps) // 2)
        run.checkpoint(len(steps))
        assert (len(steps) < run.num_steps) == (policy == "stop")
    audit, where = found(tmp_path)
    assert where == []
    snapshots = [row["snapshot"] for row in read_rows(tmp_path / "run") if "snapshot" in row]
    assert snapshots[-1]["ended"] == (policy == "stop")
    assert any(snapshot["left"] == [2] for snapshot in snapshots) == (policy == "redistribute")
    assert audit.checked.replayable == len(audit.checked.replayed)
    shift = [line for line in audit.checked.lines() if "pool maths ran dry" in line]
    assert bool(shift) == (policy == "redistribute")
