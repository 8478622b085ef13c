"""Who may see whom, in the words of each kernel, compared where the real kernels run on a processor."""

from __future__ import annotations

import os
from itertools import pairwise
from shutil import which

import pytest
import torch
import torch._inductor.config
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from recipe.integrations.torch import StreamDataset, attention_bias, block_mask, varlen


@pytest.fixture
def batch(state: bytes) -> dict[str, torch.Tensor]:
    """Rows of several documents and padding, 64 positions each."""
    item = StreamDataset(state)[18]
    assert item["segment_ids"].max() >= 1 and (item["segment_ids"] == -1).any()
    return item


def heads(batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows, context = batch["input_ids"].shape
    dice = torch.Generator().manual_seed(0)
    return tuple(torch.randn(rows, 2, context, 8, generator=dice) for _ in range(3))  # type: ignore[return-value]


def by_hand(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Each document of each row through attention alone."""
    query, key, value = heads(batch)
    out = torch.zeros_like(query)
    for row, segments in enumerate(batch["segment_ids"]):
        for segment in segments.unique():
            here = (segments == segment).nonzero()[:, 0]
            parts = (x[row : row + 1, :, here] for x in (query, key, value))
            out[row : row + 1, :, here] = scaled_dot_product_attention(*parts, is_causal=True)
    return out


def test_a_mask_for_sdpa_is_each_document_alone(batch):
    query, key, value = heads(batch)
    out = scaled_dot_product_attention(query, key, value, attn_mask=attention_bias(batch["segment_ids"]))
    assert torch.allclose(out, by_hand(batch), atol=1e-6)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("block_size", [16, 128])
def test_a_block_mask_for_flex_attention_is_each_document_alone(batch, block_size):
    query, key, value = heads(batch)
    out = flex_attention(query, key, value, block_mask=block_mask(batch, block_size=block_size))
    assert torch.allclose(out, by_hand(batch), atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(which(os.environ.get("CXX", "g++")) is None, reason="torch.compile needs a C++ compiler")
@torch._inductor.config.patch(compile_threads=1)
def test_the_compiled_kernel_of_flex_attention_is_each_document_alone(batch):
    """As a training runs it, but forwards only: torch has no gradients of this kernel on a processor."""
    query, key, value = heads(batch)
    compiled = torch.compile(flex_attention)
    out = compiled(query, key, value, block_mask=block_mask(batch, block_size=16))
    assert torch.allclose(out, by_hand(batch), atol=1e-5)


def test_blocks_that_nobody_sees_are_left_out(batch):
    """Of 4 x 4 blocks causality alone leaves out 6."""
    assert block_mask(batch, block_size=16).sparsity() > 6 / 16 * 100


def test_lengths_for_variable_length_kernels_are_each_document_alone(batch):
    """As such a kernel reads them, rows flattened, each stretch of its own (none runs on a processor)."""
    query, key, value = (x.transpose(1, 2).flatten(0, 1) for x in heads(batch))
    lengths = varlen(batch)
    assert lengths.cu_seqlens[-1] == batch["input_ids"].numel()
    assert int(lengths.cu_seqlens.diff().max()) == lengths.max_seqlen
    out = torch.empty_like(query)
    for start, stop in pairwise(lengths.cu_seqlens.tolist()):
        parts = (x[start:stop].transpose(0, 1)[None] for x in (query, key, value))
        out[start:stop] = scaled_dot_product_attention(*parts, is_causal=True)[0].transpose(0, 1)
    assert torch.allclose(out, by_hand(batch).transpose(1, 2).flatten(0, 1), atol=1e-5)


def test_the_streams_own_lengths_are_the_same(state, batch):
    told = StreamDataset(state).stream().batch(18, cu_seqlens=True)
    assert varlen(batch).cu_seqlens.tolist() == told["cu_seqlens"].tolist()
    assert varlen(batch).max_seqlen == told["max_seqlen"]
