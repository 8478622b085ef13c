"""Documents padded to a multiple, and their chunks dealt to context-parallel ranks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.sequences.context_parallel import cp_slices
from tests.mixing.build import stage, world, write


@given(st.integers(1, 6), st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_ranks_together_hold_every_position_and_equal_chunks_of_every_document(cp: int, chunks: list[int]):
    ends = np.concatenate([[0], np.cumsum(np.array(chunks) * 2 * cp)])
    shares = [cp_slices(ends, rank, cp) for rank in range(cp)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(ends[-1]))
    for begin, end in pairwise(ends):
        held = [share[(share >= begin) & (share < end)] for share in shares]
        assert {len(part) for part in held} == {(end - begin) // cp}
        # the work under a causal mask: the sum of the places inside the document
        assert len({int((part - begin).sum()) for part in held}) == 1


def test_chunks_lie_as_megatron_deals_them():
    shares = [cp_slices(np.array([0, 8, 12]), rank, 2).tolist() for rank in range(2)]
    assert shares == [[0, 1, 6, 7, 8, 11], [2, 3, 4, 5, 9, 10]]


def test_whole_rows_are_cut_as_one():
    row = np.arange(16).reshape(2, 8)
    held = row.reshape(-1)[cp_slices(np.array([0, 8, 16]), 1, 2)]
    right = [row.reshape(2, 4, 2)[:, [1, 2]].reshape(2, -1)]
    assert held.tolist() == right[0].reshape(-1).tolist()


def test_what_cannot_be_split_is_named():
    with pytest.raises(ValueError, match="segment 1 has 6 positions, no multiple of 4"):
        cp_slices(np.array([0, 4, 10]), 0, 2)
    with pytest.raises(ValueError, match=r"outside 0\.\.1"):
        cp_slices(np.array([0, 4]), 2, 2)


@pytest.mark.parametrize("multiple", [1, 2, 4, 8])
def test_A_batch_has_both_lengths_and_its_padding_is_counted(tmp_path: Path, multiple: int):
    write(tmp_path / "a", [3, 7, 1, 16, 5, 9, 40, 2], eos=True)
    made = world(
        tmp_path,
        {"a": {}},
        [stage(16, {"a": 1}, batch=4, packing={"document_multiple": multiple}, steps=3)],
        max_epochs=99,
    )
    stream = made.stream()
    padding = 0
    for step in range(3):
        batch = stream.batch(step, cu_seqlens=True)
        mask = batch["attention_mask"] == 1
        padding += int((~mask).sum())
        assert np.array_equal(mask, batch["segment_ids"] >= 0)
        assert (batch["labels"][~mask] == -100).all()
        assert (batch["input_ids"][~mask] == 0).all()
        if multiple == 1:
            assert "cu_seqlens_padded" not in batch
            continue
        true, ends = batch["cu_seqlens"], batch["cu_seqlens_padded"]
        assert len(true) == len(ends)
        assert (true[-1], ends[-1]) == (mask.sum(), 64)
        assert (ends % multiple == 0).all()
        ids = np.concatenate(
            [
                batch["input_ids"].reshape(-1)[begin : begin + size]
                for begin, size in zip(ends[:-1], np.diff(true), strict=True)
            ]
        )
        assert np.array_equal(ids, batch["input_ids"][mask])
        for rank in range(multiple // 2):
            held = cp_slices(ends, rank, multiple // 2)
            assert len(held) == 64 // (multiple // 2)
    assert stream.snapshot(3).pools[0].padding == padding


def test_rows_by_hand(tmp_path: Path):
    write(tmp_path / "a", [3, 2], eos=True)
    packing = {"document_multiple": 4}
    made = world(tmp_path, {"a": {}}, [stage(8, {"a": 1}, packing=packing, steps=1)], max_epochs=9)
    batch = made.stream().batch(0)
    assert batch["input_ids"].tolist() == [[10, 11, 12, 1, 13, 14, 1, 0]] or (
        batch["input_ids"].tolist() == [[13, 14, 1, 0, 10, 11, 12, 1]]
    )
    assert batch["position_ids"].tolist() == [[0, 1, 2, 3, 0, 1, 2, 3]]
    assert sorted(batch["segment_ids"].reshape(-1).tolist()) == [-1, 0, 0, 0, *[1] * 4] or (
        sorted(batch["segment_ids"].reshape(-1).tolist()) == [-1, *[0] * 4, 1, 1, 1]
    )
