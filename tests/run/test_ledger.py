"""The ledger's text: a chain, an unfinished end, and damage that is never taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipe.errors import RecipeError
from recipe.run.ledger import read_rows, read_tail, row_at, rows_backwards
from tests.run.rows import body, ledger


def checkpoint(step: int) -> dict:
    return body("checkpoint", step=step, text="x" * 30_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return ledger(tmp_path / "ledger.jsonl", [checkpoint(1), checkpoint(2), checkpoint(3)])


def test_rows_are_read_alike_from_both_ends_and_by_offset(path: Path):
    forward = list(read_rows(path))
    assert [row.number for row in forward] == [0, 1, 2, 3]
    assert list(rows_backwards(path, path.stat().st_size)) == forward[::-1]
    assert [row_at(path, row.offset) for row in forward] == forward
    assert read_tail(path).last == forward[-1]


@pytest.mark.parametrize("keep", [1, 100, 29_000])
def test_an_unfinished_line_counts_for_nothing(path: Path, keep: int):
    data = path.read_bytes()
    whole = data.rfind(b"\n", 0, len(data) - 1) + 1
    path.write_bytes(data[: whole + keep])
    tail = read_tail(path)
    assert (tail.last.number, tail.end, tail.unended) == (2, whole, False)
    assert [row.number for row in read_rows(path)] == [0, 1, 2]


def test_zeros_after_a_power_cut_are_an_unfinished_line(path: Path):
    end = path.stat().st_size
    path.write_bytes(path.read_bytes() + bytes(5000))
    assert (read_tail(path).last.number, read_tail(path).end) == (3, end)


def test_a_whole_row_without_its_line_end_is_a_row(path: Path):
    path.write_bytes(path.read_bytes()[:-1])
    assert (read_tail(path).last.number, read_tail(path).unended) == (3, True)
    assert [row.number for row in read_rows(path)] == [0, 1, 2, 3]


def test_any_flipped_byte_of_the_last_row_is_damage(path: Path):
    """Never an unfinished line: a row that was whole is not cut off silently."""
    data = path.read_bytes()
    begin = data.rfind(b"\n", 0, len(data) - 1) + 1
    for at in [begin, begin + 1, begin + 40, len(data) - 70, len(data) - 3, len(data) - 2, len(data) - 1]:
        for flip in (1, 32):
            path.write_bytes(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
            with pytest.raises(RecipeError, match="damaged"):
                read_tail(path)


def test_a_byte_that_leaves_the_value_alone_is_damage_too(path: Path):
    data = path.read_bytes()
    path.write_bytes(data[:-2] + b" }\n")
    with pytest.raises(RecipeError, match="damaged"):
        list(read_rows(path))


@pytest.mark.parametrize("order", [[0, 1, 3], [0, 2, 1, 3], [0, 1, 1, 2, 3], [1, 2, 3]])
def test_dropped_swapped_and_repeated_rows_are_found(path: Path, order: list[int]):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[k] for k in order))
    with pytest.raises(RecipeError, match="damaged"):
        list(read_rows(path))


def test_an_empty_ledger_is_reported(tmp_path: Path):
    (tmp_path / "ledger.jsonl").write_bytes(b'{"half')
    with pytest.raises(RecipeError, match="no rows"):
        read_tail(tmp_path / "ledger.jsonl")
