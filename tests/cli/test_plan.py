"""``recipe plan``: tables for people, exact JSON for programs."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from recipe.cli.main import main

D = {
    "english": (3080, 6160, "77/125", 2.0),
    "rewrites": (600, 790, "79/1000", 1.3167),
    "chinese": (500, 1400, "7/50", 2.8),
    "code_web": (250, 500, "1/20", 2.0),
    "code": (490, 990, "99/1000", 2.0204),
    "maths": (70, 150, "3/200", 2.1429),
    "teacher": (10, 10, "1/1000", 1.0),
}
"""Stock and plan in B tokens, share, mean readings: the table of ten trillion tokens."""
B = 10**9


def plan(capsys, *words: str, code: int = 0) -> dict:
    assert main(["plan", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_D_the_ten_trillion_recipe_is_planned_without_data(in_tmp, capsys):
    said = plan(capsys, "ten_trillion")
    assert set(said) >= {"stages", "pools", "problems"}
    assert said["problems"] == []
    assert sum(stage["tokens"] for stage in said["stages"].values()) == 10_000 * B
    for pool, (stock, tokens, _, epochs) in D.items():
        row = said["pools"][pool]
        assert (row["stock_tokens"], row["tokens"]) == (stock * B, tokens * B)
        assert round(row["epochs"], 4) == epochs


def test_D1_a_chunk_of_10B_is_allotted_in_whole_tokens(in_tmp, capsys):
    for stage in plan(capsys, "ten_trillion")["stages"].values():
        assert stage["chunk"] == 10 * B
        assert stage["chunk_allotment"] == {pool: 10 * B * Fraction(row[2]) for pool, row in D.items()}
        assert sum(stage["chunk_allotment"].values()) == 10 * B
        assert {pool: row["share"] for pool, row in stage["pools"].items()} == {p: r[2] for p, r in D.items()}


def test_overrides_change_the_plan(small, capsys):
    said = plan(capsys, "small.yaml", "stages.long.tokens=2048")
    assert said["stages"]["long"]["tokens"] == 2048
    assert said["stages"]["long"]["steps"] == 16


def test_tables_name_every_pool_and_the_packing(small, capsys):
    assert main(["plan", "small.yaml"]) == 0
    out = capsys.readouterr().out
    for word in (
        "stage short",
        "stage long",
        "61.6 %",
        "38.4 %",
        "best_fit",
        "concat",
        "pools over the whole run",
    ):
        assert word in out


def test_a_stage_that_ramps_says_from_which_shares_to_which(small, capsys):
    changes = ["stages.long.quotas={a: 20%, b: rest}", "+stages.long.quota_ramp={over: 512, steps: 4}"]
    assert main(["plan", "small.yaml", *changes]) == 0
    short, long = capsys.readouterr().out.split("stage long: ")[:2]
    assert "ramps over 512 positions in 4 steps: a 61.6 % → 20 %, b 38.4 % → 80 %" in " ".join(long.split())
    assert "first chunk" in long and "mean share" in long and "of a chunk" in short
    ramp = plan(capsys, "small.yaml", *changes)["stages"]["long"]["ramp"]
    assert (ramp["steps"], ramp["pools"]["a"]) == (4, ["77/125", "1/5"])


def test_what_cannot_be_carried_out_is_1_with_the_way_out(small, capsys):
    said = plan(capsys, "small.yaml", "max_epochs=1", "stages.short.tokens=64Ki", code=1)
    assert {problem["where"] for problem in said["problems"]} == {"pools.a", "pools.b"}
    assert main(["plan", "small.yaml", "max_epochs=1", "stages.short.tokens=64Ki"]) == 1
    assert "max_epochs" in capsys.readouterr().err


def test_what_cannot_be_read_together_is_bad_input_to_plan_as_to_run(small, capsys):
    """A held-out pool whose type of tokens nobody says; ids beyond the model's vocabulary."""
    (small.parent / "exam.bin").write_bytes(bytes(64))
    exam = "+evaluation={pools: {exam: {path: exam.bin, eos: 0}}, window: 16}"
    for change in (exam, "+model.vocab_size=2"):
        for words in (["plan"], ["run", "--name", "x"]):
            assert main([words[0], "small.yaml", change, *words[1:]]) == 2, (words, change)
            assert "fix" in capsys.readouterr().err


def test_exact_walks_the_run(small, capsys):
    exact = plan(capsys, "small.yaml", "--exact")
    assert exact["stages"]["short"]["steps"] == 8


def test_a_run_that_is_soon_walked_is_walked_and_says_so(small, capsys):
    told = plan(capsys, "small.yaml")
    assert told["exact"] and told == plan(capsys, "small.yaml", "--exact")
    assert main(["plan", "small.yaml"]) == 0
    assert "walked exactly" in capsys.readouterr().out


def test_a_long_run_and_one_without_data_are_estimated_as_before(small, capsys):
    long = ["small.yaml", "stages.long.tokens=1B", "max_epochs=1000000"]
    assert not plan(capsys, *long)["exact"]
    assert main(["plan", *long]) == 0
    assert "estimated from whole blocks" in capsys.readouterr().out
    assert not plan(capsys, "small.yaml", "pools.a.path=null", "+pools.a.stock=9k")["exact"]


@pytest.mark.parametrize("words", [["small.yaml", "sede=1"], ["none.yaml"], ["dmeo"]])
def test_a_fault_is_2_and_nothing_on_stdout(small, capsys, words):
    assert main(["plan", *words, "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "fix" in said.err


def test_a_pool_of_stock_and_folder_shows_the_gap(small, capsys):
    """D6: target, measured and gap."""
    row = plan(capsys, "small.yaml", "+pools.a.stock=9k")["pools"]["a"]
    assert row["declared_tokens"] == 9000
    assert row["gap_tokens"] == row["measured_tokens"] - 9000
    assert main(["plan", "small.yaml", "+pools.a.stock=9k"]) == 0
    assert f"{row['gap_tokens']:,}" in capsys.readouterr().out


def test_an_objective_shows_what_labels_weigh_and_what_they_are_worth(small, capsys):
    """a is 61.6 % of what is sampled and half of the loss; over a ramp it weighs from … to."""
    changes = ["+stages.long.objective={a: 50%, b: 50%}", "stages.long.quotas={a: 20%, b: rest}"]
    ramp = "+stages.long.quota_ramp={over: 512, steps: 4}"
    assert main(["plan", "small.yaml", *changes, ramp]) == 0
    short, long = capsys.readouterr().out.split("stage long: ")[:2]
    assert "loss weight" not in short
    words = " ".join(long.split())
    assert "objective" in words and "weight" in words
    assert "worth 64.0% as many without weights" in words
    rows = plan(capsys, "small.yaml", *changes, ramp)["stages"]["long"]["pools"]
    first = Fraction(616, 1000) + (Fraction(1, 5) - Fraction(616, 1000)) / 8
    assert Fraction(rows["a"]["loss_weight_at_first"]) == Fraction(1, 2) / first
    assert (rows["a"]["loss_weight"], rows["b"]["loss_weight"]) == ("5/2", "5/8")
    assert "objective" not in plan(capsys, "small.yaml")["stages"]["long"]["pools"]["a"]


def test_what_the_loss_counts_and_nobody_samples_is_2_with_the_way_out(small, capsys):
    changes = ["stages.short.quotas={a: 100%, b: 0%}", "+stages.short.objective={a: 90%, b: 10%}"]
    assert main(["plan", "small.yaml", *changes]) == 2
    out = " ".join(capsys.readouterr().err.split())
    assert "stages.short.objective.b" in out and "give b a share under quotas, or write b: 0%" in out
