"""Runs whose pieces are filled in the middle: audited, accepted, amended; forgeries are found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.integrations.acceptance import Sample, verify_run
from recipe.run.run import Run
from recipe.run.tracing.trace import trace_document
from tests.audit.runs import forge, plain_recipe, write_pools

FIM = {"fim": {"rate": "50%", "spm": "50%", "prefix": 250, "middle": 251, "suffix": 252}}
STAGES: dict[str, Any] = {
    "short": {
        "tokens": 12_000,
        "context": 64,
        "batch": {"sequences": 4},
        "chunk": 2_000,
        "quotas": {"web": "50%", "code": "50%"},
    },
    "long": {
        "until": 20_000,
        "context": 128,
        "batch": {"sequences": 4},
        "chunk": 2_500,
        "weights": {"web": 2, "code": 1},
    },
}


def start(root: Path, **pool: Any) -> Run:
    """A run of two pools, one of which is filled in the middle."""
    write_pools(root, {"web": 300, "code": 300})
    pools: Mapping[str, dict[str, Any]] = {"web": {}, "code": {"transform": FIM, **pool}}
    return recipe.start_run(
        recipe_from_plain(plain_recipe(root, STAGES, pools=pools), source="test"), root / "run"
    )


def consume(run: Run, *steps: int) -> None:
    """Checkpoints at some steps."""
    for step in steps:
        run.checkpoint(step)


@pytest.mark.parametrize("count", ["body", "labels", "positions"])
def test_a_run_is_audited_whole(tmp_path: Path, count: str):
    write_pools(tmp_path, {"web": 300, "code": 300})
    plain = plain_recipe(tmp_path, STAGES, pools={"web": {}, "code": {"transform": FIM}}, count=count)
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        consume(run, 20, 50, run.num_steps)
    report = audit_run(tmp_path / "run", full=True)
    assert report.ok, report.findings


def test_a_forged_count_of_special_tokens_is_found(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 20, 50)

    def change(rows: list[dict[str, Any]]) -> None:
        row = next(row for row in rows if row["kind"] == "chunk")
        pool = row["pools"]["code"]
        pool["special"] -= 3
        pool["padding"] += 3

    forge(tmp_path / "run", change)
    assert not audit_run(tmp_path / "run", full=True).ok


def test_G2_acceptance_undoes_the_transform(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 20, run.num_steps)
    acceptance = verify_run(tmp_path / "run", sample=Sample(seed=1))
    assert acceptance.ok, acceptance


def test_invariant_11_a_trace_finds_what_rows_hold(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 30)
        stream = run.stream()
        held: dict[Any, set[tuple[int, ...]]] = {}
        for step in range(30):
            for row in range(4):
                for p in stream.provenance(step, row):
                    if p.pool == "code":
                        held.setdefault(p.document, set()).add((step, row, p.column, p.start, p.stop))
    for document in list(held)[:8]:
        found = trace_document(tmp_path / "run", document, pool="code")
        assert {(r.step, r.row, r.columns[0], r.start, r.stop) for r in found} == held[document]


@pytest.mark.parametrize("change", ["pools.code.transform.fim.rate=100%", "~pools.code.transform"])
def test_what_was_served_cannot_be_changed_by_amendment_or_branch(tmp_path: Path, change: str):
    with start(tmp_path) as run:
        consume(run, 20)
        with pytest.raises(RecipeError, match=r"fim[\s\S]*another pool of the same files"):
            run.amend([change], reason="test")
    with pytest.raises(RecipeError, match=r"fim[\s\S]*another pool of the same files"):
        recipe.branch_run(tmp_path / "run", recipe.Wish(name="other", overrides=(change,)))


def test_a_branch_gives_what_is_ahead_to_a_pool_with_another_transform(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 20)
    fim = "{rate: 90%, prefix: 250, middle: 251, suffix: 252}"
    pool = f"{{path: pools/code, block_units: 32, transform: {{fim: {fim}}}}}"
    shares = ("stages.short.quotas.code=0%", "+stages.short.quotas.filled=50%")
    more = ("stages.long.weights.code=0", "+stages.long.weights.filled=1")
    wish = recipe.Wish(name="other", overrides=(f"+pools.filled={pool}", *shares, *more))
    (made,) = recipe.branch_run(tmp_path / "run", wish)
    with recipe.open_run(made) as run:
        consume(run, 30, run.num_steps)
    report = audit_run(made, full=True)
    assert report.ok, report.findings


def test_a_run_resumed_from_its_state_serves_the_same(tmp_path: Path):
    with start(tmp_path) as run:
        unbroken = [run.stream().batch(step)["input_ids"].copy() for step in range(60)]
        state = run.state(33)
    resumed = recipe.stream_from(state, pools_root=tmp_path)
    assert all(np.array_equal(resumed.batch(s)["input_ids"], unbroken[s]) for s in range(33, 60))


def test_withdrawn_documents_are_gone_and_the_rest_is_recut(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 20)
        ahead = [p for s in range(20, 24) for r in range(4) for p in run.stream().provenance(s, r)]
    gone = next(p.document for p in ahead if p.pool == "code")
    recipe.withdraw_run(tmp_path / "run", [gone], pool="code", ticket=recipe.Ticket(reason="asked for"))
    with recipe.open_run(tmp_path / "run") as run:
        held = [p for s in range(20, 60) for r in range(4) for p in run.stream().provenance(s, r)]
        assert not any(p.pool == "code" and p.document == gone for p in held)
        consume(run, 60)
    report = audit_run(tmp_path / "run", full=True)
    assert report.ok, report.findings


@pytest.mark.parametrize("opens", ["next-epoch", "now"])
def test_a_pool_that_has_grown_is_filled_in_on_and_audited_whole(tmp_path: Path, opens: str):
    with start(tmp_path) as run:
        consume(run, 20)
    chance = np.random.default_rng(5)
    more = [chance.integers(0, 200, 90) for _ in range(60)]
    recipe.extend_pool(tmp_path / "pools/code", tmp_path / "pools/more", more).close()
    path, approval = tmp_path / "run", recipe.Approval(reason="more code")
    recipe.amend_run(path, ["pools.code.path=pools/more"], approval=approval, opens=opens)
    with recipe.open_run(path) as run:
        consume(run, 40, run.num_steps)
    report = audit_run(path, full=True)
    assert report.ok, report.findings


def test_a_balanced_proxy_is_audited_whole(tmp_path: Path):
    write_pools(tmp_path, {"web": 300, "code": 300})
    pools: dict[str, Any] = {"web": {}, "code": {"transform": FIM}}
    plain = plain_recipe(
        tmp_path, STAGES, pools=pools, deal="balanced", simulate_budget=60_000, max_epochs=99
    )
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        consume(run, 20, run.num_steps)
    report = audit_run(tmp_path / "run", full=True)
    assert report.ok, report.findings
