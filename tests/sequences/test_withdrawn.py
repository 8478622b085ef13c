"""Blocks without withdrawn documents, and with only the part of a cut that goes on."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config import Rule
from recipe.sequences.blocks import Block, CutBlock, holds_withdrawn, plan_block
from recipe.sequences.reading_order import BlockPlace
from recipe.sequences.withdrawn import NOTHING, Withdrawn
from tests.mixing.build import write
from tests.sequences.build import rule, rules
from tests.sequences.edges import open_spelt

LENGTHS = [5, 0, 17, 3, 9, 30, 1, 1, 12, 8, 4, 25]
AT = BlockPlace(1, 0, 0, 6)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("withdrawn")
    write(folder / "plain", LENGTHS, eos=True, part_tokens=40, repeats=2)
    write(
        folder / "grouped",
        LENGTHS,
        bos=True,
        groups=[0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 6, 7],
        period=7,
        repeats=2,
    )
    return folder


def gone(*documents: int, number: int = 1) -> Withdrawn:
    return Withdrawn(np.array(sorted(documents), np.int64), np.full(len(documents), number))


def fresh(block: Block, first: int = 0, last: int | None = None) -> list[tuple[int, int]]:
    """(document, token) of what some sequences serve fresh."""
    p, ends = block.rows.pieces, block.rows.ends.tolist()
    rows = list(pairwise(ends))[first:last]
    held = [i for low, high in rows for i in range(low, high)]
    numbers = block.documents[p.document].tolist()
    return [(numbers[i], j) for i in held for j in range(int(p.fresh[i]), int(p.stop[i]))]


def shows(block: Block) -> set[int]:
    """Documents of which a block holds anything."""
    return set(block.documents[np.unique(block.rows.pieces.document)].tolist())


def test_a_withdrawn_document_leaves_its_place_in_the_order_empty(root: Path):
    pool = open_spelt(root / "plain", "p")
    whole = plan_block(pool, rule(40, method="none"), AT)
    assert whole.documents.tolist() == [2, 10, 8, 1, 4, 6]
    block = plan_block(pool, rule(40, method="none"), AT, (), (gone(10, 1), 1))
    assert block.documents.tolist() == whole.documents.tolist()
    assert block.tokens.tolist() == whole.tokens.tolist()
    assert shows(block) == {2, 8, 4, 6}
    assert block.dropped == {"withdrawn": 4}


def test_every_token_of_a_withdrawn_document_is_withdrawn_and_nothing_else(root: Path):
    """Also those that the tail, or a limit of the length, would have left out."""
    pool = open_spelt(root / "plain", "p")
    for how in ({"tail": "drop"}, {"oversize": "drop"}, {"oversize": "truncate"}):
        drawn = rule(4, method="none", **how)
        left = plan_block(pool, drawn, AT).dropped
        block = plan_block(pool, drawn, AT, (), (gone(2), 1))
        assert block.dropped["withdrawn"] == 17
        assert sum(block.dropped.values()) < sum(left.values()) + 17
        assert len(fresh(block)) + sum(block.dropped.values()) == sum(block.tokens)


def test_a_block_does_not_know_of_later_withdrawals(root: Path):
    pool = open_spelt(root / "plain", "p")
    before = plan_block(pool, rule(8), AT)
    for documents, number in ((gone(2, number=3), 2), (gone(5, 11), 1), (NOTHING, 9)):
        block = plan_block(pool, rule(8), AT, (), (documents, number))
        assert fresh(block) == fresh(before)
        assert not block.dropped


def test_a_cut_drops_what_was_still_to_come_of_a_withdrawn_document(root: Path):
    pool = open_spelt(root / "plain", "p")
    before = plan_block(pool, rule(4), AT)
    for served in range(before.num_sequences + 1):
        to_come = [token for token in fresh(before, served) if token[0] == 2]
        cut = (CutBlock(rule(4), served),)
        block = plan_block(pool, rule(4), AT, cut, (gone(2), 1))
        assert block.dropped == ({"withdrawn": len(to_come)} if to_come else {})
        assert sorted(fresh(block)) == sorted(t for t in fresh(before, served) if t[0] != 2)


def test_a_label_across_documents_is_not_read_from_a_withdrawn_one(root: Path):
    pool = open_spelt(root / "grouped", "g")
    joined = rule(3, method="concat", cross_labels=True)
    block = plan_block(pool, joined, BlockPlace(1, 0, 0, 64))
    ahead = [
        (row, int(block.documents[block.rows.pieces.document[high - 1]]))
        for row, (_, high) in enumerate(pairwise(block.rows.ends.tolist()))
        if block.rows.pieces.flags[high - 1] & 16
    ]
    row, document = next((r, d) for r, d in ahead if d not in {t[0] for t in fresh(block, r, r + 1)})
    assert holds_withdrawn(block, (row, row + 1), gone(document), 0)
    assert not holds_withdrawn(block, (row, row + 1), gone(document), 1)
    assert not holds_withdrawn(block, (row, row), gone(document), 0)


@settings(max_examples=80)
@given(st.lists(rules(("best_fit", "none", "concat")), min_size=1, max_size=4), st.data())
def test_invariant_3_over_cuts_ranges_and_withdrawals_every_token_is_fresh_once_or_dropped(
    root: Path, changing: list[Rule], data: st.DataObject
):
    """What a cut leaves is split in two ranges; each goes on by itself."""
    pool = open_spelt(root / data.draw(st.sampled_from(["plain", "grouped"])), "g")
    draws = data.draw(
        st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), max_size=6, unique_by=lambda d: d[0])
    )
    known = Withdrawn(*(np.array([d[k] for d in sorted(draws)], np.int64) for k in (0, 1)))
    whole = plan_block(pool, changing[0], AT)
    served, dropped = list[tuple[int, int]](), 0
    waiting: list[tuple[tuple[CutBlock, ...], int]] = [((), 0)]
    while waiting:
        cuts, number = waiting.pop()
        drawn = changing[min(len(cuts), len(changing) - 1)]
        block = plan_block(pool, drawn, AT, cuts, (known, number))
        dropped += sum(block.dropped.values())
        assert not cuts or set(block.dropped) <= {"withdrawn"}
        assert not shows(block) & set(known.documents[known.numbers <= number].tolist())
        size = block.num_sequences
        a, b = (
            sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size))))
            if len(cuts) < 3
            else (size, size)
        )
        served += fresh(block, 0, a)
        for low, high in ((a, b), (b, None)):
            if low < (size if high is None else high):
                more = data.draw(st.integers(number, 4))
                waiting.append(((*cuts, CutBlock(drawn, low, number, high)), more))
    assert len(served) == len(set(served))
    assert len(served) + dropped == int(whole.tokens.sum())
