"""What a pool takes a document, beside its token files (``.bin`` and ``.idx``), and its writer in memory."""

from __future__ import annotations

import tracemalloc
from random import Random
from uuid import UUID

import numpy as np
import pytest

from recipe.pools import PoolWriter
from recipe.pools.table import ROW_GROUP

DOCUMENTS = ROW_GROUP + 1000
MOST = 40


def bytes_a_document(folder, ids, tags):
    """Documents in a shuffled order, all different, each with its place."""
    chance = Random(1)
    places = chance.sample(range(DOCUMENTS), DOCUMENTS)
    with PoolWriter(folder, vocab_size=1 << 31, eos=0) as writer:
        for number, place in enumerate(places):
            length = chance.randrange(1, 4)
            tokens = np.array([number + 1] * length)
            writer.add(
                tokens, id=ids(place, chance), tags=tags(place), source=f"web-0001.jsonl.zst:{place + 1}"
            )
        writer.close().close()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    return sum(size for name, size in sizes.items() if not name.startswith("part-")) / DOCUMENTS


@pytest.mark.parametrize(
    "ids",
    [lambda n, _: f"web-0001.jsonl.zst:{n + 1}", lambda n, _: f"web/{n:08d}", lambda n, _: n],
    ids=["place", "numbered", "number"],
)
def test_a_document_takes_at_most_40_bytes_beside_its_token_files(tmp_path, ids):
    def tags(n):
        return {"language": "en" if n % 3 else "zh", "licence": ("MIT", "Apache-2.0", "CC-BY-4.0")[n % 3]}

    assert bytes_a_document(tmp_path / "pool", ids, tags) <= MOST


def test_an_id_of_128_random_bits_takes_no_more_than_its_digits(tmp_path):
    def uuid(_, chance):
        return str(UUID(int=chance.getrandbits(128), version=4))

    # 122 bits of chance are 15.25 bytes; as 32 digits and 4 dashes in zstd a fifth more
    assert bytes_a_document(tmp_path / "pool", uuid, lambda _: None) <= MOST + 10


def test_tags_of_their_own_cost_no_more_than_themselves(tmp_path):
    plain = bytes_a_document(tmp_path / "none", lambda n, _: n, lambda _: None)
    owned = bytes_a_document(tmp_path / "tags", lambda n, _: n, lambda n: {"page": n * 7919 % 1_000_003})
    assert owned - plain <= 7


def test_Z01_a_writer_keeps_less_than_forty_bytes_of_a_document(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.pools.writer._STAGE_DOCUMENTS", 500)
    monkeypatch.setattr("recipe.pools.part.ROW_GROUP", 500)
    tokens, more = np.array([1, 2, 3], np.int32), 20_000
    with PoolWriter(tmp_path / "pool", vocab_size=10, eos=0) as writer:
        for _ in range(1000):
            writer.add(tokens)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(more):
            writer.add(tokens)
        kept = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        writer.close().close()
    assert kept <= MOST * more
