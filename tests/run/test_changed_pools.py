"""Pools that change under a run: other token files, erased documents; what is read stays what it was."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.config import recipe_from_plain
from recipe.config.evaluation import ScoringRule
from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.blocks import block_digest, file_hash, root_hash
from recipe.pools.card import CARD_NAME, FileRecord, card_text
from recipe.pools.erasing import erase_documents
from recipe.pools.metadata import copy_metadata
from recipe.pools.reparting import repart_pool
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.evaluation import Scoring, count_rows, scored_rows
from tests.audit.runs import start, write_pools
from tests.run.conftest import served

SIZES = {"web": 60, "code": 40, "maths": 30}
GONE = [3, 4, 17]


@pytest.fixture
def begun(tmp_path) -> Path:
    """A run half way, over pools of several parts."""
    write_pools(tmp_path, SIZES, part_tokens=900)
    with start(tmp_path) as run:
        run.checkpoint(20)
    return tmp_path / "run"


def put(new: Path, path: Path) -> None:
    """Another folder in the place of a pool."""
    shutil.rmtree(path)
    new.rename(path)


def rest(run: Path) -> list[bytes]:
    with recipe.open_run(run) as handle:
        return served(handle.stream(), handle.step)


def trace(run: Path, until: int = 20) -> list[list[int]]:
    """Steps that read each of some documents."""
    found = [recipe.trace_document(run, number, pool="web") for number in range(12)]
    return [[one.step for one in steps if one.step < until] for steps in found]


def finished(run: Path) -> recipe.AuditReport:
    with recipe.open_run(run) as handle:
        handle.checkpoint(40)
    return audit_run(run, full=True)


@pytest.mark.parametrize("part_tokens", [1_000_000, 60])
def test_a_run_goes_on_over_a_pool_with_other_parts(begun, part_tokens):
    before, traced = rest(begun), trace(begun)
    for name in SIZES:
        path = begun.parent / "pools" / name
        new = repart_pool(path, begun.parent / "new", part_tokens=part_tokens)
        assert new.num_parts == 1 or new.num_parts > 20
        put(begun.parent / "new", path)
    assert rest(begun) == before
    audit = finished(begun)
    assert audit.ok, audit.findings
    assert any(traced) and trace(begun) == traced


def test_a_forged_token_in_a_reparted_pool_is_found_by_an_audit(begun):
    path = begun.parent / "pools/web"
    pool = repart_pool(path, begun.parent / "new", part_tokens=1_000_000)
    tokens = pool.layout.part_path(0)
    data = bytearray(tokens.read_bytes())
    data[500] ^= 1
    tokens.write_bytes(data)
    digest = block_digest(bytes(data))
    np.save(pool.path / "hashes.npy", np.frombuffer(digest, np.uint8).reshape(1, -1))
    files = {
        name: FileRecord(bytes=(pool.path / name).stat().st_size, hash=file_hash(pool.path / name))
        for name in pool.card.files
    }
    parts = (replace(pool.card.parts[0], hash=root_hash([digest])),)
    (pool.path / CARD_NAME).write_bytes(card_text(replace(pool.card, files=files, parts=parts)))
    put(begun.parent / "new", path)
    audit = audit_run(begun, full=True)
    assert any("as first written" in finding.where for finding in audit.findings)


def erased(root: Path, numbers: list[int] = GONE) -> Path:
    erase_documents(root / "pools/web", np.array(numbers), root / "new", reason="request 12")
    return root / "new"


def test_a_run_that_withdrew_documents_goes_on_over_the_pool_without_their_text(begun):
    withdraw_run(begun, GONE, pool="web", ticket=Ticket(reason="request 12"))
    before = rest(begun)
    put(erased(begun.parent), begun.parent / "pools/web")
    assert rest(begun) == before
    audit = finished(begun)
    assert audit.ok, audit.findings
    assert "erased: 3 documents" in audit.checked.pools["web"]


def test_a_run_that_would_serve_erased_documents_is_refused_and_told_the_way_on(begun):
    put(erased(begun.parent), begun.parent / "pools/web")
    with pytest.raises(RecipeError, match=r"withdraw .*--erased") as refused:
        recipe.open_run(begun)
    assert refused.value.problems[0].where == "pools.web"
    with pytest.raises(RecipeError, match="erased"):
        branch_run(begun, Wish(name="other"))
    withdrawal = withdraw_run(begun, erased=True, ticket=Ticket(reason="request 12"))
    assert withdrawal.documents == {"web": 3}
    audit = finished(begun)
    assert audit.ok, audit.findings


def test_a_run_over_the_whole_pool_is_told_that_it_lost_nothing_and_where_the_new_one_goes(begun):
    new = erased(begun.parent)
    with pytest.raises(RecipeError, match="nothing to withdraw") as refused:
        withdraw_run(begun, erased=True, ticket=Ticket(reason="request 12"))
    [problem] = refused.value.problems
    assert f"web ({begun.parent / 'pools/web'})" in problem.given and "in the place of OLD" in problem.fix
    with pytest.raises(RecipeError, match="nothing to amend") as refused:
        amend_run(begun, [f"pools.web.path={new}"], approval=Approval(reason="moved"))
    assert f"recipe withdraw {begun} --erased" in refused.value.problems[0].fix


def test_a_state_is_not_opened_over_a_pool_without_what_it_would_serve(begun):
    with recipe.open_run(begun) as run:
        state = run.state(20)
    put(erased(begun.parent), begun.parent / "pools/web")
    with pytest.raises(RecipeError, match="no more would be served"):
        recipe.stream_from(state)


def test_a_new_run_begins_without_erased_documents_in_the_order_of_the_whole_pool(tmp_path):
    for name in ("old", "new"):
        write_pools(tmp_path / name, SIZES)
    with start(tmp_path / "old"):
        pass
    withdraw_run(tmp_path / "old/run", GONE, pool="web", ticket=Ticket(reason="request 12"))
    put(erased(tmp_path / "new"), tmp_path / "new/pools/web")
    with start(tmp_path / "new") as run:
        assert served(run.stream(), 0) == rest(tmp_path / "old/run")
        run.checkpoint(20)
    audit = finished(tmp_path / "new/run")
    assert audit.ok, audit.findings
    put(erased(tmp_path / "new", [8]), tmp_path / "new/pools/web")
    withdraw_run(tmp_path / "new/run", erased=True, ticket=Ticket(reason="another"))
    branch_run(tmp_path / "new/run", Wish(name="branch"))
    with recipe.open_run(tmp_path / "new/branch") as run:
        run.checkpoint(45)
    for name in ("run", "branch"):
        audit = audit_run(tmp_path / "new" / name, full=True)
        assert audit.ok, audit.findings


def test_a_plan_counts_erased_documents_as_withdrawn(tmp_path):
    write_pools(tmp_path, SIZES)
    put(erased(tmp_path), tmp_path / "pools/web")
    plans = []
    with start(tmp_path) as run:
        for exact in (True, False):
            plans.append(recipe.make_plan(run.recipe, exact=exact))
    for plan in plans:
        assert any("3 documents were erased" in warning for warning in plan.warnings)
        assert plan.stages["short"].pools["web"].dropped["withdrawn"] > 0


def test_a_run_that_claims_that_documents_were_erased_is_found_out(tmp_path):
    write_pools(tmp_path, SIZES)
    shutil.copytree(tmp_path / "pools/web", tmp_path / "whole")
    put(erased(tmp_path), tmp_path / "pools/web")
    with start(tmp_path) as run:
        run.checkpoint(20)
    put(tmp_path / "whole", tmp_path / "pools/web")
    audit = audit_run(tmp_path / "run", full=True)
    assert [finding.check for finding in audit.findings] == ["withdrawn"]
    assert open_pool(tmp_path / "pools/web", "web").erased.tolist() == []


def test_rows_that_held_erased_documents_are_not_assembled_again(begun):
    read = sorted({one.step for one in recipe.trace_document(begun, 3, pool="web")})
    withdraw_run(begun, GONE, pool="web", ticket=Ticket(reason="request 12"))
    put(erased(begun.parent), begun.parent / "pools/web")
    assert read
    with recipe.open_run(begun) as run, pytest.raises(RecipeError, match=r"erased: .*3") as refused:
        run.stream().batch(read[0])
    assert "recipe trace" in refused.value.problems[0].fix
    assert sorted({one.step for one in recipe.trace_document(begun, 3, pool="web")}) == read


def test_a_stream_of_its_own_and_held_out_windows_leave_erased_documents_out(tmp_path):
    write_pools(tmp_path, SIZES)
    whole = open_pool(tmp_path / "pools/web", "web")
    new = open_pool(erased(tmp_path), "web")
    rule = Scoring(ScoringRule(window=16, stride=8, offset=0))
    windows = [
        [(*map(int, row), ids.tolist()) for rows in scored_rows(pool, rule)
         for *row, ids in zip(rows["document"], rows["start"], rows["input_ids"], strict=True)]
        for pool in (whole, new)
    ]  # fmt: skip
    assert windows[1] == [row for row in windows[0] if row[0] not in GONE]
    assert count_rows(new, rule) == len(windows[1])


def test_lengths_alone_audit_a_run_over_a_pool_that_was_cut_anew_and_lost_documents(begun, tmp_path):
    withdraw_run(begun, GONE, pool="web", ticket=Ticket(reason="request 12"))
    new = erased(begun.parent)
    repart_pool(new, tmp_path / "cut", part_tokens=60)
    put(tmp_path / "cut", begun.parent / "pools/web")
    finished(begun)
    for name in SIZES:
        copy_metadata(open_pool(begun.parent / "pools" / name, name), tmp_path / "bare" / name)
    audit = audit_run(begun, full=True, metadata_only=True, pools_root=tmp_path / "bare")
    assert audit.ok, audit.findings
    assert audit.checked.replayed == audit_run(begun, full=True).checked.replayed


def test_views_of_a_folder_leave_its_erased_documents_out_each_once(tmp_path):
    """Two views and a pool that shares no folder with them; before and after the text is gone."""
    texts = [[k % 90 + 1] * (3 + k % 30) for k in range(90)]
    recipe.write_pool(tmp_path / "pools/web", texts, vocab_size=99, eos=0)
    write_pools(tmp_path, {"code": 40})
    plain = {
        "seed": 2,
        "pools_root": str(tmp_path / "pools"),
        "max_epochs": 50,
        "pools": {
            "short": {"path": "web", "max_tokens": 15},
            "long": {"of": "short", "min_tokens": 16},
            "code": {"path": "code"},
        },
        "stages": {
            "s": {
                "tokens": 6400,
                "context": 32,
                "batch": {"sequences": 4},
                "quotas": {"short": "30%", "long": "40%", "code": "30%"},
            }
        },
    }
    wanted = recipe_from_plain(plain, source="test")
    for name in ("before", "after"):
        if name == "after":
            put(erased(tmp_path, [5, 6, 40, 44]), tmp_path / "pools/web")
            withdraw_run(tmp_path / "before", erased=True, ticket=Ticket(reason="request 12"))
        with recipe.start_run(wanted, tmp_path / name) as run:
            run.checkpoint(10)
    with recipe.open_run(tmp_path / "before") as run:
        run.checkpoint(20)
    for name in ("before", "after"):
        audit = audit_run(tmp_path / name, full=True)
        assert audit.ok, audit.findings
        with recipe.open_run(tmp_path / name) as run:
            run.checkpoint(run.num_steps)
        audit = audit_run(tmp_path / name, full=True)
        assert audit.ok, audit.findings
        assert not recipe.trace_document(tmp_path / "after", 40)
