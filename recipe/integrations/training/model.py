"""A small GPT, to be read: rotary positions, RMS norms, a gated MLP, attention inside segments only.

Nothing in it depends on what else stands in a row: a document's logits are the same alone and packed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everywhere

from recipe.integrations.torch.masks import attention_bias


@dataclass(frozen=True, kw_only=True, slots=True)
class GPTConfig:
    """The shape of a model."""

    vocab_size: int
    layers: int = 4
    heads: int = 4
    width: int = 128
    """Dimensions of a position's vector; ``heads`` divides it, into even parts."""
    rotary_base: float = 10_000.0

    def __post_init__(self) -> None:
        """Refuse a shape that is none."""
        sizes = {
            "vocab_size": self.vocab_size,
            "layers": self.layers,
            "heads": self.heads,
            "width": self.width,
        }
        if wrong := [name for name, size in sizes.items() if size < 1]:
            raise ValueError(f"{', '.join(wrong)} of {asdict(self)} must be at least 1")
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} is no multiple of 2 x {self.heads} heads")


class GPT(nn.Module):
    """A decoder-only transformer; its output layer is its embedding.

    Source:
        Radford et al. 2019 (pre-norm GPT-2); Su et al. 2021, arXiv 2104.09864 (rotary positions); Shazeer
        2020, arXiv 2002.05202 (gated MLP); Zhang and Sennrich 2019, arXiv 1910.07467 (RMS norm).
    """

    def __init__(self, config: GPTConfig, *, seed: int = 0) -> None:
        """Weights drawn from a generator of its own: the same seed gives the same weights everywhere."""
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=1e-6)
        self.frequencies: torch.Tensor
        half = torch.arange(0, config.width // config.heads, 2, dtype=torch.float64)
        frequencies = config.rotary_base ** (-half * config.heads / config.width)
        self.register_buffer("frequencies", frequencies.float(), persistent=False)
        self._draw(torch.Generator().manual_seed(seed))

    def _draw(self, dice: torch.Generator) -> None:
        """Normal weights; those that add to the residual stream are smaller by the root of their number."""
        small = 0.02 / math.sqrt(2 * self.config.layers)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if weight.dim() > 1:
                    is_sum = name.endswith(("out.weight", "down.weight"))
                    weight.normal_(0.0, small if is_sum else 0.02, generator=dice)

    def forward(
        self, input_ids: torch.Tensor, position_ids: torch.Tensor, segment_ids: torch.Tensor
    ) -> torch.Tensor:
        """Logits of every position.

        Args:
            input_ids: int[rows, context].
            position_ids: int[rows, context], as the batch has them.
            segment_ids: int[rows, context]; positions of different segments do not see each other.

        Returns:
            float[rows, context, vocab_size].
        """
        angles = position_ids[:, None, :, None] * self.frequencies
        turn = (angles.cos(), angles.sin())
        visible = attention_bias(segment_ids)
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer(x, turn, visible)
        return F.linear(self.norm(x), self.embedding.weight)


class _Layer(nn.Module):
    """Attention, then a gated MLP, each added to what came in."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width, hidden = config.width, 8 * math.ceil(config.width / 3)
        self.heads = config.heads
        self.before, self.between = (nn.RMSNorm(width, eps=1e-6) for _ in range(2))
        self.into = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(
        self, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], visible: torch.Tensor
    ) -> torch.Tensor:
        rows, context, width = x.shape
        parts = self.into(self.before(x)).view(rows, context, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(
            _turned(query, turn), _turned(key, turn), value, attn_mask=visible
        )
        x = x + self.out(seen.transpose(1, 2).reshape(rows, context, width))
        gate, lifted = self.up(self.between(x)).chunk(2, dim=-1)
        lowered: torch.Tensor = self.down(F.silu(gate) * lifted)
        return x + lowered


def _turned(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary positions: pairs of dimensions turned by angles that grow with the position."""
    cos, sin = turn
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).type_as(x)


def token_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of every position, in nats; 0 where there is no label (-100).

    Args:
        logits: float[rows, context, vocab_size].
        labels: int64[rows, context], already shifted.

    Returns:
        float32[rows, context].
    """
    flat = F.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100, reduction="none"
    )
    losses: torch.Tensor = flat.view(labels.shape)
    return losses
