from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.maths.order import ORDER_VERSION, invert, key, permute, permute_range, place_of, units_at

KEYS = st.integers(0, 2**64 - 1)
GOLDEN_KEYS = (
    6588523599367963468,
    15757779023177767347,
    1634227780700248601,
    5673730080389183369,
    9219427276600366696,
    7577814688512588711,
    2145337375664455118,
)
GOLDEN_TEN = [6, 0, 5, 4, 8, 9, 2, 3, 7, 1]
GOLDEN_SIXTEEN = [9, 0, 5, 2, 7, 6, 10, 1, 14, 12, 13, 11, 15, 4, 3, 8]
GOLDEN_LARGE = [442463451560, 717220559147, 378652691611, 644989052051]
GOLDEN_UNITS = [0, 1, 2, 3, 8, 9, 10, 4, 5, 6, 7]
"""Any change here is a change of ORDER_VERSION: no run could be resumed by the new program."""

DOMAINS = ("order", "shuffle", "offset", "density", "separators")


def reading_order(num_units: int, extent_units: int, order_key: int) -> list[int]:
    """Extents permuted whole; the units of an extent stay together, the short one where it falls."""
    num_extents = -(-num_units // extent_units)
    order = []
    for place in range(num_extents):
        first = permute(place, num_extents, order_key) * extent_units
        order += range(first, min(first + extent_units, num_units))
    return order


@settings(max_examples=25)
@given(st.integers(1, 3000), KEYS)
def test_an_order_is_a_permutation_and_can_be_inverted(n: int, order_key: int):
    order = permute_range(0, n, n, order_key).tolist()
    assert sorted(order) == list(range(n))
    for place in {0, n // 2, n - 1}:
        assert invert(order[place], n, order_key) == place


@settings(max_examples=50)
@given(st.integers(1, 2**62), KEYS, st.data())
def test_the_kernel_equals_plain_integers_on_any_range(n: int, order_key: int, data: st.DataObject):
    start = data.draw(st.integers(0, n - 1))
    stop = min(n, start + 5)
    got = permute_range(start, stop, n, order_key).tolist()
    assert got == [permute(i, n, order_key) for i in range(start, stop)]
    assert [invert(v, n, order_key) for v in got] == list(range(start, stop))


@settings(max_examples=50)
@given(st.integers(1, 200), st.integers(0, 6), KEYS, st.data())
def test_extents_are_read_whole_wherever_a_block_begins(
    n: int, bits: int, order_key: int, data: st.DataObject
):
    extent = 1 << bits
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    order = reading_order(n, extent, order_key)
    assert units_at(start, stop, n, extent, order_key).tolist() == order[start:stop]
    assert [place_of(unit, n, extent, order_key) for unit in order] == list(range(n))


def test_golden_keys():
    assert ORDER_VERSION == 1
    assert key(0, 0, "order", "web") == GOLDEN_KEYS[0]
    assert key(1, 0, "order", "web") == GOLDEN_KEYS[1]
    assert key(1, 1, "order", "web") == GOLDEN_KEYS[2]
    assert key(2, 0, "order", "web") == GOLDEN_KEYS[3]
    assert key(1, 0, "shuffle", "web", 5) == GOLDEN_KEYS[4]
    assert key(1, 0, "shuffle", "web", 5, 1) == GOLDEN_KEYS[5]
    assert key(2**63 - 1, 3, "order", "网页") == GOLDEN_KEYS[6]


def test_golden_orders():
    assert permute_range(0, 10, 10, 7).tolist() == GOLDEN_TEN
    assert permute_range(0, 16, 16, 0).tolist() == GOLDEN_SIXTEEN
    assert permute_range(0, 4, 10**12, key(1, 0, "order", "web")).tolist() == GOLDEN_LARGE
    assert units_at(0, 11, 11, 4, 5).tolist() == GOLDEN_UNITS


def test_F2_S05_seed_one_epoch_one_is_not_seed_two_epoch_zero():
    orders = [tuple(permute_range(0, 50, 50, key(s, e, "order", "web"))) for s, e in [(1, 0), (2, 0), (1, 1)]]
    assert len(set(orders)) == 3


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_pool_epoch_and_index_has_a_key_of_its_own(domain: str):
    others = [("order", "a", 0, ()), ("shuffle", "a", 0, ()), ("offset", "b", 0, ()), (domain, "a", 1, (2,))]
    keys = {key(5, epoch, name, pool, *more) for name, pool, epoch, more in others}
    assert len(keys) == 4


def test_S03_seeds_are_any_number_below_two_to_the_63_and_zero_is_one_of_them():
    orders = {tuple(permute_range(0, 20, 20, key(s, 3, "order", "a"))) for s in (0, 1, 4294967290, 2**63 - 1)}
    assert len(orders) == 4


@pytest.mark.parametrize("bad", [(-1, 0, "order"), (2**63, 0, "order"), (0, -1, "order"), (0, 0, "other")])
def test_a_key_outside_its_ranges_is_refused(bad: tuple[int, int, str]):
    with pytest.raises(ValueError, match="seed"):
        key(*bad, "a")


@pytest.mark.parametrize("bad", [(-1, 2, 5), (0, 6, 5), (4, 3, 5)])
def test_places_outside_the_order_are_refused(bad: tuple[int, int, int]):
    with pytest.raises(ValueError, match="is not inside"):
        permute_range(*bad, 1)
    with pytest.raises(ValueError, match="is not inside"):
        units_at(*bad, 2, 1)


def test_R06_an_order_does_not_depend_on_any_generator():
    before = permute_range(0, 64, 64, 9).tolist()
    random.seed(1)
    np.random.default_rng(1).random(7)
    assert permute_range(0, 64, 64, 9).tolist() == before


def test_an_order_mixes_sorted_units():
    """F5: no half of the order holds many more units of one half of the pool."""
    order = permute_range(0, 4096, 4096, key(1, 0, "order", "by-date"))
    halves = np.add.reduceat(order < 2048, np.arange(0, 4096, 256))
    assert halves.min() > 90 and halves.max() < 166
