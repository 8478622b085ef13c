from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.maths.shares import (
    SHARE_GRAIN,
    even,
    from_weights,
    natural,
    parse_percent,
    parse_weight,
    percent_text,
    ramped,
    temperature,
    to_grain,
    unimax,
    weight_text,
)

STOCKS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10**13), min_size=1).filter(
    lambda stock: any(stock.values())
)


def test_percent_text_is_exact():
    assert parse_percent("61.6%") == Fraction(77, 125)
    assert parse_percent(" 0.1 % ") == Fraction(1, 1000)


@pytest.mark.parametrize(
    "given", [1, 1.0, 0.5, "0.5", "61,6%", "%", "-1%", "1e1%", "nan%", None, True, "50 %%"]
)
def test_M07_what_is_no_percent_text_is_refused(given):
    with pytest.raises(ValueError, match="not percent text"):
        parse_percent(given)


@given(st.integers(0, 10**12), st.integers(0, 12))
def test_percent_text_reads_back(number, tens):
    share = Fraction(number, 100 * 10**tens)
    assert parse_percent(percent_text(share)) == share


def test_a_share_without_a_finite_decimal_has_no_percent_text():
    with pytest.raises(ValueError, match="1/3"):
        percent_text(Fraction(1, 3))


@given(st.fractions(min_value=0, max_denominator=10**6))
def test_weight_text_reads_back(weight):
    assert parse_weight(weight_text(weight)) == weight


def test_a_weight_is_what_is_written_not_the_nearest_float():
    assert parse_weight(0.1) == parse_weight("0.1") == Fraction(1, 10)


@pytest.mark.parametrize(
    "given", ["nan", "inf", float("nan"), float("inf"), "1/0", "1%", "", "a", None, True]
)
def test_M05_what_is_no_number_is_refused(given):
    with pytest.raises(ValueError, match="not a number"):
        parse_weight(given)


@pytest.mark.parametrize("weights", [{"a": 0, "b": 0}, {"a": 3, "b": -1}, {}])
def test_M05_weights_need_a_positive_one_and_no_negative_one(weights):
    with pytest.raises(ValueError):
        from_weights(weights)


def test_M06_ten_tenths_are_one():
    assert sum(from_weights({str(i): Fraction(1, 10) for i in range(10)}).values()) == 1


@given(STOCKS)
def test_natural_shares_read_every_token_equally_often(stock):
    shares = natural(stock)
    assert all(shares[name] * sum(stock.values()) == tokens for name, tokens in stock.items())


@given(STOCKS)
def test_temperature_one_is_natural_and_zero_is_even(stock):
    filled = {name: tokens for name, tokens in stock.items() if tokens}
    assert temperature(filled, Fraction(0)) == even(filled)
    assert to_grain(temperature(filled, Fraction(1))) == pytest.approx(to_grain(natural(filled)), abs=1e-9)


def test_temperature_agrees_with_the_formula():
    stock = {"a": 3080, "b": 500, "c": 10}
    powers = {name: tokens**0.3 for name, tokens in stock.items()}
    expected = {name: power / sum(powers.values()) for name, power in powers.items()}
    assert {
        name: float(share) for name, share in temperature(stock, Fraction(3, 10)).items()
    } == pytest.approx(expected)


def test_an_empty_pool_gets_nothing_at_any_temperature():
    assert temperature({"a": 5, "b": 0}, Fraction(0)) == {"a": 1, "b": 0}


@pytest.mark.parametrize("exponent", [Fraction(-1, 10), Fraction(33, 10)])
def test_an_exponent_outside_0_to_1_is_refused(exponent):
    with pytest.raises(ValueError, match="exponent"):
        temperature({"a": 1}, exponent)


def test_unimax_is_even_where_stocks_allow():
    assert unimax({"a": 100, "b": 200}, 100, {"a": 1, "b": 1}) == even("ab")


@given(STOCKS, st.integers(1, 10**14), st.integers(1, 8))
def test_unimax_never_asks_for_more_readings_than_allowed(stock, budget, epochs):
    shares = unimax(stock, budget, dict.fromkeys(stock, epochs))
    caps = {name: tokens * epochs for name, tokens in stock.items()}
    if budget <= sum(caps.values()):
        assert all(shares[name] * budget <= caps[name] for name in stock)
    else:
        assert shares == natural(caps)
    assert sum(shares.values()) == 1


@given(STOCKS)
def test_grains_are_whole_and_sum_to_one(stock):
    grains = to_grain(natural(stock))
    assert sum(grains.values()) == 1
    assert all((share * SHARE_GRAIN).denominator == 1 for share in grains.values())
    assert all(abs(grains[name] - share) < Fraction(1, SHARE_GRAIN) for name, share in natural(stock).items())


@given(st.fractions(0, 1), st.fractions(0, 1), st.integers(1, 40))
def test_a_ramp_has_the_middles_of_equal_steps(before, after, steps):
    on_the_way = [step["a"] for step in ramped({"a": before}, {"a": after}, steps)]
    size = (after - before) / steps
    assert on_the_way == [before + size * step + size / 2 for step in range(steps)]
    assert sum(on_the_way) / steps == (before + after) / 2


def test_a_ramp_is_between_shares_of_the_same_names():
    with pytest.raises(ValueError, match="steps from"):
        ramped({"a": Fraction(1)}, {"b": Fraction(1)}, 2)
    with pytest.raises(ValueError, match="0 steps"):
        ramped({"a": Fraction(1)}, {"a": Fraction(1)}, 0)
