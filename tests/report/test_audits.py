"""Tables of an audit: what a person reads of a pool's reading."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from recipe.report.audits import audit_tables, finding_lines, limit_lines


def reading(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "documents": 10,
        "distinct": 7,
        "readings": {"0": 3, "1": 5, "2": 2},
        "tokens": 200,
        "covered": 150,
        "begun": 9,
        "tags": {},
        "dropped": {},
        "discarded": {},
        "replaced": 0,
        "note": "",
    }
    return {**plain, **changes}


def text(**pools: dict[str, Any]) -> str:
    kinds = dict.fromkeys(("body", "overlap", "special", "padding", "labels"), 1)
    plain = {
        "tokens": dict.fromkeys(pools, kinds),
        "drift": {"one": dict.fromkeys(pools, 0)},
        "budget": {
            "stages": {"one": {"length": 10, "consumed": 12, "left": 0, "overshoot": 2}},
            "owed": 9,
            "spent": 9,
        },
        "reading": pools,
        "findings": [{"check": "sums", "where": "row 3", "expected": "1", "observed": "2"}],
        "cannot_prove": ["that it was used"],
    }
    out = io.StringIO()
    console = Console(file=out, width=200)
    for table in audit_tables(plain):
        console.print(table)
    return "\n".join([out.getvalue(), *finding_lines(plain), *limit_lines(plain)])


def test_readings_are_a_histogram_and_coverage_a_share():
    shown = text(web=reading())
    assert "never: 3, 1x: 5, 2x: 2" in shown and "75.00 %" in shown
    assert "tokens not served" not in shown and "by tag" not in shown


def test_many_numbers_of_readings_are_folded():
    shown = text(web=reading(readings={str(times): 1 for times in range(20)}))
    assert "never: 1, 1x: 1, 2x: 1, 3x: 1, 4x: 1, 5x to 19x: 15" in shown


def test_a_pool_that_is_not_here_says_why():
    shown = text(web=reading(documents=None, note="the pool is not here"), code=reading(note="as if"))
    assert "the pool is not here" in shown and "code: as if" in shown


def test_what_was_lost_is_shown_by_reason():
    shown = text(web=reading(dropped={"tail": 12}), code=reading(discarded={"body": 3_456}))
    assert "tail" in shown and "12" in shown and "3,456" in shown


def test_a_tag_with_many_values_is_added_up():
    one = {"documents": 1, "distinct": 1, "tokens": 10, "covered": 5}
    tags = {"lang": {"de": one, "en": one}, "url": {str(k): one for k in range(40)}}
    shown = text(web=reading(tags=tags))
    assert "web: lang = de" in shown and "web: url = any" in shown and "400" in shown


def test_of_very_many_tags_a_pool_shows_the_first():
    one = {"documents": 1, "distinct": 1, "tokens": 10, "covered": 5}
    shown = text(
        web=reading(tags={f"t{k}": {"x": one} for k in range(15)}), code=reading(tags={"u": {"y": one}})
    )
    assert shown.count("web: t") == 12 and "web: … 3 more (--json)" in shown and "code: u = y" in shown


def test_limits_are_short_lines():
    lines = list(limit_lines({"cannot_prove": ["word " * 60, "short"]}))
    assert len(lines) == 6 and max(map(len, lines)) <= 80 and lines[-1] == "  - short"


def test_budget_findings_and_limits_are_told():
    shown = text(web=reading())
    assert "consumed + left = length + overshoot" in shown
    assert "sums: row 3" in shown and "  - that it was used" in shown
