"""Equal documents of one preparation are one, whatever file or task they come from; tags of all stay."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import open_pool, write_pool
from recipe.pools.tags import joined_tags
from recipe.pools.where import passing
from recipe.text import duplicates, spill
from recipe.text.documents import Document
from recipe.text.inputs import MadeInput
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_documents, prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer
from tests.text.cut import Stop, contents, stopping
from tests.text.stored import write_jsonl

BYTES = ByteTokenizer()
DROP = PrepareOptions(duplicates="drop", workers=1)
LAW = settings(max_examples=25)


def documents_of(pool):
    """By text: id, group and tags of every document."""
    found = defaultdict(list)
    for row in pool.rows(np.arange(pool.num_documents)):
        found[BYTES.decode(pool.tokens(row.document))].append((row.id, row.group, dict(row.tags)))
    return found


def test_one_copy_stays_and_the_counts_add_up(tmp_path):
    texts = ["a", "b", "a", "", "a", "b", "c"]
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": text} for i, text in enumerate(texts)])
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, DROP)
    assert {text: len(copies) for text, copies in documents_of(pool).items()} == {"a": 1, "b": 1, "c": 1}
    read = pool.card.source["read"]
    assert (read["read"], read["kept"], read["duplicate"], read["empty"]) == (7, 3, 3, 1)
    assert pool.card.dropped == {"empty": 1, "duplicate": 3}
    assert json.loads((pool.path / "prepare.json").read_bytes())["read"] == read


def test_kept_is_as_before_and_says_nothing(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": "same"} for i in range(3)])
    for name, options in (("default", PrepareOptions()), ("keep", PrepareOptions(duplicates="keep"))):
        prepare_pool([tmp_path / "a.jsonl"], tmp_path / name, BYTES, options)
    assert contents(tmp_path / "default") == contents(tmp_path / "keep")
    record = json.loads((tmp_path / "keep" / "prepare.json").read_bytes())
    assert "duplicates" not in record["settings"] and "duplicate" not in record["read"]
    assert open_pool(tmp_path / "keep", "p").num_documents == 3


def test_another_wish_is_another_pool(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"id": 1, "text": "same"}])
    prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES)
    with pytest.raises(RecipeError, match="duplicates"):
        prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, DROP)


def test_D4_tags_of_the_copies_are_kept_and_conditions_see_all_of_them(tmp_path):
    tags = [{"language": "en", "site": "a"}, {"language": "zh"}, {"licence": "MIT"}, {"site": "a"}]
    rows = [{"id": i, "text": "one page", **said} for i, said in enumerate(tags)]
    write_jsonl(tmp_path / "a.jsonl", [*rows, {"id": 9, "text": "another", "language": "de"}])
    read = ReadOptions(tag_keys=("language", "site", "licence"))
    pool = prepare_pool(
        [tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, PrepareOptions(duplicates="drop", read=read)
    )
    [(_, _, said)] = documents_of(pool)["one page"]
    assert {key: sorted(value) if isinstance(value, list) else value for key, value in said.items()} == {
        "language": ["en", "zh"], "site": "a", "licence": "MIT",
    }  # fmt: skip
    for where, count in (({"language": "en"}, 1), ({"language": ["zh", "de"]}, 2), ({"licence": "MIT"}, 1)):
        assert passing(pool, where).sum() == count


def test_a_group_gets_smaller_and_an_empty_one_goes(tmp_path):
    rows = [("g", "x"), ("g", "y"), ("h", "x"), ("h", "y"), (None, "z"), ("i", "z"), ("i", "own")]
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": t, "g": g} for i, (g, t) in enumerate(rows)])
    options = PrepareOptions(duplicates="drop", read=ReadOptions(group_key="g"))
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, options)
    found = documents_of(pool)
    assert {text: len(copies) for text, copies in found.items()} == {"x": 1, "y": 1, "z": 1, "own": 1}
    groups = {found["x"][0][1], found["y"][0][1]}
    assert groups in ({"g"}, {"h"})  # all of one group is gone
    assert pool.card.dropped == {"duplicate": 3}


def test_a_document_whose_sections_others_may_need_stays(tmp_path):
    part = [{"start": 0, "id": "one", "needs": []}]
    rows = [
        {"id": 0, "text": "def f", "g": "a", "units": part},
        {"id": 1, "text": "f()", "g": "a", "units": [{"start": 0, "id": "two", "needs": ["one"]}]},
        {"id": 2, "text": "def f", "g": None},
        {"id": 3, "text": "def f", "g": "b", "units": part},
    ]
    write_jsonl(tmp_path / "a.jsonl", rows)
    read = ReadOptions(group_key="g", units_key="units")
    pool = prepare_pool(
        [tmp_path / "a.jsonl"], tmp_path / "p", BYTES, PrepareOptions(duplicates="drop", read=read)
    )
    assert {id for id, *_ in documents_of(pool)["def f"]} >= {0, 3}
    assert len(pool.needs) == 1


def test_what_the_extended_pool_holds_is_a_duplicate(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": f"t{i}"} for i in range(5)])
    write_jsonl(tmp_path / "b.jsonl", [{"id": 10 + i, "text": f"t{i}"} for i in range(3, 8)])
    old = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, DROP)
    more = PrepareOptions(duplicates="drop", extends=old.path)
    new = prepare_pool([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, more)
    assert sorted(documents_of(new)) == [f"t{i}" for i in range(8)]
    assert new.num_documents == 8
    assert new.card.dropped == {"duplicate": 2}
    assert contents(old.path)["part-00000.bin"] == contents(new.path)["part-00000.bin"]


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b", "c", "ä", "long text " * 3]),
        st.sampled_from([None, None, "g1", "g2", "g3"]),
        st.sampled_from([{}, {"l": "en"}, {"l": "zh"}, {"l": "zh", "m": 1}, {"m": True}]),
    ),
    min_size=1,
    max_size=24,
)


@LAW
@given(records=RECORDS, dice=st.randoms(use_true_random=False), parts=st.integers(1, 4))
def test_order_of_files_and_their_number_change_nothing(tmp_path_factory, records, dice, parts):
    """Documents that stay, their order and their tags depend on ids, groups, tags and texts alone."""
    rows = [{"id": i, "text": t, "g": g, **tags} for i, (t, g, tags) in enumerate(records)]
    if not any(row["text"] for row in rows):
        return
    read = ReadOptions(group_key="g", tag_keys=("l", "m"))
    options = PrepareOptions(duplicates="drop", workers=1, read=read)
    folder = tmp_path_factory.mktemp("law")
    write_jsonl(folder / "one" / "a.jsonl", rows)
    ungrouped = [row for row in rows if row["g"] is None]
    dice.shuffle(ungrouped)  # a group keeps the order of its source
    grouped = [row for row in rows if row["g"] is not None]
    for part in range(parts):
        write_jsonl(
            folder / "more" / f"{part}.jsonl", [*ungrouped[part::parts], {"id": -part - 1, "text": ""}]
        )
    write_jsonl(folder / "more" / "groups.jsonl", [*grouped, {"id": -9, "text": ""}])
    one, more = (
        prepare_pool([folder / name], folder / f"p-{name}", BYTES, options) for name in ("one", "more")
    )
    assert documents_of(one) == documents_of(more)
    assert one.part(0).tobytes() == more.part(0).tobytes()
    found = documents_of(one)
    assert set(found) == {row["text"] for row in rows} - {""}
    assert all(len(copies) == 1 for copies in found.values())
    for text, [(_, _, tags)] in found.items():
        for key in ("l", "m"):
            said = {json.dumps(row[key]) for row in rows if row["text"] == text and key in row}
            value = tags.get(key, [])
            assert {json.dumps(one) for one in (value if isinstance(value, list) else [value])} == said
    read = one.card.source["read"]
    assert read["read"] == len(rows) == read["kept"] + read["duplicate"] + read["empty"]


def test_workers_change_no_byte(tmp_path, tokenizer_file):
    from recipe.text.tokenizers import load_tokenizer

    for part in range(3):
        rows = [{"text": f"{(i * 7 + part) % 500} " + "the quick brown fox " * 150} for i in range(700)]
        write_jsonl(tmp_path / "in" / f"{part}.jsonl", rows)
    made = [
        prepare_pool(
            [tmp_path / "in"], tmp_path / f"{workers}", load_tokenizer(tokenizer_file),
            PrepareOptions(workers=workers, duplicates="drop"),
        )
        for workers in (1, 2)
    ]  # fmt: skip
    assert contents(made[0].path) == contents(made[1].path)
    assert made[0].num_documents == 500


def test_cut_anywhere_it_goes_on_to_the_same_bytes(tmp_path):
    for part in range(3):
        rows = [{"text": f"{(i * 7 + part) % 300} " + "the quick brown fox " * 100} for i in range(600)]
        write_jsonl(tmp_path / "in" / f"{part}.jsonl", rows)
    options = PrepareOptions(workers=1, part_tokens=200_000, duplicates="drop")
    tell, calls = stopping(0)
    whole = contents(prepare_pool([tmp_path / "in"], tmp_path / "whole", BYTES, options, progress=tell).path)
    assert len(calls) > 6
    for at in range(1, len(calls) + 1):
        tell, _ = stopping(at)
        with pytest.raises(Stop):
            prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES, options, progress=tell)
        pool = prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES, options)
        assert contents(pool.path) == whole, at
        for path in pool.path.iterdir():
            path.unlink()


def test_a_decision_cut_before_its_end_is_made_again(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": f"{i % 9}", "l": i} for i in range(40)])
    options = PrepareOptions(duplicates="drop", read=ReadOptions(tag_keys=("l",)))
    whole = contents(prepare_pool([tmp_path / "a.jsonl"], tmp_path / "whole", BYTES, options).path)
    for name in ("save", "write_durably"):
        with monkeypatch.context() as patch:
            target = np if name == "save" else duplicates
            patch.setattr(target, name, _stop)
            with pytest.raises(Stop):
                prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, options)
    assert contents(prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, options).path) == whole


def _stop(*given, **more):
    raise Stop


def test_ranges_of_hashes_change_nothing(tmp_path, monkeypatch):
    made = [Document(id=i, text=f"{i % 37}", source="made") for i in range(400)]
    pools = []
    for at_once in (1 << 20, 16):
        monkeypatch.setattr(duplicates, "RANGE_DOCUMENTS", at_once)
        monkeypatch.setattr(spill, "RANGE_DOCUMENTS", at_once)
        source = MadeInput(lambda: made, {"origin": "test"})
        pools.append(prepare_documents(source, tmp_path / f"{at_once}", BYTES, DROP))
    assert contents(pools[0].path) == contents(pools[1].path)
    assert pools[0].num_documents == 37


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["en", "zh", "1"]))
TAGS = st.dictionaries(st.sampled_from("abc"), st.one_of(VALUES, st.lists(VALUES, max_size=3)), max_size=3)


@given(own=TAGS, others=st.lists(TAGS, max_size=4), dice=st.randoms(use_true_random=False))
def test_joined_tags_lose_nothing_and_do_not_depend_on_the_order_of_copies(own, others, dice):
    joined = joined_tags(own, others)
    shuffled = list(others)
    dice.shuffle(shuffled)
    assert json.dumps(joined_tags(own, shuffled)) == json.dumps(joined)
    assert json.dumps(joined_tags(joined, others)) == json.dumps(joined)  # once is enough
    for tags in (own, *others):
        for key, value in tags.items():
            said = joined.get(key)
            held = said if isinstance(said, list) else [said]
            for one in value if isinstance(value, list) else [value]:
                assert one is None or json.dumps(one) in map(json.dumps, held)
    assert joined_tags(own, []) == own


def test_the_hash_of_a_run_is_that_of_the_table(tmp_path):
    """What is equal between the passes is what the pool's table says is equal."""
    tokens = [np.array([i % 2, 3]) for i in range(4)]
    entries = [
        spill.Entry(key=(1, i), file=0, line=i, tokens=body, row=(i, None, {}, ""))
        for i, body in enumerate(tokens)
    ]
    run = spill.encode_run(entries, np.dtype("<u2"), {}, 0)
    pool = write_pool(tmp_path / "pool", tokens, vocab_size=9)
    digests = [int(c["high"]).to_bytes(8, "big") + int(c["low"]).to_bytes(8, "big") for c in run.contents]
    found = {int(c["number"]): digest.hex() for c, digest in zip(run.contents, digests, strict=True)}
    assert found == {row.document: row.content_hash for row in pool.rows(range(4))}
