"""Findings, what they show, and what an audit says it looked at."""

from __future__ import annotations

from recipe.audit import Audit, Coverage, Finding
from recipe.audit.findings import MISSING, compared, differences


def test_the_innermost_value_that_differs_is_named():
    expected = {"pools": {"web": {"spent": 3, "cursor": [0, 1]}}, "steps": [0, 4]}
    observed = {"pools": {"web": {"spent": 4, "cursor": [0, 2]}}, "steps": [0, 4, 5]}
    assert list(differences(expected, observed)) == [
        ("pools.web.spent", 3, 4),
        ("pools.web.cursor.1", 1, 2),
        ("steps", [0, 4], [0, 4, 5]),
    ]


def test_values_of_different_types_differ():
    assert list(differences([1, 1, 0], [1.0, True, 0])) == [("0", 1, 1.0), ("1", 1, True)]


def test_keys_that_are_missing_or_unknown_are_named():
    assert list(differences({"a": 1}, {"b": 2})) == [("a", 1, MISSING), ("b", MISSING, 2)]
    assert compared("sums", "row 1", {"a": 1}, {}) == [Finding("sums", "row 1: a", "1", "nothing")]


def audit(findings: tuple[Finding, ...]) -> Audit:
    return Audit(
        run="run",
        findings=findings,
        tokens={"web": {"body": 1}},
        drift={"short": {"web": -2}},
        largest_drift={},
        checked=Coverage(rows=3),
    )


def test_the_plain_form_holds_the_four_keys_of_the_contract():
    plain = audit((Finding("sums", "row 1", "2", "3"),)).to_plain()
    assert {key: plain[key] for key in ("ok", "findings", "tokens", "drift")} == {
        "ok": False,
        "findings": [{"check": "sums", "where": "row 1", "expected": "2", "observed": "3"}],
        "tokens": {"web": {"body": 1}},
        "drift": {"short": {"web": -2}},
    }
    assert audit(()).ok


def test_what_was_sampled_is_said():
    lines = Coverage(rows=9, replayed=(2, 5), replayable=8, sample_seed=4, pools={"web": "all"}).lines()
    assert "2 of 8 rows" in lines[0] and "seed 4: 2, 5" in lines[0]
    assert lines[-1] == "pool web: all"
