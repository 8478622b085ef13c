"""Ranks, micro-batches, threads and folders change nothing of the global stream: invariants 6 and 7."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.mixing.dealing import check_dealing, dealt_rows
from tests.mixing.build import World, everything, stage, windows, world, write

WORLDS = (1, 2, 3, 4, 8, 64)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Batches of 192 rows from two pools."""
    root = tmp_path_factory.mktemp("wide")
    write(root / "a", [n % 9 + 1 for n in range(500)], eos=True)
    write(root / "b", [n % 5 + 1 for n in range(300)], first=3000)
    return world(root, {"a": {}, "b": {}}, [stage(8, {"a": 2, "b": 1}, batch=192, steps=2)], max_epochs=99)


def gathered(made: World, size: int, step: int, micro_batch: int | None) -> dict[str, Any]:
    """The rows of all ranks, put where the dealing says they lie in the global batch."""
    parts = [made.stream().batch(step, rank, size, micro_batch) for rank in range(size)]
    places = np.concatenate([dealt_rows(192, rank, size, micro_batch) for rank in range(size)])
    assert sorted(places.tolist()) == list(range(192))
    return {key: np.concatenate([part[key] for part in parts])[np.argsort(places)] for key in parts[0]}


@pytest.mark.parametrize(
    ("size", "micro_batch"), [*((w, m) for w in WORLDS for m in (None, 1)), (3, 16), (8, 8), (64, 3)]
)
def test_invariant_6_L06_any_number_of_ranks_gets_one_global_stream(
    wide: World, size: int, micro_batch: int | None
):
    right = wide.stream().batch(1)
    got = gathered(wide, size, 1, micro_batch)
    assert all(np.array_equal(got[key], right[key]) for key in right)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_invariant_6_every_row_is_dealt_once_as_megatron_deals_them(size: int, micro: int, count: int):
    batch = size * micro * count
    rows = [dealt_rows(batch, rank, size, micro).tolist() for rank in range(size)]
    assert sorted(row for rank in rows for row in rank) == list(range(batch))
    for rank in range(size):
        for j in range(count):
            first = j * micro * size + rank * micro
            assert rows[rank][j * micro : (j + 1) * micro] == list(range(first, first + micro))


@pytest.mark.parametrize("depth", [0, 1, 2, 8])
def test_F3_R05_read_ahead_changes_nothing(wide: World, depth: int):
    got = [(step, batch["input_ids"].tobytes()) for step, batch in wide.stream().batches(read_ahead=depth)]
    assert got == [(step, wide.stream().batch(step)["input_ids"].tobytes()) for step in range(2)]


@pytest.fixture
def sixteen(tmp_path: Path) -> World:
    """Sixteen windows, four a batch."""
    write(tmp_path / "a", [4] * 16)
    return world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, batch=4, steps=4)])


def test_L01_going_from_one_rank_to_two_skips_nothing(sixteen: World):
    order = [window[1] for window in windows(sixteen.stream())]
    at = sixteen.stream().snapshot(1)
    firsts = {10 + 4 * document: document for document in range(16)}
    ranks = [sixteen.stream([at]).batch(1, rank, 2)["input_ids"][:, 0].tolist() for rank in (0, 1)]
    assert [[firsts[i] for i in rank] for rank in ranks] == [order[4:6], order[6:8]]
    assert sorted(order) == list(range(16))


def test_L02_other_numbers_of_ranks_after_a_checkpoint_read_only_what_is_left(tmp_path: Path):
    write(tmp_path / "a", [4] * 96)
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, batch=8, steps=12)])
    first = {row[0] for batch in everything(made.stream(), 0, 3) for row in batch["input_ids"]}
    at = made.stream().snapshot(3)
    for size in (8, 1):
        stream = made.stream([at])
        rest = [
            int(row[0])
            for rank in range(size)
            for _, batch in stream.batches(3, rank, size)
            for row in batch["input_ids"]
        ]
        assert len(rest) == len(set(rest)) == 72
        assert not first & set(rest)


def test_L03_ranks_that_do_not_divide_the_batch_are_refused_with_those_that_do(sixteen: World):
    with pytest.raises(RecipeError, match=r"\[1, 2, 4\]"):
        sixteen.stream().batch(0, 0, 3)
    with pytest.raises(RecipeError, match=r"\[1, 2\]"):
        next(sixteen.stream().batches(0, 0, 3, 2))
    with pytest.raises(RecipeError, match="a micro-batch that divides every batch"):
        check_dealing((3,), 2, 2)


def test_L03_every_size_of_a_ramp_is_looked_at_before_the_first_batch(tmp_path: Path):
    write(tmp_path / "a", [4] * 40)
    ramp = stage(4, {"a": 1}, steps=6) | {"batch": {"ramp": {0: 2, 16: 6}}}
    with pytest.raises(RecipeError, match=r"\[1, 2\]"):
        world(tmp_path, {"a": {}}, [ramp]).stream().batches(dp_size=6)


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_is_not_there_is_refused(sixteen: World, rank: int):
    with pytest.raises(ValueError, match=r"outside 0\.\.1"):
        sixteen.stream().batch(0, rank, 2)


def test_invariant_7_a_pool_with_share_zero_changes_only_indices(tmp_path: Path):
    write(tmp_path / "a", [5, 9, 2, 7])
    write(tmp_path / "b", [3, 8, 6], first=900)
    write(tmp_path / "z", [4, 4], first=2000)
    two = world(tmp_path, {"a": {}, "b": {}}, [stage(6, {"a": 1, "b": 2}, steps=9)])
    three = world(tmp_path, {"z": {}, "a": {}, "b": {}}, [stage(6, {"z": 0, "a": 1, "b": 2}, steps=9)])
    one, other = everything(two.stream()), everything(three.stream())
    assert [{**batch, "pool": [p + 1 for p in batch["pool"]]} for batch in one] == other


def test_invariant_7_moving_a_pool_changes_nothing(tmp_path: Path):
    write(tmp_path / "a", [5, 9, 2, 7])
    stages = [stage(6, {"a": 1}, steps=9)]
    before = everything(world(tmp_path, {"a": {}}, stages).stream())
    shutil.move(tmp_path / "a", tmp_path / "elsewhere")
    assert everything(world(tmp_path, {"a": "elsewhere"}, stages).stream()) == before


def test_A02_how_a_pool_is_stored_in_files_changes_nothing(tmp_path: Path):
    lengths = [n % 90 + 10 for n in range(180)]
    for name, part_tokens in (("two", 5000), ("twenty", 500)):
        write(tmp_path / name, lengths, eos=True, part_tokens=part_tokens)
    stages = [stage(50, {"a": 1}, tokens=1000)]
    streams = [world(tmp_path, {"a": name}, stages).stream() for name in ("two", "twenty")]
    one, other = (everything(stream) for stream in streams)
    assert one == other
    assert len(one) == 20


def test_S05_F2_seed_and_epoch_do_not_alias(tmp_path: Path):
    write(tmp_path / "a", [4] * 50)
    stages = [stage(4, {"a": 1}, steps=100)]
    orders = {}
    for seed in (1, 2):
        served = [w[1] for w in windows(world(tmp_path, {"a": {}}, stages, seed=seed).stream())]
        orders[seed] = served[:50], served[50:]
    assert len({*map(tuple, [*orders[1], *orders[2]])}) == 4
    again = [w[1] for w in windows(world(tmp_path, {"a": {}}, stages, seed=2).stream())]
    assert again[:50] == orders[2][0]


@pytest.mark.parametrize("seed", [0, 4294967290, 2**63 - 1])
def test_S03_large_seeds_and_zero_are_seeds(tmp_path: Path, seed: int):
    write(tmp_path / "a", [4] * 20)
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=41)], seed=seed)
    first, second = windows(made.stream()), windows(made.stream())
    assert first == second
    assert first != windows(world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=41)], seed=5).stream())
