"""Pools exported and read by the packages the files are for: every document is the pool's."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.config.files import TokenType
from recipe.config.view import Filter
from recipe.errors import RecipeError
from recipe.integrations.exporting import PoolWanted, export_pool
from recipe.integrations.exporting.pools import WRITERS
from recipe.integrations.exporting.pools_documents import documents_of, kinds_of
from recipe.integrations.exporting.pools_formats import beside
from recipe.pools import open_pool
from recipe.pools.erasing import erase_documents
from recipe.pools.foreign.form import Form
from recipe.pools.views import View

EOS = 99


def write(path: Path, *, vocab_size: int = 100, eos: int | None = EOS, ids: str = "text", **more):
    """Sixty documents in groups of three, some empty, the ids spread over the vocabulary."""
    dice = np.random.default_rng(4)
    lengths = [0, *dice.integers(0, 40, size=58).tolist(), 0]
    documents = [dice.integers(0, 99, size=n) * (vocab_size // 100) for n in lengths]
    keys = {"text": [f"d{i}" for i in range(60)], "int": range(100, 160), "number": None}[ids]
    return recipe.write_pool(
        path, documents, vocab_size=vocab_size, eos=eos, ids=keys, groups=[f"g{i // 3}" for i in range(60)],
        tags=[{"lang": "no" if i % 2 else "de", "quality": i / 100} for i in range(60)], **more,
    )  # fmt: skip


@pytest.fixture
def pool(tmp_path):
    with write(tmp_path / "pool", part_tokens=400) as opened:
        yield opened


def stored(pool) -> list[list[int]]:
    return [pool.stored(document).tolist() for document in range(pool.num_documents)]


def exported(pool, folder: Path, format: str, **wanted):
    return export_pool(pool, folder, PoolWanted(format=format, **wanted))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def child(python: Path | str, program: str, *words: object) -> object:
    """What a program in a process of its own prints last: to import some packages is to be warned."""
    command = [str(python), "-W", "ignore", "-c", program, *map(str, words)]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(seen.stdout.splitlines()[-1])


READ_MEGATRON = """\
import json, sys
from megatron.core.datasets.indexed_dataset import IndexedDataset
sets = [IndexedDataset(stem) for stem in sys.argv[1:]]
print(json.dumps({
    "rows": [row.tolist() for each in sets for row in each], "dtype": [str(each[0].dtype) for each in sets],
    "documents": [len(each.document_indices) - 1 for each in sets],
}))
"""


@pytest.mark.parametrize(
    ("vocab_size", "tokens_per_file"), [(100, None), (100, 300), (100_000, None), (100_000, 1)]
)
def test_megatrons_own_reader_finds_every_document(tmp_path, vocab_size, tokens_per_file):
    pool = write(tmp_path / "pool", vocab_size=vocab_size, part_tokens=400)
    done = exported(pool, tmp_path / "out", "megatron", tokens_per_file=tokens_per_file)
    stems = [path.with_suffix("") for path in sorted((tmp_path / "out").glob("*.bin"))]
    read = child(sys.executable, READ_MEGATRON, *stems)
    assert read["rows"] == stored(pool)
    assert sum(read["documents"]) == 60
    assert set(read["dtype"]) == {str(pool.token_dtype)}
    assert done.copied == (tokens_per_file is None)


def test_who_writes_into_an_export_changes_no_pool(tmp_path):
    pool = write(tmp_path / "pool", vocab_size=100, part_tokens=400)
    before = {path.name: path.read_bytes() for path in (tmp_path / "pool").iterdir()}
    assert exported(pool, tmp_path / "out", "megatron").copied
    for path in (tmp_path / "out").iterdir():
        with path.open("r+b") as file:
            file.write(b"\xff" * 8)
    assert {path.name: path.read_bytes() for path in (tmp_path / "pool").iterdir()} == before


READ_MDS = """\
import json, sys
from streaming import StreamingDataset
rows = list(StreamingDataset(local=sys.argv[1], shuffle=False, batch_size=1))
arrays = [row.pop("tokens") for row in rows]
print(json.dumps([{**r, "tokens": a.tolist(), "dtype": str(a.dtype)} for r, a in zip(rows, arrays)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["text", "int"])
@pytest.mark.parametrize("vocab_size", [100, 100_000])
def test_the_real_streaming_finds_every_document_with_its_id_group_and_tags(
    tmp_path, streaming_python, ids, vocab_size
):
    """Documents without any token too: no end mark is stored in one of the pools."""
    pool = write(tmp_path / "pool", ids=ids, vocab_size=vocab_size, eos=EOS if ids == "int" else None)
    exported(pool, tmp_path / "out", "mds", tokens_per_file=300)
    assert len(list((tmp_path / "out").glob("*.mds"))) > 3
    rows = child(streaming_python, READ_MDS, tmp_path / "out")
    assert [row["tokens"] for row in rows] == stored(pool)
    assert {row["dtype"] for row in rows} == {str(pool.token_dtype)}
    for row, known in zip(rows, pool.rows(range(60)), strict=True):
        assert (row["id"], row["group"], row["tags"]) == (known.id, known.group, dict(known.tags))


def test_npy_has_a_header_and_boundaries_that_nobody_guesses(tmp_path):
    """D04: documents without an end mark stay documents, empty ones too."""
    pool = write(tmp_path / "pool", eos=None)
    exported(pool, tmp_path / "out", "npy", tokens_per_file=300)
    found = []
    for path in sorted((tmp_path / "out").glob("tokens-?????.npy")):
        tokens = np.load(path, mmap_mode="r")
        assert tokens.dtype == np.uint16
        assert len(tokens) <= 300
        offsets = np.load(path.with_suffix(".offsets.npy"))
        assert offsets[-1] == len(tokens)
        found += [tokens[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == stored(pool)
    rows = pq.read_table(tmp_path / "out/_rows.parquet").to_pylist()
    assert [row["id"] for row in rows] == pool.ids(range(60))


def test_datasets_reads_parquet_with_ids_groups_and_tags(pool, tmp_path):
    datasets = pytest.importorskip("datasets")
    exported(pool, tmp_path / "out", "parquet", tokens_per_file=300)
    read = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["train"]
    assert list(map(list, read["input_ids"])) == stored(pool)
    for row, known in zip(read, pool.rows(range(60)), strict=True):
        assert (row["id"], row["group"], json.loads(row["tags"])) == (
            known.id,
            known.group,
            dict(known.tags),
        )


READ_DATATROVE = """\
import json, sys
import numpy as np
from datatrove.pipeline.readers import ParquetReader
from datatrove.utils.dataset import DatatroveFolderDataset
size, folder, parquet = int(sys.argv[1]), sys.argv[2], sys.argv[3]
whole = DatatroveFolderDataset(folder, seq_len=9, token_size=size, return_positions=True)
reader = ParquetReader(parquet, text_key="input_ids", glob_pattern="*.parquet")
print(json.dumps({
    "windows": [row["input_ids"].tolist() for row in whole],
    "positions": [row["positions"].tolist() for row in whole],
    "rows": [[document.id, list(document.text), document.metadata["group"]] for document in reader()],
}))
"""


@pytest.mark.parametrize("vocab_size", [100, 100_000])
def test_datatrove_reads_its_files_and_our_parquet(tmp_path, vocab_size):
    pytest.importorskip("datatrove")
    pool = write(tmp_path / "pool", vocab_size=vocab_size)
    exported(pool, tmp_path / "ds", "datatrove")
    exported(pool, tmp_path / "parquet", "parquet", tokens_per_file=300)
    size = 2 if vocab_size == 100 else 4
    read = child(sys.executable, READ_DATATROVE, size, tmp_path / "ds", tmp_path / "parquet")
    joined = [token for document in stored(pool) for token in document]
    places = [place for document in stored(pool) for place in range(len(document))]
    windows = range(0, len(joined) - len(joined) % 10, 10)
    assert read["windows"] == [joined[at : at + 10] for at in windows]
    for at, found in zip(windows, read["positions"], strict=True):
        starts = [place for place in range(1, 10) if not found[place]]
        assert starts == [place for place in range(1, 10) if not places[at + place]]
    documents = [row for row in read["rows"] if row[1]]
    known = zip(pool.ids(range(60)), stored(pool), pool.rows(range(60)), strict=True)
    assert documents == [[id, tokens, row.group] for id, tokens, row in known]


@pytest.mark.parametrize("format", WRITERS)
def test_the_manifest_answers_for_every_byte(pool, tmp_path, format):
    done = exported(pool, tmp_path / "out", format)
    data = (tmp_path / "out/_manifest.json").read_bytes()
    manifest = json.loads(data)
    assert done.sha256 == hashlib.sha256(data).hexdigest()
    assert (manifest["documents"], manifest["tokens"]) == (60, pool.num_tokens)
    assert manifest["pool"] == pool.fingerprint
    found = contents(tmp_path / "out")
    assert manifest["files"].keys() | {"_manifest.json"} == found.keys()
    for name, file in manifest["files"].items():
        assert hashlib.sha256(found[name]).hexdigest() == file["sha256"]


@pytest.mark.parametrize("format", WRITERS)
def test_two_exports_of_a_pool_are_the_same_bytes(pool, tmp_path, format):
    exported(pool, tmp_path / "one", format)
    exported(pool, tmp_path / "two", format)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_view_is_exported_alone_in_stored_order(pool, tmp_path):
    chosen = Filter({"lang": "no"}, None, None, "document")
    exported(View(pool, chosen), tmp_path / "out", "parquet")
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert [row["id"] for row in rows] == [f"d{i}" for i in range(60) if i % 2]
    assert [row["input_ids"] for row in rows] == stored(pool)[1::2]
    manifest = json.loads((tmp_path / "out/_manifest.json").read_bytes())
    assert manifest["filter"]["where"] == [["lang", "no"]]


@pytest.mark.parametrize("vocab_size", [100, 100_000])
@pytest.mark.parametrize("tokens_per_file", [None, 300])
@pytest.mark.parametrize("format", WRITERS)
def test_every_export_opens_as_a_pool_of_the_same_documents(tmp_path, format, vocab_size, tokens_per_file):
    """The folder as it is; of .npy it is said that boundaries lie beside them: nothing is scanned. D04."""
    pool = write(tmp_path / "pool", vocab_size=vocab_size, part_tokens=400)
    exported(pool, tmp_path / "out", format, tokens_per_file=tokens_per_file)
    said = {"form": Form(boundaries=".offsets.npy")} if format == "npy" else {}
    with open_pool(tmp_path / "out", "again", eos=EOS, **said) as again:
        assert stored(again) == stored(pool)
        assert again.stock == pool.stock


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=40),
    part_tokens=st.integers(1, 200),
    tokens_per_file=st.integers(1, 200),
    vocab_size=st.sampled_from([200, 100_000]),
    format=st.sampled_from(list(WRITERS)),
    chosen=st.sets(st.integers(0, 39)),
)
def test_export_and_import_are_inverse_whatever_the_parts_and_files(
    lengths, part_tokens, tokens_per_file, vocab_size, format, chosen
):
    """Of a pool, and of the documents that a filter lets pass."""
    documents = [np.arange(n) + 100 * number % 50 for number, n in enumerate(lengths)]
    tags = [{"in": number in chosen} for number in range(len(lengths))]
    with tempfile.TemporaryDirectory() as folder:
        pool = recipe.write_pool(
            Path(folder, "pool"),
            documents,
            vocab_size=vocab_size,
            eos=EOS,
            tags=tags,
            part_tokens=part_tokens,
        )
        expected = stored(pool)
        kept = [tokens for number, tokens in enumerate(expected) if number in chosen]
        if kept and len(kept) < len(expected):
            pool, expected = View(pool, Filter({"in": True}, None, None, "document")), kept
        exported(pool, Path(folder, "out"), format, tokens_per_file=tokens_per_file)
        said = {"form": Form(boundaries=".offsets.npy")} if format == "npy" else {}
        with open_pool(Path(folder, "out"), "again", eos=EOS, **said) as again:
            assert stored(again) == expected


@pytest.mark.parametrize("dtype", get_args(TokenType))
@pytest.mark.parametrize("format", WRITERS)
def test_ids_of_every_type_come_through_every_format(tmp_path, format, dtype):
    """The type is kept where the format has it; else the ids are."""
    largest = {"parquet": 2**31 - 1, "mds": 2**31 - 1, "datatrove": 2**32 - 1}  # that come back as a pool
    most = min(int(np.iinfo(dtype).max), largest.get(format, 2**62))
    np.array([1, 2, EOS, most, EOS], dtype).tofile(tmp_path / f"raw.{dtype}")
    with open_pool(tmp_path / f"raw.{dtype}", "raw", eos=EOS) as raw:
        exported(raw, tmp_path / "out", format)
    said = {"form": Form(boundaries=".offsets.npy")} if format == "npy" else {}
    with open_pool(tmp_path / "out", "again", eos=EOS, **said) as again:
        assert stored(again) == [[1, 2, EOS], [most, EOS]]


@pytest.mark.parametrize("format", ["npy", "parquet", "mds", "datatrove"])
def test_imported_pairs_are_exported_with_their_numbers_as_ids(pool, tmp_path, format):
    exported(pool, tmp_path / "pairs", "megatron")
    with open_pool(tmp_path / "pairs", "pairs", eos=EOS) as pairs:
        assert stored(pairs) == stored(pool)
        done = exported(pairs, tmp_path / "out", format)
    assert (done.documents, done.tokens) == (60, pool.num_tokens)
    if format == "parquet":
        rows = pq.read_table(tmp_path / "out").to_pylist()
        assert [row["id"] for row in rows] == list(range(60))
        assert [row["input_ids"] for row in rows] == stored(pool)


def test_sections_leads_and_repeats_are_named_not_dropped(tmp_path):
    one = np.arange(50)
    pool = recipe.write_pool(
        tmp_path / "pool", [one, one], vocab_size=100, eos=EOS, groups=["g", "g"], repeats=8,
        sections=[[0, 10, 20], None], leads=[[90, 91], []],
    )  # fmt: skip
    with pytest.raises(RecipeError) as refused:
        exported(pool, tmp_path / "out", "npy")
    (problem,) = refused.value.problems
    assert "2 section starts" in problem.given
    assert "1 spans that repeat" in problem.given
    assert "1 documents with special tokens in front" in problem.given
    assert not list(tmp_path.glob("out*"))
    done = exported(pool, tmp_path / "out", "npy", lossy=True)
    assert done.lost["section_starts"] == 2
    assert np.load(tmp_path / "out/tokens-00000.npy")[:4].tolist() == [90, 91, 0, 1]


@pytest.mark.parametrize("format", WRITERS)
def test_erased_documents_are_left_out_and_counted(pool, tmp_path, format):
    """Nobody is handed zeros in the place of a text that was taken back."""
    gone = [3, 4, 40]
    with erase_documents(pool, np.array(gone), tmp_path / "less", reason="asked") as less:
        done = exported(less, tmp_path / "out", format)
    left = [tokens for number, tokens in enumerate(stored(pool)) if number not in gone]
    assert (done.documents, done.erased, done.copied) == (57, 3, False)
    said = {"form": Form(boundaries=".offsets.npy")} if format == "npy" else {}
    with open_pool(tmp_path / "out", "again", eos=EOS, **said) as again:
        assert stored(again) == left


def test_memory_does_not_grow_with_the_pool(tmp_path):
    """Four times the tokens take about the same: a stretch, and eight bytes a document of the file."""
    peaks = []
    for number, count in enumerate((60, 240)):
        documents = (np.full(5000, 7) for _ in range(count))
        pool = recipe.write_pool(tmp_path / f"pool{number}", list(documents), vocab_size=100, eos=EOS)
        for format in WRITERS:
            tracemalloc.start()
            exported(pool, tmp_path / f"{format}{number}", format, tokens_per_file=50_000)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    small, large = peaks[: len(WRITERS)], peaks[len(WRITERS) :]
    assert all(b < 1.5 * a for a, b in zip(small, large, strict=True)), (small, large)


def test_ids_of_both_kinds_stay_what_they_are_in_mds_and_are_named_elsewhere(tmp_path):
    pool = recipe.write_pool(tmp_path / "pool", [[1], [2]], vocab_size=9, ids=[7, "7"])
    exported(pool, tmp_path / "mds", "mds")
    with pytest.raises(RecipeError, match="1 ids that are numbers"):
        exported(pool, tmp_path / "out", "parquet")
    exported(pool, tmp_path / "out", "parquet", lossy=True)
    assert pq.read_table(tmp_path / "out")["id"].to_pylist() == ["7", "7"]


def test_what_is_there_is_never_written_over(pool, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/notes.txt").write_text("mine")
    with pytest.raises(RecipeError, match="there already"):
        exported(pool, tmp_path / "out", "npy")
    (tmp_path / "web.partial").mkdir()
    (tmp_path / "web.partial/settings.json").write_text("{}")
    with pytest.raises(RecipeError, match="not finished"):
        exported(pool, tmp_path / "web", "npy")
    assert (tmp_path / "web.partial/settings.json").is_file()
    assert contents(tmp_path / "out") == {"notes.txt": b"mine"}


@pytest.mark.parametrize("format", WRITERS)
def test_killed_at_any_file_it_leaves_nothing_that_looks_whole(pool, tmp_path, format):
    """And the same export goes through afterwards, to the same bytes."""
    exported(pool, tmp_path / "whole", format, tokens_per_file=300)
    expected = contents(tmp_path / "whole")
    for kill_at in range(1, 200, 4):
        out = tmp_path / f"out{kill_at}"
        pid = os.fork()
        if pid == 0:
            left = [kill_at]

            def hook(event, args, left=left):
                left[0] -= event in ("open", "os.rename", "os.remove")
                if event in ("open", "os.rename", "os.remove") and left[0] <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            exported(pool, out, format, tokens_per_file=300)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == 0:
            return
        assert code == -signal.SIGKILL
        if out.exists():  # the rename was done
            assert {name: data for name, data in contents(out).items() if name != "writer.lock"} == expected
            continue
        exported(pool, out, format, tokens_per_file=300)
        assert contents(out) == expected
    raise AssertionError("the export never came to its end")


def test_a_full_disk_is_one_clear_error_and_leaves_nothing(pool, tmp_path):
    """The system refuses files above a size: to the writer it is as a full disk. F06."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
        try:
            exported(pool, tmp_path / "out", "npy")
        except RecipeError as error:
            os._exit(7 if "no space left" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert not list(tmp_path.glob("out*"))


def test_a_table_given_up_as_the_disk_is_full_hides_no_fault(pool, tmp_path):
    """Its end is written when it is closed, where the disk is full still. F06."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        documents = beside(tmp_path, documents_of(pool, 100), kinds_of(pool))
        next(documents)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
        try:
            documents.close()
        except OSError:
            os._exit(9)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_negative_ids_are_refused_where_the_format_has_none(tmp_path):
    from recipe.pools.megatron import write_index

    np.array([1, -2, 3], "<i4").tofile(tmp_path / "x.bin")
    with (tmp_path / "x.idx").open("wb") as file:
        write_index(file, np.array([3]), np.dtype("<i4"))
    with open_pool(tmp_path / "x", "x") as pool, pytest.raises(RecipeError, match="ids -2 to 3"):
        exported(pool, tmp_path / "out", "datatrove")
    assert not list(tmp_path.glob("out*"))
