"""Facts C3 to C6 and B5 by hand: what lies side by side, what stands in front, what is left out."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.errors import RecipeError
from recipe.mixing.in_front import front_problems
from recipe.pools import Section
from recipe.sequences.blocks import plan_block
from recipe.sequences.concat import count_examples
from recipe.sequences.packing import best_fit, best_fit_reference
from recipe.sequences.reading_order import BlockPlace
from tests.mixing.build import BOS, EOS, World, make, plain_batch, stage, world
from tests.pools.megatron_files import write_pair
from tests.sequences.build import rule
from tests.sequences.edges import open_spelt

A, B, C = [10, 11, 12], [20, 21], [30, 31, 32, 33]


def made(
    root: Path, documents: list[list[int]], context: int, *, packing: Any = "best_fit", **more: Any
) -> World:
    """A world of one pool and one stage of one row a step."""
    keys = {key: more.pop(key) for key in ("slicing", "steps") if key in more}
    top = {"labels": more.pop("labels", "shifted"), "max_epochs": 99}
    recipe.write_pool(root / "a", documents, vocab_size=100, eos=EOS, **more)
    return world(root, {"a": {}}, [stage(context, {"a": 1}, packing=packing, **{"steps": 1, **keys})], **top)


def row(root: Path, documents: list[list[int]], context: int, **more: Any) -> dict[str, list[int]]:
    """The first row."""
    batch = plain_batch(made(root, documents, context, **more).stream().batch(0))
    return {name: column[0] for name, column in batch.items() if name != "pool"}


def test_C3_documents_of_a_group_lie_side_by_side_in_order_and_see_each_other(tmp_path: Path):
    got = row(tmp_path, [A, B], 8, groups=[0, 0], packing={"attention": "group"})
    assert got["input_ids"] == [*A, EOS, *B, EOS, 0]
    assert got["segment_ids"] == [0] * 7 + [-1]
    assert got["position_ids"] == [*range(7), 0]
    assert got["labels"] == [11, 12, EOS, -100, 21, EOS, -100, -100]


def test_C3_groups_stay_isolated_in_their_row(tmp_path: Path):
    got = row(tmp_path, [A, B, A, B], 14, groups=[0, 0, 1, 1], packing={"attention": "group"})
    assert got["input_ids"] == [*A, EOS, *B, EOS] * 2
    assert got["segment_ids"] == [0] * 7 + [1] * 7
    assert got["position_ids"] == [*range(7)] * 2


def test_C3_a_group_longer_than_a_row_is_split_in_order_at_piece_edges(tmp_path: Path):
    recipe.write_pool(tmp_path / "a", [A, B, C, A, B], vocab_size=100, eos=EOS, groups=[0] * 5)
    block = plan_block(open_spelt(tmp_path / "a", "a"), rule(8, attention="group"), BlockPlace(1, 0, 0, 8))
    rows = [block.rows.pieces.document[a:b].tolist() for a, b in pairwise(block.rows.ends.tolist())]
    assert sorted(rows) == [[0, 1], [2], [3, 4]]


def test_C3_documents_without_a_group_are_apart_as_ever(tmp_path: Path):
    one = row(tmp_path / "one", [A, B, C], 16, packing={"attention": "group"})
    other = row(tmp_path / "other", [A, B, C], 16)
    assert one == other


@pytest.mark.parametrize(
    ("attention", "positions", "cross"),
    list(product(["piece", "group", "sequence"], ["restart", "continue"], [False, True])),
)
def test_C5_attention_positions_and_labels_are_set_apart(
    tmp_path: Path, attention: str, positions: str, cross: bool
):
    packing = {"attention": attention, "positions": positions, "cross_labels": cross}
    got = row(tmp_path, [A, B], 8, groups=[0, 0], packing=packing)
    assert got["input_ids"] == [*A, EOS, *B, EOS, 0]
    assert got["segment_ids"] == ([0] * 4 + [1] * 3 if attention == "piece" else [0] * 7) + [-1]
    restarts = positions == "restart" and attention != "group"
    assert got["position_ids"] == ([*range(4), *range(3)] if restarts else [*range(7)]) + [0]
    assert got["labels"] == [11, 12, EOS, 20 if cross else -100, 21, EOS, -100, -100]


MARKS: dict[str, Any] = {"groups": [0, 0], "leads": [[7, 8], [7]], "packing": {"attention": "group"}}


def test_C6_files_of_a_repository_are_separated_by_their_markers(tmp_path: Path):
    """A marker has no label but its last token, which predicts the document's first as BOS does."""
    got = row(tmp_path, [A, B], 12, **MARKS)
    assert got["input_ids"] == [7, 8, *A, EOS, 7, *B, EOS, 0, 0]
    assert got["labels"] == [-100, 10, 11, 12, EOS, -100, 20, 21, EOS, -100, -100, -100]
    assert got["segment_ids"] == [0] * 10 + [-1, -1]
    assert got["attention_mask"] == [1] * 10 + [0, 0]


def test_C6_markers_under_labels_that_equal_the_inputs(tmp_path: Path):
    got = row(tmp_path, [A, B], 12, labels="inputs", **MARKS)
    assert got["labels"] == [-100, -100, 10, 11, 12, EOS, -100, 20, 21, EOS, -100, -100]


def test_C6_markers_are_counted_special_and_body_is_the_documents(tmp_path: Path):
    state = made(tmp_path, [A, B], 12, **MARKS).stream().snapshot(1).pools[0]
    assert (state.body, state.special, state.padding, state.labels) == (5, 5, 2, 7)


@pytest.mark.parametrize("window", [8, 6])
def test_C6_the_first_cut_leaves_room_for_the_marker(tmp_path: Path, window: int):
    """A marker of three in rows of eight: five tokens of the document fit beside it."""
    text = list(range(10, 30))
    recipe.write_pool(tmp_path / "a", [text], vocab_size=100, leads=[[7, 8, 9]])
    block = plan_block(open_spelt(tmp_path / "a", "a"), rule(8, window=window), BlockPlace(1, 0, 0, 1))
    spans = sorted(zip(block.rows.pieces.start.tolist(), block.rows.pieces.stop.tolist(), strict=True))
    assert spans[:3] == [(-3, 0), (0, 5), (5, 5 + window)]


def test_C6_a_marker_that_fills_the_row_is_refused_before_the_first_step(tmp_path: Path):
    recipe.write_pool(tmp_path / "a", [A], vocab_size=100, leads=[[7] * 8])
    plain = make(tmp_path, {"a": {}}, [stage(8, {"a": 1})])
    with pytest.raises(RecipeError, match=r"context[\s\S]*more than the 8"):
        recipe.start_run(plain, tmp_path / "run")


NEEDS: dict[str, Any] = {
    "groups": [0, 0],
    "sections": [[Section(0), Section(1, "sum")], [Section(0, "call", ("sum",))]],
}


def needy(root: Path, context: int, **more: Any) -> Any:
    more_groups: dict[str, Any] = {"groups": [0, 0, 1], "sections": [*NEEDS["sections"], [Section(0)]]}
    recipe.write_pool(root / "a", [A, B, C], vocab_size=100, eos=EOS, **more_groups)
    return plan_block(open_spelt(root / "a", "a"), rule(context, **more), BlockPlace(1, 0, 0, 8))


def test_B5_what_a_section_needs_is_brought_in_front_and_never_labelled(tmp_path: Path):
    got = made(tmp_path, [A, B], 8, packing="none", steps=2, **NEEDS)
    rows = [plain_batch(got.stream().batch(step)) for step in range(2)]
    second = next(r for r in rows if 20 in r["input_ids"][0])
    assert second["input_ids"] == [[11, 12, *B, EOS, 0, 0, 0]]
    assert second["labels"] == [[-100, -100, 21, EOS, -100, -100, -100, -100]]
    assert second["segment_ids"] == [[0] * 5 + [-1] * 3]
    assert second["position_ids"] == [[0, 1, 2, 3, 4, 0, 0, 0]]
    state = got.stream().snapshot(2).pools[0]
    assert (state.body, state.overlap, state.special) == (7, 2, 2)


def test_B5_a_bundle_that_holds_what_is_needed_gets_nothing_more(tmp_path: Path):
    got = row(tmp_path, [A, B], 8, packing={"attention": "group"}, **NEEDS)
    assert got["input_ids"] == [*A, EOS, *B, EOS, 0]


def test_B5_where_needs_do_not_fit_the_whole_group_is_left_out_and_counted(tmp_path: Path):
    block = needy(tmp_path, 4)
    assert sorted({int(block.documents[d]) for d in block.rows.pieces.document}) == [2]
    assert block.dropped == {"oversize": 5}


def test_B5_overlap_has_no_label_although_overlap_labels_are_on(tmp_path: Path):
    block = needy(tmp_path, 8, overlap_labels=True)
    plain = needy(tmp_path / "other", 8)
    assert block.totals[-1].tolist() == plain.totals[-1].tolist()


def test_B5_needs_do_not_go_with_documents_joined_before_they_are_cut(tmp_path: Path):
    got = made(tmp_path, [A, B], 8, packing="concat", **NEEDS)
    (problem,) = front_problems(got.recipe, got.pools)
    assert (problem.where, problem.given) == ("stages.s0.packing.method", "concat")


def test_C4_separators_are_left_out_by_hashes_anew_in_every_epoch_and_counted(tmp_path: Path):
    documents = [[10 + k] * 3 for k in range(40)]
    recipe.write_pool(tmp_path / "a", documents, vocab_size=100, eos=EOS)
    pool = open_spelt(tmp_path / "a", "a")
    kept = set()
    for epoch in range(3):
        block = plan_block(pool, rule(16, eos_keep=Fraction(1, 2)), BlockPlace(1, epoch, 0, 64))
        special, separators = int(block.totals[-1, 2]), int(block.totals[-1, 5])
        assert special + separators == 40
        assert 8 < separators < 32
        flags = block.rows.pieces.flags
        kept.add(frozenset(int(d) for d, f in zip(block.rows.pieces.document, flags, strict=True) if f & 2))
        assert block.totals[-1, 3] == 40 * 3
    assert len(kept) == 3


def test_C4_the_label_before_a_separator_that_is_left_out_stays(tmp_path: Path):
    got = row(tmp_path, [A, A], 6, packing={"eos_keep": "0%"})
    assert got["input_ids"] == [*A, *A]
    assert got["labels"] == [11, 12, EOS] * 2
    assert got["segment_ids"] == [0, 0, 0, 1, 1, 1]


def test_C4_separators_that_are_left_out_of_joined_documents(tmp_path: Path):
    got = row(tmp_path, [A, A], 5, packing={"method": "concat", "eos_keep": "0%"}, slicing={"tail": "drop"})
    assert got["input_ids"] == [*A, *A[:2]]
    assert got["labels"] == [11, 12, EOS, 11, 12]


def test_C4_neighbours_change_every_epoch_where_all_lengths_differ(tmp_path: Path):
    """One block holds the pool: by length alone the same documents would share a row in every epoch."""
    documents = [[10] * n for n in range(1, 600)]
    recipe.write_pool(tmp_path / "a", documents, vocab_size=100)
    pool = open_spelt(tmp_path / "a", "a")

    def neighbours(epoch: int, shuffle_fit: bool) -> set[frozenset[int]]:
        block = plan_block(pool, rule(1024, shuffle_fit=shuffle_fit), BlockPlace(1, epoch, 0, 1024))
        found = set()
        for a, b in pairwise(block.rows.ends.tolist()):
            numbers = block.documents[block.rows.pieces.document[a:b]].tolist()
            found |= {frozenset(pair) for pair in product(numbers, numbers) if pair[0] < pair[1]}
        return found

    same = [neighbours(epoch, False) for epoch in range(2)]
    other = [neighbours(epoch, True) for epoch in range(2)]
    assert same[0] == same[1]
    assert len(other[0] & other[1]) < len(other[0]) // 3


@settings(max_examples=80)
@given(
    st.integers(1, 40).flatmap(lambda t: st.tuples(st.just(t), st.lists(st.integers(1, t)))),
    st.integers(1, 8),
)
def test_C4_best_fit_by_classes_of_length_is_the_rule_in_words(drawn: tuple[int, list[int]], grain: int):
    context, sizes = drawn
    alone = [False] * len(sizes)
    got = best_fit(np.array(sizes, np.int64), np.array(alone, bool), context, grain).tolist()
    assert got == best_fit_reference(sizes, alone, context, grain)
    assert max(np.bincount(got, weights=sizes), default=0) <= context


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize(("context", "stride"), [(8, 8), (8, 3), (5, 1)])
def test_A5_concat_counts_exactly_with_and_without_labels_across_documents(
    tmp_path: Path, cross: bool, context: int, stride: int
):
    """Every example reads one id more than it has positions, its own document's or the next one's."""
    lengths = [7, 3, 12, 1, 9]
    documents = [list(range(10, 10 + n)) for n in lengths]
    recipe.write_pool(tmp_path / "a", documents, vocab_size=100, eos=EOS)
    drawn = rule(context, stride=stride, method="concat", tail="drop", cross_labels=cross)
    block = plan_block(open_spelt(tmp_path / "a", "a"), drawn, BlockPlace(1, 0, 0, 8))
    num_ids = sum(lengths) + len(lengths)
    assert (
        block.num_sequences
        == count_examples(num_ids, context, stride)
        == 1 + (num_ids - context - 1) // stride
    )
    if cross and stride == context:
        assert block.totals[-1, 3] == block.num_sequences * context


def test_marks_of_imported_pairs_stand_once_a_document(tmp_path: Path):
    """Of four documents two begin with a stored BOS, and two end with a stored EOS; no other mark appears."""
    stored = [[BOS, *A, EOS], [*B], [BOS, *C], [40, 41, EOS]]
    write_pair(tmp_path / "a", [[document] for document in stored], 4)
    built = world(tmp_path, {"a": {"eos": EOS, "bos": BOS}}, [stage(24, {"a": 1})], max_epochs=99)
    (ids,) = plain_batch(built.stream().batch(0))["input_ids"]
    assert (ids.count(BOS), ids.count(EOS)) == (2, 2)
    state = built.stream().snapshot(1).pools[0]
    assert (state.body, state.special) == (11, 4)


def test_BOS_and_EOS_stand_once_a_document_whatever_the_pool_stores(tmp_path: Path):
    """Pools that store none, one or both of the marks; each mark in a whole reading is there or a label."""
    for bos, eos, method in product((None, BOS), (None, EOS), ("best_fit", "none", "concat")):
        root = tmp_path / f"{bos}{eos}{method}"
        recipe.write_pool(root / "a", [A, B, C, list(range(40, 59))], vocab_size=100, bos=bos, eos=eos)
        built = world(root, {"a": {}}, [stage(8, {"a": 1}, packing=method, steps=20)], max_epochs=99)
        stream = built.stream()
        ids, first, step = list[int](), list[int](), 0
        while stream.snapshot(step).pools[0].cursor.epoch == 0:
            batch = plain_batch(stream.batch(step))
            ids += batch["input_ids"][0]
            first += batch["labels"][0]
            step += 1
        assert ids.count(BOS) == (4 if bos else 0)
        assert ids.count(EOS) <= (4 if eos else 0)
        assert first.count(EOS) == (4 if eos else 0)
        assert sorted(i for i in ids if i >= 10) == sorted([*A, *B, *C, *range(40, 59)])
