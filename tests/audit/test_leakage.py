"""Text shared by training and held-out pools: everything that is, nothing that is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.audit import leakage
from recipe.audit.leakage import Search, find_leakage
from recipe.audit.shared_text import ANCHOR, shared_runs, slice_of, stretches_of
from recipe.maths.ngrams import find_windows, table_of, window_hashes
from recipe.pools import Pool

TEXTS = st.lists(st.lists(st.integers(0, 1), max_size=24), min_size=1, max_size=5)


def pool(folder: Path, texts: list[list[int]], **more: int) -> Pool:
    return recipe.write_pool(folder, [np.array(text, np.int64) for text in texts], vocab_size=9, **more)


def stretches(text: list[int], ngram: int) -> list[tuple[int, ...]]:
    return [tuple(text[i : i + ngram]) for i in range(len(text) - ngram + 1)]


def held_parts(text: list[int], ngram: int) -> list[tuple[int, ...]]:
    """Stretches of a held-out text, or all of it where it is shorter."""
    return stretches(text, ngram) if len(text) >= ngram else [tuple(text)] * bool(text)


def holds(text: list[int], wanted: tuple[int, ...], ngram: int) -> bool:
    """Whether a text of training holds something; if that is very short, whether it is just that."""
    if len(wanted) < min(ngram, ANCHOR):
        return tuple(text) == wanted
    return wanted in stretches(text, len(wanted))


def leaked_tokens(text: list[int], trained: list[list[int]], ngram: int) -> int:
    covered = [False] * len(text)
    for start, part in enumerate(held_parts(text, ngram)):
        if any(holds(other, part, ngram) for other in trained):
            covered[start : start + len(part)] = [True] * len(part)
    return sum(covered)


@settings(max_examples=60)
@given(TEXTS, TEXTS, st.integers(1, 14), st.sampled_from([{}, {"eos": 8}, {"bos": 7, "eos": 8}]), st.data())
def test_f6_as_whoever_compares_every_stretch(tmp_path_factory, trained, held, ngram, marks, data):
    folder = tmp_path_factory.mktemp("pools")
    held = [*held, *data.draw(st.lists(st.sampled_from(trained).map(lambda text: text[2:13]), max_size=2))]
    search = Search(ngram=ngram, slice_tokens=data.draw(st.integers(1, 20)))
    found = find_leakage(
        {"a": pool(folder / "a", trained, part_tokens=9, **marks)},
        {"exam": pool(folder / "exam", held, **marks)},
        search,
    )
    leaked = [leaked_tokens(text, trained, ngram) for text in held]
    exam = found.held["exam"]
    assert (exam.leaked_tokens, exam.leaked_documents) == (sum(leaked), sum(map(bool, leaked)))
    assert exam.found_in == {"a": exam.leaked_documents}
    wanted = {part for text in held for part in held_parts(text, ngram)}
    leaking = sum(any(holds(text, part, ngram) for part in wanted) for text in trained)
    assert found.trained["a"].leaking_documents == leaking
    assert found.ok == (not any(leaked))
    for leak in found.leaks:
        ours, theirs = (
            texts[at.document][at.start : at.stop]
            for texts, at in ((held, leak.held), (trained, leak.trained))
        )
        assert ours == theirs and (len(ours) >= ngram or leak.whole)
        assert leak.whole == (len(ours) == len(held[leak.held.document]))


def test_a_stretch_as_long_as_asked_is_found_and_one_token_less_is_not(tmp_path):
    shared = list(range(1, 51))
    trained = {"web": wide(tmp_path / "web", [[60, *shared, 61], [7] * 80])}
    held = {"exam": wide(tmp_path / "exam", [[70, 71], [62, *shared, 63, 64]])}
    found = find_leakage(trained, held)
    (leak,) = found.leaks
    assert (leak.trained.document, leak.trained.start, leak.trained.stop) == (0, 1, 51)
    assert (leak.held.document, leak.held.start, leak.held.stop, leak.whole) == (1, 1, 51, False)
    assert find_leakage(trained, held, Search(ngram=51)).ok


def test_f6_a_short_question_inside_a_longer_page_is_found(tmp_path):
    page, question = list(range(100)), list(range(40, 60))
    found = find_leakage(
        {"web": wide(tmp_path / "web", [page, [7]])}, {"exam": wide(tmp_path / "exam", [question, [8]])}
    )
    (leak,) = found.leaks
    assert (leak.trained.start, leak.trained.stop, leak.whole) == (40, 60, True)


def test_a_document_that_is_there_as_a_whole_is_named_whole(tmp_path):
    text = list(range(80))
    found = find_leakage(
        {"web": wide(tmp_path / "web", [text])}, {"exam": wide(tmp_path / "exam", [text, [1, 2]])}
    )
    assert [leak.whole for leak in found.leaks] == [True]
    assert (found.held["exam"].short_documents, found.held["exam"].leaked_documents) == (1, 1)


def test_a_hash_only_proposes_and_tokens_decide(tmp_path):
    trained, held = wide(tmp_path / "web", [[9] * 60]), wide(tmp_path / "exam", [[*range(1, 51)]])
    (stretch,) = stretches_of(trained, np.empty(0, np.int64))
    hashes = window_hashes(stretch.tokens[:50], 50)
    part = slice_of(held, np.array([0]), 50)._replace(stretches=table_of(hashes, np.array([0])))
    assert len(find_windows(stretch.tokens, stretch.bodies, 50, part.stretches).place) == 11
    assert list(shared_runs(part, stretch, 50)) == []


def test_places_are_kept_for_some_leaks_and_all_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(leakage, "SHOWN", 2)
    texts = [list(range(a, a + 50)) for a in range(5)]
    found = find_leakage({"web": wide(tmp_path / "web", texts)}, {"exam": wide(tmp_path / "exam", texts)})
    assert (len(found.leaks), found.num_leaks) == (2, 5)


@pytest.mark.parametrize("shown", [2, 9])
def test_the_longest_shared_stretches_come_first_and_are_the_ones_that_are_kept(tmp_path, monkeypatch, shown):
    """Boilerplate of 50 tokens in every document, found first, hides no document that was copied whole."""
    monkeypatch.setattr(leakage, "SHOWN", shown)
    stamp, copied, part = list(range(50)), list(range(50, 190)), list(range(70, 140))
    held = wide(tmp_path / "exam", [[*stamp, 195], [*stamp, 196], copied])
    trained = wide(tmp_path / "web", [[*stamp, 197], part, copied])
    found = find_leakage({"web": trained}, {"exam": held}, Search(slice_tokens=60))
    sizes = [leak.held.stop - leak.held.start for leak in found.leaks]
    assert sizes == [140, 70, 50, 50][:shown]
    assert [leak.whole for leak in found.leaks][:2] == [True, False]
    assert [leak.held.document for leak in found.leaks][2:] == [0, 1][: shown - 2]
    assert found.num_leaks == 4


@pytest.mark.parametrize("ngram", [0, -3])
def test_a_stretch_has_a_token(tmp_path, ngram):
    with pytest.raises(ValueError, match="at least 1"):
        Search(ngram=ngram)


def wide(folder: Path, texts: list[list[int]]) -> Pool:
    """A pool of a larger vocabulary."""
    return recipe.write_pool(folder, [np.array(text) for text in texts], vocab_size=200)
