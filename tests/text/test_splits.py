"""Splits made in one reading: no text on two sides, nothing moves when files, names or amounts change."""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recipe.audit.leakage import Search, find_leakage
from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.splits import Split, parse_split, split_draw
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool, prepare_splits
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer, load_tokenizer
from tests.text.cut import Stop, contents, stopping
from tests.text.stored import write_jsonl

BYTES = ByteTokenizer()
THREE = parse_split("train=70%,validation=20%,test=10%")
HALVES = parse_split("train=50%,test=50%")
LAW = settings(max_examples=25)


def records(count, first=0):
    return [{"id": i, "text": f"document {i}"} for i in range(first, first + count)]


def texts(pool):
    return [BYTES.decode(pool.tokens(number)) for number in range(pool.num_documents)]


def sides(pools):
    """By text, where it is."""
    return {text: name for name, pool in pools.items() for text in texts(pool)}


def test_every_document_is_in_one_split_and_the_counts_add_up(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [*records(300), {"id": "e", "text": ""}])
    pools = prepare_splits([tmp_path / "a.jsonl"], tmp_path / "web", BYTES, PrepareOptions(split=THREE))
    assert sorted(text for pool in pools.values() for text in texts(pool)) == sorted(
        record["text"] for record in records(300)
    )
    said = pools["test"].card.source["split"]
    assert said["documents"] == {name: pool.num_documents for name, pool in pools.items()}
    assert (said["name"], said["salt"], said["shares"]["validation"]) == ("test", 0, "1/5")
    beside = json.loads((tmp_path / "web" / "splits.json").read_bytes())
    assert {n: p["fingerprint"] for n, p in beside["pools"].items()} == {
        name: pool.fingerprint for name, pool in pools.items()
    }
    read = beside["read"]
    assert (read["read"], read["kept"], read["empty"], read["other_split"]) == (301, 300, 1, 0)
    assert 180 <= pools["train"].num_documents <= 240


def test_V02_the_measure_is_not_empty_and_shares_nothing(tmp_path):
    """Splits are cut from documents before anything is repeated; a measure of nothing is refused."""
    write_jsonl(tmp_path / "big.jsonl", records(3_000))
    write_jsonl(tmp_path / "small.jsonl", records(300, first=10_000))
    split = parse_split("train=90%,validation=10%")
    made = {
        name: prepare_splits(
            [tmp_path / f"{name}.jsonl"], tmp_path / name, BYTES, PrepareOptions(split=split)
        )
        for name in ("big", "small")
    }
    counts = {name: pools["validation"].num_documents for name, pools in made.items()}
    assert 240 <= counts["big"] <= 360 and 15 <= counts["small"] <= 50
    held = {text for pools in made.values() for text in texts(pools["validation"])}
    assert held.isdisjoint(text for pools in made.values() for text in texts(pools["train"]))


def test_V02_a_split_of_nothing_is_refused_before_anything_is_written(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(3))
    split = parse_split("train=99.99%,test=0.01%")
    with pytest.raises(RecipeError, match="0 of 3 documents"):
        prepare_splits([tmp_path / "a.jsonl"], tmp_path / "web", BYTES, PrepareOptions(split=split))
    assert not (tmp_path / "web").exists()


def test_V01_no_place_of_a_document_can_be_on_two_sides():
    """A split is one function of the document: there are no two defaults that could disagree."""
    draws = np.array([split_draw(0, None, bytes([i]) * 16) for i in range(100)], np.uint64)
    assert len(HALVES.of(draws)) == 100
    assert set(HALVES.of(draws).tolist()) == {0, 1}


def test_names_order_and_number_of_files_and_ids_move_nothing(tmp_path):
    rows = records(200)
    write_jsonl(tmp_path / "one" / "a.jsonl", rows)
    for part in range(3):
        renamed = [{"id": f"new-{row['id']}", "text": row["text"]} for row in rows[part::3][::-1]]
        write_jsonl(tmp_path / "more" / f"x{part}.jsonl", renamed)
    one, more = (
        sides(
            prepare_splits(
                [tmp_path / name], tmp_path / f"p-{name}", BYTES, PrepareOptions(split=THREE, seed=s)
            )
        )
        for s, name in enumerate(("one", "more"))
    )
    assert one == more


def test_another_salt_splits_otherwise(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(100))
    found = [
        sides(
            prepare_splits(
                [tmp_path / "a.jsonl"], tmp_path / f"{salt}", BYTES,
                PrepareOptions(split=parse_split("a=50%,b=50%", salt)),
            )
        )
        for salt in (0, 1)
    ]  # fmt: skip
    assert found[0] != found[1]


def test_what_is_added_later_moves_nothing(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(150))
    write_jsonl(tmp_path / "b.jsonl", records(150, first=100))
    options = PrepareOptions(split=THREE)
    old = prepare_splits([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, options)
    before = sides(old)
    write_jsonl(tmp_path / "c.jsonl", [*records(150), *records(100, first=150)][::-1])
    bigger = sides(prepare_splits([tmp_path / "c.jsonl"], tmp_path / "bigger", BYTES, options))
    assert {text: bigger[text] for text in before} == before
    rows = [{**row, "id": f"b{row['id']}"} for row in records(150, first=100)]
    write_jsonl(tmp_path / "b.jsonl", rows)
    more = PrepareOptions(split=THREE, extends=tmp_path / "old", duplicates="drop")
    grown = prepare_splits([tmp_path / "b.jsonl"], tmp_path / "grown", BYTES, more)
    assert sides(grown) == bigger
    assert sum(pool.num_documents for pool in grown.values()) == 250
    for name, pool in grown.items():
        assert texts(pool)[: old[name].num_documents] == texts(old[name])


def test_a_document_of_a_group_is_left_out_where_an_older_pool_of_another_split_has_it(tmp_path):
    group = next(
        g for g in (f"g{i}" for i in range(50)) if HALVES.of(np.array([split_draw(0, g, b"")], np.uint64))[0]
    )
    write_jsonl(tmp_path / "a.jsonl", records(40))
    old = prepare_splits([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(split=HALVES))
    taken = texts(old["train"])[0]
    rows = [{"id": "n1", "text": taken, "g": group}, {"id": "n2", "text": "new", "g": group}]
    write_jsonl(tmp_path / "b.jsonl", rows)
    options = PrepareOptions(split=HALVES, extends=tmp_path / "old", read=ReadOptions(group_key="g"))
    grown = prepare_splits([tmp_path / "b.jsonl"], tmp_path / "grown", BYTES, options)
    assert sides(grown)[taken] == "train"
    assert grown["test"].card.dropped == {"other_split": 1}


def test_a_group_that_comes_again_behind_an_extended_split_leaves_nothing_unfinished(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{**row, "g": f"g{i % 20}"} for i, row in enumerate(records(100))])
    write_jsonl(tmp_path / "b.jsonl", [{"id": "n", "text": "new", "g": "g7"}])
    read = ReadOptions(group_key="g")
    prepare_splits([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(split=HALVES, read=read))
    more = PrepareOptions(split=HALVES, extends=tmp_path / "old", read=read)
    there = sorted(tmp_path.iterdir())
    with pytest.raises(RecipeError, match="'g7', which the extended pool has"):
        prepare_splits([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, more)
    assert sorted(tmp_path.iterdir()) == there


def test_another_split_is_not_extended(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(40))
    write_jsonl(tmp_path / "b.jsonl", records(40, first=40))
    prepare_splits([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(split=HALVES))
    other = parse_split("train=60%,test=40%")
    with pytest.raises(RecipeError, match="train=3/5"):
        prepare_splits(
            [tmp_path / "b.jsonl"],
            tmp_path / "new",
            BYTES,
            PrepareOptions(split=other, extends=tmp_path / "old"),
        )
    with pytest.raises(RecipeError, match="no split"):
        prepare_pool(
            [tmp_path / "b.jsonl"], tmp_path / "new", BYTES, PrepareOptions(extends=tmp_path / "old/train")
        )


def test_the_folder_of_a_split_extended_without_its_split_is_told_what_to_repeat(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(40))
    write_jsonl(tmp_path / "b.jsonl", records(40, first=40))
    made = parse_split("train=60%,a=20%,b=20%", salt=7)
    prepare_splits([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(split=made))
    with pytest.raises(RecipeError) as refused:
        prepare_pool(
            [tmp_path / "b.jsonl"], tmp_path / "new", BYTES, PrepareOptions(extends=tmp_path / "old")
        )
    [problem] = refused.value.problems
    assert "train, a, b" in problem.expected
    shares, _, salt = problem.fix.partition("--split ")[2].partition(" --split-salt ")
    again = PrepareOptions(split=parse_split(shares, salt=int(salt)), extends=tmp_path / "old")
    pools = prepare_splits([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, again)
    assert sum(pool.num_documents for pool in pools.values()) == 80


ROWS = st.lists(
    st.tuples(st.sampled_from("abcdefghij"), st.sampled_from([None, None, *(f"g{i}" for i in range(6))])),
    min_size=8,
    max_size=40,
)


@LAW
@given(rows=ROWS, drop=st.booleans(), salt=st.integers(0, 3))
def test_no_text_is_on_two_sides_with_groups_and_duplicates(tmp_path_factory, rows, drop, salt):
    """Every text is in one split; of groups in several, the smallest keeps it; all is counted."""
    folder = tmp_path_factory.mktemp("law")
    split = Split(shares={"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 4)}, salt=salt)
    write_jsonl(folder / "a.jsonl", [{"id": i, "text": t, "g": g} for i, (t, g) in enumerate(rows)])
    options = PrepareOptions(
        split=split, duplicates="drop" if drop else "keep", read=ReadOptions(group_key="g")
    )
    try:
        pools = prepare_splits([folder / "a.jsonl"], folder / "out", BYTES, options)
    except RecipeError as error:
        assert "0 of" in str(error)
        assume(False)
        raise
    held = {name: set(texts(pool)) for name, pool in pools.items()}
    assert not (held["a"] & held["b"] or held["a"] & held["c"] or held["b"] & held["c"])
    assert set.union(*held.values()) == {text for text, _ in rows}
    read = json.loads((folder / "out" / "splits.json").read_bytes())["read"]
    assert read["read"] == len(rows) == read["kept"] + read["other_split"] + (read.get("duplicate") or 0)
    assert read["kept"] == sum(pool.num_documents for pool in pools.values())
    left_out = [pool.card.dropped.get("other_split", 0) for pool in pools.values()]
    assert sum(left_out) == read["other_split"] and left_out[2] == 0  # of equal shares, the last named keeps
    for pool in pools.values():
        rows_of = pool.rows(np.arange(pool.num_documents))
        if drop:
            assert len(set(texts(pool))) == pool.num_documents
        for row in rows_of:
            if row.group is not None:
                draw = np.array([split_draw(salt, row.group, b"")], np.uint64)
                assert pools[split.names[int(split.of(draw)[0])]] is pool


def test_F6_leakage_finds_nothing_between_splits(tmp_path):
    rows = [{"id": i, "text": blake2b(bytes([i % 90])).hexdigest(), "g": None} for i in range(200)]
    rows += [{"id": f"g{i}", "text": rows[i]["text"], "g": f"g{i % 5}"} for i in range(60)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    options = PrepareOptions(split=THREE, read=ReadOptions(group_key="g"))
    pools = prepare_splits([tmp_path / "a.jsonl"], tmp_path / "out", BYTES, options)
    assert sum(pool.card.dropped.get("other_split", 0) for pool in pools.values()) > 0
    held = {name: pools[name] for name in ("validation", "test")}
    found = find_leakage({"train": pools["train"]}, held, Search(ngram=40))
    assert all(one.leaked_documents == 0 for one in found.held.values())
    again = find_leakage({"train": pools["train"]}, {"copy": pools["train"]}, Search(ngram=40))
    assert all(one.leaked_documents > 0 for one in again.held.values())


def test_workers_change_no_byte(tmp_path, tokenizer_file):
    for part in range(3):
        rows = [{"text": f"{part} {i} " + "the quick brown fox " * 150} for i in range(600)]
        write_jsonl(tmp_path / "in" / f"{part}.jsonl", rows)
    tokenizer = load_tokenizer(tokenizer_file)
    for workers in (1, 2):
        options = PrepareOptions(workers=workers, split=THREE)
        prepare_splits([tmp_path / "in"], tmp_path / f"{workers}", tokenizer, options)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_cut_anywhere_it_goes_on_to_the_same_bytes(tmp_path):
    for part in range(3):
        rows = [{"text": f"{part} {i} " + "the quick brown fox " * 100} for i in range(400)]
        write_jsonl(tmp_path / "in" / f"{part}.jsonl", rows)
    options = PrepareOptions(workers=1, part_tokens=200_000, split=THREE, duplicates="drop")
    tell, calls = stopping(0)
    prepare_splits([tmp_path / "in"], tmp_path / "whole", BYTES, options, progress=tell)
    whole = contents(tmp_path / "whole")
    assert len(calls) > 8
    for at in range(1, len(calls) + 1):
        tell, _ = stopping(at)
        with pytest.raises(Stop):
            prepare_splits([tmp_path / "in"], tmp_path / f"p{at}", BYTES, options, progress=tell)
        prepare_splits([tmp_path / "in"], tmp_path / f"p{at}", BYTES, options)
        assert contents(tmp_path / f"p{at}") == whole, at


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_replacement_cut_between_two_pools_goes_on(tmp_path, monkeypatch, cut):
    """With --overwrite, what is there stays until all is written; a cut between the renames is repaired."""
    write_jsonl(tmp_path / "a.jsonl", records(60))
    source, out = [tmp_path / "a.jsonl"], tmp_path / "web"
    prepare_splits(source, out, BYTES, PrepareOptions(split=HALVES))
    options = PrepareOptions(split=parse_split("train=60%,test=40%"), overwrite=True)
    prepare_splits(source, tmp_path / "whole", BYTES, options)
    real, calls = Path.rename, []

    def rename(self, target):
        if ".prepare" in str(self) + str(target):
            calls.append(self)
            if len(calls) == cut:
                raise Stop
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    try:
        prepare_splits(source, out, BYTES, options)
    except Stop:
        monkeypatch.setattr(Path, "rename", real)
        prepare_splits(source, out, BYTES, options)
    assert contents(out) == contents(tmp_path / "whole")


def test_a_pool_of_an_older_split_does_not_stay_beside_the_new_ones(tmp_path):
    """With --overwrite too: its texts would be in the new pools as well."""
    write_jsonl(tmp_path / "a.jsonl", records(60))
    prepare_splits([tmp_path / "a.jsonl"], tmp_path / "web", BYTES, PrepareOptions(split=THREE))
    before = contents(tmp_path / "web")
    options = PrepareOptions(split=parse_split("train=60%,validation=40%"), overwrite=True)
    with pytest.raises(RecipeError, match="remove it"):
        prepare_splits([tmp_path / "a.jsonl"], tmp_path / "web", BYTES, options)
    assert contents(tmp_path / "web") == before


def test_a_folder_with_a_pool_is_no_place_for_splits(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(40))
    prepare_pool([tmp_path / "a.jsonl"], tmp_path / "web", BYTES)
    with pytest.raises(RecipeError, match="splits are pools in a folder of their own"):
        prepare_splits([tmp_path / "a.jsonl"], tmp_path / "web", BYTES, PrepareOptions(split=HALVES))
    assert open_pool(tmp_path / "web", "web").num_documents == 40


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("train=97%,validation=2%,test=1%", ("97/100", "1/50", "1/100")),
        ("train=99.999%, test=0.001%", ("99999/100000", "1/100000")),
        ("a=2/3,b=1/3", ("2/3", "1/3")),
        ("a=50%,b=1/2", ("1/2", "1/2")),
    ],
)
def test_shares_are_exact(text, shares):
    assert tuple(map(str, parse_split(text).shares.values())) == shares


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("969,30,1", "write train=96.9%,validation=3%,test=0.1%"),
        ("train=969,test=31", "write train=96.9%,test=3.1%"),
        ("a=1,b=1,c=1", "write a=1/3,b=1/3,c=1/3"),
        ("1", "write it like"),
        ("a=50%,b=49.9%", "99.9%"),
        ("a=50%,b=50.1%", "100.1%"),
        ("a=50%,a=50%", "another name"),
        ("A=50%,a=50%", "differs from A in more than case"),
        ("straße=40%,x=20%,STRASSE=40%", "differs from straße"),
        ("a=0%,b=100%", "between 0 and all"),
        ("a=0.97,b=0.03", "between 0 and all"),
        ("../a=50%,b=50%", "a plain name"),
        ("a=-50%,b=150%", "between 0 and all"),
        ("a=1/0,b=1/2", "between 0 and all"),
        ("", "write it like"),
        ("a=0.9,b=10%", "write a=90%"),
        ("a=50%,b=.005", "write b=0.5%"),
    ],
)
def test_weights_and_what_is_no_split_are_refused_with_what_to_write(text, said):
    with pytest.raises(RecipeError, match=said):
        parse_split(text)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("train:90%,validation:10%", "write train=90%,validation=10%"),
        ("train:0.9, validation:0.1", "write train=90%,validation=10%"),
        ("train:90%,validation:9%", "write it like train=97%,validation=2%,test=1%"),
        ("train,validation", "write it like train=97%,validation=2%,test=1%"),
    ],
)
def test_a_split_without_an_equals_sign_is_one_problem_with_the_right_form(text, fix):
    with pytest.raises(RecipeError) as caught:
        parse_split(text)
    assert [problem.fix for problem in caught.value.problems] == [fix]


def test_every_problem_of_a_split_has_a_heading():
    with pytest.raises(RecipeError) as caught:
        parse_split("train:90%,validation=10%")
    assert {problem.where for problem in caught.value.problems} == {"train:90%"}


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=6), st.integers(0, 2**64 - 1))
def test_a_draw_is_in_the_split_whose_stretch_holds_it(weights, draw):
    total = sum(weights)
    split = Split(shares={f"s{i}": Fraction(weight, total) for i, weight in enumerate(weights)})
    found = int(split.of(np.array([draw], np.uint64))[0])
    start = sum(weights[:found])
    assert Fraction(start, total) <= Fraction(draw, 2**64) < Fraction(start + weights[found], total)


def test_what_was_left_out_stands_beside_the_pools_of_a_split(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [*records(60), {"id": "bad", "text": 7}])
    options = PrepareOptions(split=HALVES, read=ReadOptions(on_bad="skip"))
    prepare_splits([tmp_path / "a.jsonl"], tmp_path / "web", BYTES, options)
    [row] = (tmp_path / "web" / "quarantine.jsonl").read_text().splitlines()
    assert json.loads(row)["line"] == 61
    read = json.loads((tmp_path / "web" / "splits.json").read_bytes())["read"]
    assert (read["read"], read["kept"], sum(read["quarantined"].values())) == (61, 60, 1)
    write_jsonl(tmp_path / "a.jsonl", records(60))
    again = PrepareOptions(split=HALVES, overwrite=True)
    prepare_splits([tmp_path / "a.jsonl"], tmp_path / "web", BYTES, again)
    assert not (tmp_path / "web" / "quarantine.jsonl").exists()
