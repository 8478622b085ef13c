"""Tables show what they are given, and sums that are exact."""

from __future__ import annotations

import io

from rich.console import Console

from recipe.config import recipe_from_plain
from recipe.report.spent import bound, spent_by_stage, spent_tables, spent_to_plain
from recipe.report.tables import table

RECIPE = recipe_from_plain(
    {
        "seed": 1,
        "pools": {"b": {"stock": 100}, "c": {"stock": 50}},
        "stages": {
            "one": {
                "tokens": 64,
                "context": 8,
                "batch": {"sequences": 1},
                "quotas": {"b": "75%", "c": "25%"},
            }
        },
    },
    source="test",
)


def chunk(steps: tuple[int, int], owed: tuple[int, int], spent: tuple[int, int]) -> dict:
    pools = {
        name: {
            "owed": o,
            "spent": s,
            "body": s,
            "overlap": 0,
            "special": 1,
            "padding": 0,
            "dropped": {"tail": 2},
        }
        for name, o, s in zip(("b", "c"), owed, spent, strict=True)
    }
    return {"kind": "chunk", "stage": "one", "steps": list(steps), "pools": pools}


ROWS = [chunk((4, 8), (25, 7), (24, 8)), {"kind": "checkpoint"}, chunk((0, 4), (25, -1), (26, -2))]
"""Last row first, as a ledger is read backwards; a chunk's owed can be -1."""


def shown(*tables) -> str:
    console = Console(file=io.StringIO(), width=160)
    for one in tables:
        console.print(one)
    return console.file.getvalue()


def test_sums_keep_negative_numbers():
    pools = spent_by_stage(ROWS)["one"]
    assert (pools["b"]["owed"], pools["b"]["spent"]) == (50, 50)
    assert (pools["c"]["owed"], pools["c"]["spent"]) == (6, 6)
    assert pools["c"]["dropped"] == 4


def test_a_table_of_spent_against_promised():
    text = shown(*spent_tables(RECIPE, ROWS, {"b": 100, "c": 50}))
    assert "75 %" in text
    assert "89.29 %" in text  # 50 of 56
    assert "under one context" in text


def test_plain_form_is_exact():
    assert spent_to_plain(RECIPE, ROWS) == {
        "one": {
            "b": {"share": "3/4", "owed": 50, "spent": 50},
            "c": {"share": "1/4", "owed": 6, "spent": 6},
        }
    }


def test_a_name_that_looks_like_markup_is_shown():
    assert "[b]" in shown(table("[red]title", ("pool", "n"), [("[b]", "1")], total=("[i]", "2")))


def test_the_bound_is_below_one_context():
    assert [bound(512, pools) for pools in (1, 2, 3, 8)] == [0, 256, 384, 475]


def test_nothing_spent_is_an_empty_account():
    assert spent_by_stage([]) == {}
    assert "the whole run" in shown(*spent_tables(RECIPE, [], {}))
