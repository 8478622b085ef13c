"""Batches whose cuts are aligned, against the same windows cut where they end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from recipe.mixing.stream import Stream
from recipe.sequences.boundaries import edge_table
from recipe.sequences.spelling import Edges
from tests.benchmarks.batches import TOKENS
from tests.benchmarks.figures import Figure
from tests.benchmarks.infilling import Serving, Walking
from tests.benchmarks.material import VOCAB, Material, material
from tests.benchmarks.paired import compare

BATCH = 16
SHARES = {" {}": 60, "{}": 25, "7": 4, ".": 5, ",": 3, "\n": 2, "\n\n": 1}
"""How often tokens of a vocabulary look so; {} is a few letters."""


def spelling() -> Edges:
    """The table of a vocabulary much like that of a text."""
    chance, forms = Random(1), list(SHARES)
    texts = []
    for form in chance.choices(forms, [SHARES[form] for form in forms], k=VOCAB):
        letters = "".join(chance.choices("etaoinshrdlu", k=chance.randint(1, 7)))
        texts.append(form.format(letters).encode())
    return edge_table(texts)


def stream(of: Material, context: int, align: str) -> Stream:
    """Windows as long as the context, cut within a quarter of it."""
    return of.stream(context=context, batch=BATCH, tokens=TOKENS, slicing={"align": align})


def measure(scratch: Path) -> Iterator[Figure]:
    """Serving and walking, words and paragraphs."""
    of, edges = material(scratch), spelling()
    for pool in of.pools.values():
        pool.edges = lambda: edges
    for name, loop, goal in (("batches", Serving, ">= 0.8"), ("metadata", Walking, "")):
        for context in (2048, 4096):
            for align in ("word", "sentence", "paragraph"):
                ours, base = (loop(stream(of, context, kind)) for kind in (align, "none"))
                pair = compare(ours, base, slices=11)
                yield Figure(
                    name=f"{name}, context {context}, aligned at a {align}",
                    value=pair.ratio(),
                    unit="x",
                    goal=goal,
                    spread=pair.spread(),
                    against="positions a cpu second, the same windows unaligned",
                    beside=pair.rates(),
                )
