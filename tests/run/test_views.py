"""Runs over views: started, resumed, amended, branched, grown, withdrawn from, traced and audited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.audit import Audit
from recipe.config import Recipe, recipe_from_plain
from recipe.errors import RecipeError
from recipe.integrations.acceptance.package import verify_package
from recipe.pools import extend_pool
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.canonical import Plain
from recipe.run.changing import amending
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.comparing.adopt import adopt_run
from recipe.run.comparing.decisions import Word
from recipe.run.handover import hand_over_run
from recipe.run.manifest import sealed, unseal
from recipe.run.state import stream_from
from recipe.run.tracing.trace import trace_document
from tests.audit.runs import forge, read_rows
from tests.run.conftest import served

WHY = Approval(reason="views")
STAGE = {"context": 32, "batch": {"sequences": 3}, "chunk": 200}
ONE = {**STAGE, "steps": 20, "quotas": {"web": "60%", "other": "40%", "long": "0%"}}
TWO = {**STAGE, "context": 64, "steps": 20, "quotas": {"web": "40%", "other": "30%", "long": "30%"}}


def texts(number: int, seed: int) -> list[np.ndarray]:
    chance = np.random.default_rng(seed)
    return [chance.integers(1, 500, chance.integers(1, 60)) for _ in range(number)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders; the first one again with documents behind."""
    root = tmp_path_factory.mktemp("folders")
    tags = [{"quality": k % 10} for k in range(90)]
    ids = [f"w{k}" for k in range(90)]
    recipe.write_pool(root / "web", texts(90, 1), vocab_size=500, eos=0, tags=tags, ids=ids)
    recipe.write_pool(root / "other", texts(60, 2), vocab_size=500, eos=0)
    more = [f"n{k}" for k in range(30)]
    extend_pool(root / "web", root / "grown", texts(30, 5), ids=more, tags=[{"quality": 9}] * 30)
    return root


@pytest.fixture
def plain(folder: Path) -> Callable[..., Recipe]:
    def build(**changes: Any) -> Recipe:
        pools = {"web": {"path": "web"}, "other": {"path": "other"}, "long": {"of": "web", "min_tokens": 33}}
        base: Plain = {"seed": 1, "pools_root": str(folder), "max_epochs": 50, "pools": pools}
        return recipe_from_plain({**base, "stages": {"one": ONE, "two": TWO}, **changes}, source="test")

    return build


@pytest.fixture
def run(plain: Callable[..., Recipe], tmp_path: Path) -> Path:
    with recipe.start_run(plain(), tmp_path / "run") as begun:
        for step in (6, 14, 26, 30):
            begun.checkpoint(step)
    return tmp_path / "run"


def audited(path: Path) -> Audit:
    return recipe.audit_run(path, full=True, workers=1)


def test_invariant_5_a_run_over_views_resumes_at_every_step_from_its_state(run: Path):
    with recipe.open_run(run) as begun:
        whole = served(begun.stream(), 0)
        for step in range(begun.step + 1):
            assert served(stream_from(begun.state(step)), step) == whole[step:]
    for step in (6, 14, 26):
        with recipe.open_run(run, step=step) as again:
            assert served(again.stream(), step) == whole[step:]
    assert audited(run).ok


def test_a_view_is_held_by_its_folder_and_a_fingerprint_of_its_own(run: Path, folder: Path):
    held = read_rows(run)[0]["pools"]
    assert held["long"]["path"] == held["web"]["path"] == str(folder / "web")
    assert held["long"]["fingerprint"] != held["web"]["fingerprint"]
    assert held["long"]["documents"] < held["web"]["documents"] == 90


def test_what_a_view_takes_over_is_dropped_elsewhere_and_audited(run: Path):
    with recipe.open_run(run) as begun:
        states = dict(zip(begun.recipe.pools, begun.stream().snapshot(30).pools, strict=True))
    assert set(states["web"].dropped) == {"elsewhere"} and not states["long"].dropped


def test_invariant_11_trace_and_provenance_are_inverse_over_views(run: Path):
    with recipe.open_run(run) as begun:
        read: dict[Any, set[tuple[str, int, int]]] = {}
        for step in range(30):
            for row in range(3):
                for piece in begun.stream().provenance(step, row):
                    read.setdefault(piece.document, set()).add((piece.pool, step, row))
    for number in range(0, 90, 3):
        found = {(one.pool, one.step, one.row) for one in trace_document(run, f"w{number}")}
        assert found == read.get(f"w{number}", set())


def test_a_view_is_added_at_a_checkpoint_in_a_stage_of_its_own(run: Path):
    with recipe.open_run(run) as begun:
        before = served(begun.stream(), 0)
    amend_run(
        run,
        [
            "+pools.good={of: web, where: {quality: {min: 8}}, max_tokens: 32}",
            "stages.two.steps=10",
            "+stages.three={like: two, steps: 20, quotas: {web: 20%, other: 30%, long: 30%, good: 20%}}",
        ],
        approval=WHY,
    )
    with recipe.open_run(run) as begun:
        begun.checkpoint(50)
        assert served(begun.stream(), 0, 30) == before[:30]
        assert begun.recipe.rule("three", "web").behind == ("long", "good")
        read = {piece.pool for step in range(30, 50) for piece in begun.stream().provenance(step, 0)}
        assert "good" in read
    assert audited(run).ok


def test_a_view_that_would_take_documents_inside_a_stage_is_refused_with_a_way_out(run: Path):
    quotas = "stages.two.quotas={web: 20%, other: 30%, long: 30%, good: 20%}"
    with pytest.raises(RecipeError, match="end the stage here") as caught:
        amend_run(run, ["+pools.good={of: web, max_tokens: 20}", quotas], approval=WHY)
    [problem] = caught.value.problems
    assert problem.given == "leaves its documents to long, good"
    assert problem.expected == "leaves its documents to long, as so far"


def test_a_view_that_shares_no_document_joins_inside_a_stage(plain: Callable[..., Recipe], tmp_path: Path):
    pools = {"web": {"path": "web", "max_tokens": 32}, "other": {"path": "other"}}
    stage = {**STAGE, "steps": 20, "quotas": {"web": "60%", "other": "40%"}}
    with recipe.start_run(plain(pools=pools, stages={"one": stage}), tmp_path / "run") as begun:
        begun.checkpoint(7)
    quotas = "stages.one.quotas={web: 40%, other: 40%, long: 20%}"
    amend_run(tmp_path / "run", ["+pools.long={of: web, min_tokens: 33}", quotas], approval=WHY)
    with recipe.open_run(tmp_path / "run") as begun:
        begun.checkpoint(20)
        assert not any(pool.dropped for pool in begun.stream().snapshot(20).pools)
    assert audited(tmp_path / "run").ok


def test_what_a_view_holds_cannot_be_amended(run: Path):
    with pytest.raises(RecipeError, match="add a view under another name") as caught:
        amend_run(run, ["pools.long.min_tokens=40"], approval=WHY)
    assert [problem.where for problem in caught.value.problems] == ["pools.long.min_tokens"]


@pytest.mark.parametrize("opens", ["now", "next-epoch"])
def test_views_grow_with_their_folder(run: Path, opens: Any):
    changes = ["pools.web.path=grown", "stages.two.steps=10", "+stages.three={like: two, steps: 60}"]
    amendment = amend_run(run, changes, approval=WHY, opens=opens)
    assert {f"pools.{name}: grown, {opens}" for name in ("web", "long")} <= set(amendment.changes)
    with recipe.open_run(run) as begun:
        begun.checkpoint(60)
        begun.checkpoint(90)
        whole = served(begun.stream(), 60)
    with recipe.open_run(run, step=60) as begun:
        assert served(begun.stream(), 60) == whole
    assert audited(run).ok
    assert any(trace_document(run, f"n{k}") for k in range(30))


def test_a_withdrawal_concerns_every_pool_of_the_folder_and_views_added_later(run: Path):
    with recipe.open_run(run) as begun:
        held = begun.stream().ground.pools[2]
        long = [f"w{k}" for k in held.members.tolist()[:3]]
    withdrawal = withdraw_run(run, [*long, "w0"], ticket=Ticket(reason="take-down"))
    assert sum(withdrawal.documents.values()) == len({*long, "w0"})
    changes = [
        "+pools.all={of: web, where: {quality: {min: 0}}}",
        "stages.two.steps=10",
        "+stages.three={like: two, steps: 90, quotas: {web: 0%, other: 10%, long: 10%, all: 80%}}",
    ]
    amend_run(run, changes, approval=WHY)
    with recipe.open_run(run) as begun:
        begun.checkpoint(120)
        ends = [max((one.step for one in trace_document(run, one)), default=0) for one in (*long, "w0")]
        assert max(ends) < 30
    assert audited(run).ok


def test_a_branch_may_rename_the_folders_pool_and_its_views(run: Path):
    with recipe.open_run(run) as begun:
        whole = served(begun.stream(), 30)
    [path] = branch_run(run, Wish(name="renamed", renamed=(("web", "net"), ("long", "tall"))))
    with recipe.open_run(path) as begun:
        assert begun.recipe.pools["tall"].of == "net"
        assert served(begun.stream(), 30) == whole
        begun.checkpoint(40)
    assert audited(path).ok


def test_pools_root_finds_views_where_their_folder_is(run: Path, folder: Path, tmp_path: Path):
    (tmp_path / "moved").symlink_to(folder)
    with recipe.open_run(run, pools_root=tmp_path / "moved") as begun:
        assert begun.stream().ground.pools[2].path == tmp_path / "moved" / "web"


def test_an_id_that_a_views_filter_leaves_out_is_told_as_such(run: Path):
    with recipe.open_run(run) as begun:
        held = set(begun.stream().ground.pools[2].members.tolist())
    out = next(k for k in range(90) if k not in held)
    with pytest.raises(RecipeError, match="whose filter leaves it out"):
        trace_document(run, f"w{out}", pool="long")


def test_invariant_10_tokens_moved_from_elsewhere_to_another_reason_are_found(run: Path):
    def change(rows: list[Plain]) -> None:
        for row in rows:
            for pool in (row.get("snapshot") or {"pools": []})["pools"]:
                if "elsewhere" in pool.get("dropped", {}):
                    pool["dropped"] = {"tail": pool["dropped"]["elsewhere"]}

    forge(run, change)
    found = audited(run)
    assert not found.ok
    assert any("dropped" in finding.where for finding in found.findings)


def test_invariant_10_a_filter_changed_in_the_stored_recipe_is_found(run: Path):
    stored = run / "recipes" / "0001.yaml"
    value = unseal(stored, stored.read_bytes())
    del value["hash"]
    value["recipe"]["pools"]["long"]["min_tokens"] = 34
    stored.write_bytes(sealed(value))
    assert not audited(run).ok


def test_a_forged_recipe_that_takes_a_documents_owner_away_in_a_stage_is_found(
    run: Path, monkeypatch: pytest.MonkeyPatch
):
    """An amendment as the program refuses it, written by hand."""
    quotas = "stages.two.quotas={web: 20%, other: 30%, long: 30%, good: 20%}"
    monkeypatch.setattr(amending, "behind_problems", lambda *_: [])
    amend_run(run, ["+pools.good={of: web, max_tokens: 20}", quotas], approval=WHY)
    found = audited(run)
    assert [finding.check for finding in found.findings if "pools before web" in finding.where] == ["behind"]


def test_a_hand_over_computes_the_rows_of_views_from_metadata(run: Path, tmp_path: Path):
    quotas = "stages.two.quotas={web: 40%, other: 30%, long: 30%, good: 0%}"
    amend_run(run, ["+pools.good={of: web, where: {quality: {min: 8}}}", quotas], approval=WHY)
    package = tmp_path / "package"
    hand_over_run(run, package)
    pools = package / "2-data" / "pools"
    assert not (pools / "long").exists() and not (pools / "good").exists()
    assert (pools / "web" / "documents.parquet").is_file()
    assert verify_package(package).ok


def test_a_branch_adds_a_view_and_its_parent_may_adopt_it(run: Path):
    end = {"steps": 20, "quotas": {"web": "20%", "other": "30%", "long": "30%", "good": "20%"}}
    overrides = ("+pools.good={of: web, where: {quality: {min: 8}}, max_tokens: 32}",)
    [path] = branch_run(run, Wish(name="better", overrides=overrides, end_stage=end))
    with recipe.open_run(path) as begun:
        begun.checkpoint(36)
        begun.checkpoint(begun.num_steps)
        states = dict(zip(begun.recipe.pools, begun.stream().snapshot(begun.num_steps).pools, strict=True))
    assert states["good"].body > 0 and states["web"].dropped["elsewhere"] > 0
    assert audited(path).ok
    adopt_run(path, "amend", word=Word(by="Ada", reason="better"))
    with recipe.open_run(run) as begun:
        begun.checkpoint(begun.num_steps)
        assert begun.recipe.pools["good"].of == "web"
    assert audited(run).ok
