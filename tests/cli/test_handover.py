"""``recipe handover`` and ``recipe audit verify``: exit codes, one message, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import load_tokenizer
from tests.text.test_tokenizer_kinds import make_twins


@pytest.fixture
def run(small, capsys) -> Path:
    """A complete run."""
    assert main(["run", "small.yaml", "--json"]) == 0
    capsys.readouterr()
    return Path("runs/small")


def test_a_run_is_handed_over_and_the_package_verified(run, capsys):
    assert main(["handover", str(run), "out/p"]) == 0
    said = capsys.readouterr().out
    assert (
        "out/p: step 16" in said and "out/p.tar.zst: SHA-256" in said and "recipe audit verify out/p" in said
    )
    assert main(["audit", "verify", "out/p"]) == 0
    said = capsys.readouterr().out
    assert "  ok          checksums" in said
    # The pools are arrays that name no tokenizer, and no file of one is in the package.
    assert "  not checked tokenizer" in said
    assert said.endswith("every claim that could be checked holds; not checked here: tokenizer\n")


def test_pools_of_bytes_need_no_tokenizer_file(in_tmp, capsys):
    Path("texts").mkdir()
    for n in range(20):
        Path(f"texts/{n}.txt").write_text(f"file {n}\n" * 9, encoding="utf-8")
    prepare_pool([Path("texts")], Path("pool"), load_tokenizer("bytes")).close()
    plain = {
        "seed": 1,
        "pools": {"files": {"path": "pool"}},
        "stages": {"s": {"steps": 4, "context": 32, "batch": {"sequences": 2}, "weights": {"files": 1}}},
    }
    with recipe.start_run(recipe_from_plain(plain, source="test"), "runs/r") as run:
        run.checkpoint(4)
    assert main(["handover", "runs/r", "p", "--archive", "none"]) == 0
    assert "tokenizer" not in capsys.readouterr().out
    assert main(["audit", "verify", "p", "--json"]) == 0
    checks = {check["check"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["tokenizer"]["ok"] is True and checks["tokenizer"]["said"].startswith("built in, ")


def test_json_holds_what_was_written_and_every_claim(run, capsys):
    assert main(["handover", str(run), "p", "--archive", "none", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["path"], done["archive"], done["step"]) == ("p", None, 16)
    assert main(["audit", "verify", "p", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True and {"check", "ok", "applies", "said", "findings"} == set(answer["checks"][0])


def test_a_package_with_a_fault_is_1_and_names_the_file(run, capsys):
    assert main(["handover", str(run), "p", "--archive", "none"]) == 0
    readme = Path("p/README.md")
    readme.write_text(readme.read_text() + "and one more promise\n")
    capsys.readouterr()
    assert main(["audit", "verify", "p"]) == 1
    said = capsys.readouterr().out
    assert "FAILED      checksums" in said and "README.md" in said
    assert said.splitlines()[-1].endswith("claims failed: checksums, statements")


def test_tokens_are_copied_only_after_a_yes(run, capsys):
    """Without a terminal the answer is no."""
    assert main(["handover", str(run), "p", "--with-tokens"]) == 1
    assert "nothing was written" in capsys.readouterr().err and not Path("p").exists()
    assert main(["handover", str(run), "p", "--with-tokens", "--yes", "--archive", "none"]) == 0
    assert Path("p/2-data/pools/pools/a/part-00000.bin").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["handover", "runs/none", "p"],
        ["handover", "runs/small", "small.yaml"],
        ["handover", "runs/small", "p", "--with-tokenizer", "none.json"],
        ["handover", "runs/small", "p", "--pools-root", "nowhere"],
        ["audit", "verify", "runs/none"],
        ["audit", "verify", "pools"],
        ["audit", "verify", "--sample", "3"],
        ["audit", "verify", "--tokenizer", "none.json"],
        ["audit", "verify", "runs/small", "--tokenizer", "none.json"],
        ["audit", "verify", "runs/small", "--pools-root", "nowhere"],
    ],
)
def test_bad_input_is_one_message_and_2(run, capsys, words):
    before = sorted(path.name for path in Path().iterdir())
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.err.count("given") >= 1 and "Traceback" not in said.err and said.out == ""
    assert sorted(path.name for path in Path().iterdir()) == before


@pytest.mark.parametrize("words", [["--archive", "zip"], ["--no-such"], []])
def test_wrong_words_are_2(run, words):
    with pytest.raises(SystemExit) as stop:
        main(["handover", *words])
    assert stop.value.code == 2


@pytest.mark.parametrize("words", [["--sample", "0"], ["--sample", "x"], ["--seed", "-1"]])
def test_a_sample_or_seed_that_is_none_is_2(run, words):
    with pytest.raises(SystemExit) as stop:
        main(["audit", "verify", str(run), *words])
    assert stop.value.code == 2


def test_a_runs_own_data_is_verified(run, capsys):
    assert main(["audit", "verify", str(run), "--sample", "20", "--seed", "4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["seed"] == 4 and {"rows", "seams", "labels", "resume", "ranks"} <= {
        check["check"] for check in answer["checks"]
    }


def test_the_program_is_verified_without_a_run(in_tmp, capsys):
    assert main(["audit", "verify"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("acceptance of this installation") and said.endswith("every claim holds\n")
    assert list(in_tmp.iterdir()) == []


def test_a_run_folder_called_verify_is_audited_by_its_path(run, capsys):
    run.rename("verify")
    assert main(["audit", "./verify"]) == 0
    capsys.readouterr()
    assert main(["audit", "verify"]) == 0
    said = capsys.readouterr()
    assert "acceptance of this installation" in said.out and "recipe audit ./verify" in said.err
    assert main(["audit", "verify", "verify"]) == 0
    assert "acceptance of verify" in capsys.readouterr().out


def test_ranks_are_handed_over_with_what_stands_beside_them(in_tmp, capsys):
    plain, ranks = make_twins(Path(), "gpt2")
    plain.unlink()
    Path("texts.jsonl").write_text("".join(json.dumps({"text": f"line {n} " * 9}) + "\n" for n in range(20)))
    prepare_pool([Path("texts.jsonl")], Path("pool"), load_tokenizer(f"{ranks}#specials")).close()
    recipe_plain = {
        "seed": 1,
        "tokenizer": {"path": f"{ranks}#specials"},
        "pools": {"lines": {"path": "pool"}},
        "stages": {"s": {"steps": 4, "context": 32, "batch": {"sequences": 2}, "weights": {"lines": 1}}},
    }
    with recipe.start_run(recipe_from_plain(recipe_plain, source="test"), "runs/r") as run:
        run.checkpoint(4)
    assert main(["handover", "runs/r", "p", "--archive", "none"]) == 0
    capsys.readouterr()
    assert (Path("p/1-tokenizer") / "ranks.tiktoken.json").is_file()
    assert main(["audit", "verify", "p", "--json"]) == 0
    checks = {check["check"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["tokenizer"]["ok"] is True
