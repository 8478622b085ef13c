"""Blocks: which documents, in which rows, and what a change of rule makes of the rest."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config import Rule
from recipe.maths.order import key, permute
from recipe.sequences.blocks import Block, CutBlock, plan_block
from recipe.sequences.pieces import AHEAD
from recipe.sequences.reading_order import BlockPlace, block_documents, num_blocks
from tests.mixing.build import units_of, write
from tests.sequences.build import rule, rules
from tests.sequences.edges import open_spelt

LENGTHS = [5, 0, 17, 3, 9, 30, 1, 1, 12, 8, 4, 25]
GOLDEN_DOCUMENTS = [2, 10, 8, 1, 4, 6]
GOLDEN_ROWS = [
    [(2, 9, 17, 12)],
    [(4, 0, 9, 0), (6, 0, 1, 0)],
    [(10, 0, 4, 0)],
    [(8, 0, 12, 0)],
    [(2, 0, 12, 0)],
]
GROUPS = [0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 6, 7]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blocks")
    write(folder / "plain", LENGTHS, eos=True, part_tokens=40, repeats=2)
    write(folder / "grouped", LENGTHS, bos=True, groups=GROUPS, period=7, repeats=2)
    write(folder / "sorted", [4] * 400)
    return folder


def place(block: int = 0, *, seed: int = 1, epoch: int = 0, units: int = 4) -> BlockPlace:
    return BlockPlace(seed, epoch, block, units)


def entries(block: Block) -> list[list[tuple[int, int, int, int]]]:
    """Rows of (document number, start, stop, fresh)."""
    p, ends = block.rows.pieces, block.rows.ends.tolist()
    rows = []
    for low, high in pairwise(ends):
        held = [i for i in range(low, high) if not p.flags[i] & AHEAD]
        numbers = block.documents[p.document]
        rows.append([tuple(int(c[i]) for c in (numbers, p.start, p.stop, p.fresh)) for i in held])
    return rows


def fresh_tokens(rows: list[list[tuple[int, int, int, int]]]) -> list[tuple[int, int]]:
    return [(d, j) for row in rows for d, _, stop, fresh in row for j in range(fresh, stop)]


def test_the_blocks_of_an_epoch_hold_every_unit_once_and_groups_whole(root: Path):
    pool = open_spelt(root / "grouped", "g")
    units = units_of(len(GROUPS), GROUPS)
    order = [units[permute(i, len(units), key(1, 0, "order", "g"))] for i in range(len(units))]
    assert num_blocks(pool, 3) == 3
    for block in range(3):
        right = [document for unit in order[3 * block : 3 * block + 3] for document in unit]
        assert block_documents(pool, place(block, units=3)).tolist() == right


def test_C3_documents_of_a_group_are_neighbours_in_the_reading_order(root: Path):
    pool = open_spelt(root / "grouped", "g")
    for epoch in range(4):
        order = block_documents(pool, place(epoch=epoch, units=64)).tolist()
        assert sorted(order) == list(range(12))
        at = {document: i for i, document in enumerate(order)}
        assert [at[4] - at[3], at[5] - at[4], at[1] - at[0], at[9] - at[8]] == [1, 1, 1, 1]


def test_C4_epochs_have_other_packing_neighbours(root: Path):
    pool = open_spelt(root / "sorted", "s")
    rows = [entries(plan_block(pool, rule(8), place(epoch=e, units=512))) for e in range(3)]
    pairs = [{frozenset(p[0] for p in row) for row in epoch} for epoch in rows]
    assert max(len(pairs[0] & pairs[1]), len(pairs[1] & pairs[2])) < 10


@settings(max_examples=60)
@given(rules(("best_fit", "none", "concat")), st.sampled_from(["plain", "grouped"]), st.integers(0, 2))
def test_invariant_3_4_a_block_serves_every_token_once_or_counts_it(
    root: Path, drawn: Rule, name: str, number: int
):
    pool = open_spelt(root / name, name)
    block = plan_block(pool, drawn, place(number))
    served = fresh_tokens(entries(block))
    total = sum(LENGTHS[d] for d in block.documents.tolist())
    assert len(served) == len(set(served))
    assert len(served) + sum(block.dropped.values()) == total
    body, overlap, special = block.totals[-1, :3].tolist()
    assert body - overlap == len(served)
    sizes = np.diff(block.totals[:, 0] + block.totals[:, 2])
    assert block.num_sequences == 0 or (sizes.max() <= drawn.context and sizes.min() > 0)
    assert 0 <= special <= block.num_sequences * drawn.context - body


@settings(max_examples=60)
@given(st.lists(rules(("best_fit", "none", "concat")), min_size=2, max_size=4), st.data())
def test_invariant_3_over_any_number_of_cuts_every_token_is_fresh_once(
    root: Path, changing: list[Rule], data: st.DataObject
):
    pool = open_spelt(root / "grouped", "g")
    cuts: tuple[CutBlock, ...] = ()
    served: list[tuple[int, int]] = []
    dropped = 0
    for drawn in changing:
        block = plan_block(pool, drawn, place(units=5), cuts)
        dropped += 0 if cuts else sum(block.dropped.values())
        assert not cuts or not block.dropped
        taken = (
            data.draw(st.integers(0, block.num_sequences))
            if drawn is not changing[-1]
            else block.num_sequences
        )
        served += fresh_tokens(entries(block)[:taken])
        cuts = (*cuts, CutBlock(drawn, taken))
    assert len(served) == len(set(served))
    total = sum(LENGTHS[d] for d in block_documents(pool, place(units=5)).tolist())
    assert len(served) + dropped == total


def test_golden_block(root: Path):
    block = plan_block(open_spelt(root / "plain", "p"), rule(12, stride=9), place(units=6))
    assert block.documents.tolist() == GOLDEN_DOCUMENTS
    assert entries(block) == GOLDEN_ROWS


def test_F5_a_pool_sorted_by_time_gives_no_burst(root: Path):
    pool = open_spelt(root / "sorted", "s")
    rows = entries(plan_block(pool, rule(4), place(units=512)))
    batches = [[row[0][0] // 100 for row in rows[i : i + 40]] for i in range(0, 400, 40)]
    assert all(len(set(batch)) == 4 and max(map(batch.count, range(4))) < 24 for batch in batches)


def test_invariant_7_equal_pools_of_other_names_have_other_orders(root: Path):
    orders = [block_documents(open_spelt(root / "sorted", n), place(units=512)).tolist() for n in "ab"]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_S02_every_epoch_is_another_permutation(root: Path):
    pool = open_spelt(root / "plain", "p")
    orders = [block_documents(pool, place(epoch=e, units=64)).tolist() for e in range(3)]
    assert all(sorted(order) == list(range(12)) for order in orders)
    assert len(set(map(tuple, orders))) == 3
