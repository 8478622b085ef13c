import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.maths.amounts import BINARY_UNITS, DECIMAL_UNITS, exact_amount, format_amount, parse_amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("10B", 10 * 10**9),
        ("4M", 4 * 10**6),
        ("8T", 8 * 10**12),
        ("7k", 7000),
        ("7K", 7000),
        ("4Ki", 4096),
        ("4Mi", 4 * 2**20),
        ("1Gi", 2**30),
        ("2Ti", 2**41),
        ("1_000_000", 10**6),
        ("1e9", 10**9),
        ("1E9", 10**9),
        ("1e+9", 10**9),
        ("1.5e9", 1_500_000_000),
        ("2T", 2 * 10**12),
        ("1.5B", 1_500_000_000),
        ("1.5Ki", 1536),
        ("100 k", 100_000),
        (" 12 ", 12),
        ("0", 0),
        (12, 12),
        (1e9, 10**9),
        (str(2**63 - 1), 2**63 - 1),
    ],
)
def test_G01_amounts_are_exact(text, amount):
    assert parse_amount(text) == amount
    assert type(parse_amount(text)) is int


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("1.5", "not a whole number"),
        (1.5, "not a whole number"),
        ("0.0001k", "not a whole number"),
        ("1.3Ki", "not a whole number"),
        ("10G", "did you mean 'B'"),
        ("10b", "did you mean 'B'"),
        ("10m", "did you mean 'M'"),
        ("10mi", "did you mean 'Mi'"),
        ("256KB", "did you mean 'k'.*write 256k"),
        ("4 MiB", "did you mean 'Mi'.*write 4Mi"),
        ("10gb", "did you mean 'B'.*write 10B"),
        ("10Q", "unknown unit"),
        ("10QB", "unknown unit"),
        ("ten", "not an amount"),
        ("", "not an amount"),
        ("-5", "not an amount"),
        ("1__0", "not an amount"),
        ("_1", "not an amount"),
        ("1e-3", "not an amount"),
        ("1e999", "not an amount"),
        ("0x10", "unknown unit|not an amount"),
        ("٣", "not an amount"),
        ("nan", "not an amount"),
        (float("nan"), "not a whole number"),
        (float("inf"), "not a whole number"),
        (2.0**60, "not a whole number"),
        (True, "not an amount"),
        (None, "not an amount"),
        ([1], "not an amount"),
        (-1, "not in 0"),
        (2**63, "not in 0"),
        ("10000000T", "not in 0"),
    ],
)
def test_G01_what_is_no_whole_amount_is_refused(given, why):
    with pytest.raises(ValueError, match=why):
        parse_amount(given)


@given(st.integers(0, 2**40), st.sampled_from(sorted(DECIMAL_UNITS | BINARY_UNITS)))
def test_an_amount_is_its_number_times_its_unit(number, unit):
    size = (DECIMAL_UNITS | BINARY_UNITS)[unit]
    if number * size < 2**63:
        assert parse_amount(f"{number}{unit}") == number * size


@given(st.integers(0, 2**63 - 1))
def test_exact_text_reads_back(amount):
    assert parse_amount(exact_amount(amount)) == amount


@given(st.integers(1, 2**62))
def test_text_for_people_is_within_a_percent_and_never_shows_a_thousand(amount):
    text = format_amount(amount)
    number = text.rstrip("kMBT")
    size = DECIMAL_UNITS[text[len(number) :]]
    assert abs(float(number) * size - amount) <= 0.01 * amount
    assert float(number) < 1000 or text.endswith("T")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (999, "999"),
        (1000, "1k"),
        (999_999, "1M"),
        (123_456, "123k"),
        (10**15, "1000T"),
        (1_005_000, "1.01M"),
        (99_999, "100k"),
    ],
)
def test_text_for_people(amount, text):
    assert format_amount(amount) == text
