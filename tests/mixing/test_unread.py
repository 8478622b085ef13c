"""What is left unread of an epoch: counted once, and nothing else of it is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.mixing.snapshot import Cursor, PoolState
from recipe.mixing.unread import at_next_epoch, is_begun, unread_tokens
from tests.mixing.build import stage, world, write
from tests.mixing.worlds import Bank, draw_case


@settings(max_examples=40)
@given(data=st.data())
def test_read_and_dropped_and_unread_are_the_epochs_of_the_pool(bank: Bank, data: Any):
    """Invariant 3: every token of an epoch is fresh once, dropped by one reason, or unread."""
    case = draw_case(data.draw, bank)
    stream = case.world.stream()
    try:
        at = stream.snapshot(data.draw(st.integers(0, stream.num_steps)))
    except RecipeError:  # a pool with a share gives no sequence
        assume(False)
        raise
    for state, name in zip(at.pools, stream.pools, strict=True):
        pool = case.world.pools[name]
        unread = unread_tokens(stream.recipe, pool, state)
        gone = state.body - state.overlap + sum(state.dropped.values())
        assert gone + unread == (state.cursor.epoch + 1) * pool.stock
        after = at_next_epoch(stream.recipe, pool, state)
        total = after.body - after.overlap + sum(after.dropped.values())
        assert total == after.cursor.epoch * pool.stock
        assert not is_begun(after)


def test_an_epoch_that_was_not_begun_is_the_next_one_already(tmp_path: Path):
    write(tmp_path / "a", [4] * 100)
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=5)])
    state = PoolState(cursor=Cursor(epoch=3))
    assert at_next_epoch(made.recipe, made.pools["a"], state) is state
    assert unread_tokens(made.recipe, made.pools["a"], state) == 400
