"""Acceptance of the program itself: tiny documents through all of it, and values worked out by hand."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from recipe.audit.findings import shown
from recipe.audit.rows import ARRAYS, allowed_pairs
from recipe.audit.verify import Acceptance, Check, claim
from recipe.config import Recipe, recipe_from_plain
from recipe.integrations.acceptance.run import Sample, verify_run
from recipe.pools import Finding
from recipe.run.opening import open_run
from recipe.run.run import Run
from recipe.run.start import start_run
from recipe.run.state import stream_from
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import Tokenizer, load_tokenizer

CONTEXT = 8
IDS = {"abc": (97, 98, 99, 256), "de": (100, 101, 256)}
"""Two documents of three and two bytes, each with its end mark, packed into one row in either order."""
LABELS = {"abc": (98, 99, 256, -100), "de": (101, 256, -100)}
PAIRS = 16
"""The four positions of the first see 1 + 2 + 3 + 4, the three of the second 1 + 2 + 3."""

WINDOW, STRIDE, ROWS, STEPS = 48, 40, 5, 24
TEXTS = tuple(
    f"{n}: 保留重复元素。 caf\u00e9 cafe\u0301 \U0001f600 sorted([3, 1, 3]) 2024-05-01 " * 2
    for n in range(10)
)
"""Ten documents, each longer than a window, with characters of several bytes; one of them is not NFC."""


def verify_program(tokenizer: str | Path | None = None) -> Acceptance:
    """Two tiny documents against values worked out by hand; ten longer ones there and back; save and restart.

    Args:
        tokenizer: of the longer documents; default: bytes.

    Raises:
        RecipeError: the tokenizer is not there.
    """
    made = load_tokenizer(tokenizer if tokenizer is not None else "bytes")
    with tempfile.TemporaryDirectory(prefix="recipe-verify-") as folder:
        root = Path(folder)
        checks = [*_two_documents(root / "two"), *_ten_documents(root / "ten", made)]
        checks.append(_restart(root / "ten"))
        own = verify_run(
            root / "ten" / "runs" / "run",
            sample=Sample(documents=64, seed=0),
            tokenizer=tokenizer or "bytes",
            sources=[root / "ten" / "texts"],
        )
    return Acceptance("this installation", (*checks, *own.checks))


def _two_documents(root: Path) -> Iterator[Check]:
    """C1, C2, G2: one packed row, seven positions used and one of padding."""
    plain = {"context": CONTEXT, "batch": {"sequences": 1}, "steps": 1}
    with _started(root, list(IDS), load_tokenizer("bytes"), plain) as run:
        batch = run.stream().batch(0, cu_seqlens=True)
    row = {name: batch[name][0].tolist() for name in ARRAYS}
    ids, segments = batch["input_ids"][0], batch["segment_ids"][0]
    texts = [bytes(ids[(segments == k) & (ids < 256)].tolist()).decode(errors="replace") for k in (0, 1)]
    yield _same("text", "the text of both documents comes back", sorted(IDS), sorted(texts))
    order = [text for text in texts if text in IDS] or list(IDS)
    expected = [id for text in order for id in IDS[text]]
    yield _same("ids", "their bytes, each with its end mark, then padding", [*expected, 0], row["input_ids"])
    first = len(IDS[order[0]])
    edges, numbers = [0, first, 7, 8], [0] * first + [1] * (7 - first) + [-1]
    seen = [allowed_pairs(segments), batch["cu_seqlens"].tolist(), row["segment_ids"]]
    said = "16 of 36 pairs of a query and an earlier key, none between the documents, none with padding"
    yield _same("attention", said, [PAIRS, edges, numbers], seen)
    places = [*range(first), *range(7 - first), 0]
    yield _same("positions", "they start at 0 in each document", places, row["position_ids"])
    labels = [*(label for text in order for label in LABELS[text]), -100]
    said = "each token predicts the next, the last one the end mark; the end mark and padding nothing"
    yield _same("loss", said, labels, row["labels"])
    yield _same("padding", "masked", [1] * 7 + [0], row["attention_mask"])


def _ten_documents(root: Path, tokenizer: Tokenizer) -> Iterator[Check]:
    """A10, B7, G3: ten documents, cut and put together again, are the texts they were made from."""
    encoded = [ids.tolist() for ids in tokenizer.encode_batch(TEXTS)]
    slicing = {"window": WINDOW, "stride": STRIDE}
    plain = {"context": WINDOW + 2, "batch": {"sequences": ROWS}, "steps": STEPS, "slicing": slicing}
    with _started(root, TEXTS, tokenizer, plain) as run:
        joined = _read(run, sum(map(len, encoded)))
        run.checkpoint(2)
    texts = sorted(map(tokenizer.decode, joined))
    exact, normal = sorted(TEXTS), sorted(map(tokenizer.normalise, TEXTS))
    which = "their texts" if texts == exact else "the tokenizer's own normalisation of their texts"
    said = f"ten documents, cut in windows of {WINDOW}, joined and decoded, are {which} ({tokenizer.name})"
    yield _same("texts", said, exact if texts == exact else normal, texts)
    yield _same("tokens", "their tokens are those of the texts", sorted(encoded), sorted(joined))


def _read(run: Run, num_tokens: int) -> list[list[int]]:
    """The fresh tokens of every document, read until all of them were met, in the order of the document."""
    pieces: dict[int | str, dict[int, list[int]]] = {}
    for step, batch in run.stream().batches(read_ahead=0):
        for row in range(ROWS):
            for at in run.stream().provenance(step, row):
                first = at.column + at.fresh - at.start
                ids = batch["input_ids"][row, first : first + at.stop - at.fresh]
                pieces.setdefault(at.document, {}).setdefault(at.fresh, ids.tolist())
        if sum(len(ids) for document in pieces.values() for ids in document.values()) >= num_tokens:
            break
    return [[id for _, ids in sorted(document.items()) for id in ids] for document in pieces.values()]


def _restart(root: Path) -> Check:
    """F4: read, save, restart, compare, from the run folder and from the state alone."""
    run_folder = root / "runs" / "run"
    with open_run(run_folder, 0) as run:
        unbroken = {step: batch for step, batch in run.stream().batches(0, stop=8, read_ahead=0)}
    findings = list[Finding]()
    with open_run(run_folder) as run:
        begin, state = run.step, run.state()
        again = dict(run.stream().batches(begin, stop=8, read_ahead=0))
    other = stream_from(state)
    alone = dict(other.batches(begin, stop=8, read_ahead=0))
    other.close()
    for name, batches in (("the run folder", again), ("the state alone", alone)):
        for step, batch in batches.items():
            same = all(np.array_equal(unbroken[step][key], batch[key]) for key in unbroken[step])
            if not same:
                findings.append(Finding("restart", f"step {step}, from {name}", "the same batch", "another"))
    said = (
        f"read {begin} steps, saved, started again from the folder and from the state alone: the same batches"
    )
    return claim("restart", said, findings)


@contextmanager
def _started(root: Path, texts: Sequence[str], tokenizer: Tokenizer, stage: dict[str, Any]) -> Iterator[Run]:
    """A run over texts that are prepared as any others are."""
    source = root / "texts"
    source.mkdir(parents=True)
    for number, text in enumerate(texts):
        (source / f"{number}.txt").write_text(text, encoding="utf-8")
    prepare_pool([source], root / "pool", tokenizer, PrepareOptions(workers=1))
    with start_run(_recipe(root, stage), root / "runs" / "run") as run:
        yield run


def _recipe(root: Path, stage: dict[str, Any]) -> Recipe:
    plain = {
        "seed": 1,
        "max_epochs": 99,
        "pools_root": str(root),
        "pools": {"pool": {"path": "pool"}},
        "stages": {"stage": {**stage, "quotas": {"pool": "100%"}}},
    }
    return recipe_from_plain(plain, source="acceptance")


def _same(name: str, said: str, expected: object, observed: object) -> Check:
    wrong = (
        [] if expected == observed else [Finding(name, "tiny documents", shown(expected), shown(observed))]
    )
    return claim(name, said, wrong)
