"""Pools that grow or shrink while they are read: the stream equals the plain rules."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.mixing.growth import grown
from recipe.mixing.plan import make_plan
from recipe.mixing.simulated import read_stock, read_units
from recipe.mixing.snapshot import Cursor, PoolState
from recipe.pools import Prefix, extend_pool, open_pool
from tests.mixing.build import EOS, World, everything, make, stage, windows, world, write
from tests.mixing.reference import Source
from tests.mixing.test_run_reference import account_of, as_batch
from tests.mixing.twins import Twins, told
from tests.mixing.worlds import draw_pool, draw_stage
from tests.sequences.edges import open_spelt
from tests.sequences.reference import Doc

GROUPS = ([0, 1, 1, 2, 3, 4, 4], [9, 9, 7, 8], [20, 21])


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Source]]:
    """A pool of documents in groups that grows twice (``p0``, ``p1``, ``p2``), and another one (``q``)."""
    root = tmp_path_factory.mktemp("ages")
    first = write(root / "p0", [5, 30, 0, 9, 12, 1, 22], eos=True, groups=GROUPS[0], part_tokens=60)
    sources, at = [first], 200
    for age, lengths in ((1, [8, 3, 17, 2]), (2, [40, 1])):
        docs = [Doc(list(range(at := at + 1, (at := at + n))), None, EOS) for n in lengths]
        extend_pool(root / f"p{age - 1}", root / f"p{age}", [d.tokens for d in docs], groups=GROUPS[age])
        before, units = sources[-1], dict[int, list[int]]()
        for number, group in enumerate(GROUPS[age], len(before.docs)):
            units.setdefault(group, []).append(number)
        sources.append(Source([*before.docs, *docs], [*before.units, *units.values()]))
    sources.append(write(root / "q", [7, 7, 20], first=400))
    return root, sources


def growing(draw: Any, root: Path, sources: list[Source]) -> Twins:
    """The pool at its first age, beside the other one."""
    pools = {"p": {"path": "p0"} | draw_pool(draw, ("repeat", "redistribute")), "q": {}}
    stages = [draw_stage(draw, ["p", "q"]) for _ in range(draw(st.integers(1, 2)))]
    made = world(root, pools, stages, seed=draw(st.integers(0, 3)))
    return Twins(made, {"p": sources[0], "q": sources[3]})


@settings(max_examples=80)
@given(st.data())
def test_invariant_3_a_pool_that_grows_is_read_by_the_rules(
    ages: tuple[Path, list[Source]], data: st.DataObject
):
    root, sources = ages
    twins = growing(data.draw, root, sources)
    twins.happen(data.draw, "p", [(open_spelt(root / f"p{age}", "p"), sources[age]) for age in (1, 2)])


@pytest.fixture
def six(tmp_path: Path) -> World:
    """A pool of six windows, and ``new``: the same with four more."""
    write(tmp_path / "a", [4] * 6)
    extend_pool(tmp_path / "a", tmp_path / "new", [[9] * 4] * 4)
    return world(tmp_path, {"a": {"block_units": 4}}, [stage(4, {"a": 1}, steps=30)])


def read(twins: Twins, steps: int) -> list[int]:
    first = twins.step
    twins.serve(steps)
    return [twins.stream.provenance(step, 0)[0].document for step in range(first, first + steps)]


def grown_twins(six: World, at: int, *, now: bool) -> Twins:
    root = Path(six.recipe.pools_root or "")
    old = Source([Doc(list(range(10 + 4 * k, 14 + 4 * k))) for k in range(6)], [[k] for k in range(6)])
    new = Source([*old.docs, *(Doc([9] * 4) for _ in range(4))], [[k] for k in range(10)])
    twins = Twins(six, {"a": old})
    twins.serve(at)
    twins.grow("a", open_pool(root / "new", "a"), new, now=now)
    return twins


@pytest.mark.parametrize("at", [1, 3, 4, 5])
def test_the_epoch_in_progress_goes_on_over_what_there_was(six: World, at: int):
    whole = [window[1] for window in windows(six.stream())]
    twins = grown_twins(six, at, now=False)
    assert twins.snapshot().pools[0].cursor.prefix == (6, 1)
    assert read(twins, 6 - at) == whole[at:6]
    assert twins.snapshot().pools[0].cursor == Cursor(epoch=1)
    assert sorted(read(twins, 10)) == list(range(10))


@pytest.mark.parametrize("at", [0, 6])
def test_an_epoch_that_was_not_begun_reads_everything(six: World, at: int):
    twins = grown_twins(six, at, now=False)
    assert twins.snapshot().pools[0].cursor.prefix is None
    assert sorted(read(twins, 10)) == list(range(10))


def test_what_is_new_is_read_at_once_when_the_epoch_is_ended(six: World):
    twins = grown_twins(six, 2, now=True)
    state = twins.snapshot().pools[0]
    assert (dict(state.dropped), state.cursor) == ({"unread": 16}, Cursor(epoch=1))
    assert sorted(read(twins, 10)) == list(range(10))
    assert twins.snapshot().pools[0].cursor == Cursor(epoch=2)


def test_a_pool_that_grows_twice_in_an_epoch_keeps_its_first_size():
    begun = PoolState(cursor=Cursor(epoch=1, block=2), held=(Cursor(epoch=0, stage=0, sequence=3, stop=4),))
    once = grown(begun, Prefix(units=6, extent_units=2, documents=6, parts=1))
    twice = grown(once, Prefix(units=9, extent_units=1, documents=9, parts=2))
    assert once == twice
    assert [cursor.prefix for cursor in (once.cursor, *once.held)] == [(6, 2), (6, 2)]
    new = PoolState(cursor=Cursor(epoch=1))
    assert grown(new, Prefix(units=6, extent_units=2, documents=6, parts=1)) == new


@settings(max_examples=60)
@given(st.data())
def test_a_proxy_reads_its_part_of_every_pool_by_the_rules(
    ages: tuple[Path, list[Source]], data: st.DataObject
):
    root, sources = ages
    pools = {"p": {"path": "p1"} | draw_pool(data.draw, ("repeat", "stop")), "q": {"renamed_from": "r"}}
    stages = [draw_stage(data.draw, ["p", "q"]) for _ in range(data.draw(st.integers(1, 2)))]
    plain = make(root, pools, stages)
    length = sum(span.stated for span in plain.spans.values())
    budget = length * data.draw(st.integers(1, 4)) + data.draw(st.integers(0, 50))
    made = world(root, pools, stages, seed=data.draw(st.integers(0, 3)), simulate_budget=budget)
    assert made.recipe.simulated_fraction == Fraction(length, budget)
    right = told(made, {"p": sources[1], "q": sources[3]})
    stream = made.stream()
    assert everything(stream) == [as_batch(rows) for rows in right.batches]
    assert account_of(stream.snapshot(len(right.batches))) == right.accounts[-1]


def test_a_proxy_sees_the_repetition_of_the_full_run(tmp_path: Path):
    """A thousandth of the run over a thousandth of the pool: 2.5 readings both."""
    write(tmp_path / "a", [4] * 400)
    full = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, batch=10, steps=100)])
    proxy = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=50)], simulate_budget=4000)
    for made, documents in ((full, 400), (proxy, 20)):
        at = made.stream().snapshot(made.stream().num_steps).pools[0]
        assert (at.documents, at.distinct) == (documents * 5 // 2, documents)
        assert (read_units(made.recipe, made.pools["a"]), read_stock(made.recipe, made.pools["a"])) == (
            documents,
            4 * documents,
        )
        loaded = made.recipe
        for exact in (True, False):
            planned = make_plan(loaded, exact=exact).pools["a"]
            assert (planned.stock_tokens, planned.epochs) == (4 * documents, Fraction(5, 2))


def test_branches_of_one_seed_read_the_same_part_whatever_their_mixture(ages: tuple[Path, list[Source]]):
    root, _ = ages
    read: list[set[int]] = []
    for weights in ({"p": 1, "q": 0}, {"p": 1, "q": 3}):
        made = world(
            root, {"p": {"path": "p2"}, "q": {}}, [stage(30, weights, steps=40)], simulate_budget=3000
        )
        read.append({window[1] for window in windows(made.stream()) if window[0] == "p"})
    assert read[0] == read[1]
    assert len(read[0]) < 12


def test_a_declared_stock_shrinks_too(tmp_path: Path):
    loaded = make(tmp_path, {"a": {"path": None, "stock": 1000}}, [stage(4, {"a": 1}, tokens=40)])
    planned = make_plan(loaded.model_copy(update={"simulate_budget": 400})).pools["a"]
    assert (planned.stock_tokens, planned.declared) == (100, 100)
    assert replace(planned, epochs=Fraction(0)).measured is None
