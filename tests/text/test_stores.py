"""Text in stores: a real S3 server on loopback, fsspec's memory, ``file://``; the pool is that of files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import fsspec
import pytest

from recipe.errors import RecipeError
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.readers import raw_batches, read_documents
from recipe.text.sources import ReadOptions, list_sources
from recipe.text.tokenizers import ByteTokenizer
from tests.pools.loopback import store
from tests.text.stored import RECORDS, members_of, write_arrow, write_jsonl, write_parquet, write_tar

BYTES = ByteTokenizer()
LARGE = [{"id": f"large {i}", "text": "abcdefgh" * 100_000} for i in range(60)]


def write_corpus(folder):
    """One file of each kind; ids are places, so that all records may be in one pool."""
    (folder / "tables").mkdir(parents=True)
    write_jsonl(folder / "a.jsonl")
    write_parquet(folder / "tables" / "b.parquet")
    write_arrow(folder / "tables" / "c.arrow")
    write_tar(folder / "d.tar.gz", members_of(), "w:gz")
    (folder / "e.md").write_text("# a text\n")
    (folder / ".hidden.md").write_text("not read")


@pytest.fixture(scope="module")
def server():
    """The address of an S3 server in a thread; variables of the environment name it to every client."""
    with store() as proxy:
        yield proxy.address


@pytest.fixture
def bucket(server, request):
    """An empty bucket of this test."""
    name = request.node.name.lower().replace("_", "-").replace("[", "-").replace("]", "")[:60].strip("-")
    system = fsspec.filesystem("s3")
    system.mkdir(name)
    return f"s3://{name}"


@pytest.fixture
def memory():
    """A folder of fsspec's store in memory."""
    system = fsspec.filesystem("memory")
    yield "memory://corpus"
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def upload(folder, url):
    system, path = fsspec.url_to_fs(url)
    for file in folder.rglob("*"):
        if file.is_file():
            system.pipe(f"{path}/{file.relative_to(folder)}", file.read_bytes())


def contents(pool):
    return {file.name: file.read_bytes() for file in pool.path.iterdir() if file.name != "prepare.json"}


def prepare(source, out, **options):
    read = ReadOptions(place_ids=True, tag_keys=("lang",), **options)
    return prepare_pool([source], out, BYTES, PrepareOptions(read=read, workers=1))


@pytest.mark.parametrize("store", ["bucket", "memory"])
def test_a_pool_from_a_store_is_the_pool_from_local_files_byte_for_byte(tmp_path, request, store):
    url = request.getfixturevalue(store)
    write_corpus(tmp_path / "texts")
    upload(tmp_path / "texts", f"{url}/texts")
    local = prepare(tmp_path / "texts", tmp_path / "local")
    remote = prepare(f"{url}/texts", tmp_path / "remote")
    assert local.num_documents == 4 * 25 + 1
    assert contents(local) == contents(remote)
    assert local.fingerprint == remote.fingerprint


def test_file_urls_are_files_of_this_machine(tmp_path):
    write_corpus(tmp_path / "texts")
    local = list_sources([tmp_path / "texts"], ReadOptions())
    assert list_sources([f"file://{tmp_path}/texts"], ReadOptions()) == local


def test_C07_an_object_that_changed_is_told_and_one_that_was_written_again_is_not(tmp_path, bucket):
    write_jsonl(tmp_path / "a.jsonl")
    upload(tmp_path, f"{bucket}/texts")
    prepare(f"{bucket}/texts", tmp_path / "pool")
    system = fsspec.filesystem("s3")
    path = f"{bucket}/texts/a.jsonl".removeprefix("s3://")
    system.pipe(path, (tmp_path / "a.jsonl").read_bytes())
    assert prepare(f"{bucket}/texts", tmp_path / "pool").num_documents == 25
    write_jsonl(tmp_path / "a.jsonl", [{**record, "text": record["text"].upper()} for record in RECORDS])
    system.pipe(path, (tmp_path / "a.jsonl").read_bytes())
    with pytest.raises(RecipeError, match=r"a\.jsonl[\s\S]*changed, new or gone"):
        prepare(f"{bucket}/texts", tmp_path / "pool")


def test_objects_larger_than_one_request_are_read_in_several(tmp_path, bucket):
    write_parquet(tmp_path / "a.parquet", LARGE, row_group_size=60, compression="none", use_dictionary=False)
    write_jsonl(tmp_path / "b.jsonl", LARGE)
    assert (tmp_path / "b.jsonl").stat().st_size > 40_000_000
    upload(tmp_path, bucket)
    for name in ("a.parquet", "b.jsonl"):
        documents = [(d.id, len(d.text)) for d in read_documents([f"{bucket}/{name}"])]
        assert documents == [(record["id"], 800_000) for record in LARGE]


def test_a_saved_dataset_in_a_store_is_its_rows(tmp_path, bucket):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    datasets.Dataset.from_list(RECORDS).save_to_disk(str(tmp_path / "one"), num_shards=2)
    write_arrow(tmp_path / "one" / "cache-00.arrow")
    upload(tmp_path / "one", f"{bucket}/one")
    assert [d.id for d in read_documents([f"{bucket}/one"])] == [record["id"] for record in RECORDS]


def test_what_is_not_there_or_not_reachable_is_named(tmp_path, bucket):
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(RecipeError, match=rf"{bucket}/missing[\s\S]*missing"):
        list_sources([f"{bucket}/missing"], ReadOptions())
    with pytest.raises(RecipeError, match="s3://no-such-bucket-here"):
        list_sources(["s3://no-such-bucket-here/x"], ReadOptions())
    with pytest.raises(RecipeError, match="nosuchscheme://x/y"):
        list_sources(["nosuchscheme://x/y"], ReadOptions())
    with pytest.raises(RecipeError, match="file, s3"):
        list_sources([bucket, tmp_path], ReadOptions())


def test_an_object_that_goes_while_it_is_read_is_an_error_that_names_it(tmp_path, memory):
    upload_to = fsspec.filesystem("memory")
    for name in ("a", "b"):
        upload_to.pipe(f"/corpus/{name}.txt", name.encode())
    [first, second] = list_sources([memory], ReadOptions())
    upload_to.rm("/corpus/b.txt")
    assert [raw.data for [raw] in raw_batches([first], ReadOptions(), 1)] == [b"a"]
    with pytest.raises(RecipeError, match=r"memory://corpus/b\.txt"):
        list(raw_batches([second], ReadOptions(), 1))


def test_hidden_names_and_globs_are_as_in_folders(tmp_path, memory):
    write_corpus(tmp_path / "texts")
    upload(tmp_path / "texts", memory)
    names = [file.name for file in list_sources([memory], ReadOptions(exclude=("tables/*",)))]
    assert names == ["a.jsonl", "d.tar.gz", "e.md"]


def test_an_interrupted_preparation_of_objects_goes_on(tmp_path, bucket):
    """Killed after a task: the same again makes the same pool."""
    write_jsonl(tmp_path / "a.jsonl", [{"text": f"{n} " + "x" * 5000} for n in range(800)])
    upload(tmp_path, f"{bucket}/t")

    class Stop(BaseException):
        pass

    def tell(progress):
        if progress.phase == "write":
            raise Stop

    options = PrepareOptions(workers=1)
    with pytest.raises(Stop):
        prepare_pool([f"{bucket}/t"], tmp_path / "pool", BYTES, options, progress=tell)
    said = []
    one = prepare_pool([f"{bucket}/t"], tmp_path / "pool", BYTES, options, progress=said.append)
    assert any("going on" in progress.text for progress in said)
    whole = prepare_pool([f"{bucket}/t"], tmp_path / "whole", BYTES, options)
    assert contents(one) == contents(whole)
    shutil.rmtree(tmp_path / "whole")


def test_F06_no_space_for_the_copy_of_a_table_is_an_error_that_says_where(tmp_path):
    """A limit on the size of files stands for a full disk; it holds for a process of its own."""
    code = """
import resource, signal, sys
import fsspec
from recipe.text.stores import Remote
from recipe.text.streams import local_file
fsspec.filesystem("memory").pipe("/x/a.parquet", b"x" * 2_000_000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
with local_file(Remote("memory://x/a.parquet")):
    pass
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert re.search(rf"memory://x/a\.parquet[\s\S]*{tmp_path}[\s\S]*TMPDIR", seen.stderr)
    assert list(tmp_path.iterdir()) == []
