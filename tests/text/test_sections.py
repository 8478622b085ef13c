"""Sections of texts: headings, definitions, and what records state; from characters to tokens to the pool."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools.sections import Section
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sections import section_starts, token_sections
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import load_tokenizer
from tests.text.small_tokenizers import byte_level, composed, unbroken_bytes

BYTES = load_tokenizer("bytes")

MARKDOWN = """\
---
title: no heading
---
Intro
=====

Text, and a list
- one
---

## Two ##
```python
# a comment
```
~~~~
```
# still code
~~~
# and here
~~~~
   ###
#no heading
    # code

A line
of two
------
Three
-----
"""
PYTHON = '''\
"""A module.

def not_one(): pass
"""
import os


def first():
    def inner():
        pass


@cached
@named(
    "x",
)
# why
class Second:
    async def method(self):
        return """
def text():
"""


VALUE = 1
async def third(): ...
defined = 2
'''


def heads(text, kind):
    return [text[start:].splitlines()[0] for start in section_starts(text, kind)]


def test_headings_of_markdown_outside_code_and_front_matter():
    assert heads(MARKDOWN, "markdown") == ["Intro", "## Two ##", "   ###"]


def test_a_line_of_text_that_is_underlined_is_a_heading():
    assert heads("a\n\nTitle\n===\nb\nnone\n---\n\nOther\r\n---\r\n", "markdown") == ["Title", "Other"]


def test_top_level_definitions_begin_with_their_decorators():
    assert heads(PYTHON, "python") == ["def first():", "@cached", "async def third(): ..."]


def test_lines_of_any_ending_have_sections():
    assert section_starts("x\r\n# a\r\n# b\r# c", "markdown") == [3, 8, 12]


@given(st.text(alphabet="#`~=-\"'\\\n\r @defclass():x", max_size=80), st.sampled_from(["markdown", "python"]))
def test_sections_begin_where_lines_begin(text, kind):
    starts = section_starts(text, kind)
    assert starts == sorted(set(starts))
    assert all(start == 0 or text[start - 1] in "\n\r" for start in starts)


@pytest.mark.parametrize("make", [byte_level, unbroken_bytes], ids=lambda make: make.__name__)
def test_B7_a_section_begins_with_the_token_that_holds_its_first_character(make, tmp_path):
    tokenizer = make(tmp_path)
    text = "保留重复元素。👩‍👩‍👧\n\n## Next é\n\n    x"
    spans = tokenizer.offsets(text)
    for start in range(len(text)):
        (section,) = token_sections([Section(start)], spans)
        tokens = tokenizer.encode_batch([text])[0]
        before = tokenizer.decode(tokens[: section.start])
        assert text.startswith(before)
        assert len(before) <= start


def test_a_section_behind_characters_that_the_tokenizer_composes(tmp_path):
    tokenizer, text = composed(tmp_path), "cafe\u0301 e\u0301\n# Next\n"
    (section,) = token_sections([Section(text.index("#"))], tokenizer.offsets(text))
    tokens = tokenizer.encode_batch([text])[0]
    assert tokenizer.decode(tokens[section.start :]).lstrip() == "# Next\n"
    assert tokenizer.decode(tokens[: section.start]).rstrip() == "café é"


def test_an_interrupted_preparation_with_sections_gives_the_same_bytes(tmp_path):
    path = tmp_path / "texts.jsonl"
    records = [{"id": k, "text": f"{k}\n" + "# A\nwords\n" * (k % 7)} for k in range(40)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    options = PrepareOptions(read=ReadOptions(sections="markdown"), part_tokens=200, workers=1)

    def stop_late(event):
        if event.phase == "write" and event.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_pool([path], tmp_path / "two", BYTES, options, progress=stop_late)
    one, two = (prepare_pool([path], tmp_path / name, BYTES, options) for name in ("one", "two"))
    assert len(one.sections) == sum(k % 7 for k in range(40))
    assert one.sections.tolist() == two.sections.tolist()
    assert one.fingerprint == two.fingerprint


def test_sections_that_begin_in_one_token_are_one():
    spans = np.array([[0, 4], [4, 8]])
    assert token_sections([Section(4), Section(6, "a"), Section(7)], spans) == [Section(1, "a")]


def test_named_sections_need_tokens_of_their_own():
    spans = np.array([[0, 4], [4, 8]])
    with pytest.raises(ValueError, match="'a' and 'b' begin in one token"):
        token_sections([Section(4, "a"), Section(6, "b")], spans)
    with pytest.raises(ValueError, match="has no token"):
        token_sections([Section(9, "a")], spans)
    assert token_sections([Section(9)], spans) == []


def prepared(tmp_path, records, tokenizer=BYTES, **read):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return prepare_pool([path], tmp_path / "pool", tokenizer, PrepareOptions(read=ReadOptions(**read)))


def sections_of(pool, document):
    start, stop = pool.offsets[document : document + 2].tolist()
    return [at - start for at in pool.sections.tolist() if start < at < stop]


def test_sections_by_a_rule_are_stored_with_the_pool(tmp_path):
    texts = {"a": "intro\n# One\nText\n# Two\n", "b": "# Only\n", "c": "none"}
    records = [{"id": id, "text": text} for id, text in texts.items()]
    pool = prepared(tmp_path, records, sections="markdown")
    found = {pool.ids([number])[0]: sections_of(pool, number) for number in range(3)}
    assert found == {"a": [6, 17], "b": [], "c": []}


def test_B5_units_of_records_and_what_they_need(tmp_path):
    text = "保留 = 1\ndef a(): b()\ndef b(): pass\n"
    a, b = text.index("def a"), text.index("def b")
    units = [
        {"start": 0, "id": "top"},
        {"start": a, "id": "a", "needs": ["b", "top"]},
        {"start": b, "id": "b"},
    ]
    pool = prepared(tmp_path, [{"text": text, "units": units}], units_key="units")
    size = len(text.encode())
    first, second = (len(text[:at].encode()) for at in (a, b))
    assert pool.sections.tolist() == [first, second]
    assert pool.needs.tolist() == [[first, second, second, size], [first, second, 0, first]]


def test_units_over_the_documents_of_a_group(tmp_path):
    records = [
        {"id": 1, "text": "one two", "repo": "r", "units": [{"start": 4, "id": "two"}]},
        {"id": 2, "text": "three", "repo": "r", "units": [{"start": 0, "needs": ["two"]}]},
        {"id": 3, "text": "four"},
    ]
    pool = prepared(tmp_path, records, units_key="units", group_key="repo")
    offsets = pool.offsets.tolist()
    one, two = offsets[pool.find(1)], offsets[pool.find(2)]
    assert pool.needs.tolist() == [[two, two + 5, one + 4, one + 7]]


@pytest.mark.parametrize(
    ("units", "said"),
    [
        ("x", "a list of objects in 'units', not text"),
        ([{"start": 3}, {"start": 3}], "starts that rise, in 4..6, in 'units', not 3"),
        ([{"start": 7}], "starts that rise, in 0..6, in 'units', not 7"),
        ([{"start": True}], "not True"),
        ([{"at": 3}], "objects of start, id and needs"),
        ([{"start": 3, "needs": "a"}], "a list of ids in 'needs', not text"),
        ([{"start": 3, "id": 1.5}], "text or a whole number in 'id'"),
    ],
)
def test_units_that_mean_nothing_are_bad_records(tmp_path, units, said):
    with pytest.raises(RecipeError) as caught:
        prepared(tmp_path, [{"text": "one two", "units": units}], units_key="units")
    assert said in caught.value.problems[0].expected
    pool = prepared(
        tmp_path, [{"text": "one two", "units": units}, {"text": "x"}], units_key="units", on_bad="skip"
    )
    assert pool.card.source["read"]["quarantined"] == {"bad_sections": 1}


def test_units_with_names_in_one_token_are_refused_with_their_place(tmp_path):
    units = [{"start": 0, "id": "a"}, {"start": 1, "id": "b"}]
    with pytest.raises(RecipeError, match=r"texts\.jsonl:1") as caught:
        prepared(tmp_path, [{"text": "The", "units": units}], byte_level(tmp_path), units_key="units")
    assert "'a' and 'b' begin in one token" in str(caught.value.problems[0].given)


def test_sections_by_a_rule_and_of_records_exclude_each_other():
    with pytest.raises(RecipeError, match="one of them"):
        ReadOptions(sections="python", units_key="units")


def test_a_pool_prepared_without_sections_is_another_one(tmp_path):
    prepared(tmp_path, [{"text": "# a\n# b\n"}])
    with pytest.raises(RecipeError) as caught:
        prepared(tmp_path, [{"text": "# a\n# b\n"}], sections="markdown")
    assert "--sections" in [problem.where for problem in caught.value.problems]


def test_what_is_not_asked_for_is_not_in_the_settings(tmp_path):
    pool = prepared(tmp_path, [{"text": "# a\n# b\n"}])
    settings = json.loads((pool.path / "prepare.json").read_text())["settings"]
    assert not {"sections", "units_key"} & set(settings["read"])
    assert pool.sections is None
