"""The minimal case, worked out by hand: ten documents of one and a half windows, text to loss and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import load_tokenizer

WINDOW, CONTEXT, LENGTH = 64, 66, 96
EOS = 256
TEXTS = [f"{n:>3} 你好 {'ab' * 60}"[: LENGTH - 4] for n in range(10)]
"""92 characters, two of which take three bytes: 96 bytes each."""


@pytest.fixture
def run(tmp_path: Path) -> recipe.run.run.Run:  # type: ignore[name-defined]
    source = tmp_path / "texts"
    source.mkdir()
    for number, text in enumerate(TEXTS):
        (source / f"{number}.txt").write_text(text, encoding="utf-8")
    prepare_pool([source], tmp_path / "pool", load_tokenizer("bytes"))
    (tmp_path / "minimal.yaml").write_text(
        f"""
        seed: 1
        max_epochs: 1
        pools: {{p: {{path: "{tmp_path}/pool"}}}}
        stages:
          s:
            steps: 3
            context: {CONTEXT}
            batch: {{sequences: 5}}
            slicing: {{window: {WINDOW}}}
            quotas: {{p: 100%}}
        """,
        encoding="utf-8",
    )
    return recipe.start_run(recipe.load_recipe(str(tmp_path / "minimal.yaml")), tmp_path / "run")


def ids(text: str) -> list[int]:
    return list(text.encode())


def test_G3_every_count_is_the_one_worked_out_by_hand(run, tmp_path):
    """A document gives 64 + 32 tokens; the second piece and its EOS take 33, two of them fill a row of 66.

    So 10 rows of 64 + 2 padding and 5 full rows; 64 labels in a cut piece (the token after it is read
    ahead), 31 + EOS in the last.
    """
    run.checkpoint(step=3)
    run.close()
    assert [len(ids(text)) for text in TEXTS] == [LENGTH] * 10
    audit = recipe.audit_run(tmp_path / "run", full=True)
    assert audit.ok
    assert audit.tokens["p"] == {"body": 960, "overlap": 0, "special": 10, "padding": 20, "labels": 960}


def test_G3_the_pieces_of_every_document_give_its_text_back(run):
    pieces: dict[Any, list[tuple[int, list[int]]]] = {}
    stream = run.stream()
    for step, batch in stream.batches():
        for row in range(5):
            for piece in stream.provenance(step, row):
                held = batch["input_ids"][row, piece.column : piece.column + piece.stop - piece.start]
                pieces.setdefault(piece.document, []).append((piece.start, held.tolist()))
    tokenizer = load_tokenizer("bytes")
    restored = [
        tokenizer.decode([token for _, held in sorted(document) for token in held])
        for document in pieces.values()
    ]
    assert sorted(restored) == sorted(TEXTS)
    run.close()


def test_G3_the_loss_of_a_tiny_model_is_the_one_of_the_documents_alone(run):
    """A model that averages what it may see: its loss tells labels, isolation and read-ahead apart."""
    chance = np.random.default_rng(0)
    embedding, output = chance.normal(size=(257, 8)), chance.normal(size=(8, 257))

    def losses(tokens: list[int], targets: list[int]) -> list[float]:
        seen = np.cumsum(embedding[tokens], axis=0) / np.arange(1, len(tokens) + 1)[:, None]
        logits = seen @ output
        normal = np.log(np.exp(logits).sum(axis=1))
        return [float(normal[i] - logits[i, target]) for i, target in enumerate(targets)]

    by_hand = []
    for text in TEXTS:
        document = ids(text)
        by_hand += losses(document[:WINDOW], document[1 : WINDOW + 1])
        by_hand += losses(document[WINDOW:], [*document[WINDOW + 1 :], EOS])
    served = []
    for _, batch in run.stream().batches():
        for tokens, labels, segments in zip(
            batch["input_ids"], batch["labels"], batch["segment_ids"], strict=True
        ):
            for segment in range(segments.max() + 1):
                here = segments == segment
                targets = labels[here][labels[here] != -100].tolist()
                served += losses(tokens[here].tolist(), targets)
    run.close()
    assert len(served) == len(by_hand) == 960
    assert np.mean(served) == pytest.approx(np.mean(by_hand), rel=1e-12)
