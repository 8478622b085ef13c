"""Across pools each text is in the first one that has it; nothing else changes, and nothing said is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config.view import Filter
from recipe.errors import RecipeError
from recipe.pools import Section, View, dedup, open_pool, overlap, write_pool
from recipe.pools.chosen_ids import ChosenIds
from recipe.pools.dedup import dedup_pools
from recipe.pools.overlap import find_overlap
from recipe.pools.where import passing
from tests.pools.megatron_files import write_pair

LAW = settings(max_examples=25)
MARKS = {"vocab_size": 12, "eos": 11, "bos": 10}


def make(folder, texts, **more):
    """A pool of texts of single letters a..j."""
    return write_pool(folder, [[ord(c) - 97 for c in text] for text in texts], **MARKS, **more)


def texts(pool):
    return ["".join(chr(97 + t) for t in pool.tokens(n).tolist()) for n in range(pool.num_documents)]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_D4_a_page_of_two_pools_belongs_to_the_first_and_keeps_its_other_tags(tmp_path):
    make(tmp_path / "web", ["a", "bb", "c"], ids=["w0", "w1", "w2"], tags=[{"language": "en"}, None, None])
    make(
        tmp_path / "code",
        ["bb", "d", "a"],
        ids=["c0", "c1", "c2"],
        tags=[{"repo": "r"}, None, {"language": "zh"}],
    )
    web, code = dedup_pools([tmp_path / "web", tmp_path / "code"], tmp_path / "out")
    first, second = (open_pool(one.path, one.name) for one in (web, code))
    assert (texts(first), texts(second)) == (["a", "bb", "c"], ["d"])
    assert [dict(row.tags) for row in first.rows([0, 1, 2])] == [
        {"language": ["en", "zh"]},
        {"repo": "r"},
        {},
    ]
    assert passing(first, {"language": "zh"}).tolist() == [True, False, False]
    assert passing(first, {"repo": "r"}).tolist() == [False, True, False]
    assert code.duplicates_of == {"web": 2}
    assert second.card.dropped == {"duplicate": 2} and first.card.dropped == {}
    assert second.card.source["deduplicated"]["duplicates_of"] == {"web": 2}
    assert (code.documents, code.tokens, code.kept_documents, code.kept_tokens) == (3, 4, 1, 1)


def test_the_order_of_the_pools_is_their_priority(tmp_path):
    make(tmp_path / "a", ["a", "b"])
    make(tmp_path / "b", ["b", "c"])
    for order, kept in (("ab", [["a", "b"], ["c"]]), ("ba", [["b", "c"], ["a"]])):
        found = dedup_pools([tmp_path / name for name in order], tmp_path / order)
        assert [texts(open_pool(one.path, "p")) for one in found] == kept


WORLDS = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "b", "c", "ab", "ba", "abc", "hij" * 5]),
            st.sampled_from([None, None, "g", "h"]),
            st.sampled_from([None, {"l": "en"}, {"l": "zh"}, {"m": 1}]),
        ),
        max_size=12,
    ),
    min_size=1,
    max_size=3,
)


@LAW
@given(world=WORLDS, at_once=st.sampled_from([2, 1 << 20]))
def test_each_text_is_in_one_pool_and_everything_else_stays(tmp_path_factory, world, at_once):
    folder = tmp_path_factory.mktemp("law")
    pools = []
    for index, rows in enumerate(world):
        rows = sorted(rows, key=lambda row: row[1] or "")  # groups stand together
        make(
            folder / f"p{index}", [row[0] for row in rows], ids=[f"{index}.{n}" for n in range(len(rows))],
            groups=[row[1] for row in rows], tags=[row[2] for row in rows],
        )  # fmt: skip
        pools.append(open_pool(folder / f"p{index}", f"p{index}"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup, "RANGE_DOCUMENTS", at_once)
        found = dedup_pools([pool.path for pool in pools], folder / "out")
    home = {}
    for pool in pools:
        for text in texts(pool):
            home.setdefault(text, pool.name)
    said = defaultdict(set)
    for pool in pools:
        for text, row in zip(texts(pool), pool.rows(range(pool.num_documents)), strict=True):
            said[text] |= {(key, value) for key, value in row.tags.items()}
    for pool, one in zip(pools, found, strict=True):
        wanted = [text for text in dict.fromkeys(texts(pool)) if home[text] == pool.name]
        assert one.kept_documents == len(wanted)
        assert one.documents == one.kept_documents + one.left_out.get("duplicate", 0)
        if not wanted:
            assert not one.path.exists()
            continue
        new = open_pool(one.path, pool.name)
        assert texts(new) == wanted  # in the order that they had
        before = {row.id: row for row in pool.rows(range(pool.num_documents))}
        for text, row in zip(wanted, new.rows(range(new.num_documents)), strict=True):
            old = before[row.id]
            assert (row.group, row.source, row.content_hash) == (old.group, old.source, old.content_hash)
            held = {(k, x) for k, v in row.tags.items() for x in (v if isinstance(v, list) else [v])}
            assert held == said[text]
    written = [open_pool(one.path, one.name) for one in found if one.fingerprint]
    shared = find_overlap(written)
    assert not shared.documents.any()


def test_groups_sections_leads_repeats_and_marks_stay(tmp_path):
    rows = [([1, 2, 3, 4], "g", (0, 2)), ([5, 5, 5], "g", (1,)), ([7, 8], None, ()), ([1, 2, 1, 2], "h", ())]
    pool = write_pool(
        tmp_path / "a", [row[0] for row in rows], **MARKS, groups=[row[1] for row in rows],
        sections=[row[2] for row in rows], leads=[[9], [9], [], [9, 9]], repeats=2,
    )  # fmt: skip
    write_pool(tmp_path / "first", [[5, 5, 5]], **MARKS)
    _, one = dedup_pools([tmp_path / "first", tmp_path / "a"], tmp_path / "out")
    new = open_pool(one.path, "a")
    assert new.units.tolist() == [0, 1, 2, 3]
    assert [row.group for row in new.rows([0, 1, 2])] == ["g", None, "h"]
    kept = [0, 2, 3]
    assert [new.stored(i).tolist() for i in range(3)] == [pool.stored(i).tolist() for i in kept]
    assert new.fronts(np.arange(3)).tolist() == pool.fronts(np.array(kept)).tolist()
    assert (new.sections - new.offsets[0]).tolist() == [2 + 2]
    assert new.repeats is not None and len(new.repeats) == len(pool.repeats) - 1  # "5 5 5" repeated itself
    assert new.verify(full=True) == []


def test_a_document_whose_section_its_group_needs_stays(tmp_path):
    sections = [[Section(0, "f")], [Section(0, "g", ("f",)), Section(2, "h")], []]
    write_pool(tmp_path / "first", [[1, 2, 3]], **MARKS)
    write_pool(
        tmp_path / "a", [[1, 2, 3], [4, 5, 6], [1, 2, 3]], **MARKS, groups=["r", "r", None], sections=sections
    )
    _, one = dedup_pools([tmp_path / "first", tmp_path / "a"], tmp_path / "out")
    new = open_pool(one.path, "a")
    assert (one.needed, one.left_out) == (1, {"duplicate": 1})
    assert new.num_documents == 2 and len(new.needs) == 1


def test_what_is_there_already_stays_and_something_else_is_refused(tmp_path):
    make(tmp_path / "a", ["a", "b"])
    make(tmp_path / "b", ["b", "c"])
    said = []
    dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    before = contents(tmp_path / "out")
    dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "out", tell=said.append)
    assert contents(tmp_path / "out") == before
    assert all("up to date" in text for text in said) and len(said) == 2
    with pytest.raises(RecipeError, match="another pool"):
        dedup_pools([tmp_path / "b", tmp_path / "a"], tmp_path / "out")
    with pytest.raises(RecipeError, match="another pool"):
        dedup_pools([tmp_path / "a"], tmp_path)


def test_nothing_is_written_where_one_pool_is_in_the_way_nor_into_a_pool(tmp_path):
    make(tmp_path / "a", ["a", "b"])
    make(tmp_path / "b", ["b", "c"])
    make(tmp_path / "out" / "b", ["d"])
    before = contents(tmp_path)
    with pytest.raises(RecipeError, match="another pool"):
        dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    for inside in (tmp_path / "a", tmp_path / "b" / "new"):
        with pytest.raises(RecipeError, match="inside the pool"):
            dedup_pools([tmp_path / "a", tmp_path / "b"], inside)
    assert contents(tmp_path) == before


def test_a_dry_run_counts_and_writes_nothing(tmp_path):
    make(tmp_path / "a", ["a", "b"])
    make(tmp_path / "b", ["b", "c"])
    found = dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "out", dry_run=True)
    assert [one.kept_documents for one in found] == [2, 1]
    assert not (tmp_path / "out").exists()


def test_a_pool_of_which_nothing_stays_is_not_written(tmp_path):
    make(tmp_path / "a", ["a", "b"])
    make(tmp_path / "b", ["b", "b"])
    _, one = dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert (one.kept_documents, one.fingerprint, one.path.exists()) == (0, None, False)


def test_C04_two_folders_of_one_name_are_refused(tmp_path):
    make(tmp_path / "x" / "part", ["a"])
    make(tmp_path / "y" / "part", ["b"])
    with pytest.raises(RecipeError, match="'part' again"):
        dedup_pools([tmp_path / "x" / "part", tmp_path / "y" / "part"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_G5_pools_whose_tokens_mean_other_things_are_refused(tmp_path):
    make(tmp_path / "a", ["a"])
    write_pool(tmp_path / "b", [[1]], vocab_size=13, eos=12)
    write_pair(tmp_path / "c" / "part", [[[1, 11]]], 4)
    with pytest.raises(RecipeError, match="vocab_size") as error:
        dedup_pools([tmp_path / "a", tmp_path / "b", tmp_path / "c"], tmp_path / "out")
    assert {problem.given for problem in error.value.problems} >= {
        "13", "12", "None", "token files without a document table",
    }  # fmt: skip


def test_ids_choose_what_may_stay(tmp_path):
    make(tmp_path / "a", ["a", "b", "c", "a"], ids=[1, "x", "y", "z"])
    for keep, ids, kept in ((True, ["1", "y"], ["a", "c"]), (False, ["1", "x"], ["c", "a"])):
        [one] = dedup_pools([tmp_path / "a"], tmp_path / f"{keep}", ids=ChosenIds.of(ids, keep=keep))
        assert texts(open_pool(one.path, "a")) == kept
        assert one.left_out == {"near_duplicate": 2}
    [one] = dedup_pools([tmp_path / "a"], tmp_path / "both", ids=ChosenIds.of(["x"], keep=False))
    assert (texts(open_pool(one.path, "a")), one.left_out) == (
        ["a", "c"],
        {"near_duplicate": 1, "duplicate": 1},
    )
    for ids in (["nobody"], ["1", "nobody"]):
        with pytest.raises(RecipeError, match="ids of its documents"):
            dedup_pools([tmp_path / "a"], tmp_path / "no", ids=ChosenIds.of(ids, keep=True))
    make(tmp_path / "b", ["a", "b"], ids=[1, "1"])
    with pytest.raises(RecipeError, match="written alike"):
        dedup_pools([tmp_path / "b"], tmp_path / "no", ids=ChosenIds.of(["1"], keep=True))
    two = ["1", "nobody"]  # as many as documents are called so
    with pytest.raises(RecipeError, match="2 ids, of which 1 are of documents; of none: 'nobody'"):
        dedup_pools([tmp_path / "b"], tmp_path / "no", ids=ChosenIds.of(two, keep=False, again=lambda: two))
    with pytest.raises(RecipeError, match="one pool"):
        dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "no", ids=ChosenIds.of(["1"], keep=True))


@given(st.lists(st.text(max_size=2)), st.sets(st.text(max_size=2)))
def test_a_list_of_ids_holds_what_is_in_it(listed, asked):
    chosen = ChosenIds.of(listed, keep=True)
    assert len(chosen.hashes) == len(set(listed))
    run = ChosenIds.of(sorted(asked), keep=True).hashes
    assert int(chosen._holds(run).sum()) == len(set(listed) & asked)


def test_the_card_says_who_the_text_is_by_and_how_it_was_prepared(tmp_path):
    from recipe.pools.about import describe_pool
    from recipe.text.prepare import prepare_pool
    from recipe.text.tokenizers import ByteTokenizer

    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"id": i, "text": "t" * (i % 3 + 1)}) + "\n" for i in range(6))
    )
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "a", ByteTokenizer())
    describe_pool(pool.path, {"kind": "public"})
    [one] = dedup_pools([pool.path], tmp_path / "out")
    new = open_pool(one.path, "a")
    assert new.card.about == {"kind": "public"}
    record = json.loads((new.path / "prepare.json").read_bytes())
    assert record["inputs"][0]["name"] == "a.jsonl"
    assert (new.card.shuffled, new.card.seed, new.num_documents) == (True, 0, 3)
    with pytest.raises(RecipeError, match="copied"):  # it is not what prepare would make
        prepare_pool([tmp_path / "a.jsonl"], one.path, ByteTokenizer())


OVERLAP = st.lists(st.lists(st.sampled_from(["", "a", "b", "ab", "abc"]), max_size=8), min_size=1, max_size=4)


@LAW
@given(world=OVERLAP, at_once=st.sampled_from([1, 1 << 20]))
def test_the_overlap_is_what_whoever_compares_texts_counts(tmp_path_factory, world, at_once):
    """Also of token files that carry no hashes."""
    folder = tmp_path_factory.mktemp("law")
    pools = []
    for index, held in enumerate(world):
        if index % 2 and held:
            tokens = [[*(ord(c) - 97 for c in text), 11] for text in held]
            write_pair(folder / f"{index}" / "part", [[one] for one in tokens], 4)
        else:
            write_pool(folder / f"{index}", [[ord(c) - 97 for c in t] for t in held], vocab_size=12, eos=11)
        pools.append(open_pool(folder / f"{index}", f"{index}", eos=11))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "RANGE_DOCUMENTS", at_once)
        found = find_overlap(pools)
    for i, mine in enumerate(world):
        counts = Counter(mine)
        for j, others in enumerate(world):
            shared = [text for text in mine if text in others]
            if i == j:
                shared = [text for text, count in counts.items() for _ in range(count - 1)]
            assert found.documents[i, j] == len(shared)
            assert found.tokens[i, j] == sum(map(len, shared))
        assert (found.total_documents[i], found.total_tokens[i]) == (len(mine), sum(map(len, mine)))


CUT = """
import sys
from recipe.pools.dedup import dedup_pools
dedup_pools([sys.argv[1] + "/a", sys.argv[1] + "/b"], sys.argv[1] + "/out")
"""


def test_killed_at_any_time_it_goes_on_to_the_same_bytes(tmp_path):
    dice = np.random.default_rng(0)
    bodies = [dice.integers(0, 9, size=dice.integers(1, 40)) for _ in range(3000)]
    for name, held in (("a", bodies[:2000]), ("b", bodies[1000:])):
        tags = [{"from": name, "n": i % 7} for i in range(len(held))]
        write_pool(tmp_path / name, held, **MARKS, tags=tags)
    dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "whole")
    whole, killed = contents(tmp_path / "whole"), 0
    for tenths in range(1, 40, 3):
        process = subprocess.Popen([sys.executable, "-c", CUT, str(tmp_path)])
        time.sleep(tenths / 10)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.wait()
        if process.returncode == 0:
            break
    dedup_pools([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize("cut", range(1, 30))
def test_cut_at_any_write_it_goes_on_to_the_same_bytes(tmp_path, monkeypatch, cut):
    """Every durable write of the pools, one after the other."""
    from recipe.pools import closing, copied, workplace, writer

    make(tmp_path / "a", ["a", "b", "ab", "abc"], tags=[{"l": "en"}, None, None, None])
    make(tmp_path / "b", ["b", "c", "a", "cab"], tags=[{"l": "zh"}, None, {"l": "zh"}, None])
    places = [tmp_path / "a", tmp_path / "b"]
    dedup_pools(places, tmp_path / "whole")
    real, calls = workplace.write_durably, []

    class Stop(BaseException):
        pass

    def write(path, data):
        calls.append(path)
        if len(calls) == cut:
            raise Stop
        real(path, data)

    with monkeypatch.context() as patch:
        for module in (closing, copied, writer):
            patch.setattr(module, "write_durably", write)
        try:
            dedup_pools(places, tmp_path / "out")
        except Stop:
            pass
        else:
            assert len(calls) < cut
    dedup_pools(places, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_views_by_tags_that_dedup_joined_hold_what_any_copy_said(tmp_path):
    """``where:`` of a recipe's pool, on the pool that dedup wrote."""
    make(tmp_path / "web", ["a", "bb", "c"], tags=[{"language": "en"}, {"language": "en"}, None])
    make(tmp_path / "zh", ["bb", "dd"], tags=[{"language": "zh"}, {"language": "zh"}])
    dedup_pools([tmp_path / "web", tmp_path / "zh"], tmp_path / "out")
    pool = open_pool(tmp_path / "out" / "web", "web")
    counts = {
        language: View(pool, Filter({"language": language}, None, None, "document")).num_documents
        for language in ("en", "zh")
    }
    assert counts == {"en": 2, "zh": 1}
