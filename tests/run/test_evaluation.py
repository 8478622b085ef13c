"""Held-out pools as scored rows: every token once, the same rows each time, nothing of the run's spent."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.config.evaluation import ScoringRule
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.run.evaluation import Scoring, count_rows, open_held_out, scored_rows
from recipe.run.holdings import Holding

VOCABULARY = 600


def held(folder: Path, lengths: list[int], **marks: int) -> Pool:
    """A pool whose documents are 100, 101, … and so on, each token once."""
    ends = np.cumsum([0, *lengths])
    texts = [np.arange(100 + a, 100 + b) for a, b in pairwise(ends)]
    return recipe.write_pool(folder, texts, vocab_size=VOCABULARY, **marks)


def scoring(window: int, stride: int, offset: int, labels: str = "shifted") -> Scoring:
    return Scoring(ScoringRule(window=window, stride=stride, offset=offset), labels)  # type: ignore[arg-type]


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.integers(2, 12),
    st.data(),
    st.sampled_from([{}, {"eos": 0}, {"bos": 1}, {"eos": 0, "bos": 1}]),
    st.sampled_from(["shifted", "inputs"]),
)
def test_f7_every_stored_token_but_the_first_is_a_label_once(
    tmp_path_factory, lengths, window, data, marks, labels
):
    most = window - (labels == "inputs")
    stride = data.draw(st.integers(1, most))
    how = scoring(window, stride, data.draw(st.integers(0, most - 1)), labels)
    pool = held(tmp_path_factory.mktemp("held") / "p", lengths, **marks)
    seen: dict[int, list[int]] = {document: [] for document in range(len(lengths))}
    rows = 0
    for batch in scored_rows(pool, how, at_once=3):
        rows += len(batch["document"])
        assert batch["input_ids"].shape == (len(batch["document"]), window)
        for row, document in enumerate(batch["document"].tolist()):
            stored = pool.stored(document).tolist()
            start, stop, fresh = (int(batch[name][row]) for name in ("start", "stop", "fresh"))
            for column in np.flatnonzero(batch["labels"][row] != -100).tolist():
                token = start + column + (labels == "shifted")
                assert batch["labels"][row, column] == stored[token]
                assert fresh < token <= stop
                seen[document].append(token)
            used = int(batch["attention_mask"][row].sum())
            assert batch["input_ids"][row, :used].tolist() == stored[start : start + used]
            assert used == stop - start + (labels == "inputs")
    assert rows == count_rows(pool, how)
    for document in seen:
        assert seen[document] == list(range(1, len(pool.stored(document))))


def test_v04_every_evaluation_reads_the_same_rows(tmp_path):
    pool = held(tmp_path / "p", [30, 30, 7], eos=0)
    first, second = (
        [batch["input_ids"].tolist() for batch in scored_rows(pool, scoring(8, 3, 2), most=8)] for _ in "ab"
    )
    assert first == second and sum(map(len, first)) == 8


def test_a_document_without_a_second_token_has_nothing_to_score(tmp_path):
    assert count_rows(held(tmp_path / "p", [1, 0]), scoring(4, 2, 1)) == 0


def test_what_is_trained_on_is_not_held_out(tmp_path, build):
    trained = {"a": Holding.of(held(tmp_path / "a", [9, 9], eos=0))}
    held(tmp_path / "copy", [9, 9], eos=0)
    with pytest.raises(RecipeError, match="the content of pool 'a'"):
        open_held_out(build(), {"code": tmp_path / "copy"}, trained, where="evaluation.pools")


@pytest.mark.parametrize("path", ["copy", "nowhere"])
def test_f6_a_run_is_not_started_on_what_it_is_measured_by(tmp_path, build, path):
    """A pool of the same content elsewhere, and a folder that is not there."""
    texts = [np.arange(1, 30), np.arange(30, 200)]
    for name in ("a", "b", "c", "copy"):
        recipe.write_pool(tmp_path / name, texts[: 1 + (name in "a copy")], vocab_size=500, eos=0)
    rule = {"pools": {"exam": path}, "window": 24, "stride": 7, "offset": 3}
    with pytest.raises(RecipeError, match="exam"):
        recipe.start_run(build(pools_root=str(tmp_path), evaluation=rule), tmp_path / "run")
    assert not (tmp_path / "run").exists()
