"""Starting a run: what is certain to fail is refused, and a folder is never shared or overwritten."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe import RecipeError
from recipe.config import fingerprint, recipe_from_plain, recipe_to_plain
from recipe.mixing.planned import Plan
from recipe.pools import PoolWriter
from recipe.run import writes
from recipe.run.folder import RunFolder, read_version
from recipe.run.ledger import read_tail
from tests.run.conftest import Build, stage, write


def test_G10_of_runs_started_at_the_same_moment_one_wins(build: Build, tmp_path: Path):
    wanted = build()

    def start(_: int) -> str:
        try:
            recipe.start_run(wanted, tmp_path / "run").close()
        except RecipeError as error:
            return str(error)
        return "started"

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(start, range(4)))
    assert answers.count("started") == 1
    assert all("never overwritten" in answer for answer in answers if answer != "started")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_G10_a_run_is_never_overwritten(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(3)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(RecipeError, match="a run that was started before") as refused:
        recipe.start_run(build(seed=2), tmp_path / "run")
    fix = refused.value.problems[0].fix
    assert "recipe.resume_or_start" in fix and "recipe.open_run" in fix
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_a_folder_with_something_else_is_refused_and_an_empty_one_is_used(build: Build, tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("keep me")
    (tmp_path / "file").write_text("keep me")
    for path in ("notes", "file"):
        with pytest.raises(RecipeError, match="something else"):
            recipe.start_run(build(), tmp_path / path)
    (tmp_path / "empty").mkdir()
    assert recipe.start_run(build(), tmp_path / "empty").name == "empty"


def test_a_rename_that_comes_second_changes_nothing(tmp_path: Path):
    assert writes.create_folder(tmp_path / "run", {"a": b"1"})
    assert not writes.create_folder(tmp_path / "run", {"a": b"2"})
    assert (tmp_path / "run" / "a").read_bytes() == b"1"


def test_what_is_stored_is_settled_and_plain(build: Build, tmp_path: Path):
    declared = build()
    with recipe.start_run(declared, tmp_path / "run") as run:
        stored = read_version(RunFolder(tmp_path / "run"), 1)
        assert stored.recipe == run.recipe
        assert stored.recipe.is_settled
    assert stored.declared == declared
    assert list(recipe_to_plain(stored.recipe)["pools"]) == ["a", "b", "c"]
    created = read_tail(tmp_path / "run" / "ledger.jsonl").last.data
    assert created["recipe_fingerprint"] == fingerprint(stored.recipe)
    assert created["recipe_hash"] == stored.hash


def test_pools_with_a_stock_only_are_refused(build: Build, tmp_path: Path):
    planned = build(pools={"a": {"path": "a"}, "b": {"stock": 5000}, "c": {"stock": 6000}})
    with pytest.raises(RecipeError) as caught:
        recipe.start_run(planned, tmp_path / "run")
    assert [problem.where for problem in caught.value.problems] == ["pools.b.path", "pools.c.path"]


def test_C05_missing_and_unfinished_pools_are_all_named(build: Build, tmp_path: Path, pools_root: Path):
    write(tmp_path / "b", seed=1, documents=3)
    (tmp_path / "b" / "card.json").unlink()
    pools = {"a": {"path": str(pools_root / "a")}, "b": {"path": "b"}, "c": {"path": "gone"}}
    with pytest.raises(RecipeError) as caught:
        recipe.start_run(build(pools=pools, pools_root=str(tmp_path)), tmp_path / "run")
    assert [problem.where.partition(":")[0] for problem in caught.value.problems] == ["pools.b", "pools.c"]
    assert not (tmp_path / "run").exists()


def test_a_pool_that_runs_out_for_certain_is_refused_before_the_first_step(build: Build, tmp_path: Path):
    hungry = build(stages={"s": stage(tokens=50_000, context=16, quotas={"a": "0%", "b": "0%", "c": "100%"})})
    with pytest.raises(RecipeError, match="c"):
        recipe.start_run(hungry, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_ids_the_model_has_no_row_for_are_refused(build: Build, tmp_path: Path):
    with pytest.raises(RecipeError, match="pools"):
        recipe.start_run(build(model={"vocab_size": 100}), tmp_path / "run")


def test_G5_pools_of_different_tokenizers_never_mix(build: Build, tmp_path: Path):
    """A pool that names no tokenizer goes with any."""
    for name, tokenizer in (("a", "x" * 64), ("b", "y" * 64), ("c", None)):
        with PoolWriter(tmp_path / name, vocab_size=500, eos=0, tokenizer=tokenizer) as writer:
            for number in range(60):
                writer.add(np.arange(1, 30), id=number)
            writer.close()
    with pytest.raises(RecipeError, match="tokenizer"):
        recipe.start_run(build(pools_root=str(tmp_path)), tmp_path / "run")
    without_b = build(
        pools_root=str(tmp_path),
        pools={"a": {"path": "a"}, "c": {"path": "c"}},
        groups={},
        stages={"s": stage(tokens=480, context=16, quotas={"a": "50%", "c": "50%"})},
    )
    recipe.start_run(without_b, tmp_path / "run").close()


def test_resume_or_start_starts_then_resumes_then_says_complete(build: Build, tmp_path: Path):
    with recipe.resume_or_start(build(), tmp_path / "run") as run:
        assert (run.step, run.stage, run.complete) == (0, "one", False)
        run.checkpoint(4)
    with recipe.resume_or_start(build(), tmp_path / "run") as run:
        assert run.step == 4
        run.checkpoint(run.num_steps)
    with recipe.resume_or_start(build(), tmp_path / "run") as run:
        assert (run.complete, run.stage) == (True, None)


def test_G10_the_later_of_two_that_start_one_run_goes_on_with_it(build: Build, tmp_path: Path):
    def overtaken(plan: Plan) -> None:
        with recipe.start_run(build(), tmp_path / "run") as other:
            other.checkpoint(4)

    with recipe.resume_or_start(build(), tmp_path / "run", on_plan=overtaken) as run:
        assert run.step == 4


def test_G10_the_later_of_two_that_start_different_runs_is_shown_the_difference(build: Build, tmp_path: Path):
    def overtaken(plan: Plan) -> None:
        recipe.start_run(build(seed=99), tmp_path / "run").close()

    with pytest.raises(RecipeError, match="99"):
        recipe.resume_or_start(build(), tmp_path / "run", on_plan=overtaken)


def test_a_changed_recipe_never_resumes_silently(build: Build, tmp_path: Path):
    recipe.start_run(build(), tmp_path / "run").close()
    with pytest.raises(RecipeError) as caught:
        recipe.resume_or_start(build(seed=2), tmp_path / "run")
    assert [(p.where, p.given) for p in caught.value.problems] == [("seed", "1 → 2  (the run's → yours)")]


def test_invariant_7_moving_pools_is_no_change(build: Build, tmp_path: Path, pools_root: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        before = run.stream().batch(5)["input_ids"].tolist()
    (tmp_path / "moved").symlink_to(pools_root)
    with recipe.resume_or_start(build(pools_root=str(tmp_path / "moved")), tmp_path / "run") as run:
        assert run.stream().batch(5)["input_ids"].tolist() == before
        run.checkpoint(1)
    with recipe.open_run(tmp_path / "run") as run:
        assert run.stream().batch(5)["input_ids"].tolist() == before


def test_X03_two_runs_on_the_same_pools_do_not_touch_each_other(build: Build, tmp_path: Path):
    with (
        recipe.start_run(build(), tmp_path / "one") as one,
        recipe.start_run(build(), tmp_path / "two") as two,
    ):
        one.checkpoint(2)
        two.checkpoint(4)
        assert served_alike(one, two)
    assert recipe.run_status(tmp_path / "one").step == 2


def served_alike(one: recipe.run.run.Run, two: recipe.run.run.Run) -> bool:  # type: ignore[name-defined]
    pairs = zip(one.stream().batches(0), two.stream().batches(0), strict=True)
    return all((a["input_ids"] == b["input_ids"]).all() for (_, a), (_, b) in pairs)


FIRST_BATCH = """
import hashlib, sys, recipe
from recipe.run import lease
lease.WAIT_SECONDS = 600.0
with recipe.open_run(sys.argv[1]) as run:
    print(hashlib.sha256(run.stream().batch(0)["input_ids"].tobytes()).hexdigest())
"""


def test_X01_processes_that_open_one_run_at_once_agree(build: Build, tmp_path: Path):
    recipe.start_run(build(), tmp_path / "run").close()
    command = [sys.executable, "-c", FIRST_BATCH, str(tmp_path / "run")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate()[0] for process in processes]
    assert len(answers[0]) == 65
    assert answers[0] == answers[1]


def test_a_recipe_from_a_file_and_from_plain_values_is_the_same_run(build: Build, tmp_path: Path):
    plain = recipe_to_plain(build())
    recipe.start_run(build(), tmp_path / "run").close()
    recipe.resume_or_start(recipe_from_plain(plain, source="elsewhere"), tmp_path / "run").close()


@pytest.mark.parametrize(
    "name", ["..", ".hidden", "-x", "a\nb", " a", "a ", "\x7f", "\udc80", "x" * 201, "ü" * 101]
)
def test_a_name_that_cannot_be_shown_or_typed_is_refused(build: Build, tmp_path: Path, name: str):
    with pytest.raises(RecipeError, match="no name for a run"):
        recipe.start_run(build(), tmp_path / name)
    with pytest.raises(RecipeError, match="no name for a run"):
        recipe.resume_or_start(build(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a b", "zh 中文", "demo-seed=1", "a.b", "_x", "x" * 200])
def test_plain_names_are_names_of_runs(build: Build, tmp_path: Path, name: str):
    with recipe.start_run(build(), tmp_path / name) as run:
        run.checkpoint(1)
    assert recipe.run_status(tmp_path / name).name == name
