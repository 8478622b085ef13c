"""Files that `recipe export POOL` wrote are read as their manifest says, in every format."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.audit.leakage import Search, find_leakage
from recipe.cli.main import main
from recipe.errors import RecipeError
from recipe.integrations.exporting import PoolWanted, export_pool
from recipe.pools import Pool, open_pool
from recipe.pools.foreign.form import Form
from recipe.pools.overlap import find_overlap

BODIES = [[1, 2, 3], [4, 5], [], [7] * 9]
FORMATS = ["parquet", "datatrove", "npy", "megatron", "mds"]


def export(format: str, out: str = "out", **marks: int) -> Pool:
    """A pool, and its export in a folder."""
    path = f"pools/{out}"
    recipe.write_pool(path, BODIES, vocab_size=60, **marks).close()
    pool = open_pool(path, "own")
    export_pool(pool, out, PoolWanted(format=format, lossy=True))  # type: ignore[arg-type]
    return pool


@pytest.mark.parametrize("format", FORMATS)
def test_marks_are_those_of_the_manifest(in_tmp, format):
    export(format, eos=49, bos=48)
    with open_pool("out", "exported") as pool:
        assert (pool.bos, pool.eos) == (48, 49)
        assert (pool.layout.bos_stored, pool.layout.eos_stored) == ("all", "all")
        assert (pool.card.body_tokens, pool.card.special_tokens) == (14, 8)
        assert [pool.tokens(number).tolist() for number in range(4)] == BODIES
        again = pickle.loads(pickle.dumps(pool))
        assert (again.eos, again.fingerprint) == (49, pool.fingerprint)


@pytest.mark.parametrize("format", FORMATS)
def test_all_that_leaks_is_found_without_a_word_of_marks(in_tmp, format):
    own = export(format, eos=49)
    with open_pool("out", "exam") as held:
        found = find_leakage({"own": own}, {"exam": held}, Search(ngram=50))
        overlap = find_overlap([own, held])
    assert found.held["exam"].leaked_documents == 3  # all that hold a token
    assert found.held["exam"].tokens == 14
    assert overlap.documents.tolist()[0][1] == overlap.documents.tolist()[1][0] > 0


@pytest.mark.parametrize("format", FORMATS)
def test_another_mark_than_the_manifest_says_is_refused(in_tmp, format):
    export(format, eos=49)
    with pytest.raises(RecipeError) as caught:
        open_pool("out", "exported", eos=3)
    (problem,) = caught.value.problems
    assert problem.where == "pools.exported.eos" and "49, as out/_manifest.json" in problem.expected
    open_pool("out", "exported", eos=49).close()


def test_a_mark_that_is_not_stored_is_looked_for_in_no_document(in_tmp):
    recipe.write_pool("pools/a", [[1, 49], [2]], vocab_size=60, eos=49).close()
    export_pool(open_pool("pools/a", "a"), "out", PoolWanted(format="parquet"))
    said = json.loads(Path("out/_manifest.json").read_text())
    said["marks"]["eos_stored"] = "none"
    Path("out/_manifest.json").write_text(json.dumps(said))
    with open_pool("out", "a") as pool:
        assert pool.card.special_tokens == 0


@pytest.mark.parametrize("place", ["out", "out/tokens-00000.npy", "out/tokens-*.npy"])
def test_lists_of_an_npy_export_are_read_however_it_is_named(in_tmp, place):
    own = export("npy", eos=49)
    with open_pool(place, "exported") as pool:
        assert pool.eos == 49 and np.diff(pool.offsets).tolist() == np.diff(own.offsets).tolist()
    with open_pool("out", "said", eos=49, form=Form(boundaries=".offsets.npy")) as said:
        assert said.fingerprint == pool.fingerprint


def test_a_file_that_is_another_than_the_manifest_lists_is_refused(in_tmp):
    export("npy", eos=49)
    np.save("out/tokens-00000.npy", np.arange(5, dtype=np.uint16))
    with pytest.raises(RecipeError, match=r"_manifest.json beside it says"):
        open_pool("out", "exported")


def test_files_of_others_beside_an_export_need_a_word(in_tmp):
    export("parquet", eos=49)
    Path("out/documents-00001.parquet").write_bytes(Path("out/documents-00000.parquet").read_bytes())
    with pytest.raises(RecipeError, match=r"eos: 49 if that is true of it too"):
        open_pool("out", "mixed")
    with open_pool("out", "mixed", eos=49) as pool:
        assert (pool.num_documents, pool.card.special_tokens) == (8, 8)


def test_exports_that_differ_in_their_marks_are_no_pool_together(in_tmp):
    export("parquet", "all/a", eos=49)
    export("parquet", "all/b", eos=50)
    with pytest.raises(RecipeError, match=r"name the exports as pools of their own"):
        open_pool("all", "both")


def test_a_manifest_of_another_program_says_nothing(in_tmp):
    export("parquet", eos=49)
    Path("out/_manifest.json").write_text('{"files": {"documents-00000.parquet": {"bytes": 1}}}')
    with open_pool("out", "a") as pool:
        assert pool.eos is None


def test_the_command_finds_what_leaks_into_an_export(in_tmp, capsys):
    export("npy", eos=49).close()
    stage = {"steps": 2, "context": 8, "batch": {"sequences": 1}, "quotas": {"own": "100%"}}
    said = {"seed": 1, "pools": {"own": {"path": "pools/out"}}, "stages": {"one": stage}}
    Path("r.yaml").write_text(json.dumps(said))
    assert main(["audit", "leakage", "r.yaml", "--against", "out"]) == 1
    assert "3 places where held-out text is trained on" in capsys.readouterr().out
