"""A pool split later is what it would have been, had it been prepared so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import Section, open_pool, write_pool
from recipe.pools.dedup import dedup_pools
from recipe.pools.sheet import left_out
from recipe.pools.splits import parse_split
from recipe.pools.splitting import split_pool
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool, prepare_splits
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer
from tests.text.cut import contents
from tests.text.stored import write_jsonl

BYTES = ByteTokenizer()
THREE = parse_split("train=50%,validation=25%,test=25%")
LAW = settings(max_examples=20)


ROWS = st.lists(
    st.tuples(st.sampled_from("abcdefghijkl"), st.sampled_from([None, None, *(f"g{i}" for i in range(6))])),
    min_size=8,
    max_size=40,
)


@LAW
@given(rows=ROWS, drop=st.booleans())
def test_splitting_later_is_splitting_while_reading(tmp_path_factory, rows, drop):
    """Tokens, ids, groups and what is left out: the same, byte for byte, with groups and duplicates."""
    folder = tmp_path_factory.mktemp("law")
    write_jsonl(folder / "a.jsonl", [{"id": i, "text": t, "g": g, "n": i} for i, (t, g) in enumerate(rows)])
    read = ReadOptions(group_key="g", tag_keys=("n",))
    duplicates = "drop" if drop else "keep"
    try:
        options = PrepareOptions(split=THREE, duplicates="keep", read=read)
        at_once = prepare_splits([folder / "a.jsonl"], folder / "at-once", BYTES, options)
    except RecipeError:
        assume(False)
        raise
    pool = prepare_pool([folder / "a.jsonl"], folder / "a", BYTES, PrepareOptions(read=read))
    later = split_pool(pool, THREE, folder / "later")
    for name, one in at_once.items():
        other = later[name]
        assert one.part(0).tobytes() == other.part(0).tobytes()
        numbers = np.arange(one.num_documents)
        assert [(r.id, r.group) for r in one.rows(numbers)] == [(r.id, r.group) for r in other.rows(numbers)]
        assert one.card.source["split"] == other.card.source["split"]
        assert one.card.dropped.get("other_split", 0) == other.card.dropped.get("other_split", 0)
        for pool_of in (one, other):
            assert left_out(pool_of.card)["adds_up"]
    if duplicates == "drop":
        found = dedup_pools([later[name].path for name in THREE.names], folder / "unique")
        assert all(set(one.duplicates_of) <= {one.name} for one in found)  # no text is in two splits


def test_no_split_is_written_where_one_of_them_is_in_the_way_nor_into_a_pool(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": f"t{i}"} for i in range(60)])
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "a", BYTES)
    prepare_pool([tmp_path / "a.jsonl"], tmp_path / "out" / THREE.names[-1], BYTES)
    before = contents(tmp_path)
    with pytest.raises(RecipeError, match="another pool"):
        split_pool(pool, THREE, tmp_path / "out")
    with pytest.raises(RecipeError, match="inside the pool"):
        split_pool(pool, THREE, tmp_path / "a")
    assert contents(tmp_path) == before


def test_what_is_there_stays_and_another_split_is_refused(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": f"t{i}"} for i in range(60)])
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "a", BYTES)
    split_pool(pool, THREE, tmp_path / "out")
    before, said = contents(tmp_path / "out"), []
    split_pool(pool, THREE, tmp_path / "out", tell=said.append)
    assert contents(tmp_path / "out") == before and len(said) == 3
    (tmp_path / "out" / "splits.json").unlink()  # written last: a cut before it is made good
    split_pool(pool, THREE, tmp_path / "out")
    assert contents(tmp_path / "out") == before
    with pytest.raises(RecipeError, match="another pool"):
        split_pool(pool, parse_split("train=60%,validation=20%,test=20%"), tmp_path / "out")
    with pytest.raises(RecipeError, match="one part of a split"):
        split_pool(open_pool(tmp_path / "out" / "train", "train"), THREE, tmp_path / "more")


def test_a_split_of_nothing_is_refused(tmp_path):
    pool = write_pool(tmp_path / "a", [[1], [2]], vocab_size=9)
    with pytest.raises(RecipeError, match="0 of 2 documents"):
        split_pool(pool, parse_split("train=99.99%,test=0.01%"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_document_that_its_group_needs_decides_where_its_text_is(tmp_path):
    """The smallest split would keep the text; but there a group would lose what it needs."""
    halves = parse_split("train=75%,test=25%")
    sides = {}
    for i in range(40):  # two groups of different sides
        probe = write_pool(tmp_path / f"{i}", [[1], [2]], vocab_size=9, groups=[f"g{i}", f"h{i}"])
        try:
            found = split_pool(probe, halves, tmp_path / f"out{i}")
        except RecipeError:
            continue
        sides = {row.group: name for name, pool in found.items() for row in pool.rows([0])}
        break
    train, test = sorted(sides, key=lambda group: sides[group] == "test")
    sections = [[Section(0, "f")], [Section(0, "g", ("f",))], [], []]
    pool = write_pool(
        tmp_path / "a", [[1, 2], [3], [1, 2], [4]], vocab_size=9,
        groups=[train, train, test, test], sections=sections,
    )  # fmt: skip
    found = split_pool(pool, halves, tmp_path / "out")
    assert (found["train"].num_documents, found["test"].num_documents) == (2, 1)
    assert len(found["train"].needs) == 1 and found["test"].card.dropped == {"other_split": 1}
    pool = write_pool(
        tmp_path / "b", [[1, 2], [3], [1, 2], [4]], vocab_size=9,
        groups=[train, train, test, test], sections=[*sections[:2], *sections[:2]],
    )  # fmt: skip
    with pytest.raises(RecipeError, match="sections of its group need it"):
        split_pool(pool, halves, tmp_path / "none")
    assert not (tmp_path / "none").exists()
