"""Held-out pools as scored rows: every token once, the same rows each time, nothing of the run's spent."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.config import recipe_from_plain, recipe_to_plain
from recipe.config.evaluation import ScoringRule
from recipe.config.held_out import held_out_entries
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
        open_held_out(
            build(),
            held_out_entries({"code": tmp_path / "copy"}, "evaluation.pools"),
            trained,
            where="evaluation.pools",
        )


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


@pytest.fixture
def raw_files(tmp_path):
    """Pools to train on; ``exam.bin`` holds documents 1 2 3 and 4 5 6 7 8, each with its end mark 0."""
    for name in ("a", "b", "c"):
        recipe.write_pool(tmp_path / name, [np.arange(30, 200)], vocab_size=500, eos=0)
    np.array([1, 2, 3, 0, 4, 5, 6, 7, 8, 0], "<u2").tofile(tmp_path / "exam.bin")
    return tmp_path


def test_a_held_out_pool_of_token_files_is_described_as_one_that_is_trained_on(raw_files, build):
    """4 and 6 stored tokens are 3 and 5 labels: each but a document's first."""
    entry = {"path": "exam.bin", "dtype": "uint16", "eos": 0}
    rule = {"pools": {"exam": entry}, "window": 24, "stride": 7, "offset": 3}
    built = build(pools_root=str(raw_files), evaluation=rule)
    with recipe.start_run(built, raw_files / "run") as run:
        entries = run.recipe.evaluation.pools
    opened = open_held_out(built, entries, {}, where="evaluation.pools")["exam"]
    labels = [rows["labels"] for rows in scored_rows(opened, Scoring(built.scoring_rule))]
    assert sum(int((part >= 0).sum()) for part in labels) == 3 + 5
    assert recipe_from_plain(recipe_to_plain(built), source="again") == built


def test_what_such_files_leave_open_is_told_under_the_entry(raw_files, build):
    rule = {"pools": {"exam": "exam.bin"}, "window": 24, "stride": 7, "offset": 3}
    with pytest.raises(RecipeError) as caught:
        recipe.start_run(build(pools_root=str(raw_files), evaluation=rule), raw_files / "run")
    (problem,) = caught.value.problems
    assert problem.where.startswith("evaluation.pools.exam") and "dtype" in problem.fix
