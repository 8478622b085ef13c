"""Other token files for the same pool: merged, or cut between documents; the pool stays what it was."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import Pool, extend_pool, grown_from, open_pool, write_pool
from recipe.pools.blocks import block_digest, file_hash, root_hash
from recipe.pools.card import CARD_NAME, FileRecord, card_text
from recipe.pools.growth import Prefix
from recipe.pools.reparting import part_edges, repart_pool
from tests.pools import drawn
from tests.pools.megatron_files import write_pair

TEXTS = [[k % 40] * (k % 7) for k in range(60)]


def small(root: Path, **more: object) -> Pool:
    return write_pool(root / "pool", TEXTS, vocab_size=50, eos=49, part_tokens=40, **more)  # type: ignore[arg-type]


def held(pool: Pool) -> list[object]:
    """All that is read of a pool, but for the names of parts."""
    arrays = (pool.offsets, pool.units, pool.sections, pool.needs, pool.leads, pool.repeats)
    plain = [None if array is None else array.tolist() for array in arrays]
    rows = [replace_part(row) for row in pool.rows(range(pool.num_documents))]
    return [*plain, rows, [pool.stored(k).tolist() for k in range(pool.num_documents)]]


def replace_part(row):
    return replace(row, part="")


@settings(max_examples=50)
@given(data=st.data(), documents=drawn.documents(), how=drawn.settings())
def test_parts_of_any_size_hold_the_same_pool(data, documents, how):
    with tempfile.TemporaryDirectory() as folder:
        pool = drawn.written(Path(folder, "0"), documents, **how)
        for number in range(1, 4):
            size = data.draw(st.sampled_from([1, 3, 7, 20, 10_000]))
            again = repart_pool(Path(folder, f"{number - 1}"), Path(folder, f"{number}"), part_tokens=size)
            assert again.fingerprint == pool.fingerprint and again.extent_units == pool.extent_units
            assert held(again) == held(pool)
            assert again.verify(full=True) == [] == again.verify(sample=1)
            longest = np.diff(again.part_offsets) <= size
            assert all(longest | (np.diff(again.part_documents) == 1))


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(0, 9), max_size=30), size=st.integers(1, 20))
def test_a_part_is_as_full_as_it_can_be(lengths, size):
    offsets = np.cumsum([0, *lengths])
    edges = part_edges(offsets, size)
    assert edges[0] == 0 and edges[-1] == len(lengths) and (np.diff(edges) > 0).all()
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        assert offsets[last] - offsets[first] <= size or last - first == 1
        assert last == len(lengths) or offsets[last + 1] - offsets[first] > size


def test_cut_as_it_was_written_it_has_the_card_it_had(tmp_path):
    pool = small(tmp_path)
    merged = repart_pool(pool, tmp_path / "one", part_tokens=10_000)
    assert merged.num_parts == 1 and len(merged.card.origin_parts) == pool.num_parts > 3
    back = repart_pool(merged, tmp_path / "back", part_tokens=40)
    assert card_text(back.card) == card_text(pool.card) and not (tmp_path / "back/origin_hashes.npy").exists()


def test_parts_that_stay_are_linked(tmp_path):
    pool = write_pool(tmp_path / "pool", [[1] * 10, [2] * 10, [3] * 30], vocab_size=9, part_tokens=30)
    again = repart_pool(pool, tmp_path / "cut", part_tokens=10)
    assert [part.tokens for part in again.card.parts] == [10, 10, 30]
    files = [(pool.layout.folder / "part-00001.bin"), (again.layout.folder / "part-00002.bin")]
    assert files[0].samefile(files[1])
    assert again.rows([2])[0].part == "part-00002"


def test_the_largest_id_is_named_where_it_is_now(tmp_path):
    pool = write_pool(tmp_path / "pool", [[1, 2], [3, 7], [4]], vocab_size=9, part_tokens=2)
    assert (pool.card.max_id.part, pool.card.max_id.position) == ("part-00001.bin", 1)
    most = repart_pool(pool, tmp_path / "one", part_tokens=100).card.max_id
    assert (most.id, most.part, most.position) == (7, "part-00000.bin", 3)


def test_a_pool_that_was_reparted_grows_as_the_one_it_was(tmp_path):
    pool = small(tmp_path)
    repart_pool(pool, tmp_path / "one", part_tokens=10_000)
    grown, same = (
        extend_pool(tmp_path / name, tmp_path / f"{name}+", [[1], [2]]) for name in ("pool", "one")
    )
    assert grown.fingerprint == same.fingerprint and same.verify(full=True) == []
    known = Prefix(60, 1, 60, pool.num_parts)
    assert grown_from(pool.fingerprint, same) == grown_from(pool, same) == known
    cut = repart_pool(same, tmp_path / "cut", part_tokens=7)
    assert grown_from(pool.fingerprint, cut) == known and cut.verify(full=True) == []
    more = extend_pool(tmp_path / "cut", tmp_path / "more", [[3]])
    assert grown_from(pool, more) == known and grown_from(grown.fingerprint, more).documents == 62


def rewritten(pool: Pool, **changes: object) -> None:
    """The card of a pool with other values and true hashes of the files that are there."""
    files = {
        name: FileRecord(bytes=(pool.path / name).stat().st_size, hash=file_hash(pool.path / name))
        for name in pool.card.files
    }
    (pool.path / CARD_NAME).write_bytes(card_text(replace(pool.card, files=files, **changes)))  # type: ignore[arg-type]


def test_a_forged_token_with_hashes_of_its_own_is_found(tmp_path):
    pool = repart_pool(small(tmp_path), tmp_path / "one", part_tokens=10_000)
    path = pool.layout.part_path(0)
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    digest = block_digest(bytes(data))
    np.save(pool.path / "hashes.npy", np.frombuffer(digest, np.uint8).reshape(1, -1))
    rewritten(pool, parts=(replace(pool.card.parts[0], hash=root_hash([digest])),))
    forged = open_pool(pool.path, "forged")
    assert forged.fingerprint == pool.fingerprint
    (found,) = forged.verify(full=True)
    assert found.check == "contents" and "part-00000 as first written.bin block 0" in found.where
    assert forged.verify(sample=1.0) == [found]  # samples are of the parts that were written


def test_forged_rows_with_hashes_of_their_own_are_found(tmp_path):
    pool = repart_pool(small(tmp_path), tmp_path / "one", part_tokens=10_000)
    table = pq.read_table(pool.path / "documents.parquet")
    tags = pa.array([None] * 59 + ['{"licence":"mit"}'], pa.string())
    at = table.schema.get_field_index("tags")
    pq.write_table(table.set_column(at, table.schema.field(at), tags), pool.path / "documents.parquet")
    rewritten(pool)
    found = open_pool(pool.path, "forged").verify(full=True)
    assert [one.check for one in found] == ["documents", "documents"]
    assert "rows of part-00006 as first written" in found[0].where


def test_a_card_whose_origin_was_changed_is_another_pool(tmp_path):
    """Or it is found: the fingerprint is made of the parts that were written."""
    pool = repart_pool(small(tmp_path), tmp_path / "one", part_tokens=10_000)
    first, *others = pool.card.origin_parts
    rewritten(pool, origin_parts=(replace(first, index_hash="0" * 64), *others))
    forged = open_pool(pool.path, "forged")
    assert forged.fingerprint != pool.fingerprint
    (found,) = forged.verify(full=True)
    assert found.where.endswith("part-00000.idx as first written")
    rewritten(pool, origin_parts=tuple(others))
    assert open_pool(pool.path, "forged").verify()


@pytest.mark.parametrize("name", ["origin_hashes.npy", "hashes.npy", "part-00000.idx", "part-00000.bin"])
def test_any_flipped_byte_is_found(tmp_path, name):
    pool = repart_pool(small(tmp_path), tmp_path / "one", part_tokens=10_000)
    data = bytearray((pool.path / name).read_bytes())
    data[-1] ^= 1
    (pool.path / name).write_bytes(data)
    assert open_pool(pool.path, "damaged").verify(full=True)


def test_a_damaged_pool_is_not_reparted(tmp_path):
    pool = small(tmp_path)
    path = pool.layout.part_path(2)
    data = bytearray(path.read_bytes())
    data[8] ^= 1
    path.write_bytes(data)
    with pytest.raises(RecipeError, match=r"part-00002\.bin block 0"):
        repart_pool(tmp_path / "pool", tmp_path / "one", part_tokens=10_000)
    assert not (tmp_path / "one").exists()


def test_pairs_parts_of_nothing_and_a_taken_folder_are_refused(tmp_path):
    pool = small(tmp_path)
    with pytest.raises(RecipeError, match="there already"):
        repart_pool(pool, tmp_path / "pool", part_tokens=9)
    with pytest.raises(RecipeError, match="1 or more"):
        repart_pool(pool, tmp_path / "new", part_tokens=0)
    write_pair(tmp_path / "pair", [[[1, 2]]], 3)
    with pytest.raises(RecipeError, match="without a card"):
        repart_pool(tmp_path / "pair", tmp_path / "new", part_tokens=9)


KILLED = """
import os, signal, sys
from pathlib import Path
from recipe.pools import reparting
from recipe.pools.workplace import write_durably

calls = 0
def dying(path, data):
    global calls
    calls += 1
    if calls > int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    write_durably(path, data)

reparting.write_durably = dying
reparting.repart_pool(sys.argv[1], sys.argv[2], part_tokens=100)
"""


def test_12_killed_at_any_write_it_goes_on(tmp_path):
    pool = small(tmp_path)
    whole = repart_pool(pool, tmp_path / "whole", part_tokens=100)
    writes = whole.num_parts + 2  # settings, a note for each part, the card
    for number in range(writes):
        command = [sys.executable, "-c", KILLED, str(pool.path), str(tmp_path / "new"), str(number)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert not (tmp_path / "new").exists()
        notes = sorted(path.name for path in (tmp_path / "new.partial").glob("part-*.json"))
        assert len(notes) == min(max(0, number - 1), whole.num_parts)
        again = repart_pool(pool, tmp_path / "new", part_tokens=100)
        assert card_text(again.card) == card_text(whole.card) and again.verify(full=True) == []
        assert {path.name for path in again.path.iterdir()} == {path.name for path in whole.path.iterdir()}
        shutil.rmtree(tmp_path / "new")


def test_what_was_begun_with_other_parts_is_not_gone_on_with(tmp_path):
    pool = small(tmp_path)
    command = [sys.executable, "-c", KILLED, str(pool.path), str(tmp_path / "new"), "3"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    again = repart_pool(pool, tmp_path / "new", part_tokens=30)
    assert again.verify(full=True) == [] and max(part.tokens for part in again.card.parts) <= 30


def test_F06_a_full_disk_is_told_with_the_bytes_needed(tmp_path):
    pool = write_pool(tmp_path / "pool", [np.arange(20_000) % 50] * 4, vocab_size=50)
    command = [
        sys.executable,
        "-c",
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "from recipe.errors import RecipeError\n"
        "from recipe.pools.reparting import repart_pool\n"
        "try:\n"
        "    repart_pool(sys.argv[1], sys.argv[2], part_tokens=70_000)\n"
        "except RecipeError as error:\n"
        "    print(error)\n",
        str(pool.path),
        str(tmp_path / "new"),
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "no space left" in told and "bytes needed" in told
    assert not (tmp_path / "new").exists()
    assert repart_pool(pool, tmp_path / "new", part_tokens=70_000).verify(full=True) == []


def test_a_pool_in_a_store_is_copied_to_a_disk_first(tmp_path):
    store, pool = fsspec.filesystem("memory"), small(tmp_path)
    for path in pool.path.iterdir():
        store.pipe(f"/reparted/{path.name}", path.read_bytes())
    with pytest.raises(RecipeError, match="a pool in a store"):
        repart_pool("memory://reparted", tmp_path / "new", part_tokens=9)
    store.rm("/reparted", recursive=True)
