"""``prepare --duplicates``, ``--split``, ``pools overlap, dedup, split, texts`` as they are typed."""

from __future__ import annotations

import json

import pytest

from recipe.cli.main import main
from recipe.pools import open_pool


@pytest.fixture
def texts(in_tmp):
    """Two files that share half of what they hold, each with a copy of its own."""
    for name, numbers in (("web", range(60)), ("code", range(30, 80))):
        rows = [{"id": f"{name}{i}", "text": f"document {i}", "lang": name} for i in numbers]
        rows.append({"id": f"{name}-copy", "text": rows[0]["text"], "lang": "copy"})
        (in_tmp / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return in_tmp


@pytest.fixture
def pools(texts, capsys):
    for name in ("web", "code"):
        assert main(["prepare", f"pools/{name}", f"{name}.jsonl", "--tag-key", "lang", "--json"]) == 0
    capsys.readouterr()
    return texts


def test_prepare_tells_where_every_record_went(texts, capsys):
    words = ["prepare", "pools/web", "web.jsonl", "--duplicates", "drop", "--split", "train=80%,test=20%"]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["splits"]
    read = said["train"]["read"]
    kept = sum(one["documents"] for one in said.values())
    assert (read["read"], read["kept"], read["duplicate"]) == (61, kept, 1) and kept == 60
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "records read" in out and "left out: duplicate" in out and "documents of test" in out
    assert err.count("is up to date") == 2


def test_weights_are_refused_with_the_percentages_to_write(texts, capsys):
    assert main(["prepare", "pools/web", "web.jsonl", "--split", "969,30,1"]) == 2
    assert "train=96.9%,validation=3%,test=0.1%" in capsys.readouterr().err
    assert main(["prepare", "pools/web", "web.jsonl", "--split-salt", "3"]) == 2
    assert "--split" in capsys.readouterr().err
    assert not (texts / "pools").exists()


def test_overlap_is_a_matrix_of_tokens_and_documents(pools, capsys):
    assert main(["pools", "overlap", "pools/web", "pools/code", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["documents"] == [[1, 30], [31, 1]]  # the copy of code's first document is in web too
    assert said["tokens"][0] == [len("document 0"), 30 * len("document 30")]
    assert main(["pools", "overlap", "pools/web", "pools/code"]) == 0
    assert "330 (30)" in capsys.readouterr().out
    assert main(["pools", "overlap", "pools/web", "pools/web"]) == 2
    assert "each once" in capsys.readouterr().err


def test_dedup_shows_what_goes_and_does_it_once(pools, capsys):
    words = ["pools", "dedup", "--out", "unique", "pools/code", "pools/web"]
    assert main([*words, "--dry-run", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert not (pools / "unique").exists() and planned["written"] is False
    assert main([*words, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    code, web = done["pools"]
    assert [one["kept"] for one in planned["pools"]] == [one["kept"] for one in done["pools"]]
    assert (code["kept"]["documents"], web["kept"]["documents"]) == (50, 30)
    assert web["left_out"] == {"duplicate": 31} and web["duplicates_of"] == {"code": 30, "web": 1}
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "code: 30" in out and err.count("up to date") == 2
    assert main(["pools", "verify", "unique/code", "unique/web", "--full"]) == 0


def test_split_and_texts_and_ids(pools, capsys):
    assert (
        main(["pools", "split", "pools/web", "--into", "train=3/4,test=1/4", "--out", "split", "--json"]) == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert sum(one["documents"] for one in said["pools"]) == 61
    assert main(["pools", "texts", "pools/web", "--out", "texts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 61
    lines = [json.loads(line) for line in (pools / "texts" / "texts-00000.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["id"] != "web-copy"]
    (pools / "ids.txt").write_text("".join(f"{line['id']}\n" for line in lines[:20]))
    assert main(["pools", "dedup", "--out", "some", "pools/web", "--keep-ids", "ids.txt"]) == 0
    assert open_pool(pools / "some" / "web", "web").ids(range(20)) == [line["id"] for line in lines[:20]]
    assert main(["pools", "dedup", "--out", "x", "pools/web", "pools/code", "--drop-ids", "ids.txt"]) == 2
    assert "one pool" in capsys.readouterr().err


def test_a_list_of_ids_says_what_it_leaves_out_for(pools, capsys):
    (pools / "ids.txt").write_text("web-copy\n")
    words = ["pools", "dedup", "pools/web", "--drop-ids", "ids.txt", "--json"]
    for out, more, reason in (("a", [], "near_duplicate"), ("b", ["--reason", "low_quality"], "low_quality")):
        assert main([*words, "--out", out, *more]) == 0
        assert json.loads(capsys.readouterr().out)["pools"][0]["left_out"][reason] == 1
        assert open_pool(pools / out / "web", "web").card.dropped[reason] == 1
    assert main([*words, "--out", "b", "--reason", "other"]) == 2
    assert "another pool" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["duplicate", "withdrawn", "two words", "", "Großes"])
def test_a_reason_is_a_word_that_counts_nothing_else(pools, capsys, word):
    (pools / "ids.txt").write_text("web-copy\n")
    dedup = ["pools", "dedup", "pools/web", "--out", "x", "--reason", word]
    assert main([*dedup, "--drop-ids", "ids.txt"]) == 2
    assert "--reason" in capsys.readouterr().err
    assert main(dedup) == 2
    assert "--keep-ids or --drop-ids" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--drop-ids", "--keep-ids"])
def test_ids_of_no_document_are_named(pools, capsys, option):
    (pools / "ids.txt").write_text("nobody\nweb-copy\nnobody\nnor-this\n")
    assert main(["pools", "dedup", "--out", "x", "pools/web", option, "ids.txt"]) == 2
    told = capsys.readouterr().err
    assert "3 ids, of which 1 are of documents; of none: 'nobody', 'nor-this'" in told
    (pools / "ids.txt").write_text("".join(f"no-{n}\n" for n in range(9)))
    assert main(["pools", "dedup", "--out", "x", "pools/web", option, "ids.txt"]) == 2
    assert "'no-0', 'no-1', 'no-2', 'no-3', 'no-4', …" in capsys.readouterr().err
    assert not (pools / "x").exists()
