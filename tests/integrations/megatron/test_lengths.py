"""Documents padded for context parallelism, as the real Megatron takes their lengths: two ranks, one row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from recipe.integrations.megatron import MegatronStream
from recipe.integrations.torch import StreamDataset, ranks_from
from recipe.run.state import State, stream_from
from recipe.sequences.context_parallel import cp_slices
from tests.integrations.conftest import started
from tests.integrations.ranks import on_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports warn of
    from megatron.core import parallel_state
    from megatron.core.models.common.embeddings.rope_utils import (
        _apply_rotary_pos_emb_bshd,
        _apply_rotary_pos_emb_thd,
    )
    from megatron.core.utils import get_thd_batch_on_this_cp_rank

SAMPLES = range(64, 96)
TURNED = torch.ones(64, 1, 8)
"""Queries of a row, as RoPE turns them."""


@pytest.fixture
def padded(tmp_path: Any) -> bytes:
    packing = {"packing": {"document_multiple": "2*cp"}}
    return started(tmp_path, every_stage=packing, parallel={"cp": 2})


def test_lengths_are_those_of_the_stream_true_and_padded(padded):
    data, stream = MegatronStream(padded, 64, attention="cu_seqlens"), stream_from(padded)
    for sample in SAMPLES:
        item = data[sample]
        batch = stream.batch(sample // 4, cu_seqlens=True, dp_rank=sample % 4, dp_size=4)
        for name in ("cu_seqlens", "cu_seqlens_padded"):
            assert item[name].dtype == torch.int32 and item[name].tolist() == batch[name].tolist()
        segments = batch["segment_ids"][0]
        assert item["cu_seqlens"][-1] == (segments >= 0).sum() and item["cu_seqlens_padded"][-1] == 64
        assert not item["loss_mask"][torch.from_numpy(segments < 0)].any()


def test_padding_is_counted(padded):
    """Every position that is in no true length is padding on the run's account."""
    data, stream = MegatronStream(padded, 64, attention="cu_seqlens"), stream_from(padded)
    spent = stream.snapshot(24).pools[1].padding - stream.snapshot(16).pools[1].padding
    assert spent == sum(64 - int(data[sample]["cu_seqlens"][-1]) for sample in SAMPLES) > 0


def test_without_a_multiple_both_are_one(state):
    item = MegatronStream(state, 64, attention="cu_seqlens")[81]
    assert torch.equal(item["cu_seqlens"], item["cu_seqlens_padded"])


def _turned(rank: int, state: bytes) -> list[Any]:
    """Queries of this rank's part of some rows, turned by Megatron's lengths and by our positions."""
    parallel_state.initialize_model_parallel(context_parallel_size=2, create_gloo_process_groups=False)
    assert ranks_from(parallel_state) == (0, 1), "both ranks read the same rows"
    group, found = parallel_state.get_context_parallel_group(), []
    data = MegatronStream(state, 64, attention="cu_seqlens")
    for sample in SAMPLES:
        item = {name: array[None] for name, array in data[sample].items()}  # as a loader makes a batch of one
        true, ends, longest = (item.pop(name) for name in ("cu_seqlens", "cu_seqlens_padded", "max_seqlen"))
        # One rank has the whole row: the kernel that deals parts of it runs on a GPU only.
        batch, told = get_thd_batch_on_this_cp_rank(item, true[0], ends[0], longest, cp_size=1, cp_rank=0)
        mine = torch.from_numpy(cp_slices(ends[0].numpy(), rank, 2))
        angles = torch.arange(64.0)[:, None, None, None].expand(-1, 1, 1, 8) / 10
        most = int(told.max_seqlen_q)
        theirs = _apply_rotary_pos_emb_thd(
            TURNED[mine], told.cu_seqlens_q_padded, angles[:most], cp_group=group
        )
        ours = _apply_rotary_pos_emb_bshd(TURNED[mine][:, None], angles[batch["position_ids"][0, mine]])
        seen = (batch["loss_mask"][0, mine] > 0).numpy()
        found.append((mine.tolist(), theirs.numpy()[seen], ours.numpy()[:, 0][seen]))
    return found


def test_megatron_turns_every_document_from_position_0_on_each_rank(padded):
    ranks = on_ranks(_turned, 2, padded)
    for one, two in zip(*ranks, strict=True):
        assert sorted(one[0] + two[0]) == list(range(64))
        assert all(np.allclose(theirs, ours) for _, theirs, ours in (one, two))


def test_ranks_of_a_model_read_one_row_and_data_parallel_ones_other_rows(padded):
    """A recipe of cp 2 in a world of its own size: the number of data-parallel ranks is the stream's."""
    assert State.from_bytes(padded).recipe.parallel.cp == 2
    rows = [StreamDataset(padded, dp_rank=rank, dp_size=2)[16]["input_ids"].tolist() for rank in range(2)]
    assert rows[0] + rows[1] == stream_from(padded).batch(16)["input_ids"].tolist()
