"""What is derived from token files: built once, found by content, in a place where one can write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.foreign.sidecar import derived

ASK = """\
import hashlib, os, sys, time
from pathlib import Path
from recipe.pools.foreign.sidecar import derived

folder, number = Path(sys.argv[1]), sys.argv[2]

def build(paths):
    with (folder / "builds").open("a") as file:
        file.write(number + "\\n")
    paths[0].write_bytes(b"half")
    while len(list(folder.glob("started-*"))) < 8:
        time.sleep(0.01)
    paths[0].write_bytes(b"half and half")

(folder / f"started-{number}").touch()
(path,) = derived(folder / "a.npy", "key", ["ends"], build)
print(hashlib.sha256(path.read_bytes()).hexdigest())
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "token-recipe"


def tokens(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    np.array([1, 0, 2, 0], np.uint16).tofile(path)
    return path


def test_X01_of_eight_processes_on_an_empty_cache_one_builds_and_all_read_the_same(tmp_path):
    """The one that builds does not finish before the others have asked."""
    words = [sys.executable, "-c", ASK, str(tmp_path)]
    asking = [
        subprocess.Popen([*words, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(8)
    ]
    answers = [process.communicate() for process in asking]
    assert [error for _, error in answers] == [""] * 8
    assert len({digest for digest, _ in answers}) == 1 and answers[0][0]
    assert len((tmp_path / "builds").read_text().split()) == 1
    assert [path.name for path in (tmp_path / ".recipe").iterdir()] == ["a.npy.key.ends"]


def test_it_lies_beside_the_file_and_is_found_again(tmp_path, cache):
    path = tokens(tmp_path / "data" / "a.u16")
    open_pool(path, "p", eos=0)
    (kept,) = (path.parent / ".recipe").iterdir()
    before = kept.stat().st_mtime_ns
    open_pool(path, "p", eos=0)
    assert kept.stat().st_mtime_ns == before and not cache.exists()


def test_where_the_folder_cannot_be_written_it_lies_in_the_users_cache(tmp_path, cache):
    """A file in the way of the folder stands for a disk that is read-only."""
    path = tokens(tmp_path / "data" / "a.u16")
    (path.parent / ".recipe").touch()
    assert open_pool(path, "p", eos=0).num_documents == 2
    assert [file.suffix for file in cache.iterdir()] == [".ends"]


def test_a_place_that_is_named_is_taken_before_all(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("RECIPE_CACHE", str(tmp_path / "mine"))
    path = tokens(tmp_path / "data" / "a.u16")
    open_pool(path, "p", eos=0)
    assert [file.suffix for file in (tmp_path / "mine").iterdir()] == [".ends"]
    assert not cache.exists() and not (path.parent / ".recipe").exists()


def test_no_place_to_write_is_told_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv("RECIPE_CACHE", str(tmp_path / "file" / "below"))
    (tmp_path / "file").touch()
    with pytest.raises(RecipeError, match="RECIPE_CACHE=FOLDER"):
        open_pool(tokens(tmp_path / "a.u16"), "p", eos=0)


def test_C07_one_of_an_older_content_is_never_taken(tmp_path):
    """The same size, the same time of change: only the tokens are others."""
    path = tokens(tmp_path / "a.u16")
    state = path.stat()
    assert open_pool(path, "p", eos=0).offsets.tolist() == [0, 2, 4]
    np.array([1, 2, 3, 0], np.uint16).tofile(path)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert open_pool(path, "p", eos=0).offsets.tolist() == [0, 4]


@pytest.mark.parametrize("place", [130, -40])
def test_where_documents_end_is_compared_with_its_hash(tmp_path, place):
    """A flipped bit in a file of ours: in the numbers, or in the hash itself."""
    open_pool(tokens(tmp_path / "a.u16"), "p", eos=0)
    (kept,) = (tmp_path / ".recipe").iterdir()
    data = bytearray(kept.read_bytes())
    data[place] ^= 1
    kept.write_bytes(data)
    pool = open_pool(tmp_path / "a.u16", "p", eos=0)
    with pytest.raises(RecipeError, match=r"with hash[\s\S]*remove a\.u16\."):
        _ = pool.offsets
    kept.unlink()
    assert open_pool(tmp_path / "a.u16", "p", eos=0).offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize("content", [b"", b"junk", slice(60), slice(130), slice(-40)], ids=str)
def test_one_that_is_no_longer_whole_is_to_be_removed_and_is_made_anew(tmp_path, content):
    """Empty, something else, or cut in the header, in the numbers or in the hash."""
    open_pool(tokens(tmp_path / "a.u16"), "p", eos=0)
    (kept,) = (tmp_path / ".recipe").iterdir()
    kept.write_bytes(content if isinstance(content, bytes) else kept.read_bytes()[content])
    with pytest.raises(RecipeError) as error:
        _ = open_pool(tmp_path / "a.u16", "p", eos=0).offsets
    (problem,) = error.value.problems
    assert problem.where == str(kept)
    assert problem.fix.startswith(f"remove {kept.name} and ")
    kept.unlink()
    assert open_pool(tmp_path / "a.u16", "p", eos=0).offsets.tolist() == [0, 2, 4]


def test_decoded_tokens_that_were_damaged_are_found_by_a_full_look(tmp_path):
    pq.write_table(pa.table({"input_ids": [[1, 2], [3]]}), tmp_path / "a.parquet")
    pool = open_pool(tmp_path, "p")
    (kept,) = (tmp_path / ".recipe").glob("*.tokens")
    kept.write_bytes(bytes([9]) + kept.read_bytes()[1:])
    assert pool.verify() == []
    (finding,) = pool.verify(full=True)
    assert finding.where == str(kept)


def test_a_builder_that_fails_leaves_nothing_and_the_next_one_builds(tmp_path):
    def fail(paths: tuple[Path, ...]) -> None:
        paths[0].write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        derived(tmp_path / "a", "key", ["ends"], fail)
    assert list((tmp_path / ".recipe").iterdir()) == []
    (path,) = derived(tmp_path / "a", "key", ["ends"], lambda paths: paths[0].write_bytes(b"whole") and None)
    assert path.read_bytes() == b"whole"


def test_one_that_was_killed_half_way_is_not_taken(tmp_path):
    """What a killed builder leaves has another name than what is looked for."""
    code = "import os, sys\nfrom pathlib import Path\nfrom recipe.pools.foreign.sidecar import derived\n" + (
        "def build(paths):\n    paths[0].write_bytes(b'half')\n    os.kill(os.getpid(), 9)\n"
        "derived(Path(sys.argv[1]), 'key', ['ends'], build)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False)
    assert done.returncode == -9
    assert [file.suffix for file in (tmp_path / ".recipe").iterdir()].count(".tmp") == 1
    (path,) = derived(tmp_path / "a", "key", ["ends"], lambda paths: paths[0].write_bytes(b"whole") and None)
    assert path.read_bytes() == b"whole"
    assert list((tmp_path / ".recipe").iterdir()) == [path]
