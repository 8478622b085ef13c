import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.config import parse_yaml
from recipe.config.draft import natural_quotas, scalar
from recipe.config.share_values import fill_rest, read_share


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12))
def test_a_scalar_reads_back_as_text(text):
    assert parse_yaml(f"x: {scalar(text)}\n", "t") == {"x": text}
    assert parse_yaml(f"{{a: [{scalar(text)}]}}\n", "t") == {"a": [text]}


@pytest.mark.parametrize(
    "text", ["@", "@org/web", "- web", "-", "-web", "~", "~/web", "...", "---", " web", "12"]
)
@pytest.mark.parametrize("is_key", [False, True])
def test_signs_of_yaml_read_back_as_text(text, is_key):
    written = scalar(text, is_key=is_key)
    if is_key:
        assert {str(name) for name in parse_yaml(f"x:\n  {written}: 1\n", "t")["x"]} == {text}
    else:
        assert parse_yaml(f"x: {written}\n", "t") == {"x": text}


@pytest.mark.parametrize("name", ["no", "1e5", "12", "true", "中文", "a-b"])
def test_names_stay_bare(name):
    assert scalar(name, is_key=True) == name
    assert parse_yaml(f"{{{name}: 1}}", "t") == {name: 1}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**12), min_size=1).filter(
        lambda s: any(s.values())
    )
)
def test_natural_quotas_sum_to_all_and_leave_nothing_out_that_a_millionth_can_show(stock):
    (line,) = natural_quotas(stock)
    quotas = parse_yaml(line, "t")["quotas"]
    shares = fill_rest({name: read_share(text) for name, text in quotas.items()})
    assert sum(shares.values()) == 1
    total = sum(stock.values())
    for name, tokens in stock.items():
        assert (shares[name] > 0) >= (tokens * 10**6 > total)
        assert abs(float(shares[name]) - tokens / total) <= 0.01
