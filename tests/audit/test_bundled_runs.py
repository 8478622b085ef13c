"""Runs over repositories: groups, markers, needs, end marks left out; audited, accepted, traced, resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.config import recipe_from_plain
from recipe.integrations.acceptance import Sample, verify_run
from recipe.pools import Section
from recipe.run.run import Run
from tests.audit.runs import consume, forge, plain_recipe, whole_audit, write_pools
from tests.run.traced import held, traced

PACKING = {"attention": "group", "eos_keep": "50%", "shuffle_fit": True}
STAGES: dict[str, Any] = {
    "short": {
        "tokens": 12_000,
        "context": 64,
        "batch": {"sequences": 4},
        "chunk": 2_000,
        "slicing": {"window": 40, "stride": 32},
        "packing": PACKING,
        "quotas": {"web": "50%", "code": "50%"},
    },
    "long": {
        "until": 20_000,
        "context": 128,
        "batch": {"sequences": 4},
        "chunk": 2_500,
        "slicing": {"window": 90},
        "packing": {"attention": "group", "positions": "continue"},
        "weights": {"web": 2, "code": 1},
    },
}


def write_code(path: Path) -> None:
    """Repositories of one to four files with their names in front; every other file needs a section."""
    chance = np.random.default_rng(3)
    files, groups, leads, sections = [], [], [], []
    for repository in range(80):
        for file in range(int(chance.integers(1, 5))):
            size = int(chance.integers(12, 60))
            needed = (f"{repository}.0",) if file % 2 else ()
            files.append(chance.integers(0, 200, size))
            groups.append(repository)
            leads.append([250, 200 + file])
            sections.append([Section(0), Section(8, f"{repository}.{file}", needed)])
    recipe.write_pool(
        path, files, vocab_size=256, eos=255, groups=groups, leads=leads, sections=sections, part_tokens=4000
    )


def start(root: Path, **top: Any) -> Run:
    write_pools(root, {"web": 300})
    write_code(root / "pools/code")
    plain = plain_recipe(root, STAGES, pools={"web": {}, "code": {}}, **top)
    return recipe.start_run(recipe_from_plain(plain, source="test"), root / "run")


@pytest.mark.parametrize("count", ["body", "labels", "positions"])
def test_a_run_is_audited_whole(tmp_path: Path, count: str):
    with start(tmp_path, count=count) as run:
        consume(run, 20, 50, run.num_steps)
        pools = run.stream().snapshot(run.num_steps).pools
    whole_audit(tmp_path / "run")
    assert all(pool.separators > 0 for pool in pools)


def test_context_markers_and_separators_are_there_and_counted(tmp_path: Path):
    with start(tmp_path) as run:
        stream = run.stream()
        pieces = [p for s in range(40) for r in range(4) for p in stream.provenance(s, r) if p.pool == "code"]
        ids = np.concatenate([stream.batch(step)["input_ids"].reshape(-1) for step in range(40)])
        assert any(piece.fresh == piece.stop for piece in pieces)
        assert (ids == 250).sum() > 20
        code = stream.snapshot(40).pools[1]
        assert code.overlap >= sum(p.stop - p.start for p in pieces if p.fresh == p.stop)


def test_the_plan_counts_separators_that_are_left_out(tmp_path: Path):
    with start(tmp_path) as run:
        plan = recipe.make_plan(run.recipe)
    epoch = plan.stages["short"].pools["web"].epoch
    assert 0.3 < epoch["separators"] / (epoch["special"] + epoch["separators"]) < 0.7  # some blocks of ten
    assert "separators" not in plan.stages["long"].pools["web"].epoch


def test_a_forged_count_of_separators_is_found(tmp_path: Path):
    with start(tmp_path) as run:
        run.checkpoint(20)

    def change(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row["kind"] == "chunk")["pools"]["code"]["separators"] += 1

    forge(tmp_path / "run", change)
    assert not audit_run(tmp_path / "run", full=True).ok


def test_G2_acceptance_works_every_row_out_again(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 20, run.num_steps)
    acceptance = verify_run(tmp_path / "run", sample=Sample(seed=1))
    assert acceptance.ok, acceptance


def test_invariant_11_a_trace_finds_what_rows_hold(tmp_path: Path):
    with start(tmp_path) as run:
        run.checkpoint(30)
    assert traced(tmp_path / "run") == sorted(held(tmp_path / "run"))


@pytest.mark.parametrize("at", [1, 33, 47, 48])
def test_invariant_5_a_run_resumed_from_its_state_serves_the_same(tmp_path: Path, at: int):
    """The last two are the seam of the stages, where what is left of a block is cut anew."""
    with start(tmp_path) as run:
        unbroken = [{k: v.copy() for k, v in run.stream().batch(s).items()} for s in range(60)]
        state = run.state(at)
    resumed = recipe.stream_from(state, pools_root=tmp_path)
    for step in range(at, 60):
        batch = resumed.batch(step)
        assert all(np.array_equal(batch[key], unbroken[step][key]) for key in unbroken[step])


def test_withdrawn_documents_are_no_context_either(tmp_path: Path):
    with start(tmp_path) as run:
        run.checkpoint(20)
        ahead = [p for s in range(20, 40) for r in range(4) for p in run.stream().provenance(s, r)]
    gone = next(p.document for p in ahead if p.pool == "code" and p.fresh == p.stop)
    recipe.withdraw_run(tmp_path / "run", [gone], pool="code", ticket=recipe.Ticket(reason="asked for"))
    with recipe.open_run(tmp_path / "run") as run:
        after = [p for s in range(20, 60) for r in range(4) for p in run.stream().provenance(s, r)]
        assert not any(p.pool == "code" and p.document == gone for p in after)
        run.checkpoint(60)
    whole_audit(tmp_path / "run")
