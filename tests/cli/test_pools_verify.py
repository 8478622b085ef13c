"""``recipe pools verify`` and ``refingerprint``: a changed byte is found in every file, and never blessed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from recipe.pools.card import card_text, read_card
from recipe.pools.sections import Section
from tests.text.small_tokenizers import composed, word_piece

STEPS = 12
"""Places of each file at which a byte is changed: spread, the first and the last among them."""


def answer(capsys, *words):
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def rich(in_tmp):
    """A pool with every kind of file."""
    documents = [[n % 90 for n in range(size)] for size in (40, 30, 25, 60, 61, 5)]
    sections = [[Section(10, "s1", ()), Section(20, "s2", ("s1",))], None, None, None, None, None]
    told = {
        "ids": [f"d{n}" for n in range(6)],
        "groups": ["a", "a", "b", None, "c", "c"],
        "sections": sections,
    }
    more = {"tags": [{"l": "x"}] * 6, "leads": [[95, 96], [], [], [95], [], []], "repeats": 8}
    recipe.write_pool(
        "rich", documents, vocab_size=100, eos=99, bos=98, part_tokens=100, **told, **more
    ).close()
    return Path("rich")


@pytest.fixture
def prepared(in_tmp):
    """A pool with a quarantine."""
    lines = [json.dumps({"id": n, "text": f"text {n} é"}) for n in range(20)]
    Path("in.jsonl").write_text("\n".join([*lines, '{"text": 7}', '{"text": ""}', ""]))
    assert main(["prepare", "made", "in.jsonl", "--on-bad", "skip", "--json"]) == 0
    return Path("made")


@pytest.mark.parametrize("name", ["rich", "prepared"])
def test_a_changed_byte_anywhere_in_any_file_is_found(name, request, capsys):
    folder = request.getfixturevalue(name)
    capsys.readouterr()
    assert answer(capsys, "pools", "verify", folder, "--full")[0] == 0
    files = sorted(folder.iterdir())
    assert {"card.json", "hashes.npy", "documents.parquet"} < {file.name for file in files}
    for file in files:
        data = file.read_bytes()
        for place in sorted({len(data) * k // STEPS for k in range(STEPS)} | {len(data) - 1}):
            bad = bytearray(data)
            bad[place] ^= 1
            file.write_bytes(bytes(bad))
            code, told = answer(capsys, "pools", "verify", folder, "--full")
            assert (code, told["ok"]) == (1, False), (file.name, place)
            assert told["pools"][0]["findings"], (file.name, place)
        file.write_bytes(data)
    assert answer(capsys, "pools", "verify", folder, "--full")[0] == 0


@pytest.mark.parametrize("cut", ["shorter", "gone"])
def test_a_file_cut_short_or_gone_is_named(rich, capsys, cut):
    for file in sorted(rich.iterdir()):
        data = file.read_bytes()
        if cut == "gone":
            file.unlink()
        else:
            file.write_bytes(data[:-1])
        code, told = answer(capsys, "pools", "verify", rich, "--full")
        assert code == 1, file.name
        assert (
            any(file.name in one["where"] for one in told["pools"][0]["findings"]) or file.name == "card.json"
        )
        file.write_bytes(data)


def test_several_pools_are_told_apart(rich, prepared, capsys):
    capsys.readouterr()
    (rich / "part-00000.bin").write_bytes(bytes((rich / "part-00000.bin").stat().st_size))
    code, told = answer(capsys, "pools", "verify", rich, prepared, "--full")
    assert code == 1
    assert [one["ok"] for one in told["pools"]] == [False, True]


def test_what_is_no_pool_is_bad_input(in_tmp, capsys):
    assert main(["pools", "verify", "nothing"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_b7_what_comes_back_is_told_by_document(prepared, capsys):
    """B7: the whole document decodes to the original text, and verify says which."""
    capsys.readouterr()
    words = ("pools", "verify", prepared, "--tokenizer", "bytes")
    assert answer(capsys, *words)[1]["pools"][0]["round_trips"]["documents"] == {"again": 20}
    code, told = answer(capsys, *words, "--sources", ".")
    assert (code, told["pools"][0]["round_trips"]["documents"]) == (0, {"exact": 20})
    Path("in.jsonl").write_text(Path("in.jsonl").read_text().replace("text 7 ", "text 8 "))
    told = answer(capsys, *words, "--sources", ".")[1]
    assert told["pools"][0]["round_trips"]["documents"] == {"exact": 19, "changed": 1}
    assert told["pools"][0]["round_trips"]["examples"] == {"changed": [7]}


def test_b7_a_tokenizer_that_composes_gives_its_normalisation_back(in_tmp, capsys):
    """B7: … or to the tokenizer's own normalisation of it: NFC, as Qwen3."""
    composed(in_tmp)
    texts = ["cafe\u0301 of 😀", "plain of text", "e\u0301"]
    lines = [json.dumps({"id": f"t{n}", "text": text}) + "\n" for n, text in enumerate(texts)]
    Path("in.jsonl").write_text("".join(lines))
    assert main(["prepare", "p", "in.jsonl", "--tokenizer", "tokenizer.json", "--json"]) == 0
    capsys.readouterr()
    words = ("pools", "verify", "p", "--full", "--tokenizer", "tokenizer.json", "--sources", ".")
    code, told = answer(capsys, *words)
    trips = told["pools"][0]["round_trips"]
    assert (code, trips["documents"]) == (0, {"exact": 1, "normalised": 2})
    assert sorted(trips["examples"]["normalised"]) == ["t0", "t2"]


def test_b7_what_does_not_come_back_is_a_finding(in_tmp, capsys):
    """White space that a tokenizer does not keep: the text is lost, and that is said."""
    word_piece(in_tmp)
    Path("in.jsonl").write_text('{"id": "x", "text": "token  of  2024"}\n')
    assert (
        main(["prepare", "p", "in.jsonl", "--tokenizer", "tokenizer.json", "--eos", "[EOS]", "--json"]) == 0
    )
    capsys.readouterr()
    words = ("pools", "verify", "p", "--tokenizer", "tokenizer.json", "--sources", ".")
    code, told = answer(capsys, *words)
    trips = told["pools"][0]["round_trips"]["documents"]
    assert (code, trips) == (1, {"lost": 1})
    assert told["pools"][0]["findings"][0]["check"] == "text"


def test_pairs_are_verified_as_far_as_they_can_be(rich, capsys):
    Path("pairs").mkdir()
    for ending in (".bin", ".idx"):
        shutil.copy(rich / f"part-00000{ending}", Path(f"pairs/x{ending}"))
    code, told = answer(capsys, "pools", "verify", "pairs", "--full")
    assert (code, told["ok"], told["pools"][0]["findings"]) == (0, True, [])
    assert "carry no hashes" in told["pools"][0]["notes"][0]
    path = Path("pairs/x.bin")
    path.write_bytes(path.read_bytes()[:-2])
    assert main(["pools", "verify", "pairs", "--full"]) in (1, 2)


def test_a_pool_made_before_records_were_sealed_is_noted_not_blamed(prepared, capsys):
    capsys.readouterr()
    record = json.loads((prepared / "prepare.json").read_bytes())
    del record["hash"], record["beside"]
    (prepared / "prepare.json").write_bytes(json.dumps(record, indent=1, ensure_ascii=False).encode())
    code, told = answer(capsys, "pools", "verify", prepared, "--full")
    assert code == 0
    assert len(told["pools"][0]["notes"]) == 2


@pytest.mark.parametrize("key", ["hash", "beside", "settings"])
def test_a_record_whose_key_was_changed_is_a_finding(prepared, capsys, key):
    path = prepared / "prepare.json"
    path.write_bytes(path.read_bytes().replace(f'"{key}"'.encode(), f'"{key[:-1]}q"'.encode(), 1))
    code, told = answer(capsys, "pools", "verify", prepared, "--full")
    assert code == 1 and "prepare.json" in json.dumps(told["pools"][0]["findings"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"dropped": {"empty": 1, "text_not_text": 1, "duplicate": 7}}, "0 left out as duplicate"),
        ({"dropped": {"text_not_text": 1}}, "1 left out as empty"),
        ({"seed": 5}, "seed: 0, as prepare.json says"),
        ({"shuffled": False}, "shuffled: True, as prepare.json says"),
    ],
)
def test_a_forged_card_is_held_against_its_reading_and_the_record_of_its_making(
    prepared, capsys, changes, told
):
    """The card's own hash is right: what it says twice, and what prepare.json says too, is compared."""
    assert read_card(prepared).dropped == {"empty": 1, "text_not_text": 1}
    (prepared / "card.json").write_bytes(card_text(replace(read_card(prepared), **changes)))
    capsys.readouterr()
    code, answered = answer(capsys, "pools", "verify", prepared, "--full")
    (finding,) = answered["pools"][0]["findings"]
    assert code == 1 and told in finding["expected"]
    assert answer(capsys, "pools", "show", prepared)[1]["left_out"]["adds_up"] is ("dropped" not in changes)


def test_pools_of_splits_extensions_and_copies_say_what_was_left_out(in_tmp, capsys):
    """Each adds up, and nobody is blamed: what is left out of a split is told by its pool alone."""
    rows = [{"id": n, "text": "" if n % 10 == 0 else f"text {n % 23}", "g": f"g{n % 9}"} for n in range(60)]
    for name, some in (("one", rows[:40]), ("two", [{**row, "g": f"{row['g']}x"} for row in rows[40:]])):
        Path(f"{name}.jsonl").write_text("\n".join([*map(json.dumps, some), '{"text": 7}', ""]))
    more = "--on-bad skip --group-key g --duplicates drop"
    for words in (
        f"prepare a one.jsonl {more}",
        f"prepare b two.jsonl {more} --extends a",
        f"prepare s one.jsonl {more} --split train=60%,test=40%",
        f"prepare t two.jsonl {more} --split train=60%,test=40% --extends s",
        "pools split b --into train=50%,test=50% --out c",
        "pools dedup a b --out d",
    ):
        assert main(words.split()) == 0, capsys.readouterr().err
    pools = sorted(path.parent for path in Path().rglob("card.json"))
    assert len(pools) == 10
    capsys.readouterr()
    code, told = answer(capsys, "pools", "verify", *pools, "--full")
    assert (code, [one["findings"] for one in told["pools"]]) == (0, [[]] * 10)


def test_a_lost_card_is_written_anew_with_the_fingerprint_it_had(prepared, capsys):
    capsys.readouterr()
    before = read_card(prepared)
    (prepared / "card.json").unlink()
    assert main(["pools", "refingerprint", "made"]) == 2
    assert "name it: --tokenizer" in capsys.readouterr().err
    code, told = answer(capsys, "pools", "refingerprint", "made", "--tokenizer", "bytes")
    assert (code, told["found"], told["written"]) == (1, before.fingerprint, False)
    assert not (prepared / "card.json").exists()
    code, told = answer(capsys, "pools", "refingerprint", "made", "--write", "--tokenizer", "bytes")
    assert (code, told["written"]) == (1, False)
    code, told = answer(capsys, "pools", "refingerprint", "made", "--write", "--yes", "--tokenizer", "bytes")
    assert (code, told["written"]) == (0, True)
    after = read_card(prepared)
    assert (after.fingerprint, after.dropped, after.seed, after.shuffled) == (
        before.fingerprint,
        before.dropped,
        before.seed,
        before.shuffled,
    )
    assert "remade" in after.source
    assert answer(capsys, "pools", "verify", "made", "--full")[0] == 0


def test_a_lost_card_and_another_tokenizer_are_refused(prepared, capsys):
    record = json.loads((prepared / "prepare.json").read_bytes())
    record["settings"]["tokenizer"] = "0" * 64
    (prepared / "prepare.json").write_text(json.dumps(record))
    (prepared / "card.json").unlink()
    assert main(["pools", "refingerprint", "made", "--tokenizer", "bytes"]) == 2
    assert "name the one that made the pool" in capsys.readouterr().err


def test_ids_without_a_tokenizer_need_their_number(in_tmp, capsys):
    recipe.write_pool("ids", [[1, 2], [3]], vocab_size=50, eos=49).close()
    before = read_card(Path("ids"))
    Path("ids/card.json").unlink()
    words = ("pools", "refingerprint", "ids", "--vocab-size", "50", "--eos", "49", "--write", "--yes")
    assert answer(capsys, *words)[1]["found"] == before.fingerprint
    Path("ids/card.json").unlink()
    code, told = answer(capsys, *words[:5], "--eos", "7", "--write", "--yes")
    assert (code, told["written"]) == (1, False)
    assert {one["check"] for one in told["findings"]} == {"eos"}


def test_a_pool_of_no_documents_has_a_fingerprint_too(in_tmp, capsys):
    """One without token files is ours; a pool whose token files are gone is not taken for one."""
    with recipe.write_pool("none", [], vocab_size=10, eos=9) as pool:
        fingerprint = pool.fingerprint
    code, told = answer(capsys, "pools", "refingerprint", "none")
    assert (code, told["found"], told["same"], told["differences"]) == (0, fingerprint, True, [])
    Path("none/card.json").unlink()
    words = ("none", "--vocab-size", "10", "--eos", "9", "--write", "--yes")
    assert answer(capsys, "pools", "refingerprint", *words)[0] == 0
    assert read_card(Path("none")).fingerprint == fingerprint
    recipe.write_pool("one", [[1]], vocab_size=10, eos=9).close()
    Path("one/part-00000.bin").unlink()
    assert main(["pools", "refingerprint", "one"]) == 2
    assert "no token files" in capsys.readouterr().err


def test_changed_tokens_are_never_blessed(rich, capsys):
    path = rich / "part-00000.bin"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(bytes(data))
    before = (rich / "card.json").read_bytes()
    code, told = answer(capsys, "pools", "refingerprint", rich, "--write", "--yes")
    assert (code, told["same"], told["written"]) == (1, False, False)
    assert [one["check"] for one in told["findings"]] == ["tokens"]
    assert (rich / "card.json").read_bytes() == before


def test_D04_documents_without_an_end_mark_are_told(in_tmp, capsys):
    Path("raw").mkdir()
    np.array([1, 2, 0, 3, 4], "<u2").tofile("raw/x.bin")
    np.array([5, 6, 0], "<u2").tofile("raw/y.bin")
    code, told = answer(capsys, "pools", "verify", "raw", "--eos", "0", "--dtype", "uint16")
    assert code == 0
    assert "1 of 2 files end without the mark 0 (the first is x.bin)" in told["pools"][0]["notes"][1]
