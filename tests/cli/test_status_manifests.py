"""``recipe status --manifests``: thousands of them at a glance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain


@pytest.fixture
def path(tmp_path: Path) -> Path:
    recipe.write_pool(tmp_path / "a", [range(1, 30)] * 40, vocab_size=500, eos=0)
    stage = {"steps": 12, "context": 16, "batch": {"sequences": 1}, "quotas": {"a": "100%"}}
    pools = {"a": {"path": str(tmp_path / "a")}}
    wanted = recipe_from_plain({"seed": 1, "pools": pools, "stages": {"s": stage}}, source="test")
    with recipe.start_run(wanted, tmp_path / "run") as run:
        for step in range(1, 6):
            run.checkpoint(step, uri=f"w/{step}")
        run.forget(2)
    with recipe.open_run(tmp_path / "run", step=4) as run:
        run.checkpoint(6)
    return tmp_path / "run"


def listed(path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["status", str(path), *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    return lines[next(at for at, line in enumerate(lines) if line.startswith("manifest")) + 1 :]


def test_every_manifest_has_a_line_and_what_became_of_it(path: Path, capsys: pytest.CaptureFixture[str]):
    lines = listed(path, ["--manifests", "all"], capsys)
    assert [line.split()[:2] for line in lines] == [[str(n), str(n)] for n in range(1, 6)] + [["6", "6"]]
    assert lines[1].endswith("forgotten: deleted")
    assert lines[4].endswith("discarded by a rewind")
    assert listed(path, ["--manifests", "2"], capsys) == lines[-2:]
    assert listed(path, ["--manifests"], capsys) == lines


def test_status_says_of_how_many_manifests_it_shows_the_last(path: Path, capsys: pytest.CaptureFixture[str]):
    """Six were written and the one at step 5 was discarded: the five that count are shown."""
    assert main(["status", str(path)]) == 0
    assert "5 of 6 manifests: --manifests all lists them" in capsys.readouterr().out
    assert recipe.run_status(path).num_manifests == 6


def test_as_json_the_manifests_stand_beside_the_rest(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["status", str(path), "--manifests", "all", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["step"] == 6
    assert [one["manifest"] for one in plain["manifests"]] == [1, 2, 3, 4, 5, 6]
    assert plain["manifests"][1]["forgotten"] == "deleted"


@pytest.mark.parametrize("number", ["-1", "some", "9" * 30])
def test_what_is_no_number_of_manifests_is_one_message(
    path: Path, number: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as caught:
        main(["status", str(path), f"--manifests={number}"])
    assert caught.value.code == 2
    assert "a number of manifests, or all" in capsys.readouterr().err
