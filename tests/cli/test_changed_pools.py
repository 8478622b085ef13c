"""The verbs that change a pool: repart, withdraw, twins; and a run that goes on over what they wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from recipe.cli.main import main
from recipe.pools import open_pool, write_pool
from tests.cli.conftest import write_small

TEXTS = [[k + 1] * (k + 2) for k in range(8)]
IDS = [f"page/{k}" for k in range(8)]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    write_pool(tmp_path / "web", TEXTS, vocab_size=300, eos=0, ids=IDS, part_tokens=12)
    return tmp_path / "web"


def told(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, object]:
    assert main([*map(str, words), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_repart_writes_the_same_pool_and_says_so(pool, capsys):
    out = pool.with_name("new")
    said = told(capsys, "pools", "repart", pool, "--part-tokens", "1k", "--out", out)
    assert said["parts"] == {"before": 6, "after": 1, "written": 6}
    assert said["fingerprint"] == open_pool(pool, "p").fingerprint
    assert main(["pools", "verify", str(out), "--full"]) == 0
    assert (
        main(["pools", "repart", str(out), "--part-tokens", "12", "--out", str(pool.with_name("back"))]) == 0
    )
    assert "parts: 6, before 1" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["many", "0", "1.5"])
def test_parts_of_no_size_are_refused(pool, capsys, size):
    with pytest.raises(SystemExit) as ended:
        main(["pools", "repart", str(pool), "--part-tokens", size, "--out", str(pool.with_name("x"))])
    assert ended.value.code == 2
    assert "given" in capsys.readouterr().err
    assert not pool.with_name("x").exists()


def test_withdraw_leaves_no_text_and_counts_by_reason(pool, capsys, tmp_path):
    (tmp_path / "ids.txt").write_text("page/3\npage/5\n")
    words = ["--documents", tmp_path / "ids.txt", "--reason", "request 12"]
    said = told(capsys, "pools", "withdraw", pool, *words, "--out", tmp_path / "2")
    assert said["withdrawn"] == {"documents": 2, "tokens": 5 + 7, "reasons": {"request 12": 2}}
    assert said["same_pool"] is True and said["fingerprint"] == open_pool(pool, "p").fingerprint
    assert told(capsys, "pools", "list", tmp_path / "2")[0]["erased"] == 2
    assert main(["pools", "list", str(tmp_path / "2")]) == 0 and "of them erased" in capsys.readouterr().out
    assert main(["pools", "verify", str(tmp_path / "2"), "--full"]) == 0
    assert "8 documents (of them erased: 2), 52 tokens with end marks" in capsys.readouterr().out
    more = ["--document", "page/0", "--reason", "request 13", "--renumber"]
    again = told(capsys, "pools", "withdraw", tmp_path / "2", *more, "--out", tmp_path / "3")
    assert again["withdrawn"] == {
        "documents": 3,
        "tokens": 2 + 5 + 7,
        "reasons": {"request 12": 2, "request 13": 1},
    }
    new = open_pool(tmp_path / "3", "p")
    assert new.ids(range(5)) == ["page/1", "page/2", "page/4", "page/6", "page/7"]
    assert new.card.dropped == {"withdrawn": 3} and again["same_pool"] is False
    for name in ("2", "3"):
        assert main(["pools", "verify", str(tmp_path / name), "--full"]) == 0


def test_withdraw_names_documents_that_are_not_there_and_wants_some(pool, capsys, tmp_path):
    words = ["pools", "withdraw", str(pool), "--reason", "why", "--out", str(tmp_path / "new")]
    assert main([*words, "--document", "page/9"]) == 2
    assert "the nearest is 'page/" in capsys.readouterr().err
    assert main(words) == 2
    assert "--documents" in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_twins_are_told_and_what_is_none_is_named(pool, capsys, tmp_path):
    twice = [text * 2 for text in TEXTS]
    write_pool(tmp_path / "twin", twice, vocab_size=300, eos=0, ids=IDS)
    write_pool(tmp_path / "other", twice, vocab_size=300, eos=0, ids=[*IDS[:3], *IDS[:2:-1]])
    said = told(capsys, "pools", "twins", pool, tmp_path / "twin")
    assert said["twins"] and said["same_order"] and said["tokens"] == [44, 88]
    assert said["lengths"][-1] == {"least": 8, "most": 15, "documents": 2, "tokens": [17, 34]}
    said = told(capsys, "pools", "twins", pool, tmp_path / "other", code=1)
    assert said["different"] == 4 and said["lengths"] == []
    assert said["differences"][0] == [3, ["page/3", None], ["page/7", None]]
    assert main(["pools", "twins", str(pool), str(tmp_path / "other")]) == 1
    assert "document 3: 'page/3' in the first, 'page/7' in the second" in capsys.readouterr().out


def test_a_run_goes_on_after_a_take_down_with_three_commands(in_tmp, capsys):
    """At an older checkpoint, so that there is something left to be served."""
    write_small(in_tmp)
    assert main(["run", "small.yaml"]) == 0
    kept = sorted(Path("runs/small/sequences").rglob("*.parquet"))
    words = ["--document", "3", "--document", "17", "--reason", "request 12", "--out", "new"]
    assert main(["pools", "withdraw", "pools/a", *words]) == 0
    assert "recipe withdraw RUN --erased" in capsys.readouterr().out
    shutil.rmtree("pools/a")
    Path("new").rename("pools/a")
    assert main(["audit", "runs/small", "--full"]) == 1  # zeros, and nobody withdrew the documents
    assert main(["run", "runs/small"]) == 2
    assert "recipe withdraw runs/small --erased" in capsys.readouterr().err
    why = ["--reason", "request 12", "--yes"]
    assert main(["withdraw", "runs/small", "--erased", "--at", "8", *why]) == 0
    assert main(["run", "runs/small"]) == 0
    assert main(["audit", "runs/small", "--full"]) == 0
    assert sorted(Path("runs/small/sequences").rglob("*.parquet")) == kept
    assert main(["withdraw", "runs/small", "--erased", *why]) == 2
    assert "nothing to withdraw" in capsys.readouterr().err
