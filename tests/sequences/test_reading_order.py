"""Reading orders: of renamed pools, of pools that have grown, and of the part that a proxy reads."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.maths.order import key, permute, place_of, units_at, units_in
from recipe.pools import Pool, open_pool
from recipe.sequences.blocks import plan_block
from recipe.sequences.reading_order import BlockPlace, block_documents, epoch_units, num_blocks, place_of_unit
from tests.mixing.build import write
from tests.pools.sparse import sparse_pool
from tests.sequences.build import rule


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("orders")
    write(folder / "plain", [3] * 23)
    for units, extent in ((40, 1), (40, 8), (30, 8), (64, 4), (400, 4)):
        sparse_pool(folder / f"{units}-{extent}", units, 3, extent=extent)
    return folder


def order(pool: Pool, place: BlockPlace) -> list[int]:
    """A whole epoch, block by block."""
    blocks = range(num_blocks(pool, place.block_units, place.prefix, place.fraction))
    return [d for block in blocks for d in block_documents(pool, replace(place, block=block)).tolist()]


def test_a_renamed_pool_keeps_the_order_of_its_former_name(root: Path):
    old, new = open_pool(root / "plain", "web"), open_pool(root / "plain", "web_2")
    at = BlockPlace(1, 0, 0, 5)
    assert order(old, at) == order(new, replace(at, name="web")) != order(new, at)
    blocks = [plan_block(old, rule(6), at), plan_block(new, rule(6), replace(at, name="web"))]
    assert blocks[0].rows.pieces.document.tolist() == blocks[1].rows.pieces.document.tolist()
    assert plan_block(new, rule(6), at).documents.tolist() != blocks[0].documents.tolist()


@pytest.mark.parametrize(
    ("then", "now"), [("30-8", "40-8"), ("30-8", "40-1"), ("40-8", "64-4"), ("40-1", "64-4")]
)
@pytest.mark.parametrize("epoch", [0, 3])
def test_an_epoch_goes_on_over_what_a_pool_was(root: Path, then: str, now: str, epoch: int):
    old, new = open_pool(root / then, "p"), open_pool(root / now, "p")
    at = BlockPlace(1, epoch, 0, 7)
    grown = replace(at, prefix=(old.num_units, old.extent_units))
    assert order(new, grown) == order(old, at)
    assert num_blocks(new, 7, grown.prefix) == num_blocks(old, 7)
    assert sorted(order(new, at)) == list(range(new.num_units))


@pytest.mark.parametrize("name", ["40-1", "40-8", "30-8", "64-4", "plain"])
@pytest.mark.parametrize("fraction", [Fraction(1, 3), Fraction(1, 1000), Fraction(9, 10), Fraction(1)])
def test_a_proxy_reads_the_same_part_of_a_pool_in_every_epoch_in_another_order(
    root: Path, name: str, fraction: Fraction
):
    pool = open_pool(root / name, "p")
    whole = order(pool, BlockPlace(5, 0, 0, 4))
    at = BlockPlace(5, 0, 0, 4, fraction=fraction)
    part = ceil(pool.num_units * fraction)
    assert epoch_units(pool, None, fraction) == part
    assert order(pool, at) == whole[:part]
    later = [order(pool, replace(at, epoch=epoch)) for epoch in (1, 2, 9)]
    assert all(sorted(each) == sorted(whole[:part]) for each in later)
    assert part < 7 or len({tuple(each) for each in [whole[:part], *later]}) == 4


def test_a_part_is_a_random_sample_that_depends_on_the_seed_alone(root: Path):
    pool = open_pool(root / "64-4", "p")
    parts = [frozenset(order(pool, BlockPlace(seed, 0, 0, 4, fraction=Fraction(1, 2)))) for seed in range(6)]
    assert len(set(parts)) == 6
    assert all(len(part) == 32 for part in parts)


def test_later_epochs_of_a_part_read_whole_extents(root: Path):
    pool = open_pool(root / "400-4", "p")
    read = order(pool, BlockPlace(5, 2, 0, 64, fraction=Fraction(3, 4)))
    assert all(b == a + 1 for k, (a, b) in enumerate(pairwise(read)) if k % 4 != 3)
    few = order(pool, BlockPlace(5, 2, 0, 64, fraction=Fraction(1, 4)))
    assert sum(b == a + 1 for a, b in pairwise(few)) < 10


@given(
    st.sampled_from(["40-1", "40-8", "30-8", "64-4", "400-4"]),
    st.integers(0, 5),
    st.sampled_from([None, Fraction(1, 3), Fraction(7, 8)]),
    st.sampled_from([None, (20, 1), (20, 8), (27, 4)]),
)
def test_invariant_11_the_place_of_a_unit_is_where_the_order_has_it(
    root: Path, name: str, epoch: int, fraction: Fraction | None, prefix: tuple[int, int] | None
):
    pool = open_pool(root / name, "p")
    at = BlockPlace(2, epoch, 0, 6, "former", prefix, fraction)
    read = order(pool, at)
    places = [place_of_unit(pool, at, unit) for unit in range(pool.num_units)]
    assert [read.index(unit) if unit in read else None for unit in range(pool.num_units)] == places


@given(st.integers(1, 300), st.sampled_from([1, 2, 8, 64]), st.data())
def test_units_at_any_places_are_those_of_the_order(n: int, extent: int, data: st.DataObject):
    k = key(3, 1, "order", "p")
    places = data.draw(st.lists(st.integers(0, n - 1), max_size=20))
    whole = units_at(0, n, n, extent, k)
    found = units_in(np.array(places, np.int64), n, extent, k)
    assert found.tolist() == [int(whole[place]) for place in places]
    assert [place_of(unit, n, extent, k) for unit in found.tolist()] == places
    assert extent > 1 or found.tolist() == [permute(place, n, k) for place in places]
