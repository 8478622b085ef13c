"""Every changed byte of a pool is found and placed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.pools import open_pool, write_pool
from recipe.pools.blocks import BLOCK_BYTES
from recipe.pools.verify import chosen
from tests.pools.sparse import sparse_pool


def flip(path: Path, byte: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1
    path.write_bytes(data)


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("clean") / "p"
    documents = [[k, 1, 2] for k in range(12)]
    write_pool(path, documents, vocab_size=100, eos=3, groups=[k // 2 for k in range(12)], part_tokens=16)
    return path


def test_a_whole_pool_has_no_findings(clean):
    pool = open_pool(clean, "p")
    assert pool.verify() == pool.verify(full=True) == pool.verify(sample=2, seed=9) == []


@given(data=st.data())
def test_any_flipped_byte_is_found_where_it_is(clean, tmp_path_factory, data):
    files = sorted(path.name for path in clean.iterdir() if path.name != "card.json")
    file = data.draw(st.sampled_from(files))
    byte = data.draw(st.integers(0, (clean / file).stat().st_size - 1))
    path = tmp_path_factory.mktemp("flipped") / "p"
    shutil.copytree(clean, path)
    flip(path / file, byte)
    findings = open_pool(path, "p").verify(full=True)
    assert findings and all(file in finding.where or file in finding.expected for finding in findings[:1])
    shutil.rmtree(path.parent)


def test_a_sample_hashes_every_small_file_beside_the_tokens(clean, tmp_path):
    for file in json.loads((clean / "card.json").read_bytes())["files"]:
        path = tmp_path / file / "p"
        shutil.copytree(clean, path)
        flip(path / file, (clean / file).stat().st_size - 1)
        assert [finding.where for finding in open_pool(path, "p").verify(sample=1)] == [str(path / file)]


def test_a_finding_names_part_block_and_bytes(tmp_path):
    tokens = np.zeros(5_000_000, dtype=np.uint16)
    pool = write_pool(tmp_path / "p", [tokens], vocab_size=10)
    flip(tmp_path / "p" / "part-00000.bin", BLOCK_BYTES + 17)
    (finding,) = pool.verify(full=True)
    start, stop = BLOCK_BYTES, 2 * BLOCK_BYTES
    assert finding.where == f"{tmp_path / 'p' / 'part-00000.bin'} block 1 (bytes {start}..{stop})"
    assert finding.check == "contents"


def test_a_part_cut_after_opening_is_a_finding(tmp_path):
    pool = write_pool(tmp_path / "p", [[1, 2, 3]], vocab_size=10)
    (tmp_path / "p" / "part-00000.bin").write_bytes(b"12")
    assert pool.verify(full=True)[0].observed == "only 2 bytes"


def test_a_part_gone_after_opening_is_a_finding(tmp_path):
    pool = write_pool(tmp_path / "p", [[1, 2, 3]], vocab_size=10)
    (tmp_path / "p" / "part-00000.bin").unlink()
    assert any(finding.observed == "No such file or directory" for finding in pool.verify())


def test_two_parts_that_changed_places_are_found(tmp_path):
    pool = write_pool(tmp_path / "p", [[1, 2], [3, 4]], vocab_size=10, part_tokens=2)
    for before, after in (
        ("part-00000.bin", "x"),
        ("part-00001.bin", "part-00000.bin"),
        ("x", "part-00001.bin"),
    ):
        (tmp_path / "p" / before).rename(tmp_path / "p" / after)
    assert [finding.check for finding in pool.verify(full=True)] == ["contents", "contents"]


def test_a_sample_reads_some_blocks_of_a_huge_pool(tmp_path):
    pool = sparse_pool(tmp_path / "p", 100_000, 1_000_000)
    assert pool.verify(sample=3) == []


@given(total=st.integers(0, 3000), sample=st.integers(1, 50), seed=st.integers(0, 5))
def test_a_sample_is_spread_over_the_whole_pool(total, sample, seed):
    picks = chosen(total, sample, seed)
    assert len(picks) == min(total, sample)
    if total:
        stretches = picks * len(picks) // total
        assert np.all(np.diff(picks) > 0) and picks[-1] < total
        assert np.all(np.abs(stretches - np.arange(len(picks))) <= 1)


def test_another_seed_is_another_sample():
    assert chosen(10**6, 10, 1).tolist() == chosen(10**6, 10, 1).tolist() != chosen(10**6, 10, 2).tolist()


@pytest.mark.parametrize(("share", "count"), [(0.0001, 1), (0.5, 50), (1.0, 100)])
def test_a_share_of_the_blocks(share, count):
    assert len(chosen(100, share, 0)) == count
