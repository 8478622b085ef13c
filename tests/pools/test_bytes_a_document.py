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
    """Documents in a shuffled order, all different, of lengths far apart, each with its place."""
    chance = Random(1)
    places = chance.sample(range(DOCUMENTS), DOCUMENTS)
    with PoolWriter(folder, vocab_size=1 << 31, eos=0) as writer:
        for number, place in enumerate(places):
            length = 1 + int(chance.lognormvariate(3, 1.1))
            tokens = np.full(length, number + 1)
            source = f"web-{place % 8:04d}.jsonl.zst:{place // 8 + 1}"
            writer.add(tokens, id=ids(place, chance), tags=tags(place), source=source)
        writer.close().close()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    return sum(size for name, size in sizes.items() if not name.startswith("part-")) / DOCUMENTS


def uuid4(chance):
    return UUID(int=chance.getrandbits(128), version=4)


def usual_tags(n):
    return {"language": "en" if n % 3 else "zh", "licence": ("MIT", "Apache-2.0", "CC-BY-4.0")[n % 3]}


SHORT = {
    "place": lambda n, _: f"web-{n % 8:04d}.jsonl.zst:{n // 8 + 1}",
    "numbered": lambda n, _: f"web/{n:08d}",
    "number": lambda n, _: n,
    "store": lambda n, _: f"s3://crawl/CC-MAIN-2024-10/1707947473347.0/{n % 8:05d}.jsonl.gz/{n // 8}",
}
BITS_128 = {
    "uuid": lambda _, chance: str(uuid4(chance)),
    "urn": lambda _, chance: f"<urn:uuid:{uuid4(chance)}>",
    "upper": lambda _, chance: str(uuid4(chance)).upper(),
    "without dashes": lambda _, chance: uuid4(chance).hex,
    "md5": lambda _, chance: chance.randbytes(16).hex(),
    "piece of a uuid": lambda n, chance: f"{uuid4(chance)}_{n % 2}",
}


@pytest.mark.parametrize("ids", SHORT.values(), ids=SHORT)
def test_a_document_with_a_short_id_takes_at_most_30_bytes_beside_its_token_files(tmp_path, ids):
    assert bytes_a_document(tmp_path / "pool", ids, usual_tags) <= 30


@pytest.mark.parametrize("ids", BITS_128.values(), ids=BITS_128)
def test_a_document_with_a_uuid_takes_at_most_40_bytes_beside_its_token_files(tmp_path, ids):
    assert bytes_a_document(tmp_path / "pool", ids, usual_tags) <= MOST


@pytest.mark.parametrize("size", [20, 32], ids=["sha1", "sha256"])
def test_an_id_takes_what_is_random_in_it_and_a_document_24_bytes_more(tmp_path, size):
    def ids(_, chance):
        return chance.randbytes(size).hex()

    assert bytes_a_document(tmp_path / "pool", ids, usual_tags) <= size + 24


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
