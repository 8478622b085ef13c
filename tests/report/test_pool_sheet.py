"""One pool on a page: what is said of it is true of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipe.cli.main import main
from recipe.pools import open_pool
from recipe.pools.sheet import left_out


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Forty texts and an empty one, every text twice, in two pools."""
    rows = [{"text": f"text {n % 40}"} for n in range(80)] + [{"text": ""}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--split", "a=1/2,b=1/2", "--duplicates", "drop", "--workers", "1"]
    assert main(["prepare", str(tmp_path / "out"), str(tmp_path / "a.jsonl"), *words]) == 0
    return tmp_path / "out"


def test_what_a_split_left_out_is_told_of_it_and_of_all(split: Path, capsys: pytest.CaptureFixture[str]):
    """By hand: of 81 records 40 are duplicates and one is empty; each pool says how many are its own."""
    own = 0
    for name in ("a", "b"):
        with open_pool(split / name, name) as pool:
            left = left_out(pool.card)
        assert (left["reasons"], left["of_all_splits"], left["adds_up"]) == (
            {"empty": 1, "duplicate": 40},
            True,
            True,
        )
        own += left["own"]["duplicate"]
    assert own == 40
    capsys.readouterr()
    assert main(["pools", "show", str(split / "a")]) == 0
    out = capsys.readouterr().out
    assert "left out of all splits: duplicate" in out and "of them of this pool: duplicate" in out
    assert "left out: " not in out, "one label for one count"


def test_a_pool_that_lost_its_card_is_listed_with_what_makes_it_again(
    split: Path, capsys: pytest.CaptureFixture[str]
):
    (split / "a" / "card.json").unlink()
    assert main(["pools", "list", str(split)]) == 1
    assert f"recipe pools refingerprint {split / 'a'} --write" in capsys.readouterr().out
