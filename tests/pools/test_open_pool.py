"""Opening own pools: cheap, lazy, and never a pool that is not whole."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import resource
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool, write_pool
from recipe.pools.card import content_hash
from tests.pools.sparse import sparse_pool

DOCUMENTS = [[k, k + 1, k + 2] for k in range(20)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pool(
        tmp_path / "p", DOCUMENTS, vocab_size=100, eos=0, ids=[f"d{k}" for k in range(20)], part_tokens=16
    )
    return tmp_path / "p"


def change_card(folder: Path, **changes: object) -> None:
    """Another card with a hash that fits it."""
    plain = {**json.loads((folder / "card.json").read_text()), **changes}
    plain.pop("hash")
    plain["hash"] = content_hash(plain)
    (folder / "card.json").write_text(json.dumps(plain))


def test_C05_a_missing_pool_is_named(tmp_path):
    with pytest.raises(RecipeError, match=r"pool third: 1 problem\n  .*nowhere\n    given     no pool"):
        open_pool(tmp_path / "nowhere", "third")


@pytest.mark.parametrize("kept", ["part-00000.*", "offsets.npy", "documents.parquet", "*"])
def test_C05_a_pool_without_its_card_is_unfinished(folder, kept):
    (folder / "card.json").unlink()
    for path in set(folder.iterdir()) - set(folder.glob(kept)):
        path.unlink()
    with pytest.raises(RecipeError, match="without its card"):
        open_pool(folder, "p")


def test_C05_a_folder_of_pools_is_not_a_pool(folder):
    with pytest.raises(RecipeError, match="a folder that holds the pool p"):
        open_pool(folder.parent, "all")


def test_C05_a_folder_of_several_pools_names_each_and_the_set_of_them(folder):
    shutil.copytree(folder, folder.parent / "q")
    with pytest.raises(RecipeError, match="the 2 pools p, q") as refused:
        open_pool(folder.parent, "all")
    assert f"path: {folder.parent}/*" in refused.value.problems[0].fix


def test_C05_the_folder_of_a_pool_being_written_is_refused(folder):
    (folder / "settings.json").touch()
    with pytest.raises(RecipeError, match="never finished") as caught:
        open_pool(folder, "p")
    assert f"rm -r {shlex.quote(str(folder))}" in caught.value.problems[0].fix


@pytest.mark.parametrize(
    "file", ["part-00001.bin", "part-00003.idx", "offsets.npy", "hashes.npy", "documents.parquet"]
)
@pytest.mark.parametrize("change", ["empty", "shorter", "longer", "missing"])
def test_F02_a_file_of_another_size_is_named(folder, file, change):
    data = (folder / file).read_bytes()
    if change == "missing":
        (folder / file).unlink()
    else:
        (folder / file).write_bytes({"empty": b"", "shorter": data[:-1], "longer": data + b"x"}[change])
    with pytest.raises(RecipeError) as refused:
        open_pool(folder, "p")
    assert file in str(refused.value) and f"{len(data)} bytes" in str(refused.value)
    if change == "empty":
        assert "an empty file (0 bytes)" in str(refused.value)


def test_F02_every_damaged_file_is_told_at_once(folder):
    for file in ("part-00001.bin", "part-00002.bin"):
        (folder / file).write_bytes(b"")
    with pytest.raises(RecipeError) as refused:
        open_pool(folder, "p")
    assert len(refused.value.problems) == 2


def test_a_file_cut_after_opening_is_refused_when_read(folder):
    pool = open_pool(folder, "p")
    (folder / "part-00000.bin").write_bytes(b"")
    with pytest.raises(RecipeError, match=r"part-00000\.bin\n    given     an empty file"):
        pool.tokens(0)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}'])
def test_a_card_that_is_none_is_refused(folder, text):
    (folder / "card.json").write_text(text)
    with pytest.raises(RecipeError, match=r"card\.json\n    given     unreadable"):
        open_pool(folder, "p")


def test_any_change_of_the_card_is_noticed(folder):
    text = (folder / "card.json").read_text()
    (folder / "card.json").write_text(text.replace('"body_tokens": 60', '"body_tokens": 61'))
    with pytest.raises(RecipeError, match="contents with hash"):
        open_pool(folder, "p")


def test_an_unknown_format_is_told_by_number(folder):
    change_card(folder, format=2)
    with pytest.raises(RecipeError, match=r"format 2\n    expected  format 1"):
        open_pool(folder, "p")


@pytest.mark.parametrize("changes", [{"new": 1}, {"max_id": {"id": 3}}])
def test_a_card_with_other_fields_is_refused(folder, changes):
    change_card(folder, **changes)
    with pytest.raises(RecipeError, match="fields that do not fit"):
        open_pool(folder, "p")


@pytest.mark.parametrize("at", [0, -1])
def test_offsets_that_contradict_the_card_are_refused(folder, at):
    offsets = np.load(folder / "offsets.npy")
    offsets[at] += 1
    np.save(folder / "offsets.npy", offsets)
    with pytest.raises(RecipeError, match=r"offsets\.npy"):
        _ = open_pool(folder, "p").offsets


def test_F03_an_array_of_another_type_is_not_read_as_raw_numbers(folder):
    np.save(folder / "offsets.npy", np.load(folder / "offsets.npy").astype(np.float64))
    with pytest.raises(RecipeError, match=r"float64\[21\]\n    expected  int64\[21\]"):
        _ = open_pool(folder, "p").offsets


def test_marks_of_the_recipe_must_be_the_cards(folder):
    assert open_pool(folder, "p", eos=0).eos == 0
    with pytest.raises(RecipeError) as refused:
        open_pool(folder, "p", eos=5, bos=1)
    assert [problem.where for problem in refused.value.problems] == ["pools.p.eos", "pools.p.bos"]


@pytest.mark.parametrize(("limit", "passes"), [(22, True), (21, False)])
def test_N07_ids_beyond_the_model_are_placed(folder, limit, passes):
    problems = open_pool(folder, "a").check_ids(limit)
    assert (problems == []) == passes
    if not passes:
        assert problems[0].where == "pools.a"
        assert problems[0].given == f"id 21 at position 14 of {folder / 'part-00004.bin'}"
        assert problems[0].expected == "ids in 0..20"


def test_tokens_and_parts_agree(folder):
    pool = open_pool(folder, "p")
    assert pool.part_documents.tolist() == [0, 4, 8, 12, 16, 20]
    assert pool.part_offsets.tolist() == pool.offsets[pool.part_documents].tolist()
    joined = np.concatenate([pool.part(k) for k in range(pool.num_parts)]).tolist()
    assert joined == [token for tokens in DOCUMENTS for token in (*tokens, 0)]
    assert [pool.tokens(k).tolist() for k in range(20)] == DOCUMENTS


def test_tokens_are_read_only(folder):
    with pytest.raises(ValueError, match="read-only"):
        open_pool(folder, "p").part(0)[0] = 1


def test_a_document_that_is_not_there_is_the_callers_fault(folder):
    for ask in (lambda p: p.tokens(20), lambda p: p.ids([-1]), lambda p: p.rows([3, 20])):
        with pytest.raises(IndexError, match="a pool with 20"):
            ask(open_pool(folder, "p"))


def test_a_closed_pool_opens_again(folder):
    with open_pool(folder, "p") as pool:
        first = pool.tokens(0)
    assert first.tolist() == pool.tokens(0).tolist() == DOCUMENTS[0]


def contents(pool) -> list[object]:
    return [pool.fingerprint, pool.ids(range(20)), [pool.tokens(k).tolist() for k in range(20)]]


def test_a_pickled_pool_is_the_same_pool(folder):
    pool = open_pool(folder, "p", eos=0)
    assert contents(pickle.loads(pickle.dumps(pool))) == contents(pool)


def test_a_pickled_pool_is_refused_where_another_stands(folder):
    pickled = pickle.dumps(open_pool(folder, "p"))
    shutil.rmtree(folder)
    write_pool(folder, DOCUMENTS[:-1], vocab_size=100)
    with pytest.raises(RecipeError, match="a pool with fingerprint"):
        pickle.loads(pickled)


def test_many_threads_may_open_a_pool_at_once(folder):
    pool = open_pool(folder, "p")
    with ThreadPoolExecutor(8) as threads:
        assert len({str(found) for found in threads.map(lambda _: contents(pool), range(50))}) == 1


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_X03_processes_share_a_pool(folder, method):
    pool = open_pool(folder, "p")
    with multiprocessing.get_context(method).Pool(2) as processes:
        assert processes.map(contents, [pool] * 4) == [contents(pool)] * 4


FORKED = """
import os, sys
from recipe.pools import open_pool
pool = open_pool(sys.argv[1], "p")
before = [pool.tokens(3).tolist(), pool.ids([3])]
sys.stdout.flush()
child = os.fork()
assert [pool.tokens(3).tolist(), pool.ids([3])] == before and pool.tokens(19).tolist() == [19, 20, 21]
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("fine")
"""


def test_X03_a_pool_goes_on_after_a_fork(folder):
    seen = subprocess.run(
        [sys.executable, "-c", FORKED, str(folder)], capture_output=True, text=True, check=False
    )
    assert (seen.stdout.count("fine"), seen.stderr) == (1, "")


def test_A02_the_split_into_parts_changes_no_document(tmp_path):
    few = write_pool(tmp_path / "few", DOCUMENTS, vocab_size=100, part_tokens=40)
    many = write_pool(tmp_path / "many", DOCUMENTS, vocab_size=100, part_tokens=3)
    assert (few.num_parts, many.num_parts) == (2, 20)
    assert few.offsets.tolist() == many.offsets.tolist()
    assert (few.stock, few.extent_units) == (many.stock, many.extent_units)


OPENED = """
import os, resource, sys
from pathlib import Path
soft, hard = int(sys.argv[2]), int(sys.argv[3])
import numpy as np, pyarrow.parquet
from recipe.errors import RecipeError
from recipe.pools import open_pool
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
opened = []
def note(event, values):
    if event == "open" and isinstance(values[0], (str, os.PathLike)) and sys.argv[1] in str(values[0]):
        opened.append(Path(values[0]).name)
sys.addaudithook(note)
pools = [open_pool(path, path.name) for path in sorted(Path(sys.argv[1]).iterdir())]
for pool in pools:
    pool.offsets, pool.units, pool.stored_marks(np.arange(3)), pool.stock, pool.part_offsets
print(len(opened) / len(pools), sorted(set(opened)))
try:
    print(sum(len(pool.part(k)) for pool in pools for k in range(pool.num_parts)))
except RecipeError as error:
    print(error)
"""


def run_with_limits(folder: Path, soft: int, hard: int) -> list[str]:
    command = [sys.executable, "-c", OPENED, str(folder), str(soft), str(hard)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_at_most_three_files_are_opened_before_tokens_are_read(tmp_path):
    """Ten pools of 200 parts, and then all parts at once with room for 128 open files at first."""
    write_pool(
        tmp_path / "p0", [[1, 2]] * 200, vocab_size=10, groups=[k // 2 for k in range(200)], part_tokens=2
    )
    for k in range(1, 10):
        shutil.copytree(tmp_path / "p0", tmp_path / f"p{k}")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened, tokens = run_with_limits(tmp_path, 128, min(hard, 4096))
    assert opened == "3.0 ['card.json', 'offsets.npy', 'units.npy']"
    assert tokens == "4000"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="mappings keep no descriptor there")
def test_a_limit_of_open_files_that_cannot_be_raised_is_told(tmp_path):
    write_pool(tmp_path / "p", [[1, 2]] * 200, vocab_size=10, part_tokens=2)
    assert "too many open files" in "\n".join(run_with_limits(tmp_path, 64, 64))


def test_N05_a_pool_of_three_thousand_million_tokens_counts_right(tmp_path):
    pool = sparse_pool(tmp_path / "p", 300_000, 10_000, num_parts=2)
    assert pool.stock == pool.offsets[-1] == 3_000_000_000
    assert pool.part_offsets.tolist() == [0, 1_500_000_000, 3_000_000_000]
    assert len(pool.tokens(299_999)) == 10_000
    assert pool.extent_units == 128


def test_Z01_opening_a_large_pool_copies_no_index(tmp_path):
    """Offsets stay in the file: what one process maps, others share."""
    pool = sparse_pool(tmp_path / "p", 1_000_000, 100)
    assert pool.offsets.base is not None and not pool.offsets.flags.owndata
    assert pool.ids([999_999]) == [999_999]
    assert pool.verify(sample=5) == []


@pytest.mark.parametrize("change", [1, -1, 10**15])
def test_boundaries_that_were_changed_are_refused_when_they_are_first_read(tmp_path, change):
    write_pool(tmp_path / "p", [[1, 2, 3]] * 9, vocab_size=9)
    with (tmp_path / "p" / "offsets.npy").open("r+b") as file:
        file.seek(-16, 2)
        value = int.from_bytes(file.read(8), "little") + change
        file.seek(-16, 2)
        file.write(value.to_bytes(8, "little"))
    with pytest.raises(RecipeError, match="contents with hash"):
        _ = open_pool(tmp_path / "p", "p").offsets
