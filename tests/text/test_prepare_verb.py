"""``recipe prepare`` as a person types it."""

import argparse
import json

import pytest

from recipe.cli import prepare
from recipe.errors import RecipeError


def run(*words):
    parser = argparse.ArgumentParser(prog="recipe prepare")
    prepare.add_arguments(parser)
    return prepare.execute(parser.parse_intermixed_args([str(word) for word in words]))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n{"content": "two"}\n{"text": ""}\n{"text": "three", "lang": "en"}\n')
    return path


def test_the_answer_as_json_says_what_was_left_out(tmp_path, source, capsys):
    words = ("--on-bad", "skip", "--tag-key", "lang", "--seed", "3", "--json")
    assert run(tmp_path / "pool", source, *words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["documents"], answer["tokens"], answer["special"]) == (2, 8, 2)
    assert answer["left_out"] == {"empty": 1, "text_missing": 1}
    assert answer["read"]["read"] == 4


def test_the_table_names_reasons_and_the_quarantine(tmp_path, source, capsys):
    run(tmp_path / "pool", source, "--on-bad=skip", "--workers", "1")
    out = capsys.readouterr().out
    assert "left out: text missing" in out
    assert "quarantine.jsonl" in "".join(out.split()), "a long path is folded"


def test_documents_of_an_extended_pool_have_a_row_and_the_table_adds_up(tmp_path, source, capsys):
    """2 + 3 read = 4 documents and 1 left out of the new texts; what the old pool left out is told there."""
    run(tmp_path / "old", source, "--on-bad=skip")
    (tmp_path / "b.jsonl").write_text('{"text": "four"}\n{"text": "five"}\n{"text": ""}\n')
    capsys.readouterr()
    for words in ((), ("--json",)):
        run(tmp_path / "new", tmp_path / "b.jsonl", "--place-ids", "--extends", tmp_path / "old", *words)
    table, _, answer = capsys.readouterr().out.partition("{")
    rows = {tuple(line.rsplit(maxsplit=1)) for line in table.replace("│", " ").splitlines() if line.strip()}
    told = {what.strip(): count for what, count in (row for row in rows if len(row) == 2)}
    names = ("records read", "documents of the extended pool", "documents", "left out: empty")
    assert [told.get(name) for name in names] == ["3", "2", "4", "1"]
    assert "left out: text missing" not in told
    plain = json.loads("{" + answer)
    assert (plain["documents_extended"], plain["documents"]) == (2, 4)


def test_the_second_time_it_is_up_to_date(tmp_path, source, capsys):
    for _ in range(2):
        run(tmp_path / "pool", source, "--on-bad=skip")
    assert "up to date" in capsys.readouterr().err


def test_a_bad_record_stops_with_its_place(tmp_path, source):
    with pytest.raises(RecipeError, match=r"a\.jsonl:2"):
        run(tmp_path / "pool", source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl"]


def test_tokenizer_and_end_can_be_named(tmp_path, tokenizer_file, capsys):
    (tmp_path / "a.txt").write_text("the quick brown fox")
    words = ("--tokenizer", tokenizer_file.parent, "--eos", "<|im_start|>", "--json")
    run(tmp_path / "pool", tmp_path / "a.txt", *words)
    answer = json.loads(capsys.readouterr().out)
    assert answer["tokens"] < 19
    assert answer["tokenizer"]["name"] == tokenizer_file.parent.name


@pytest.mark.parametrize(
    "words", [("--seed", "-1"), ("--workers", "0"), ("--on-bad", "ignore"), ("--part-tokens", "x")]
)
def test_impossible_options_are_refused(tmp_path, source, words):
    with pytest.raises(SystemExit):
        run(tmp_path / "pool", source, *words)


@pytest.mark.parametrize(
    ("words", "repeated"), [(("--repeats",), 0), (("--repeats", "5"), len("hello ")), ((), None)]
)
def test_A12_repeats_are_found_in_documents_and_groups(tmp_path, capsys, words, repeated):
    threads = [{"text": "> hello 1", "of": 1}, {"text": "> hello 2", "of": 2}, {"text": "hello 3", "of": 1}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in threads))
    outputs = []
    for number in ("1", "2"):
        given = (path, "--group-key", "of", "--workers", number, "--part-tokens", "8", *words)
        run(tmp_path / number, *given, "--json")
        outputs.append(json.loads(capsys.readouterr().out))
    assert [answer.get("repeated") for answer in outputs] == [repeated] * 2
    assert outputs[0]["fingerprint"] == outputs[1]["fingerprint"]
    again = run(tmp_path / "1", path, "--group-key", "of", "--part-tokens", "8", *words)
    assert (again, "up to date" in capsys.readouterr().err) == (0, True)


def test_repeats_of_another_length_are_another_pool(tmp_path, source):
    run(tmp_path / "pool", source, "--on-bad=skip", "--repeats", "5")
    with pytest.raises(RecipeError, match="repeats"):
        run(tmp_path / "pool", source, "--on-bad=skip", "--repeats", "6")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--format", "text"), ["--format"]),
        (("--group-depth", "1"), ["--group-depth"]),
        (
            ("--tag-key", "lang", "--seed", "3", "--part-tokens", "1k"),
            ["--seed", "--part-tokens", "--tag-key"],
        ),
    ],
)
def test_over_another_pool_the_options_that_differ_are_named(tmp_path, words, told):
    (tmp_path / "texts" / "web").mkdir(parents=True)
    (tmp_path / "texts" / "web" / "a.jsonl").write_text('{"text": "one"}\n')
    (tmp_path / "texts" / "b.jsonl").write_text('{"text": "two"}\n')
    run(tmp_path / "pool", tmp_path / "texts")
    with pytest.raises(RecipeError) as caught:
        run(tmp_path / "pool", tmp_path / "texts", *words)
    assert [problem.where for problem in caught.value.problems] == told
    (tmp_path / "texts" / "b.jsonl").write_text('{"text": "other"}\n')
    with pytest.raises(RecipeError) as caught:
        run(tmp_path / "pool", tmp_path / "texts", *words)
    assert [problem.where for problem in caught.value.problems] == [*told, "b.jsonl"]
