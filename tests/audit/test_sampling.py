"""What a random choice of rows finds, by counting all choices."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe
from recipe.audit.coverage import at_least
from recipe.audit.sampling import found_at_least

SIZES = st.lists(st.integers(1, 3), min_size=1, max_size=6)


@given(sizes=SIZES, data=st.data())
def test_the_probability_is_that_of_the_worst_place_of_the_wrong_rows(sizes, data):
    """Every choice that holds the last piece is as likely; every place of the wrong rows is tried."""
    picked = data.draw(st.integers(1, len(sizes)))
    wrong = data.draw(st.integers(1, sum(sizes)))
    rows = [piece for piece, size in enumerate(sizes) for _ in range(size)]
    last = len(sizes) - 1
    choices = [{last, *others} for others in combinations(range(last), picked - 1)]
    worst = min(
        Fraction(sum(not choice.isdisjoint(rows[r] for r in places) for choice in choices), len(choices))
        for places in combinations(range(len(rows)), wrong)
    )
    assert found_at_least(sizes, picked, wrong) == worst


def test_one_row_each_is_the_hypergeometric_law():
    """20 pieces, 6 computed (the last and 5 of the other 19); 3 wrong: 1 - C(16, 5) / C(19, 5)."""
    assert found_at_least([1] * 20, 6, 1) == Fraction(5, 19)
    assert found_at_least([1] * 20, 6, 3) == 1 - Fraction(4368, 11628)


def test_a_probability_is_never_rounded_up():
    assert at_least(1 - Fraction(1, 10**9)) == "99.99 %" and at_least(Fraction(1)) == "100 %"


def test_a_sampled_audit_states_what_it_finds(recorded):
    checked = recipe.audit_run(recorded, sample=3, seed=1).checked
    assert checked.detection is not None and checked.detection.rows == checked.replayable
    assert Fraction(0) < checked.detection.one < 1
    (line,) = [line for line in checked.lines() if "would be found with probability" in line]
    assert at_least(checked.detection.one) in line and "knew the seed" in line
    stated = checked.to_plain()["detection"]["if_wrong"][0]
    assert stated["rows"] == 1 and stated["found_with_probability"] <= checked.detection.one


def test_an_audit_of_all_rows_finds_every_wrong_row(recorded):
    checked = recipe.audit_run(recorded, full=True).checked
    assert checked.detection is not None
    assert checked.detection.one == checked.detection.of_several == 1
    assert not any("probability" in line for line in checked.lines())


@pytest.mark.parametrize("seed", range(6))
def test_a_forged_row_is_found_when_it_is_in_the_sample_and_only_then(recorded, changed, seed):
    from tests.audit.runs import forge

    def change(rows):
        rows[4]["pools"]["web"]["labels"] += 1

    audit = changed(lambda run: forge(run, change), sample=2, seed=seed)
    replayed = 4 in audit.checked.replayed
    assert any(finding.check == "replay" for finding in audit.findings) is replayed
