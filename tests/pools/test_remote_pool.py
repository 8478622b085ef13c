"""Pools on a real S3 server on loopback: the same as on a disk, or an error that names what is wrong."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe
from recipe.config.view import Filter
from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.metadata import open_metadata
from recipe.pools.remote import asking
from recipe.pools.remote.ranges import REQUEST_BYTES, runs_of, used_bytes
from recipe.pools.views import View
from tests.pools.loopback import PATIENT, Proxy, store, upload

DOCUMENTS = [np.arange(7 * k, 7 * k + 5 + k % 60) % 400 + 2 for k in range(300)]
URL = "s3://pools/english"


@pytest.fixture(scope="module")
def server() -> Iterator[Proxy]:
    with store() as proxy:
        fsspec.filesystem("s3").mkdir("pools")
        yield proxy


@pytest.fixture
def proxy(server: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setenv("RECIPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.001)
    server.fault, server.latency = None, 0.0
    server.gets.clear()
    yield server
    server.fault = None
    system = fsspec.filesystem("s3")
    system.rm("pools", recursive=True)
    system.mkdir("pools")


@pytest.fixture
def local(proxy: Proxy, tmp_path: Path) -> Path:
    """A pool on this machine, and its copy in the store."""
    folder = tmp_path / "english"
    tags = [{"lang": "ab"[k % 2]} for k in range(len(DOCUMENTS))]
    ids = [f"d{k}" for k in range(len(DOCUMENTS))]
    recipe.write_pool(folder, DOCUMENTS, vocab_size=500, eos=1, ids=ids, tags=tags)
    upload(folder, URL)
    return folder


def put(name: str, data: bytes) -> None:
    fsspec.filesystem("s3").pipe(f"pools/english/{name}", data)


def test_a_pool_in_a_store_is_the_pool_on_a_disk(local: Path):
    here, there = open_pool(local, "english"), open_pool(URL, "english")
    assert (there.fingerprint, there.num_tokens, str(there.path)) == (here.fingerprint, here.num_tokens, URL)
    for k in (0, 7, 299):
        assert there.tokens(k).tolist() == here.tokens(k).tolist() == DOCUMENTS[k].tolist()
    assert there.ids([3, 1]) == ["d3", "d1"]
    assert there.rows([3, 299]) == here.rows([3, 299])
    assert np.array_equal(there.offsets, here.offsets)
    assert there.verify(full=True) == []
    assert pickle.loads(pickle.dumps(there)).fingerprint == here.fingerprint


def test_opening_reads_the_card_alone(local: Path, proxy: Proxy):
    open_pool(URL, "english")
    assert proxy.gets == [("/pools/english/card.json", (local / "card.json").stat().st_size)]


def test_a_view_of_a_pool_in_a_store_reads_its_document_table_once(local: Path, proxy: Proxy):
    view = View(open_pool(URL, "english"), Filter({"lang": "a"}, None, None, "document"))
    assert view.num_documents == 150
    assert [path for path, _ in proxy.gets].count("/pools/english/documents.parquet") == 1


def test_metadata_alone_are_read_where_the_tokens_are_gone(local: Path):
    fsspec.filesystem("s3").rm("pools/english/part-00000.bin")
    assert open_metadata(URL, "english").offsets[-1] == open_pool(local, "english").num_tokens


def test_a_store_in_memory_is_one_too(tmp_path: Path, local: Path):
    upload(local, "memory://pools/english")
    there = open_pool("memory://pools/english", "english")
    assert there.tokens(5).tolist() == DOCUMENTS[5].tolist()
    fsspec.filesystem("memory").pipe("/pools/english/part-00000.bin", b"x" * 10)
    with pytest.raises(RecipeError, match=r"memory://pools/english/part-00000\.bin[\s\S]*version"):
        there.tokens(5)


def test_C05_a_part_that_is_missing_or_cut_is_named(local: Path):
    part = (local / "part-00000.bin").read_bytes()
    put("part-00000.bin", part[:-2])
    with pytest.raises(RecipeError, match=rf"{URL}/part-00000\.bin\n[\s\S]*{len(part)} bytes"):
        open_pool(URL, "english")
    fsspec.filesystem("s3").rm("pools/english/part-00000.bin")
    with pytest.raises(RecipeError, match=rf"{URL}/part-00000\.bin\n +given +no file"):
        open_pool(URL, "english")


def test_C07_a_part_that_changes_or_goes_while_it_is_read_is_named(local: Path):
    pool = open_pool(URL, "english")
    part = (local / "part-00000.bin").read_bytes()
    put("part-00000.bin", part[::-1])
    with pytest.raises(
        RecipeError, match=rf"{URL}/part-00000\.bin[\s\S]*version[\s\S]*as when the pool was opened"
    ):
        pool.tokens(3)
    with pytest.raises(RecipeError, match=r"part-00000\.bin[\s\S]*as when the pool was opened"):
        pickle.loads(pickle.dumps(pool))
    fsspec.filesystem("s3").rm("pools/english/part-00000.bin")
    with pytest.raises(RecipeError, match=rf"{URL}/part-00000\.bin\n +given +no such object"):
        pool.tokens(3)


def test_C07_another_pool_at_the_url_is_not_the_one_that_was_pickled(local: Path, tmp_path: Path):
    pickled = pickle.dumps(open_pool(URL, "english"))
    recipe.write_pool(tmp_path / "other", DOCUMENTS[:-1], vocab_size=500, eos=1)
    upload(tmp_path / "other", URL)
    with pytest.raises(RecipeError, match="a pool with fingerprint"):
        pickle.loads(pickled)


def test_a_small_file_with_other_contents_than_the_card_says_is_named(local: Path):
    data = bytearray((local / "offsets.npy").read_bytes())
    data[-1] ^= 1
    put("offsets.npy", bytes(data))
    with pytest.raises(RecipeError, match=rf"{URL}/offsets\.npy[\s\S]*as its card says"):
        open_pool(URL, "english").offsets  # noqa: B018


def test_verify_finds_a_flipped_byte_in_the_store(local: Path):
    data = bytearray((local / "part-00000.bin").read_bytes())
    data[100] ^= 1
    put("part-00000.bin", bytes(data))
    [finding] = open_pool(URL, "english").verify(full=True)
    assert "part-00000.bin block 0" in finding.where


def test_what_is_no_pool_is_told(local: Path):
    for url in ("s3://pools/none", "s3://no-such-bucket/x"):
        with pytest.raises(RecipeError, match=rf"{url}\n +given +nothing"):
            open_pool(url, "english")
    fsspec.filesystem("s3").pipe("pools/pairs/part.idx", b"MMIDIDX")
    with pytest.raises(RecipeError, match=r"Megatron pairs without a card \(part\.idx\)"):
        open_pool("s3://pools/pairs", "english")


def test_answers_that_break_are_asked_for_again(local: Path, proxy: Proxy):
    pool = open_pool(URL, "english")
    kinds = ("503", None, "reset", "truncate")
    proxy.fault = lambda _path, number: kinds[number % 4]
    before = asking.TRAFFIC.repeated
    for k in range(12):
        assert pool.tokens(k).tolist() == DOCUMENTS[k].tolist()
    assert asking.TRAFFIC.repeated > before


def test_a_listing_that_breaks_is_asked_for_again(local: Path, proxy: Proxy):
    proxy.broken_listings = 3
    assert open_pool(URL, "english").num_tokens == open_pool(local, "english").num_tokens
    assert proxy.broken_listings == 0


def test_a_folder_that_cannot_be_listed_is_named(local: Path, proxy: Proxy):
    proxy.broken_listings = asking.TRIES
    with pytest.raises(RecipeError, match=rf"{URL}\n[\s\S]*a folder that can be listed"):
        open_pool(URL, "english")
    assert proxy.broken_listings == 0


def test_an_answer_that_stalls_is_asked_for_a_second_time(
    local: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
):
    pool = open_pool(URL, "english")
    stalled: list[int] = []

    def fault(_path: str, number: int) -> str | None:
        if stalled:
            return None
        stalled.append(number)
        return "stall"

    pool.offsets  # noqa: B018 - fetched before
    proxy.fault = fault
    monkeypatch.setattr(asking, "LEAST_PATIENCE", 0.1)
    monkeypatch.setattr(asking.TRAFFIC, "doubled", 0)
    assert pool.tokens(0).tolist() == DOCUMENTS[0].tolist()
    assert (len(stalled), asking.TRAFFIC.doubled) == (1, 1)


def test_what_cannot_be_read_after_several_tries_names_part_and_bytes(local: Path, proxy: Proxy):
    pool = open_pool(URL, "english")
    pool.offsets  # noqa: B018
    proxy.fault = lambda *_: "503"
    with pytest.raises(
        RecipeError, match=rf"{URL}/part-00000\.bin, bytes 0\.\.12\n[\s\S]*{asking.TRIES} tries"
    ):
        pool.tokens(0)


def test_where_signed_urls_are_refused_ranges_are_asked_for_without_and_once(
    local: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_OF_THIS_TEST", "a store of its own")
    pool = open_pool(URL, "english")
    pool.offsets  # noqa: B018
    proxy.fault, before = (lambda *_: "403"), proxy.ranges
    for number in range(3):
        assert pool.tokens(number).tolist() == DOCUMENTS[number].tolist()
    assert proxy.ranges == before + 4


def test_no_message_holds_what_signs_a_url(local: Path, proxy: Proxy):
    """Who reads a log may not read the object with it."""
    pool = open_pool(URL, "english")
    pool.offsets  # noqa: B018
    proxy.fault = lambda *_: "reset"
    with pytest.raises(RecipeError, match=r"endpoint URL: .*part-00000\.bin\"") as error:
        pool.tokens(0)
    assert "X-Amz" not in str(error.value)


def test_X03_processes_that_open_a_pool_at_once_copy_its_files_once(local: Path, proxy: Proxy):
    code = (
        PATIENT + f"from recipe.pools import open_pool; print(int(open_pool({URL!r}, 'english').offsets[-1]))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=dict(os.environ))
        for _ in range(4)
    ]
    found = [process.communicate()[0] for process in started]
    assert found == [b"%d\n" % open_pool(local, "english").num_tokens] * 4
    assert [path for path, _ in proxy.gets].count("/pools/english/offsets.npy") == 1


def test_X03_threads_open_a_pool_at_once(local: Path):
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: open_pool(URL, "english").num_tokens, range(80)))
    assert found == [open_pool(local, "english").num_tokens] * 80


def test_a_token_file_is_not_handed_out_as_a_path(local: Path):
    pool = open_pool(URL, "english")
    with pytest.raises(RecipeError, match="never copied as a whole"):
        pool.layout.part_path(0).read_bytes()
    with pytest.raises(RecipeError, match="a pool in a store"):
        pool.part(0)


spans = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 200), st.integers(1, 50)).map(
        lambda s: (s[0], s[1], s[1] + s[2])
    ),
    min_size=1,
    max_size=30,
)


@given(spans, st.integers(0, 40))
def test_every_span_is_found_where_runs_say(given_spans: list[tuple[int, int, int]], gap: int):
    files = [bytes(np.random.default_rng(k).integers(0, 255, 300, dtype=np.uint8)) for k in range(4)]
    wanted = np.array(given_spans, np.int64)
    runs = runs_of(wanted, gap)
    memory = bytearray(runs.size)
    for file, start, stop, at in runs.requests():
        assert 0 < stop - start <= REQUEST_BYTES
        memory[at : at + stop - start] = files[file][start:stop]
    for (file, start, stop), at in zip(given_spans, runs.place.tolist(), strict=True):
        assert memory[at : at + stop - start] == files[file][start:stop]
    covered = {(f, b) for f, a, z in given_spans for b in range(a, z)}
    assert used_bytes(wanted) == len(covered) <= runs.num_bytes
    assert len(runs.file) <= len(given_spans)
    if gap == 0:
        assert runs.num_bytes == len(covered)
    assert runs.num_bytes - len(covered) <= sum(stop - start for _, start, stop in given_spans)
