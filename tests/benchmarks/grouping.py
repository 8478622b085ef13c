"""Documents of repositories side by side, with markers and needs in front, against the same ones alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from recipe import write_pool
from recipe.config import recipe_from_plain
from recipe.mixing.opening import open_pools, settle_with
from recipe.mixing.stream import Stream
from recipe.pools import Section
from tests.benchmarks.batches import TOKENS
from tests.benchmarks.figures import Figure
from tests.benchmarks.infilling import BATCH, CONTEXT, Serving, Walking
from tests.benchmarks.material import EOS, VOCAB, lengths
from tests.benchmarks.paired import compare

MILLION, FILES, MARKER = 20, 8, 8
"""Tokens of the pool, files of a repository, tokens of a file's marker."""


def write(root: Path) -> None:
    """The same files alone, in groups, in groups with markers, and in groups where files need each other."""
    rng = np.random.default_rng(1)
    sizes = lengths(rng, MILLION * 1_000_000, 400, 1.2)
    tokens = rng.integers(EOS + 1, VOCAB, int(sizes.sum()), dtype=np.uint16)
    documents = np.split(tokens, np.cumsum(sizes)[:-1])
    groups = (np.arange(len(documents)) // FILES).tolist()
    sections = [_sections(number, int(size)) for number, size in enumerate(sizes)]
    said: dict[str, dict[str, Any]] = {
        "alone": {},
        "groups": {"groups": groups},
        "markers": {"groups": groups, "leads": [[7] * MARKER] * len(documents)},
        "needs": {"groups": groups, "sections": sections},
    }
    for name, more in said.items():
        if not (root / name).is_dir():
            write_pool(root / name, documents, vocab_size=VOCAB, eos=EOS, **more)


def _sections(number: int, size: int) -> list[Section]:
    """The first hundred tokens of each file are what the next one needs, behind its own."""
    needs = (f"{number - 1}",) if number % FILES else ()
    head = [Section(0, f"{number}")]
    return head if size < 200 else [*head, Section(100, None, needs)]


def stream(root: Path, pool: str, **packing: Any) -> Stream:
    """Windows that leave room for what is brought in front of them."""
    stage = {
        "tokens": TOKENS,
        "context": CONTEXT,
        "batch": {"sequences": BATCH},
        "slicing": {"window": 3072},
        "packing": {"method": "best_fit", **packing},
        "weights": {"code": 1},
    }
    plain = {"seed": 1, "max_epochs": 1_000_000, "pools": {"code": {"path": str(root / pool)}}}
    loaded = recipe_from_plain({**plain, "stages": {"only": stage}}, source="benchmark")
    pools = open_pools(loaded)
    for part in range(pools["code"].num_parts):
        int(pools["code"].part(part)[::512].astype(np.int64).sum())
    return Stream(settle_with(loaded, pools), pools)


def measure(scratch: Path) -> Iterator[Figure]:
    """Serving and walking, each against the same files packed one by one."""
    root = scratch / "repositories"
    write(root)
    cases: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("in groups", "groups", {"attention": "group"}),
        ("in groups with markers", "markers", {"attention": "group"}),
        ("with what they need in front", "needs", {}),
        ("half of the separators", "alone", {"eos_keep": "50%"}),
        ("shuffle_fit", "alone", {"shuffle_fit": True}),
    )
    for name, loop, goal in (("batches", Serving, ">= 0.8"), ("metadata", Walking, "")):
        for told, pool, packing in cases:
            pair = compare(loop(stream(root, pool, **packing)), loop(stream(root, "alone")), slices=9)
            yield Figure(
                name=f"{name}, {told}",
                value=pair.ratio(),
                unit="x",
                goal="" if pool == "needs" else goal,
                spread=pair.spread(),
                against="positions a cpu second, the same files each alone in its segment",
                beside=pair.rates(),
            )
