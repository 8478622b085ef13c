"""The reading thread: errors come out, order is kept, and it ends with its consumer."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recipe.errors import RecipeError
from recipe.mixing.ahead import read_ahead
from tests.mixing.build import stage, world, write


def begun(before: set[threading.Thread]) -> set[threading.Thread]:
    """Threads that run now and did not before: others of the process may have ended meanwhile."""
    return set(threading.enumerate()) - before


def failing(after: int) -> Iterator[int]:
    yield from range(after)
    raise ZeroDivisionError("in the producer")


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_items_come_in_order(depth: int):
    assert list(read_ahead(lambda: iter(range(50)), depth)) == list(range(50))


@pytest.mark.parametrize("after", [0, 1, 5])
def test_an_error_comes_out_after_the_items_before_it(after: int):
    got: list[int] = []
    with pytest.raises(ZeroDivisionError, match="in the producer"):
        for item in read_ahead(lambda: failing(after), 2):
            got.append(item)
    assert got == list(range(after))


def test_an_error_while_the_producer_is_made_comes_out_too():
    def broken() -> Iterator[int]:
        raise RecipeError.single("stream", "here", given=1, expected="2", fix="3")

    with pytest.raises(RecipeError):
        next(read_ahead(broken, 1))


def test_closing_early_ends_the_thread():
    before = set(threading.enumerate())
    endless = read_ahead(lambda: iter(int, 1), 2)
    assert next(endless) == 0
    assert len(begun(before)) == 1
    endless.close()  # type: ignore[attr-defined]
    assert not begun(before)


def test_an_iterator_that_is_let_go_ends_its_thread():
    before = set(threading.enumerate())
    for item in read_ahead(lambda: iter(int, 1), 2):
        assert item == 0
        break
    gc.collect()
    assert not begun(before)


def test_an_iterator_that_is_never_read_starts_no_thread():
    before = set(threading.enumerate())
    endless = read_ahead(lambda: iter(int, 1), 2)
    assert not begun(before)
    del endless


def test_no_more_is_made_than_the_depth_allows():
    made: list[int] = []

    def counting() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            yield i

    items = read_ahead(counting, 2)
    for taken in range(20):
        next(items)
        assert len(made) <= taken + 1 + 2 + 1
    items.close()  # type: ignore[attr-defined]


def test_an_error_of_a_pool_comes_out_of_the_stream(tmp_path: Path):
    write(tmp_path / "a", [4] * 40)
    made = world(
        tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=20), stage(4, {"a": 1}, slicing={"tail": "drop"})]
    )
    (part,) = (tmp_path / "a").glob("*.bin")
    part.unlink()
    with pytest.raises((RecipeError, OSError)):
        list(made.stream().batches())


def test_breaking_off_a_stream_leaves_no_thread_and_the_stream_goes_on(tmp_path: Path):
    write(tmp_path / "a", [4] * 40)
    stream = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=20)]).stream()
    before = set(threading.enumerate())
    for step, _ in stream.batches():
        if step == 3:
            break
    gc.collect()
    assert not begun(before)
    assert [step for step, _ in stream.batches(start=3)] == list(range(3, 20))
