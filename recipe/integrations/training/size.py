"""How much memory a training takes at least, told from the shapes before anything is made."""

from __future__ import annotations

import math
import os
from pathlib import Path

from recipe.errors import RecipeError
from recipe.integrations.training.settings import Settings

BYTES_PER_WEIGHT = 16
"""Of a weight in training: itself, its gradient, and two moments of AdamW, four bytes each."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def num_weights(settings: Settings, vocab_size: int) -> int:
    """Weights of the reference model; the embedding is the output layer.

    >>> num_weights(Settings(layers=1, heads=1, width=6), 10)
    510
    """
    width, hidden = settings.width, 8 * math.ceil(settings.width / 3)
    layer = 2 * width + 4 * width * width + 3 * width * hidden
    return vocab_size * width + settings.layers * layer + width


def least_bytes(settings: Settings, vocab_size: int, context: int) -> int:
    """Bytes that training takes in any case: weights with their state, and the logits of a micro-batch."""
    rows = settings.micro_batch or 1
    return BYTES_PER_WEIGHT * num_weights(settings, vocab_size) + 4 * rows * context * vocab_size


def machine_memory() -> int:
    """Bytes of memory that this process may have: the machine's, or its container's where that is less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _LIMITS):
        text = path.read_text().strip() if path.is_file() else "max"
        found += [int(text)] if text.isdecimal() else []
    return min(found)


def check_size(settings: Settings, vocab_size: int, context: int, memory: int) -> None:
    """Raise RecipeError if a training cannot fit into so many bytes of memory.

    Args:
        settings: with the model's shape and the micro-batch.
        vocab_size: rows of the embedding.
        context: positions of the longest sequence.
        memory: bytes of the device.
    """
    need = least_bytes(settings, vocab_size, context)
    if need <= memory:
        return
    weights = num_weights(settings, vocab_size)
    raise RecipeError.single(
        "trainer: a model too large for this machine",
        "model.vocab_size" if vocab_size * settings.width > weights // 2 else "trainer",
        given=f"vocab_size {vocab_size:,}, width {settings.width:,}, layers {settings.layers:,}: "
        f"{weights:,} weights, at least {need:,} bytes to train",
        expected=f"at most the {memory:,} bytes of {settings.device}",
        fix="lower model.vocab_size to that of the tokenizer, or trainer.width, trainer.layers or "
        "trainer.micro_batch",
    )
