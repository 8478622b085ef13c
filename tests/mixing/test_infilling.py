"""Fill in the middle, from the pool to the row: what is transformed, what it costs, and how it is undone."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.maths.draws import below, draw, draws
from recipe.mixing.opening import open_pools, settle_with
from recipe.mixing.stream import Stream
from tests.mixing.build import FIRST, world, write

LENGTHS = [9, 30, 1, 17, 40, 12, 25, 8] * 4
MARKERS = {"prefix": 4, "middle": 5, "suffix": 6}


def stream(root: Path, rate: str | None, spm: str = "0%", *, context: int = 16, **pool: Any) -> Stream:
    """One pool without marks, read once or more."""
    write(root / "web", LENGTHS)
    config: dict[str, Any] = {"path": "web", "block_units": 8, "max_epochs": 9} | pool
    if rate is not None:
        config["transform"] = {"fim": {"rate": rate, "spm": spm, **MARKERS}}
    stage = {"steps": 40, "context": context, "batch": {"sequences": 4}, "weights": {"web": 1}}
    return world(root, {"web": config}, [stage]).stream()


def rows(made: Stream) -> list[tuple[list[int], list[int]]]:
    """Ids and labels of every row."""
    return [
        (ids.tolist(), labels.tolist())
        for _, batch in made.batches(read_ahead=0)
        for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True)
    ]


def test_draws_of_arrays_are_those_of_plain_integers():
    pairs = (np.arange(50), np.arange(50) ** 2)
    found = draws(2**64 - 5, pairs, 4)
    assert [column.tolist() for column in found.T] == [draw(2**64 - 5, (i, i * i), 4) for i in range(50)]


def test_a_rate_is_exact():
    drawn = np.array([0, 2**62 - 1, 2**62, 2**64 - 1], np.uint64)
    assert below(drawn, Fraction(1, 4)).tolist() == [True, True, False, False]
    assert below(drawn, Fraction(0)).tolist() == [False] * 4
    assert below(drawn, Fraction(1)).tolist() == [True] * 4


def test_rate_0_is_the_stream_of_the_same_window_without_a_transform(tmp_path: Path):
    plain = stream(tmp_path / "a", None, slicing={"window": 13}, path="web")
    assert rows(stream(tmp_path / "b", "0%")) == rows(plain)


def test_rate_100_transforms_every_piece_and_counts_three_markers_each(tmp_path: Path):
    made = stream(tmp_path, "100%")
    ids = np.array([row for row, _ in rows(made)])
    (pool,) = made.snapshot(made.num_steps).pools
    assert pool.special == int(np.isin(ids, [4, 5, 6]).sum()) == 3 * int((ids == 5).sum())


def test_every_second_piece_is_transformed_about_and_epochs_differ(tmp_path: Path):
    made = stream(tmp_path, "50%")
    found: dict[int, set[tuple[int, int]]] = {}
    for step in range(made.num_steps):
        for row in range(4):
            held = made.provenance(step, row)
            ids = made.rows(step, [row])["input_ids"][0]
            for piece in held:
                if piece.column and ids[piece.column - 1] == 4:
                    epoch = made.snapshot(step).pools[0].cursor.epoch
                    found.setdefault(epoch, set()).add((int(piece.document), piece.start))
    assert found[0] != found[1]


@pytest.mark.parametrize("spm", ["0%", "50%", "100%"])
def test_A10_undoing_the_transform_gives_the_document_back(tmp_path: Path, spm: str):
    made = stream(tmp_path, "100%", spm)
    read: dict[int, dict[int, int]] = {}
    for step in range(12):
        for row, ids in enumerate(made.batch(step)["input_ids"].tolist()):
            for piece in made.provenance(step, row):
                assert piece.fresh == piece.start
                for place in range(piece.start, piece.stop):
                    read.setdefault(int(piece.document), {})[place] = ids[piece.column + place - piece.start]
    first = np.cumsum([0, *LENGTHS]) + FIRST
    assert len(read) > 20
    for document, tokens in read.items():
        assert all(token == first[document] + place for place, token in tokens.items())


def test_a_label_is_the_next_id_of_the_transformed_order_but_for_a_piece_s_own_first_token(tmp_path: Path):
    made = stream(tmp_path, "100%", "50%", context=24)
    for step in range(8):
        batch = made.batch(step)
        for row in range(4):
            ids, labels, segments = (batch[k][row] for k in ("input_ids", "labels", "segment_ids"))
            begun = {}
            for piece in made.provenance(step, row):
                segment = int(segments[piece.column])
                if segment not in begun or piece.start < begun[segment][0]:
                    begun[segment] = (piece.start, piece.column)
            for at in range(23):
                inside = segments[at] >= 0 and segments[at] == segments[at + 1]
                start, column = begun.get(int(segments[at]), (0, -1))
                told = inside and not (start > 0 and at + 1 == column)
                assert labels[at] == (ids[at + 1] if told else -100)


@pytest.mark.parametrize("spm", ["0%", "50%"])
def test_invariant_3_a_token_is_a_label_once_unless_a_transformed_piece_ends_before_it(
    tmp_path: Path, spm: str
):
    made = stream(tmp_path, "50%", spm, max_epochs=1, on_exhausted="stop")
    labels: Counter[int] = Counter()
    right: Counter[int] = Counter()
    first = np.cumsum([0, *LENGTHS]) + FIRST
    firsts = set(first.tolist())
    for step, batch in made.batches(read_ahead=0):
        labels.update(label for label in batch["labels"].reshape(-1).tolist() if label >= FIRST)
        for row in range(4):
            segments, ids = batch["segment_ids"][row], batch["input_ids"][row]
            pieces: dict[int, list[Any]] = {}
            for piece in made.provenance(step, row):
                pieces.setdefault(int(segments[piece.column]), []).append(piece)
            for segment, parts in pieces.items():
                filled = bool(np.isin(ids[segments == segment], list(MARKERS.values())).any())
                start, stop = min(p.start for p in parts), max(p.stop for p in parts)
                number = int(parts[0].document)
                last = LENGTHS[number] if not filled else stop
                right.update(first[number] + j for j in range(start + 1, min(stop + 1, last)))
    assert sum(right.values()) > 300
    assert Counter({t: n for t, n in labels.items() if t not in firsts}) == right
    assert set(right.values()) == {1}


def test_pieces_with_overlap_are_left_alone(tmp_path: Path):
    made = stream(tmp_path, "100%", slicing={"window": 10, "stride": 6})
    for step in range(made.num_steps):
        batch = made.batch(step)
        for row in range(4):
            ids, segments = batch["input_ids"][row], batch["segment_ids"][row]
            for piece in made.provenance(step, row):
                if piece.fresh > piece.start:
                    own = ids[segments == segments[piece.column]]
                    assert not np.isin(own, [4, 5, 6]).any()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"slicing": {"window": 14}}, "pools.web.slicing.window"),
        ({"slicing": {"stride": 14}}, "pools.web.slicing.stride"),
        ({"eos": 5}, "pools.web.transform.fim.middle"),
    ],
)
def test_what_leaves_no_room_or_means_something_else_is_refused(
    tmp_path: Path, change: dict[str, Any], where: str
):
    with pytest.raises(RecipeError) as error:
        stream(tmp_path, "50%", **change)
    assert where in [problem.where for problem in error.value.problems]


def test_the_text_of_a_token_needs_a_tokenizer(tmp_path: Path):
    fim = {"fim": {"rate": "50%", **MARKERS, "prefix": "<|fim_prefix|>"}}
    with pytest.raises(RecipeError, match="tokenizer"):
        stream(tmp_path, None, transform=fim)


def test_the_texts_of_tokens_become_ids(tmp_path: Path):
    added = [{"id": 4 + i, "content": text} for i, text in enumerate(("<pre>", "<mid>", "<suf>"))]
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"model": {"vocab": {"a": 0}}, "added_tokens": added}), "utf-8")
    write(tmp_path / "web", LENGTHS)
    fim = {"rate": "50%", "prefix": "<pre>", "middle": "<mid>", "suffix": "<suf>"}
    pools = {"web": {"path": "web", "block_units": 8, "transform": {"fim": fim}}}
    stage = {"steps": 5, "context": 16, "batch": {"sequences": 4}, "weights": {"web": 1}}
    plain = {"seed": 1, "pools_root": str(tmp_path), "tokenizer": {"path": str(file)}, "pools": pools}
    recipe = recipe_from_plain({**plain, "stages": {"main": stage}}, source="test")
    settled = settle_with(recipe, open_pools(recipe))
    assert settled.is_settled
    assert settled.rule("main", "web").fim.ids == (4, 5, 6)
    fim["middle"] = "<nothing>"
    recipe = recipe_from_plain({**plain, "stages": {"main": stage}}, source="test")
    with pytest.raises(RecipeError, match=r"transform\.fim\.middle"):
        settle_with(recipe, open_pools(recipe))
