"""Nothing new is written into the folder of a pool, whichever verb is asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipe import write_pool
from recipe.cli.main import main

VERBS = {
    # OUT stands where the folder does
    "dedup": "pools dedup pools/a pools/b --out OUT",
    "dedup of what is inside": "pools dedup pools/a/nested --out OUT",
    "split": "pools split pools/b --into train=50%,test=50% --out OUT",
    "repart": "pools repart pools/b --part-tokens 100 --out OUT",
    "withdraw": "pools withdraw pools/b --document 3 --reason asked --out OUT",
    "withdraw --renumber": "pools withdraw pools/b --document 3 --reason asked --renumber --out OUT",
    "texts": "pools texts pools/c --out OUT",
    "export": "export pools/b --format npy --out OUT",
    "prepare": "prepare OUT text",
    "prepare --split": "prepare OUT text --split train=50%,test=50%",
}


@pytest.fixture
def files(in_tmp: Path, capsys) -> set[Path]:
    for name, first in (("a", 0), ("b", 100), ("a/nested", 200)):
        documents = [[n, n + 1] for n in range(first, first + 20)]
        write_pool(in_tmp / "new", documents, vocab_size=300, eos=299)
        (in_tmp / "pools").mkdir(exist_ok=True)
        (in_tmp / "new").rename(in_tmp / "pools" / name)
    (in_tmp / "text").mkdir()
    for n in range(9):
        (in_tmp / f"text/{n}.txt").write_text(f"text number {n}")
    assert main(["prepare", "pools/c", "text"]) == 0
    capsys.readouterr()
    return set(in_tmp.rglob("*"))


@pytest.mark.parametrize("inside", ["pools/a/deep", "pools/a/deep/er"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_nothing_is_written_into_a_pool(files, in_tmp, capsys, verb, inside):
    assert main(verb.replace("OUT", inside).split()) == 2
    told = capsys.readouterr().err
    assert "a folder inside the pool" in told and "a pool stays as it is" in told
    assert set(in_tmp.rglob("*")) == files


@pytest.mark.parametrize("verb", ["dedup", "split"])
def test_a_pool_is_no_folder_for_pools(files, in_tmp, capsys, verb):
    assert main(VERBS[verb].replace("OUT", "pools/a").split()) == 2
    assert "inside the pool" in capsys.readouterr().err
    assert set(in_tmp.rglob("*")) == files
