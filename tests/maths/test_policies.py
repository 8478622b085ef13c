"""Policies answer with exact shares, deterministically, from what they are shown alone."""

import json
from fractions import Fraction
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.maths.policies import DynamicLoading, OnlineMixing, View, exact_shares

F = Fraction
POOLS = ("a", "b", "c")


START = (F(1, 2), F(1, 4), F(1, 4))


def view(losses, shares=START, pools=POOLS, memory=None):
    spent = dict.fromkeys(pools, 10)
    return View(
        step=1, positions=10, pools=pools, shares=shares, losses=losses, spent=spent, memory=memory or {}
    )


SHARES = (
    st.lists(st.integers(0, 50), min_size=3, max_size=3)
    .filter(any)
    .map(lambda weights: tuple(F(weight, sum(weights)) for weight in weights))
)
LOSSES = st.fixed_dictionaries(dict.fromkeys(POOLS, st.floats(0, 1e6)))
KINDS = st.sampled_from([DynamicLoading(reference={"a": 2, "b": "1.5", "c": 0.5}), OnlineMixing()])


@given(KINDS, SHARES, st.lists(LOSSES, min_size=1, max_size=4))
def test_shares_are_whole_billionths_that_sum_to_one_and_none_is_lost_or_found(policy, shares, losses):
    memory = {}
    for each in losses:
        before, shown = shares, view(each, shares, memory=memory)
        answer = policy(shown)
        assert answer == policy(shown)
        shares, memory = tuple(answer.shares.values()), json.loads(json.dumps(answer.memory))
        assert memory == answer.memory
        assert list(answer.shares) == list(POOLS) and sum(shares) == 1
        assert all((share * 10**9).denominator == 1 for share in shares)
        assert [share > 0 for share in shares] == [share > 0 for share in before]


def test_loading_goes_by_the_excess_over_the_reference():
    """exp of 0.5 above the reference, against exp of 0: what is below it does not count."""
    policy = DynamicLoading(reference={"a": 1, "b": 1, "c": 1})
    shares = policy(view({"a": 0.2, "b": 1.5, "c": 1})).shares
    whole = 0.5 + 0.25 * exp(0.5) + 0.25
    assert [float(share) for share in shares.values()] == pytest.approx(
        [0.5 / whole, 0.25 * exp(0.5) / whole, 0.25 / whole], abs=1e-9
    )


def test_loading_goes_on_from_the_shares_in_force():
    policy = DynamicLoading(reference={"a": 1, "b": 1, "c": 1})
    losses = {"a": 1 + log(2), "b": 1, "c": 1}
    once = policy(view(losses)).shares
    twice = policy(view(losses, tuple(once.values()))).shares
    assert float(twice["a"]) == pytest.approx(2 * 2 / (2 * 2 + 1), abs=1e-8)


def test_loading_of_pools_that_reached_their_references_changes_nothing():
    policy = DynamicLoading(reference={"a": 3, "b": 3, "c": 3})
    shown = view({"a": 1, "b": 2, "c": 3})
    assert tuple(policy(shown).shares.values()) == shown.shares


def test_the_bandit_starts_even_and_then_prefers_the_higher_loss():
    policy, memory = OnlineMixing(), {}
    shares, seen = (F(1, 2), F(1, 4), F(1, 4)), []
    for _ in range(40):
        answer = policy(view({"a": 1.0, "b": 2.0, "c": 4.0}, shares, memory=memory))
        shares, memory = tuple(answer.shares.values()), answer.memory
        seen.append(shares)
    assert max(seen[0]) - min(seen[0]) <= F(1, 10**9)
    assert seen[-1][0] < seen[-1][1] < seen[-1][2]
    assert memory["decision"] == 41


def test_the_bandit_weighs_by_importance_and_keeps_the_reward_of_a_pool_without_loss():
    policy = OnlineMixing(smoothing="0.5")
    first = policy(view({"a": 2.0, "b": 2.0}))
    assert first.memory["rewards"] == {"a": "2.0", "b": "4.0"}
    second = policy(view({"a": 1.0}, memory=first.memory))
    assert second.memory["rewards"] == {"a": "2.0", "b": "4.0"}


def test_one_pool_has_it_all():
    for policy in (OnlineMixing(), DynamicLoading(reference={"a": 1})):
        assert policy(view({"a": 1.0}, (F(1),), ("a",))).shares == {"a": 1}


@pytest.mark.parametrize(
    ("losses", "reference", "words"),
    [
        ({"a": 1.0, "b": 1.0}, {"a": 1, "b": 1, "c": 1}, "no loss of c"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 1}, "no reference loss of b, c"),
        ({"a": float("nan"), "b": 1.0, "c": 1.0}, {"a": 1, "b": 1, "c": 1}, "loss of a: nan is not finite"),
    ],
)
def test_a_loss_that_is_missing_or_no_number_is_refused(losses, reference, words):
    with pytest.raises(ValueError, match=words):
        DynamicLoading(reference=reference)(view(losses))


def test_the_bandit_refuses_what_is_no_number():
    with pytest.raises(ValueError, match="loss of b: inf is not finite"):
        OnlineMixing()(view({"b": float("inf")}))
    with pytest.raises(ValueError, match="smoothing"):
        OnlineMixing(smoothing=1)(view({}))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1e9), min_size=1).filter(
        lambda w: any(w.values())
    ),
    st.fractions(F(1, 10**9), F(1, 8)),
)
def test_no_share_is_below_the_floor(weights, floor):
    shares = exact_shares(weights, "abcdefgh", floor)
    assert sum(shares.values()) == 1
    assert all(
        shares[pool] > floor - F(1, 10**9) if pool in weights else shares[pool] == 0 for pool in shares
    )


def test_a_floor_that_is_no_share_is_refused():
    for floor in (F(0), F(1, 2 * 10**9), F(2, 3)):
        with pytest.raises(ValueError, match="floor"):
            exact_shares({"a": 1.0, "b": 1.0}, "ab", floor)
