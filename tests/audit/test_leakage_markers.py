"""Held-out text in documents with markers in front: bodies are compared, first token to last."""

from __future__ import annotations

import numpy as np
import pytest

from recipe.audit.leakage import Search, find_leakage
from recipe.audit.shared_text import stretches_of
from recipe.pools import write_pool

TEXTS = [list(range(20, 32)), list(range(40, 52)), list(range(60, 72))]
LEADS = [[7, 8, 9], None, [7]]


@pytest.mark.parametrize("bos", [None, 2])
@pytest.mark.parametrize("document", range(len(TEXTS)))
@pytest.mark.parametrize("start", [0, 4])
def test_a_stretch_at_either_end_of_a_document_with_markers_is_found(tmp_path, bos, document, start):
    marks = {"vocab_size": 100, "bos": bos, "eos": 1}
    web = write_pool(tmp_path / "web", TEXTS, leads=LEADS, part_tokens=18, **marks)
    exam = write_pool(tmp_path / "exam", [[90, *TEXTS[document][start : start + 8], 91]], **marks)
    (leak,) = find_leakage({"web": web}, {"exam": exam}, Search(ngram=8)).leaks
    found = (leak.trained.document, leak.trained.start, leak.trained.stop)
    assert found == (document, start, start + 8)


def test_bodies_of_a_stretch_are_the_documents_tokens(tmp_path):
    web = write_pool(tmp_path / "web", TEXTS, leads=LEADS, vocab_size=100, bos=2, eos=1, part_tokens=18)
    read = [
        stretch.tokens[start:stop].tolist()
        for stretch in stretches_of(web, np.empty(0, np.int64))
        for start, stop in stretch.bodies.tolist()
    ]
    assert read == TEXTS
