"""Runs whose pieces are filled in the middle: audited, accepted, amended; forgeries are found."""

from __future__ import annotations

from collections import Counter
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
from tests.audit.runs import consume, forge, plain_recipe, whole_audit, write_pools
from tests.run.traced import held, traced

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


@pytest.mark.parametrize("count", ["body", "labels", "positions"])
def test_a_run_is_audited_whole(tmp_path: Path, count: str):
    write_pools(tmp_path, {"web": 300, "code": 300})
    plain = plain_recipe(tmp_path, STAGES, pools={"web": {}, "code": {"transform": FIM}}, count=count)
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        consume(run, 20, 50, run.num_steps)
    whole_audit(tmp_path / "run")


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
    assert traced(tmp_path / "run") == sorted(held(tmp_path / "run"))


@pytest.mark.parametrize("change", ["pools.code.transform.fim.rate=100%", "~pools.code.transform"])
def test_what_was_served_cannot_be_changed_by_amendment_or_branch(tmp_path: Path, change: str):
    with start(tmp_path) as run:
        consume(run, 20)
        with pytest.raises(RecipeError, match=r"fim[\s\S]*end the stage here[\s\S]*transform: {code: …}"):
            run.amend([change], reason="test")
    with pytest.raises(RecipeError, match=r"fim[\s\S]*end the stage here[\s\S]*transform: {code: …}"):
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
    whole_audit(made)


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
        after = [p for s in range(20, 60) for r in range(4) for p in run.stream().provenance(s, r)]
        assert not any(p.pool == "code" and p.document == gone for p in after)
        consume(run, 60)
    whole_audit(tmp_path / "run")


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
    whole_audit(path)


def test_a_balanced_proxy_is_audited_whole(tmp_path: Path):
    write_pools(tmp_path, {"web": 300, "code": 300})
    pools: dict[str, Any] = {"web": {}, "code": {"transform": FIM}}
    plain = plain_recipe(
        tmp_path, STAGES, pools=pools, deal="balanced", simulate_budget=60_000, max_epochs=99
    )
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        consume(run, 20, run.num_steps)
    whole_audit(tmp_path / "run")


ALL = "{fim: {rate: 100%, prefix: 250, middle: 251, suffix: 252}}"


def fresh_of(run: Run, steps: range) -> Counter[tuple[int, int, int]]:
    """How often each token of the filled pool was served fresh, by epoch."""
    found: Counter[tuple[int, int, int]] = Counter()
    for step in steps:
        epoch = run.stream().snapshot(step).pools[1].cursor.epoch
        for row in range(4):
            for p in run.stream().provenance(step, row):
                if p.pool == "code":
                    found.update((epoch, int(p.document), place) for place in range(p.fresh, p.stop))
    return found


@pytest.mark.parametrize("change", [ALL, "{fim: {rate: 0%, prefix: 250, middle: 251, suffix: 252}}"])
def test_a_stage_that_is_ended_hands_what_is_left_of_a_block_to_another_transform(
    tmp_path: Path, change: str
):
    """What was served stays, what is left of the block in progress is cut anew, and no token comes twice."""
    with start(tmp_path) as run:
        consume(run, 50)
        batches = [run.stream().batch(step)["input_ids"].copy() for step in range(50)]
        consumed = run.stream().curriculum.positions_at(50)
        rest = f"{{like: long, until: 20_000, transform: {{code: {change}}}}}"
        run.amend([f"stages.long.until={consumed}", f"+stages.rest={rest}"], reason="fill in otherwise")
    with recipe.open_run(tmp_path / "run") as run:
        assert run.stream().snapshot(51).pools[1].cursor.cuts, "a block was cut"
        for step in range(50, run.num_steps):
            batch, pool = run.stream().batch(step), run.stream().pools.index("code")
            marked = np.isin(batch["input_ids"][batch["pool"] == pool], [251])
            segments = batch["segment_ids"][batch["pool"] == pool]
            assert marked.sum() == ((segments.max(axis=1) + 1).sum() if change == ALL else 0)
        consume(run, run.num_steps)
        served = fresh_of(run, range(run.num_steps))
        assert set(served.values()) == {1}
        earlier = run.stream().at(49)
        assert all(np.array_equal(earlier.batch(step)["input_ids"], batches[step]) for step in range(32, 50))
    whole_audit(tmp_path / "run")


def test_a_branch_ends_the_stage_and_fills_in_otherwise(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 20)
    ending = f"{{tokens: 8_000, transform: {{code: {ALL}}}}}"
    (made,) = recipe.branch_run(tmp_path / "run", recipe.Wish(name="other", end_stage=ending))
    with recipe.open_run(made) as run:
        consume(run, 30, run.num_steps)
    whole_audit(made)


def test_a_later_stage_s_own_transform_is_amended_before_it_begins(tmp_path: Path):
    with start(tmp_path) as run:
        consume(run, 20)
        run.amend([f"+stages.long.transform={{code: {ALL}}}"], reason="more in the long stage")
    with recipe.open_run(tmp_path / "run") as run:
        consume(run, run.num_steps)
    whole_audit(tmp_path / "run")


def test_a_pool_that_a_branch_renames_keeps_the_transforms_of_its_stages(tmp_path: Path):
    write_pools(tmp_path, {"web": 300, "code": 300})
    fim = {"fim": {"rate": "100%", "prefix": 250, "middle": 251, "suffix": 252}}
    stages = STAGES | {"long": STAGES["long"] | {"transform": {"code": fim}}}
    plain = plain_recipe(tmp_path, stages, pools={"web": {}, "code": {"transform": FIM}})
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        consume(run, 20, 55)
    for step in (20, 55):
        wish = recipe.Wish(name=f"other{step}", renamed=(("code", "source"),))
        (made,) = recipe.branch_run(f"{tmp_path / 'run'}@step:{step}", wish)
        with recipe.open_run(made) as run, recipe.open_run(tmp_path / "run") as trunk:
            assert run.recipe.rule("long", "source") == trunk.recipe.rule("long", "code")
            assert np.array_equal(run.stream().batch(58)["input_ids"], trunk.stream().batch(58)["input_ids"])
            consume(run, run.num_steps)
        whole_audit(made)
