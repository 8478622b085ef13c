"""Writing pools: what comes out is what went in, or one clear error and nothing at all."""

from __future__ import annotations

import filecmp
import multiprocessing
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools import PoolWriter, extent_units, open_pool, write_pool
from tests.pools.megatron_files import read_pair

DOCUMENTS = [[5, 6, 7, 8], [1, 2, 3, 4], [9, 9, 9, 9]]


def bodies(pool) -> list[list[int]]:
    return [pool.tokens(number).tolist() for number in range(pool.num_documents)]


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_D03_boundaries_are_taken_with_the_end_mark(tmp_path):
    pool = write_pool(tmp_path / "p", DOCUMENTS, vocab_size=100, eos=2)
    assert pool.offsets.tolist() == [0, 5, 10, 15]
    assert [pool.part(0)[stop - 1] for stop in (5, 10, 15)] == [2, 2, 2]
    assert bodies(pool) == DOCUMENTS


@pytest.mark.parametrize("vocab_size", [70_001, 100_258, 119_547])
def test_N01_large_ids_are_stored_wide(tmp_path, vocab_size):
    ids = [i for i in (70_000, 100_257, vocab_size - 1) if i < vocab_size]
    pool = write_pool(tmp_path / "p", [ids], vocab_size=vocab_size)
    assert pool.token_dtype == np.int32
    assert bodies(pool) == [ids]


def test_N01_an_id_outside_the_vocabulary_is_refused_by_place(tmp_path):
    with pytest.raises(RecipeError) as refused:
        write_pool(tmp_path / "p", [[1], [2, 3, 70_000], [-1]], vocab_size=65_536, ids=["a", "b", "c"])
    message = str(refused.value)
    assert "document 1 (id 'b')" in message and "id 70000 at position 2" in message and "0..65535" in message
    assert "document 2 (id 'c')" in message and "id -1 at position 0" in message
    assert files_of(tmp_path) == []


def test_positions_of_bad_ids_do_not_count_the_begin_mark(tmp_path):
    with pytest.raises(RecipeError, match="id 9 at position 1"):
        write_pool(tmp_path / "p", [[1, 9]], vocab_size=9, bos=0, eos=0)


def test_N03_a_document_of_65537_tokens_keeps_its_length(tmp_path):
    pool = write_pool(tmp_path / "p", [np.zeros(65_537, dtype=np.uint16)], vocab_size=10)
    assert pool.offsets.tolist() == [0, 65_537]
    assert pool.card.max_document_tokens == 65_537


def test_N03_a_document_longer_than_the_stage_is_whole(tmp_path):
    long = np.arange(3_000_000) % 1000
    pool = write_pool(tmp_path / "p", [[1], long, [2]], vocab_size=1000, eos=0)
    assert np.array_equal(pool.tokens(1), long)
    assert bodies(pool)[0::2] == [[1], [2]]
    assert pool.verify(full=True) == []


@pytest.mark.parametrize("marks", [{}, {"eos": 90}, {"bos": 91, "eos": 90}])
def test_T04_documents_written_past_the_stage_give_the_same_bytes(tmp_path, monkeypatch, marks):
    texts = [np.arange(n) % 77 for n in (3, 20, 0, 8, 7, 9, 1, 64, 2)]
    texts[4] = texts[4].astype(np.uint8)
    write_pool(tmp_path / "staged", texts, vocab_size=100, **marks)
    monkeypatch.setattr("recipe.pools.writer._STAGE_TOKENS", 8)
    monkeypatch.setattr("recipe.pools.part.SLICE_TOKENS", 3)
    write_pool(tmp_path / "through", texts, vocab_size=100, **marks)
    assert files_of(tmp_path / "staged") == files_of(tmp_path / "through")
    for name in files_of(tmp_path / "staged"):
        assert filecmp.cmp(tmp_path / "staged" / name, tmp_path / "through" / name, shallow=False), name


def test_T04_a_bad_id_of_a_document_past_the_stage_is_refused_by_place(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.pools.writer._STAGE_TOKENS", 8)
    texts = [[1], [2] * 30 + [100]]
    with pytest.raises(RecipeError, match=r"document 1 \(id 'b'\)[\s\S]*id 100 at position 30"):
        write_pool(tmp_path / "p", texts, vocab_size=100, bos=0, eos=0, ids=["a", "b"])
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("place", [0, 1, 2])
def test_D01_empty_documents_are_documents(tmp_path, place):
    documents = [[3, 4], [5]]
    documents.insert(place, [])
    pool = write_pool(tmp_path / "p", documents, vocab_size=10, eos=1)
    assert bodies(pool) == documents
    assert (pool.stock, pool.card.special_tokens) == (3, 3)


@pytest.mark.parametrize("documents", [[], [[]], [[], []]])
def test_pools_without_tokens_open(tmp_path, documents):
    pool = write_pool(tmp_path / "p", documents, vocab_size=10)
    assert (pool.num_documents, pool.stock, pool.max_id()) == (len(documents), 0, None)
    assert bodies(pool) == documents
    assert pool.verify(full=True) == []


@given(
    documents=st.lists(st.lists(st.integers(0, 70_000), max_size=12), max_size=12),
    eos=st.sampled_from([None, 0, 7]),
    bos=st.sampled_from([None, 1]),
    part_tokens=st.sampled_from([None, 1, 5, 20]),
    wide=st.booleans(),
)
def test_what_is_written_is_read_back(tmp_path_factory, documents, eos, bos, part_tokens, wide):
    vocab_size = 70_001 if wide else 65_536
    documents = [[token % vocab_size for token in tokens] for tokens in documents]
    path = tmp_path_factory.mktemp("pool") / "p"
    pool = write_pool(path, documents, vocab_size=vocab_size, eos=eos, bos=bos, part_tokens=part_tokens)
    before, after = [bos] * (bos is not None), [eos] * (eos is not None)
    stored = [[*before, *tokens, *after] for tokens in documents]
    assert bodies(pool) == documents
    assert [d for part in pool.card.parts for d in read_pair(path / part.name)] == stored
    assert pool.stock == sum(map(len, documents))
    assert pool.offsets.tolist() == np.cumsum([0, *map(len, stored)]).tolist()
    marks = pool.stored_marks(np.arange(len(documents)))
    assert [m.tolist() for m in marks] == [[bos is not None] * len(stored), [eos is not None] * len(stored)]
    assert pool.verify(full=True) == []
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4"])
def test_any_integer_type_can_be_given(tmp_path, dtype):
    documents = [np.array([1, 2, 120], dtype=dtype), np.array([], dtype=dtype)]
    assert bodies(write_pool(tmp_path / "p", documents, vocab_size=200)) == [[1, 2, 120], []]


@pytest.mark.parametrize(
    "tokens", [[0.5], [[1, 2]], ["a"], [True], np.array([2**63], dtype=np.uint64), [2**70]]
)
def test_what_is_no_token_array_is_refused(tmp_path, tokens):
    with pytest.raises(RecipeError, match="document 1"):
        write_pool(tmp_path / "p", [[1], tokens], vocab_size=200)
    assert files_of(tmp_path) == []


def test_an_array_may_be_reused_by_the_caller(tmp_path):
    buffer = np.zeros(3, dtype=np.int64)
    with PoolWriter(tmp_path / "p", vocab_size=10) as writer:
        for value in (1, 2):
            buffer[:] = value
            writer.add(buffer)
        assert bodies(writer.close()) == [[1, 1, 1], [2, 2, 2]]


def test_ids_keep_their_type_and_order(tmp_path):
    ids = ["a", 7, "7", -3, 2**62]
    pool = write_pool(tmp_path / "p", [[1]] * 5, vocab_size=10, ids=ids)
    assert pool.ids([4, 0, 2, 1, 1, 3]) == [2**62, "a", "7", 7, 7, -3]
    assert [pool.find(key) for key in ids] == [0, 1, 2, 3, 4]


def test_ids_default_to_numbers(tmp_path):
    pool = write_pool(tmp_path / "p", [[1]] * 3, vocab_size=10)
    assert pool.ids([2, 0]) == [2, 0]
    assert (pool.card.ids, pool.find(1)) == ("number", 1)


@pytest.mark.parametrize("missing", ["b", 3, -1])
def test_an_unknown_id_is_named(tmp_path, missing):
    with pytest.raises(RecipeError, match=repr(missing)):
        write_pool(tmp_path / "p", [[1]] * 3, vocab_size=10).find(missing)


@pytest.mark.parametrize("ids", [[4, 5, 4], ["x", "y", "x"], [1, "x", 1]])
def test_repeated_ids_are_refused(tmp_path, ids):
    with pytest.raises(RecipeError, match=f"id {ids[0]!r}, as document 0 has"):
        write_pool(tmp_path / "p", [[1]] * 3, vocab_size=10, ids=ids)
    assert files_of(tmp_path) == []


def test_numbers_and_texts_are_different_ids(tmp_path):
    assert write_pool(tmp_path / "p", [[1]] * 2, vocab_size=10, ids=[1, "1"]).ids([0, 1]) == [1, "1"]


def test_groups_are_units_also_across_parts(tmp_path):
    groups = ["r", "r", None, None, 5, 5, "5"]
    pool = write_pool(tmp_path / "p", [[1, 2]] * 7, vocab_size=10, groups=groups, part_tokens=2)
    assert pool.num_parts == 7
    assert pool.units.tolist() == [0, 2, 3, 4, 6, 7]
    assert [row.group for row in pool.rows(range(7))] == groups


def test_without_groups_each_document_is_a_unit(tmp_path):
    pool = write_pool(tmp_path / "p", [[1]] * 3, vocab_size=10, groups=[None] * 3)
    assert (pool.units, pool.num_units) == (None, 3)


@pytest.mark.parametrize("groups", [["a", "b", "a"], [1, None, 1], ["a", 1, "a"]])
def test_scattered_groups_are_named(tmp_path, groups):
    with pytest.raises(RecipeError, match=f"group {groups[0]!r}, as document 0 has"):
        write_pool(tmp_path / "p", [[1]] * 3, vocab_size=10, groups=groups)


def test_tags_and_sources_come_back(tmp_path):
    with PoolWriter(tmp_path / "p", vocab_size=10) as writer:
        writer.add([1], tags={"lang": "中文", "stars": 3}, source={"file": "a.py", "line": 4})
        writer.add([2], source="b.txt")
        pool = writer.close(dropped={"empty": {"documents": 2}})
    first, second = pool.rows([0, 1])
    assert (first.tags, first.source) == ({"lang": "中文", "stars": 3}, {"file": "a.py", "line": 4})
    assert (second.tags, second.source, second.part) == ({}, "b.txt", "part-00000")
    assert pool.card.dropped == {"empty": {"documents": 2}}


def test_equal_texts_have_equal_hashes_in_pools_of_any_width(tmp_path):
    narrow = write_pool(tmp_path / "a", [[1, 2], [3]], vocab_size=10, eos=0)
    wide = write_pool(tmp_path / "b", [[3], [1, 2]], vocab_size=100_000)
    hashes = [[row.content_hash for row in pool.rows([0, 1])] for pool in (narrow, wide)]
    assert hashes[0] == hashes[1][::-1]


@pytest.mark.parametrize(
    "options",
    [{"eos": 10}, {"bos": -1}, {"vocab_size": 0}, {"vocab_size": 2**31 + 1}, {"part_tokens": 0}],
)
def test_impossible_settings_are_refused_by_name(tmp_path, options):
    with pytest.raises(RecipeError, match=next(iter(options))):
        write_pool(tmp_path / "p", [[1]], **{"vocab_size": 10, **options})
    assert files_of(tmp_path) == []


def test_columns_of_another_length_are_the_callers_fault(tmp_path):
    with pytest.raises(ValueError, match="2 ids for 3 documents"):
        write_pool(tmp_path / "p", [[1]] * 3, vocab_size=10, ids=[1, 2])


def test_a_pool_is_never_written_over(tmp_path):
    write_pool(tmp_path / "p", DOCUMENTS, vocab_size=10)
    before = (tmp_path / "p" / "card.json").read_bytes()
    with pytest.raises(RecipeError, match="a pool that is there already"):
        write_pool(tmp_path / "p", [[1]], vocab_size=10)
    assert (tmp_path / "p" / "card.json").read_bytes() == before
    assert files_of(tmp_path) == ["p"]


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "p").mkdir()
    assert bodies(write_pool(tmp_path / "p", DOCUMENTS, vocab_size=10)) == DOCUMENTS


def test_the_same_input_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_pool(tmp_path / name, DOCUMENTS * 5, vocab_size=10, eos=1, groups=range(15), part_tokens=11)
    same, different, odd = filecmp.cmpfiles(
        tmp_path / "a", tmp_path / "b", files_of(tmp_path / "a"), shallow=False
    )
    assert (files_of(tmp_path / "b"), different, odd) == (sorted(same), [], [])


def test_C04_folders_of_one_name_are_pools_of_their_own(tmp_path):
    web = write_pool(tmp_path / "web" / "part0", [[1] * 100], vocab_size=10)
    code = write_pool(tmp_path / "code" / "part0", [[1] * 50], vocab_size=10)
    assert (web.stock, code.stock, web.fingerprint == code.fingerprint) == (100, 50, False)


def test_C07_another_content_is_another_fingerprint(tmp_path):
    base = {"documents": DOCUMENTS, "vocab_size": 10, "eos": 1, "ids": ["a", "b", "c"]}
    variants = [
        {},
        {"documents": [*DOCUMENTS, [1]], "ids": ["a", "b", "c", "d"]},
        {"documents": DOCUMENTS[::-1]},
        {"documents": [[*DOCUMENTS[0], *DOCUMENTS[1]], [], DOCUMENTS[2]]},
        {"eos": None},
        {"ids": ["a", "b", "x"]},
        {"tags": [{"l": "en"}, None, None]},
        {"groups": ["g", "g", None]},
    ]
    found = {write_pool(tmp_path / f"{k}", **{**base, **v}).fingerprint for k, v in enumerate(variants)}
    assert len(found) == len(variants)


def test_moving_a_folder_changes_no_fingerprint(tmp_path):
    before = write_pool(tmp_path / "p", DOCUMENTS, vocab_size=10).fingerprint
    (tmp_path / "p").rename(tmp_path / "q")
    assert open_pool(tmp_path / "q", "other").fingerprint == before


@pytest.mark.parametrize(
    ("tokens", "units", "right"),
    [
        (64 * 2**20 - 1, 2**16, 1),
        (2**30, 2**20, 1024),
        (2**30, 2**10, 1),
        (2**30 * 700, 2**30, 2**11),  # 1497.97 units: nearer to 2048 in ratio (1.37) than to 1024 (1.46)
        (10**14, 10**11, 1024),
        (0, 0, 1),
    ],
)
def test_extent_units_are_the_nearest_power_of_two(tokens, units, right):
    assert extent_units(tokens, units) == right


def test_the_card_counts_what_is_there(tmp_path):
    documents = [[], [1], [1, 2], [1, 2, 3], [9] * 8]
    card = write_pool(tmp_path / "p", documents, vocab_size=10, eos=4, part_tokens=6).card
    assert (card.num_documents, card.body_tokens, card.special_tokens) == (5, 14, 5)
    assert card.length_histogram == (1, 1, 2, 0, 1)
    assert (card.max_id.id, card.max_id.part, card.max_id.position) == (9, "part-00002.bin", 0)
    assert (card.bos_stored, card.eos_stored, card.eos) == ("none", "all", 4)


def written_in_one_go(path: Path) -> None:
    with PoolWriter(path, vocab_size=100, eos=0, part_tokens=10) as writer:
        for number in range(20):
            writer.add([number] * (number % 5), id=f"d{number}", group=number // 3)
        writer.close()


@pytest.mark.parametrize("stop", range(0, 21, 3))
def test_an_interrupted_write_goes_on_from_its_finished_parts(tmp_path, stop):
    written_in_one_go(tmp_path / "whole")
    settings = {"vocab_size": 100, "eos": 0, "part_tokens": 10, "resume": True}
    killed = PoolWriter(tmp_path / "p", **settings)
    for number in range(stop):
        killed.add([number] * (number % 5), id=f"d{number}", group=number // 3)
    finished = killed.num_finished_parts
    if killed._part is not None:
        killed._part.give_up()
    killed._place.release()  # what a killed process leaves behind: its files, and no lock
    with pytest.raises(RecipeError, match="interrupted"):
        open_pool(tmp_path / "p", "p")
    with PoolWriter(tmp_path / "p", **settings) as writer:
        assert writer.num_finished_parts == finished and writer.num_documents <= stop
        for number in range(writer.num_documents, 20):
            writer.add([number] * (number % 5), id=f"d{number}", group=number // 3)
        writer.close()
    same, *_ = filecmp.cmpfiles(
        tmp_path / "whole", tmp_path / "p", files_of(tmp_path / "whole"), shallow=False
    )
    assert sorted(same) == files_of(tmp_path / "p") == files_of(tmp_path / "whole")


@pytest.mark.parametrize(
    "changed", [{"eos": 1}, {"vocab_size": 99}, {"source": {"files": 2}}, {"part_tokens": 3}]
)
def test_parts_written_under_other_settings_are_not_kept(tmp_path, changed):
    settings = {"vocab_size": 100, "eos": 0, "part_tokens": 4, "resume": True}
    with PoolWriter(tmp_path / "p", **settings) as writer:
        for number in range(9):
            writer.add([number])
    with PoolWriter(tmp_path / "p", **settings, source={}) as writer:
        assert writer.num_finished_parts == 4
    with PoolWriter(tmp_path / "p", **{**settings, **changed}) as writer:
        assert writer.num_documents == 0


def test_a_write_that_is_given_up_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), PoolWriter(tmp_path / "p", vocab_size=10) as writer:
        writer.add([1])
        raise ZeroDivisionError
    assert files_of(tmp_path) == []


def test_F06_a_full_disk_is_told_with_bytes_and_leaves_nothing(tmp_path):
    documents = [np.zeros(1_000_000, dtype=np.uint16)] * 2
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(RecipeError, match=r"no space left .* bytes free") as refused:
            write_pool(tmp_path / "p", documents, vocab_size=10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "bytes needed" in str(refused.value)
    assert files_of(tmp_path) == []
    assert write_pool(tmp_path / "p", documents, vocab_size=10).stock == 2_000_000


ON_SMALL_DISKS = """
import subprocess, sys
from pathlib import Path
import numpy as np
from recipe.errors import RecipeError
from recipe.pools import write_pool
disk = Path(sys.argv[1])
tokens = [np.zeros(20, dtype=np.uint16)] * 5_000
for kilobytes in range(160, 560, 8):
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", disk]
    if subprocess.run(mount, capture_output=True).returncode:
        print("cannot mount"); sys.exit()
    told = "nothing"
    try:
        pool = write_pool(disk / "p", tokens, vocab_size=10, ids=[f"document {k}" for k in range(5_000)])
        assert pool.verify(full=True) == []
        pool.close()
    except RecipeError as error:
        told = "full" if "no space left" in str(error) else str(error)
    print(told, sorted(path.name for path in disk.iterdir()))
    subprocess.run(["umount", "-l", disk], check=True)
"""


def test_F06_on_real_small_disks(tmp_path):
    """Full within the tokens, the index, the rows, the table, the offsets, and at last large enough."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this machine")
    command = ["unshare", "-rm", sys.executable, "-c", ON_SMALL_DISKS, str(tmp_path)]
    seen = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot mount" in seen.stdout or "unshare" in seen.stderr:
        pytest.skip("this user cannot mount a small disk")
    assert seen.stderr == ""
    told = seen.stdout.splitlines()
    assert set(told) == {"full []", "nothing ['p']"}
    assert told == sorted(told)


def build(path: Path, start) -> str:
    start.wait()
    documents = [np.full(1000, number % 10) for number in range(300)]
    try:
        return write_pool(path, documents, vocab_size=10).fingerprint
    except RecipeError as error:
        return str(error)


def test_X01_of_many_builders_one_wins_and_the_others_are_told(tmp_path):
    context = multiprocessing.get_context("forkserver")
    with context.Manager() as manager, context.Pool(4) as builders:
        start = manager.Barrier(4)
        told = builders.starmap(build, [(tmp_path / "p", start)] * 4)
    pool = open_pool(tmp_path / "p", "p")
    others = [text for text in told if text != pool.fingerprint]
    assert len(others) == 3
    assert all("there already" in text or "being written by" in text for text in others)
    assert pool.verify(full=True) == [] and files_of(tmp_path) == ["p"]


HELD = """
import os, sys
from recipe.pools import PoolWriter
writer = PoolWriter(sys.argv[1], vocab_size=10, part_tokens=2)
for _ in range(5):
    writer.add([1, 2])
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_X04_a_live_writer_is_named_and_a_killed_one_is_no_obstacle(tmp_path):
    command = [sys.executable, "-c", HELD, str(tmp_path / "p")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        number = holder.stdout.readline().strip()
        with pytest.raises(RecipeError, match=f"being written by .* process {number}"):
            write_pool(tmp_path / "p", DOCUMENTS, vocab_size=10)
        holder.kill()
    assert bodies(write_pool(tmp_path / "p", DOCUMENTS, vocab_size=10)) == DOCUMENTS
    assert files_of(tmp_path) == ["p"]


def test_rows_are_found_over_many_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.pools.table.ROW_GROUP", 4)
    ids = [f"d{k}" if k % 3 else k for k in range(50)]
    groups = [k // 5 for k in range(50)]
    pool = write_pool(
        tmp_path / "p", [[k] for k in range(50)], vocab_size=50, ids=ids, groups=groups, part_tokens=7
    )
    asked = [49, 0, 13, 13, 31, 4]
    assert pool.ids(asked) == [ids[k] for k in asked]
    assert [(row.document, row.id, row.group, row.tokens) for row in pool.rows(asked)] == [
        (k, ids[k], groups[k], 1) for k in asked
    ]
    assert [pool.find(key) for key in ids] == list(range(50))
    assert pool.units.tolist() == list(range(0, 51, 5))
    assert pool.verify(full=True) == []


def test_Z01_a_document_costs_less_than_forty_bytes_beside_its_tokens(tmp_path):
    count = 30_000
    tags = [{"lang": "en", "licence": "mit"}] * count
    ids = [f"repository/file_{k}.py" for k in range(count)]
    write_pool(tmp_path / "p", [[k % 7] for k in range(count)], vocab_size=10, ids=ids, tags=tags)
    beside = sum(
        path.stat().st_size for path in (tmp_path / "p").iterdir() if not path.name.startswith("part-")
    )
    assert beside <= 40 * count


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecipeError, match=r"Not a directory|File exists"):
        write_pool(tmp_path / "file" / "p", [[1]], vocab_size=10)
