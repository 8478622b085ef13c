"""Numbers of rows that follow from snapshots alone."""

from __future__ import annotations

import pytest

from recipe.config import Recipe, recipe_from_plain
from recipe.mixing.snapshot import Cursor, Cut, PoolState, Snapshot, start_of
from recipe.run.accounts import Accounts, Closing, passed
from tests.run.conftest import stage


def settled(**changes: object) -> Recipe:
    quotas = {"a": "1%", "b": "99%"}
    base = {
        "seed": 1,
        "max_epochs": 2,
        "pools": {"a": {"stock": 100, "block_units": 4}, "b": {"stock": 900, "block_units": 4}},
        "stages": {"s": stage(tokens=500, context=16, chunk=48, quotas=quotas)},
    }
    return recipe_from_plain({**base, **changes}, source="test")


@pytest.mark.parametrize(
    ("cursor", "beyond"),
    [
        (Cursor(epoch=1, block=9, sequence=9), False),
        (Cursor(epoch=2), False),
        (Cursor(epoch=2, sequence=1, stage=0), True),
        (Cursor(epoch=2, block=1), True),
        (Cursor(epoch=2, stage=1, cuts=(Cut(0, 3),)), True),
        (Cursor(epoch=3), True),
    ],
)
def test_a_pool_passed_its_epochs_once_something_beyond_them_was_served(cursor: Cursor, beyond: bool):
    assert passed(PoolState(cursor=cursor), 2) is beyond


def test_a_warning_is_given_where_max_epochs_is_passed_and_not_again():
    accounts = Accounts(settled())
    at = [Snapshot(step=k, pools=(PoolState(cursor=Cursor(epoch=k, block=1)), PoolState())) for k in range(4)]
    assert accounts.warnings(at[0], at[1]) == []
    assert [(row["pool"], row["step"], row["max_epochs"]) for row in accounts.warnings(at[1], at[2])] == [
        ("a", 2, 2)
    ]
    assert accounts.warnings(at[2], at[3]) == []


def test_planned_allotments_follow_the_grid_and_sum_to_the_stage():
    """Chunks close at batch ends of 48 positions; what is planned does not depend on where they fall."""
    accounts = Accounts(
        settled(stages={"s": stage(tokens=500, context=16, chunk=70, quotas={"a": "1%", "b": "99%"})})
    )
    closes = [(2, 1), (3, 2), (5, 3), (6, 4), (8, 5), (9, 6), (11, 7), (11, 8)]
    snapshots = [
        Snapshot(step=s, positions=48 * s, stage_positions=48 * s, chunk=c, pools=start_of(2).pools)
        for s, c in closes[:-1]
    ]
    rows = accounts.chunk_rows(Closing(start_of(2), 0, 0), snapshots, version=1)
    assert [row["grid"] for row in rows][:3] == [[0, 70], [70, 140], [140, 210]]
    assert [row["pools"]["a"]["planned"] for row in rows] == [1, 0, 1, 1, 1, 0, 1]
    assert sum(row["pools"][name]["planned"] for row in rows for name in "ab") == rows[-1]["grid"][1]


def test_the_overshoot_of_a_stage_stands_in_its_last_row():
    accounts = Accounts(settled())
    layout = accounts.curriculum.stages[0]
    end = Snapshot(
        step=layout.stop_step, positions=528, stage_positions=528, chunk=11, pools=start_of(2).pools
    )
    row = accounts.chunk_row(Closing(start_of(2), 0, 0), end, 500, version=1)
    assert row["overshoot"] == 28
