"""Batch digests: what ranks keep while they train, and whether it is what the run serves."""

from __future__ import annotations

import numpy as np
import pytest

import recipe
from recipe.run.digests import BatchDigests, read_digests
from recipe.run.served import compare_served


@pytest.fixture
def run_path(build, tmp_path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
    return tmp_path / "run"


def train(run_path, steps, *, ranks=3, micro_batch=None, folder=None, change=lambda step, rank, batch: batch):
    """Every rank keeps the digests of some steps, in an order of its own."""
    with recipe.open_run(run_path) as run:
        stream = run.stream()
        for rank in reversed(range(ranks)):
            with BatchDigests(folder or run_path) as digests:
                for step in steps:
                    batch = change(step, rank, dict(stream.batch(step, rank, ranks, micro_batch)))
                    digests.add(step, batch, dp_rank=rank, dp_size=ranks, micro_batch=micro_batch)


@pytest.mark.parametrize(("ranks", "micro_batch"), [(1, None), (3, None), (1, 1), (3, 1)])
def test_what_was_handed_out_is_what_is_served_however_it_was_dealt(run_path, ranks, micro_batch):
    train(run_path, range(6), ranks=ranks, micro_batch=micro_batch)
    served = compare_served(run_path, full=True)
    assert (served.kept, served.compared, served.differing, served.partial) == (6, 6, 0, 0)
    assert "6 of 6 steps" in served.said and "not by the audit's code" in served.said


def test_one_token_that_differs_on_one_rank_is_found(run_path):
    def change(step, rank, batch):
        if (step, rank) == (4, 1):
            batch["input_ids"] = batch["input_ids"].copy()
            batch["input_ids"][0, 0] += 1
        return batch

    train(run_path, range(6), change=change)
    served = compare_served(run_path, full=True)
    assert [finding.where for finding in served.findings] == ["digests, step 4"] and served.differing == 1


def test_rows_of_another_step_are_found(run_path):
    with recipe.open_run(run_path) as run, BatchDigests(run_path) as digests:
        digests.add(3, run.stream().batch(2))
    assert compare_served(run_path, full=True).differing == 1


def test_a_step_that_lacks_a_rank_is_not_compared(run_path):
    train(run_path, range(3))
    lines = (run_path / "digests/rank-00001.jsonl").read_bytes().splitlines(keepends=True)
    (run_path / "digests/rank-00001.jsonl").write_bytes(b"".join(lines[:2]))
    served = compare_served(run_path, full=True)
    assert (served.compared, served.partial) == (2, 1) and "1 steps lack a rank" in served.said


def test_the_last_time_a_step_was_served_counts_also_on_fewer_ranks(run_path):
    def wrong(step, rank, batch):
        return {**batch, "labels": batch["labels"] + 1}

    train(run_path, range(6), change=wrong)
    train(run_path, range(3, 6), ranks=1)
    assert compare_served(run_path, full=True).differing == 3
    train(run_path, range(3))
    assert compare_served(run_path, full=True).differing == 0


def test_what_was_handed_out_before_a_turn_is_not_held_against_it(build, tmp_path):
    from recipe.run.changing.skip import skip_run

    run_path = tmp_path / "run"
    with recipe.start_run(build(), run_path) as run:
        run.checkpoint(3)
        run.checkpoint(run.num_steps)
    train(run_path, range(8), ranks=1)
    skip_run(run_path, (3, 5), reason="a spike")
    assert compare_served(run_path, full=True).compared == 3
    with recipe.open_run(run_path) as run:
        run.checkpoint(7)
    served = compare_served(run_path, full=True)
    assert (served.compared, served.differing, served.apart) == (3, 0, 5)
    assert "before a turn or behind the last checkpoint" in served.said
    train(run_path, range(3, 7), ranks=1)
    served = compare_served(run_path, full=True)
    assert (served.compared, served.differing, served.apart) == (7, 0, 0)


def test_steps_behind_the_last_checkpoint_are_not_on_record(build, tmp_path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(4)
    train(tmp_path / "run", range(6))
    served = compare_served(tmp_path / "run", full=True)
    assert (served.kept, served.compared, served.apart) == (6, 4, 2)


def test_a_rank_that_goes_back_discards_what_it_had_behind(run_path):
    train(run_path, range(6), ranks=1)
    train(run_path, [2], ranks=1)
    assert [handed.step for handed in read_digests(run_path / "digests").steps] == [0, 1, 2]


def test_a_line_that_was_cut_short_counts_for_nothing_and_the_next_one_does(run_path):
    train(run_path, range(2), ranks=1)
    path = run_path / "digests/rank-00000.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    train(run_path, [2], ranks=1)
    kept = read_digests(run_path / "digests")
    assert [handed.step for handed in kept.steps] == [0, 2] and kept.unreadable == 1


def test_digests_may_lie_elsewhere_and_may_be_deleted(run_path, tmp_path):
    train(run_path, range(2), folder=tmp_path / "elsewhere")
    assert not (run_path / "digests").exists()
    assert compare_served(run_path, digests=tmp_path / "elsewhere").compared == 2
    with pytest.raises(recipe.RecipeError, match="no batch digests"):
        compare_served(run_path)
    assert recipe.audit_run(run_path).ok


def test_a_choice_of_steps_says_what_it_meets(run_path, monkeypatch):
    train(run_path, range(10), ranks=1)
    monkeypatch.setattr("recipe.run.served.GROUP", 2)
    monkeypatch.setattr("recipe.run.served.MOST_POSITIONS", 1)
    served = compare_served(run_path, seed=1)
    assert (served.kept, served.compared) == (10, 2) and "is met with probability 20 %" in served.said


def test_a_step_whose_document_was_erased_cannot_be_assembled_and_is_no_finding(build, tmp_path):
    from tests.run.conftest import write

    for seed, name in enumerate("abc"):
        write(tmp_path / "pools" / name, seed=seed, documents=30)
    with recipe.start_run(build(pools_root=str(tmp_path / "pools")), tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
        stream = run.stream()
        with BatchDigests(tmp_path / "run") as digests:
            for step in range(6):
                digests.add(step, stream.batch(step))
        piece = stream.provenance(2, 0)[0]
    pool = recipe.pools.open_pool(tmp_path / "pools" / piece.pool, piece.pool)
    start, stop = pool.offsets[pool.find(piece.document) :][:2].tolist()
    stored = np.fromfile(pool.layout.part_path(0), pool.token_dtype)
    stored[start:stop] = 0
    stored.tofile(pool.layout.part_path(0))
    served = compare_served(tmp_path / "run", full=True)
    assert served.differing == 0 and 1 <= served.impossible < 6 and "erased" in served.said
