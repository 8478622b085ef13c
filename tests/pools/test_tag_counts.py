"""Tags of a pool: exact numbers of the most frequent values, whatever there is of others."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.audit.tags import by_tags
from recipe.pools import tag_counts as module
from recipe.pools.tag_counts import Value, tag_counts


def write(folder, tags, lengths=None):
    lengths = lengths or [1 + n % 3 for n in range(len(tags))]
    documents = [np.ones(n, np.int64) for n in lengths]
    return recipe.write_pool(folder, documents, vocab_size=10, eos=9, tags=tags)


def test_documents_and_tokens_of_each_value(tmp_path):
    tags = [{"lang": "en"}, {"lang": "en", "n": 1}, None, {"lang": "zh", "n": [1, "é"]}]
    with write(tmp_path / "p", tags, [5, 7, 2, 3]) as pool:
        found = tag_counts(pool, 8)
    assert found["lang"].top == (Value("en", 2, 12), Value("zh", 1, 3))
    assert found["n"].top == (Value("1", 1, 7), Value('[1, "é"]', 1, 3))
    assert (found["lang"].documents, found["lang"].tokens, found["lang"].values) == (3, 15, 2)


def test_what_is_not_shown_is_bounded(tmp_path):
    tags = [{"k": "a"}] * 5 + [{"k": "b"}] * 3 + [{"k": "c"}] * 2 + [{"k": "d"}]
    with write(tmp_path / "p", tags) as pool:
        tag = tag_counts(pool, 1)["k"]
    assert ([one.value for one in tag.top], tag.values, tag.below) == (["a"], 4, 3)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=200), st.integers(1, 6), st.integers(1, 8))
def test_values_are_exact_however_few_are_remembered(tmp_path_factory, numbers, most, remembered):
    folder = tmp_path_factory.mktemp("tags") / "p"
    before, module.CANDIDATES = module.CANDIDATES, remembered
    try:
        with write(folder, [{"k": str(n)} for n in numbers]) as pool:
            tag = tag_counts(pool, most)["k"]
    finally:
        module.CANDIDATES = before
    true = Counter(map(str, numbers))
    tokens = Counter()
    for place, number in enumerate(numbers):
        tokens[str(number)] += 1 + place % 3
    shown = {one.value for one in tag.top}
    assert all((one.documents, one.tokens) == (true[one.value], tokens[one.value]) for one in tag.top)
    assert all(count <= tag.below for value, count in true.items() if value not in shown)
    assert all(
        one.documents >= max((n for v, n in true.items() if v not in shown), default=0) for one in tag.top
    )
    assert (tag.documents, tag.tokens) == (len(numbers), sum(tokens.values()))
    if remembered * 2 > len(true):
        assert (tag.values, len(tag.top)) == (len(true), min(most, len(true)))


def test_a_list_of_values_is_one_value_in_whatever_order_it_was_joined(tmp_path):
    """Which copy of a text stayed decides the stored order; what is counted is the set."""
    tags = [{"lang": ["en", "fr"]}, {"lang": ["fr", "en"]}, {"lang": "en"}, {"m": {"l": ["b", "a", "a"]}}]
    with write(tmp_path / "p", tags) as pool:
        counted, audited = tag_counts(pool, 9), by_tags(pool, None)
    assert [(one.value, one.documents) for one in counted["lang"].top] == [('["en", "fr"]', 2), ("en", 1)]
    assert counted["m"].top[0].value == '{"l": ["a", "b"]}'
    assert audited is not None
    assert {value: one.documents for value, one in audited["lang"].items()} == {'["en", "fr"]': 2, "en": 1}
