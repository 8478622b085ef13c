"""Runs under every option of slicing: audited, accepted, traced, resumed, amended, withdrawn from."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.integrations.acceptance import Sample, verify_package, verify_run
from recipe.run.handover import Wanted, hand_over_run
from recipe.run.manifest import latest_path, read_manifest
from recipe.run.run import Run
from tests.audit.runs import consume, plain_recipe, whole_audit
from tests.run.traced import held, traced

TEXT = (Path(__file__).parent / "runs.py").read_text(encoding="utf-8")
SLICINGS: dict[str, dict[str, Any]] = {
    "aligned": {"align": "word", "stride": 48, "offset": "random"},
    "regions": {"stride": {"head": 32}, "density": {"middle": 0.5}, "align": "line"},
    "told once": {"duplicates": "50%", "stride": 48, "density": {"middle": 0.5}},
    "wrapped": {"specials": "window", "window": 60, "stride": 50, "align": "sentence", "align_within": 40},
}


def write(root: Path) -> None:
    """Two pools of pieces of a program's text, one byte a token; five are a group that repeats itself."""
    chance = np.random.default_rng(4)
    for name in ("web", "code"):
        starts = chance.integers(0, len(TEXT) - 600, 150)
        texts = [TEXT[start : start + size] for start in starts for size in [int(chance.integers(5, 500))]]
        arrays = [np.frombuffer(text.encode(), np.uint8).astype(np.int64) for text in texts]
        options: dict[str, Any] = {"vocab_size": 258, "eos": 256, "bos": 257, "part_tokens": 4_000}
        options |= {"groups": [number // 5 for number in range(len(arrays))], "repeats": 12}
        recipe.write_pool(root / "pools" / name, arrays, **options)


def start(root: Path, slicing: dict[str, Any], **top: Any) -> Run:
    write(root)
    stage = {"context": 64, "batch": {"sequences": 4}, "chunk": 2_000, "slicing": slicing}
    stages = {
        "short": {**stage, "tokens": 12_000, "quotas": {"web": "50%", "code": "50%"}},
        "long": {**stage, "context": 80, "until": 20_000, "weights": {"web": 2, "code": 1}, "chunk": 2_500},
    }
    top = {"tokenizer": "bytes", **top}
    plain = plain_recipe(root, stages, pools={"web": {}, "code": {}}, **top)
    return recipe.start_run(recipe_from_plain(plain, source="test"), root / "run")


@pytest.mark.parametrize("kind", SLICINGS)
@pytest.mark.parametrize("count", ["body", "labels"])
def test_a_run_is_audited_and_accepted(tmp_path: Path, kind: str, count: str):
    with start(tmp_path, SLICINGS[kind], count=count) as run:
        consume(run, 20, 50, run.num_steps)
    whole_audit(tmp_path / "run")
    acceptance = verify_run(tmp_path / "run", sample=Sample(seed=1))
    assert acceptance.ok, acceptance


@pytest.mark.parametrize("kind", SLICINGS)
def test_invariant_11_a_trace_finds_what_rows_hold(tmp_path: Path, kind: str):
    with start(tmp_path, SLICINGS[kind]) as run:
        consume(run, 30)
    assert traced(tmp_path / "run") == sorted(held(tmp_path / "run"))


@pytest.mark.parametrize("kind", SLICINGS)
def test_invariant_5_a_run_resumed_from_its_state_serves_the_same(tmp_path: Path, kind: str):
    with start(tmp_path, SLICINGS[kind]) as run:
        unbroken = [run.stream().batch(step)["labels"].copy() for step in range(60)]
        state = run.state(33)
    resumed = recipe.stream_from(state, pools_root=tmp_path)
    assert all(np.array_equal(resumed.batch(s)["labels"], unbroken[s]) for s in range(33, 60))


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        ("align=paragraph", "align", "paragraph"),
        ("offset=random", "random_offset", True),
        ("density={head: 0.5}", "density", (Fraction(1, 2), Fraction(1), Fraction(1))),
        ("duplicates=drop", "duplicates", Fraction(1)),
    ],
)
def test_a_slicing_amended_for_the_next_stage_cuts_what_is_left_anew(
    tmp_path: Path, change: str, key: str, value: object
):
    with start(tmp_path, {"align": "word", "stride": 48, "window": 60}) as run:
        consume(run, 20)
        with pytest.raises(RecipeError, match="as so far"):
            run.amend([f"stages.short.slicing.{change}"], reason="test")
        before = getattr(run.recipe.rule("long", "code"), key)
        run.amend([f"stages.long.slicing.{change}"], reason="test")
        assert before != getattr(run.recipe.rule("long", "code"), key) == value
        consume(run, 30, run.num_steps)
    whole_audit(tmp_path / "run")


def test_a_stage_with_other_marks_than_the_one_before_is_refused(tmp_path: Path):
    """A token at the seam would be a label twice, or never."""
    with start(tmp_path, {"align": "word", "stride": 48, "window": 60}) as run:
        consume(run, 20)
        with pytest.raises(RecipeError, match=r"stages\.long\.slicing\.specials[\s\S]*short has document"):
            run.amend(["stages.long.slicing.specials=window"], reason="test")
        assert run.stream().num_steps > 20


@pytest.mark.parametrize("kind", ["aligned", "told once"])
def test_withdrawn_documents_are_gone_and_the_rest_is_recut(tmp_path: Path, kind: str):
    with start(tmp_path, SLICINGS[kind]) as run:
        consume(run, 20)
        ahead = [p for s in range(20, 24) for r in range(4) for p in run.stream().provenance(s, r)]
    gone = next(p.document for p in ahead if p.pool == "code")
    recipe.withdraw_run(tmp_path / "run", [gone], pool="code", ticket=recipe.Ticket(reason="asked for"))
    with recipe.open_run(tmp_path / "run") as run:
        after = [p for s in range(20, 60) for r in range(4) for p in run.stream().provenance(s, r)]
        assert not any(p.pool == "code" and p.document == gone for p in after)
        consume(run, 60)
    whole_audit(tmp_path / "run")


def test_A12_duplicates_are_counted_and_recomputed_without_any_text(tmp_path: Path):
    with start(tmp_path, SLICINGS["told once"]) as run:
        consume(run, 20, run.num_steps)
    states = read_manifest(latest_path(tmp_path / "run"))["snapshot"]["pools"]
    assert all(state["dropped"]["duplicate"] > 500 for state in states)
    bare = audit_run(tmp_path / "run", metadata_only=True)
    assert bare.ok, bare.findings
    assert "nothing recomputed" not in str(bare.checked.pools)


@pytest.mark.parametrize("stated", ["drop", "80%"])
def test_A12_a_pool_in_which_nobody_looked_is_refused_before_the_first_step(tmp_path: Path, stated: str):
    recipe.write_pool(tmp_path / "pools" / "web", [np.arange(200)], vocab_size=258)
    stage = {"context": 64, "steps": 4, "batch": {"sequences": 2}, "quotas": {"web": "100%"}}
    stages = {"one": {**stage, "slicing": {"duplicates": stated}}}
    made = recipe_from_plain(plain_recipe(tmp_path, stages, pools={"web": {}}), source="test")
    with pytest.raises(RecipeError, match=r"pools\.web[\s\S]*recipe prepare --repeats"):
        recipe.start_run(made, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("kind", "change", "key", "value"),
    [("aligned", "align=line", "align", "line"), ("told once", "duplicates=keep", "duplicates", None)],
)
def test_a_branch_goes_on_with_another_slicing(
    tmp_path: Path, kind: str, change: str, key: str, value: object
):
    with start(tmp_path, SLICINGS[kind]) as run:
        consume(run, 20)
    wish = recipe.Wish(name="other", overrides=(f"stages.long.slicing.{change}",))
    (made,) = recipe.branch_run(tmp_path / "run", wish)
    with recipe.open_run(made) as run, recipe.open_run(tmp_path / "run") as trunk:
        rule, before = (each.recipe.rule("long", "code") for each in (run, trunk))
        assert getattr(before, key) != getattr(rule, key) == value
        consume(run, run.num_steps)
    whole_audit(made)


def test_metadata_alone_do_not_recompute_aligned_cuts_and_say_so(tmp_path: Path):
    with start(tmp_path, SLICINGS["aligned"]) as run:
        consume(run, 20)
    report = audit_run(tmp_path / "run", metadata_only=True)
    assert "its cuts are aligned" in report.checked.pools["web"]


def test_A12_a_package_is_accepted_without_the_pools(tmp_path: Path):
    with start(tmp_path, SLICINGS["told once"]) as run:
        consume(run, 20)
    package = hand_over_run(tmp_path / "run", tmp_path / "package", Wanted(archive="none")).path
    (tmp_path / "pools").rename(tmp_path / "gone")
    accepted = verify_package(package)
    assert accepted.ok, accepted


def test_G1_a_package_is_accepted_with_the_pools_and_says_that_it_needs_them(tmp_path: Path):
    with start(tmp_path, SLICINGS["aligned"]) as run:
        consume(run, 20)
    package = hand_over_run(tmp_path / "run", tmp_path / "package", Wanted(archive="none")).path
    accepted = verify_package(package, pools_root=tmp_path)
    assert accepted.ok, accepted
    bare = verify_package(package)
    assert "--pools-root" in str(bare)


@pytest.mark.parametrize(
    ("slicing", "top", "message"),
    [
        ({"align": "word"}, {"tokenizer": None}, r"tokenizer"),
        ({"align": "section"}, {}, r"sections"),
        ({"align": "line"}, {"tokenizer": {"path": "nowhere"}}, r"nowhere"),
    ],
)
def test_what_cannot_be_aligned_is_refused_before_the_first_step(
    tmp_path: Path, slicing: Any, top: Any, message: str
):
    with pytest.raises(RecipeError, match=message):
        start(tmp_path, slicing, **top)
    assert not (tmp_path / "run").exists()


def test_marks_round_windows_need_both_ids(tmp_path: Path):
    recipe.write_pool(tmp_path / "pools" / "web", [np.arange(200)], vocab_size=258, eos=256)
    stage = {"context": 64, "steps": 4, "batch": {"sequences": 2}, "quotas": {"web": "100%"}}
    stages = {"one": {**stage, "slicing": {"specials": "window"}}}
    made = recipe_from_plain(plain_recipe(tmp_path, stages, pools={"web": {}}), source="test")
    with pytest.raises(RecipeError, match=r"no bos[\s\S]*ids of BOS and EOS"):
        recipe.start_run(made, tmp_path / "run")
