"""What opening costs, in blocks planned, parts mapped and memory; no clock."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from recipe.mixing.opening import settle_with
from recipe.mixing.plan import make_plan
from recipe.mixing.stream import Stream
from recipe.sequences import blocks as planning
from tests.mixing.build import everything, make, stage, world, write
from tests.pools.sparse import sparse_pool

DOCUMENTS = 500_000


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The places of all blocks planned from here on."""
    seen: list[Any] = []
    measure = planning.measure

    def noted(pool: Any, documents: Any) -> Any:
        seen.append((pool.name, len(documents)))
        return measure(pool, documents)

    monkeypatch.setattr(planning, "measure", noted)
    return seen


def test_Z03_a_resume_plans_one_block_wherever_it_stands(tmp_path: Path, planned: list[Any]):
    write(tmp_path / "a", [4] * 2000)
    stages = [stage(4, {"a": 1}, batch=10, steps=200)]
    made = world(tmp_path, {"a": {"block_units": 64}}, stages)
    for step in (2, 100, 198):
        at = made.stream().snapshot(step)
        planned.clear()
        made.stream([at]).batch(step, 0, 1)
        assert len(planned) <= 2000 // 64 + 2 - step * 10 // 64
        first = made.stream([at])
        planned.clear()
        first.snapshot(step + 1)
        assert len(planned) <= 2


def test_a_stream_opens_nothing_before_the_first_batch_and_then_the_parts_it_reads(tmp_path: Path):
    pool = sparse_pool(tmp_path / "a", 4000, 8, num_parts=40)
    loaded = make(tmp_path, {"a": {"block_units": 64}}, [stage(8, {"a": 1}, batch=4, steps=100)])
    stream = Stream(settle_with(loaded, {"a": pool}), {"a": pool})
    assert not pool.token_files.opened
    stream.batch(0)
    assert len(pool.token_files.opened) <= 4


def test_Z01_memory_does_not_grow_with_the_number_of_documents(tmp_path: Path):
    peaks = []
    for name, documents in (("small", DOCUMENTS // 10), ("large", DOCUMENTS)):
        pool = sparse_pool(tmp_path / name, documents, 4, name="a")
        loaded = make(tmp_path, {"a": {"path": name, "block_units": 1024}}, [stage(8, {"a": 1}, steps=9)])
        settled = settle_with(loaded, {"a": pool})
        tracemalloc.start()
        Stream(settled, {"a": pool}).batch(5)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 40 * DOCUMENTS
    assert peaks[1] < 2 * peaks[0] + 100_000


def test_only_pools_that_are_drawn_are_planned(tmp_path: Path, planned: list[Any]):
    write(tmp_path / "a", [4] * 20)
    write(tmp_path / "z", [4] * 20, first=500)
    everything(world(tmp_path, {"z": {}, "a": {}}, [stage(4, {"a": 1, "z": 0}, steps=9)]).stream())
    assert {name for name, _ in planned} == {"a"}


def test_a_pool_of_many_extents_is_read_whole_once(tmp_path: Path):
    pool = sparse_pool(tmp_path / "a", 1000, 2, extent=64)
    assert pool.extent_units == 64
    loaded = make(tmp_path, {"a": {"block_units": 100}}, [stage(2, {"a": 1}, batch=10, steps=100)])
    stream = Stream(settle_with(loaded, {"a": pool}), {"a": pool})
    served = [p.document for step in range(100) for row in range(10) for p in stream.provenance(step, row)]
    assert sorted(served) == list(range(1000))
    assert stream.snapshot(100).pools[0].cursor.epoch == 1


def test_a_plan_plans_the_blocks_of_stages_with_one_rule_once(tmp_path: Path, planned: list[Any]):
    write(tmp_path / "a", [4] * 20)
    stages = [stage(4, {"a": 1}, steps=3), stage(4, {"a": 1}, batch=2, steps=3), stage(8, {"a": 1}, steps=3)]
    loaded = make(tmp_path, {"a": {"max_epochs": 9}}, stages)
    alone = make_plan(make(tmp_path, {"a": {"max_epochs": 9}}, stages[1:2]))
    assert len(planned) == 2  # its packing, and the other one
    planned.clear()
    plan = make_plan(loaded)
    assert len(planned) == 4
    assert plan.stages["s1"].packing == alone.stages["s0"].packing


def test_the_other_packing_of_a_rule_that_aligns_is_planned_once(tmp_path: Path, planned: list[Any]):
    write(tmp_path / "a", [4] * 20)
    aligned = stage(4, {"a": 1}, steps=3, slicing={"align": "word"})
    make_plan(make(tmp_path, {"a": {}}, [aligned], tokenizer={"builtin": "bytes"}))
    assert len(planned) == 3  # aligned, not aligned, joined
