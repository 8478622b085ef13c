"""A run small enough to be cut everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import recipe

SMALL = """\
seed: 5
pools:
  a: {path: pools/a}
  b: {path: pools/b}
stages:
  short:
    tokens: 1024
    context: 32
    batch: {sequences: 4}
    chunk: 384
    quotas: {a: 61.6%, b: 38.4%}
  long:
    tokens: 1024
    context: 64
    batch: {sequences: 2}
    chunk: 512
    slicing: {stride: 48}
    quotas: {a: 50%, b: 50%}
sink: {format: parquet, rows_per_file: 8}
"""
"""Eight steps a stage, three chunks in the first and two in the second."""


def write_small(folder: Path) -> Path:
    """Two pools and ``small.yaml`` that mixes them."""
    dice = np.random.default_rng(0)
    for name, mean in (("a", 40), ("b", 25)):
        lengths = dice.integers(1, 2 * mean, size=60)
        documents = [dice.integers(0, 99, size=n) for n in lengths]
        recipe.write_pool(folder / "pools" / name, documents, vocab_size=100, eos=99)
    path = folder / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture
def small(in_tmp: Path) -> Path:
    """The working directory, with pools and ``small.yaml`` in it."""
    return write_small(in_tmp)
