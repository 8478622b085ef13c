"""Rows computed again, by other code than the stream's: the same states for every kind of recipe."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.audit.books import block_tokens, books_of, open_block
from recipe.audit.intent import Intent
from recipe.audit.layout import lay_out
from recipe.audit.reading import Shelf
from recipe.audit.replay import Ground, ended_if_last, replay
from recipe.audit.state import Cursor, Cut, Malformed, PoolState, State
from recipe.config import recipe_from_plain
from recipe.mixing.stream import Stream
from recipe.pools import open_pool
from tests.audit.runs import Plain, plain_recipe, write_pools


def random_stage(chance: random.Random, names: list[str]) -> Plain:
    context, batch = chance.choice([32, 64, 128]), chance.randrange(1, 7)
    method = chance.choice(["best_fit", "concat", "none"])
    window = context if method == "concat" else chance.choice([context, context // 2])
    stride = chance.choice([window, window - window // 4, 1 + window // 2])
    tails = ["keep", "drop"] if method == "concat" else ["keep", "backfill", "drop", "pad"]
    slicing: Plain = {"window": window, "stride": stride, "tail": chance.choice(tails)}
    if method != "concat" and chance.random() < 0.3:
        slicing["oversize"] = chance.choice(["truncate", "drop"])
    weights = {name: chance.choice([0, 1, 2, 5, 13]) for name in names}
    packing: Plain = {"method": method, "cross_labels": chance.random() < 0.3}
    if method != "concat" and not packing["cross_labels"]:
        packing["document_multiple"] = chance.choice([1, 1, 4, 16, 32])
    return {
        "tokens": chance.randrange(2000, 12_000),
        "context": context,
        "batch": chance.choice([{"sequences": batch}, {"ramp": {0: batch, 3000: batch + 2}}]),
        "chunk": context * (batch + 2) + chance.randrange(3000),
        "slicing": slicing,
        "packing": packing,
        "weights": weights if any(weights.values()) else dict.fromkeys(names, 1),
    }


def random_world(root: Path, chance: random.Random) -> Plain:
    names = ["web", "code", "maths", "zh"][: chance.randrange(1, 5)]
    for seed, name in enumerate(names):
        size = chance.choice([3, 20, 60])
        groups = sorted(chance.randrange(size) for _ in range(size)) if chance.random() < 0.3 else None
        bos = 254 if chance.random() < 0.3 else None
        write_pools(root, {name: size}, seed=seed, mean=chance.choice([10, 60, 200]), groups=groups, bos=bos)
    stages = {f"s{index}": random_stage(chance, names) for index in range(chance.randrange(1, 4))}
    return plain_recipe(
        root,
        stages,
        pools={name: {} for name in names},
        max_epochs=chance.choice([1, 2, 200]),
        on_exhausted=chance.choice(["repeat", "stop", "redistribute"]),
        count=chance.choice(["body", "fresh", "labels", "positions"]),
        labels=chance.choice(["shifted", "inputs"]),
    )


@settings(max_examples=30)
@given(st.integers(0, 10**9))
def test_invariant_2_the_states_of_the_stream_are_computed_again(tmp_path_factory, seed):
    """Over stages, re-cuts, exhaustion, counted kinds, groups and marks; from states inside of the run."""
    chance = random.Random(seed)
    root = tmp_path_factory.mktemp("world")
    settled = recipe.make_plan(recipe_from_plain(random_world(root, chance), source="test")).recipe
    pools = {name: open_pool(settled.pool_path(name), name) for name in settled.pools}
    stream = Stream(settled, pools)
    intent = Intent.of(settled, 1)
    ground = Ground(intent.layouts, books_of(settled, pools))
    state = intent.start()
    try:
        while state.step < stream.num_steps and not state.ended:
            stage = intent.enter(state).stage
            step = chance.randrange(state.step + 1, intent.layouts[stage].stop_step + 1)
            seen = replay(ground, state, [step], {})
            assert not seen.unequal and not seen.outside
            state = seen.states[0]
            state = ended_if_last(ground, state, {})
            assert state.to_plain() == stream.snapshot(state.step).to_plain()
    except (recipe.RecipeError, Malformed) as fault:
        assert "at least one sequence" in str(fault)
    if state.ended:
        with pytest.raises(ValueError, match=f"ended at step {state.step}"):
            stream.snapshot(stream.num_steps)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("pools")
    write_pools(root, {"web": 40}, mean=100)
    stages = {
        name: {
            "steps": 4,
            "context": context,
            "batch": {"sequences": 2},
            "chunk": 10**4,
            "weights": {"web": 1},
        }
        for name, context in (("a", 64), ("b", 48))
    }
    settled = recipe_from_plain(plain_recipe(root, stages, pools={"web": {}}), source="test")
    pools = {"web": open_pool(settled.pool_path("web"), "web")}
    return Ground(lay_out(settled), books_of(settled, pools))


def test_tokens_of_a_block_follow_from_the_lengths_of_its_documents(world):
    """Both blocks of the pool together are the pool, and differ between epochs."""
    book = world.books[0]
    blocks = [block_tokens(book, Cursor(epoch, block)) for epoch in (0, 1) for block in (0, 1)]
    assert blocks[0] + blocks[1] == blocks[2] + blocks[3] == book.pool.stock
    assert blocks[0] != blocks[2]


def test_a_block_cut_by_a_stage_change_adds_up(world):
    """Fresh tokens under both rules and what was dropped are the tokens of its documents."""
    book = world.books[0]
    shelf = Shelf.at(book, PoolState(), {})
    assert shelf.open_next(0)
    shelf.serve(5)
    assert shelf.open_next(1)
    assert shelf.cursor == Cursor(0, 0, 1, 0, (Cut(0, 5),))
    assert shelf.block is not None
    shelf.serve(shelf.block.num_sequences)
    assert (shelf.finished, shelf.unequal, shelf.cursor) == (1, [], Cursor(0, 1))


def test_a_block_that_loses_a_token_is_noticed(world):
    shelf = Shelf.at(world.books[0], PoolState(), {})
    assert shelf.open_next(0) and shelf.block is not None
    shelf.block.totals[-1, 0] -= 1
    shelf.serve(shelf.block.num_sequences)
    ((cursor, by_length, by_account),) = shelf.unequal
    assert cursor.block == 0 and by_length == by_account + 1


def test_impossible_places_are_told(world):
    with pytest.raises(Malformed, match="a block of"):
        open_block(world.books[0], Cursor(0, 2, 0))
    with pytest.raises(Malformed, match="sequences of block 0"):
        open_block(world.books[0], Cursor(0, 0, 0, 10**6))


def test_a_pool_that_is_not_there_is_told():
    plain = plain_recipe(Path("nowhere"), {"a": {"steps": 1, "context": 8, "batch": {"sequences": 1},
                         "chunk": 8, "weights": {"web": 1}}}, pools={"web": {}})  # fmt: skip
    settled = recipe_from_plain(plain, source="test")
    ground = Ground(lay_out(settled), books_of(settled, {}))
    with pytest.raises(Malformed, match="the pool that was read"):
        replay(ground, Intent.of(settled, 1).start(), [1], {})


def test_rows_that_follow_each_other_plan_a_block_once(world):
    cache: dict = {}
    (state,) = replay(world, State(pools=(PoolState(),)), [2], cache).states
    (block,) = cache.values()
    (state,) = replay(world, state, [3], cache).states
    assert list(cache.values()) == [block] and state.pools[0].cursor.sequence == 6
