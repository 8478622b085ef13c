"""Runs over token files that somebody else made: planned, cut, resumed, audited, traced as over own pools."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import recipe
from recipe.config import Recipe, recipe_from_plain
from recipe.integrations.acceptance import verify_package
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.handover.delivery import Wanted
from tests.pools.megatron_files import write_pair
from tests.run.conftest import served, stage

EOS = 0
DOCUMENTS = [np.random.default_rng(number).integers(1, 500, number % 37 + 1).tolist() for number in range(90)]
STORED = [[*document, EOS] for document in DOCUMENTS]
HALVES = [STORED[:40], STORED[40:]]
WHY = Approval(reason="more", approved_by="Ada")
Write = Callable[[Path], dict[str, Any]]


def _flat(folder: Path, dtype: str, ending: str) -> None:
    for number, half in enumerate(HALVES):
        tokens = np.array([token for document in half for token in document], dtype)
        path = folder / f"{number}.{ending}"
        np.save(path, tokens) if ending == "npy" else tokens.tofile(path)


def pairs(folder: Path) -> dict[str, Any]:
    for number, half in enumerate(HALVES):
        write_pair(folder / str(number), [[document] for document in half], 8)
    return {}


def npy(folder: Path) -> dict[str, Any]:
    _flat(folder, "uint16", "npy")
    return {}


def raw(folder: Path) -> dict[str, Any]:
    _flat(folder, "uint32", "bin")
    return {"dtype": "uint32"}


def listed(folder: Path) -> dict[str, Any]:
    _flat(folder, "int32", "npy")
    for number, half in enumerate(HALVES):
        ends = np.cumsum([len(document) for document in half])
        np.array([0, *ends], np.int64).tofile(folder / f"{number}.offsets")
    return {"boundaries": ".offsets"}


def datatrove(folder: Path) -> dict[str, Any]:
    _flat(folder, "uint16", "ds")
    for number, half in enumerate(HALVES):
        ends = np.cumsum([len(document) for document in half])
        ends.astype("<u8").tofile(folder / f"{number}.ds.index")
    return {}


def parquet(folder: Path) -> dict[str, Any]:
    for number, half in enumerate(HALVES):
        ids = pa.array(half, pa.list_(pa.int64()))
        mask = pa.array([[1] * len(document) for document in half])
        pq.write_table(pa.table({"input_ids": ids, "attention_mask": mask}), folder / f"{number}.parquet")
    return {"column": "input_ids"}


def arrow(folder: Path) -> dict[str, Any]:
    """Packed rows of twenty tokens: documents lie across them."""
    stream = [token for document in STORED for token in document]
    rows = [stream[start : start + 20] for start in range(0, len(stream), 20)]
    table = pa.table({"input_ids": pa.array(rows, pa.list_(pa.int32()))})
    with pa.OSFile(str(folder / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    return {"documents": "eos"}


def mapped(folder: Path) -> dict[str, Any]:
    """Rows that are documents, in batches that are mapped where they lie."""
    table = pa.table({"input_ids": pa.array(STORED, pa.list_(pa.int64()))})
    with pa.OSFile(str(folder / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    return {}


def mds(folder: Path) -> dict[str, Any]:
    """Two shards of samples with a column of the type and shape of nothing else, after the format."""
    shards = []
    for number, half in enumerate(HALVES):
        samples = [bytes([1 << 2, len(d)]) + np.array(d, "<u2").tobytes() for d in half]
        samples = [struct.pack("<I", len(sample)) + sample for sample in samples]
        head = 4 + 4 * (len(samples) + 1)
        ends = np.cumsum([head, *map(len, samples)]).astype("<u4")
        data = struct.pack("<I", len(samples)) + ends.tobytes() + b"".join(samples)
        name = f"shard.{number:05d}.mds"
        (folder / name).write_bytes(data)
        shards.append({
            "column_names": ["tokens"], "column_encodings": ["ndarray:uint16"], "column_sizes": [None],
            "compression": None, "format": "mds", "raw_data": {"basename": name, "bytes": len(data)},
            "samples": len(samples), "version": 2, "zip_data": None,
        })  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    return {}


ENDINGS = {".bin", ".npy", ".ds", ".parquet", ".arrow", ".mds"}
KINDS: list[Write] = [pairs, npy, raw, listed, datatrove, parquet, arrow, mapped, mds]


@pytest.fixture(params=KINDS, ids=lambda write: write.__name__)
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """A recipe over files of a kind and an own pool."""
    (tmp_path / "files").mkdir()
    said = request.param(tmp_path / "files")
    return over(tmp_path, {"path": "files", "eos": EOS, **said})


def over(root: Path, pool: dict[str, Any]) -> dict[str, Any]:
    """A recipe of two stages over a pool ``a`` and an own pool ``b``."""
    if not (root / "b").exists():
        recipe.write_pool(root / "b", [[7] * 9] * 30, vocab_size=500, eos=EOS)
    quotas = {"a": "61.6%", "b": "38.4%"}
    one = stage(tokens=700, context=16, chunk=150, quotas=quotas)
    two = stage(tokens=900, context=32, chunk=200, quotas=quotas, slicing={"stride": 24})
    return {
        "seed": 1, "pools_root": str(root), "model": {"vocab_size": 500}, "max_epochs": 9,
        "pools": {"a": pool, "b": {"path": "b"}}, "stages": {"one": one, "two": two},
    }  # fmt: skip


def read(plain: dict[str, Any]) -> Recipe:
    return recipe_from_plain(plain, source="test")


def test_the_same_documents_in_an_own_pool_make_the_same_batches(plain, tmp_path):
    """Every kind of file: the order is keyed on the name of the pool alone."""
    recipe.write_pool(tmp_path / "own", DOCUMENTS, vocab_size=500, eos=EOS)
    with recipe.start_run(read(over(tmp_path, {"path": "own"})), tmp_path / "one") as own:
        expected = served(own.stream(), 0)
    with recipe.start_run(read(plain), tmp_path / "two") as run:
        assert served(run.stream(), 0) == expected


def test_a_plan_knows_their_stock(plain):
    plan = recipe.make_plan(read(plain))
    assert plan.problems == ()
    assert plan.opened["a"].stock == sum(map(len, DOCUMENTS))
    assert any("decoded into" in warning for warning in plan.warnings) == (
        "column" in plain["pools"]["a"] or "documents" in plain["pools"]["a"] or is_mds(plain)
    )


def is_mds(plain: dict[str, Any]) -> bool:
    return (Path(plain["pools_root"]) / "files" / "index.json").exists()


def test_a_run_is_resumed_audited_and_traced(plain, tmp_path):
    path = tmp_path / "run"
    with recipe.start_run(read(plain), path) as run:
        whole = served(run.stream(), 0)
        state = run.state(5)
        run.checkpoint(step=5)
    assert served(recipe.stream_from(state), 5) == whole[5:]
    with recipe.open_run(path) as run:
        assert run.step == 5 and served(run.stream(), 5) == whole[5:]
        run.checkpoint(step=run.num_steps)
    audit = recipe.audit_run(path, full=True, workers=1)
    assert audit.findings == ()
    for row in (0, 1, 2):
        for piece in recipe.trace_row(path, 3, row):
            if piece.pool == "a":
                again = recipe.trace_document(path, piece.document, pool="a")
                assert (3, row) in {(reading.step, reading.row) for reading in again}


def test_C07_changed_files_are_refused_at_resume(plain, tmp_path):
    path = tmp_path / "run"
    with recipe.start_run(read(plain), path) as run:
        run.checkpoint(step=5)
    file = next(file for file in sorted((tmp_path / "files").iterdir()) if file.suffix in ENDINGS)
    data = bytearray(file.read_bytes())
    place = len(data) // 2
    data[place] ^= 1
    file.write_bytes(data)
    with pytest.raises(recipe.RecipeError) as refused:
        recipe.open_run(path)
    assert "pools.a" in str(refused.value)


def test_N07_ids_beyond_the_model_are_refused_by_plan(plain):
    plain["model"] = {"vocab_size": 400}
    with_problems = recipe.make_plan(read(plain))
    (problem,) = with_problems.problems
    assert problem.where == "pools.a" and "at position" in str(problem.given)


def test_a_run_that_was_killed_goes_on(tmp_path):
    """The process ends at once, whatever it was doing."""
    (tmp_path / "files").mkdir()
    plain = over(tmp_path, {"path": "files", "eos": EOS, **npy(tmp_path / "files")})
    with recipe.start_run(read(plain), tmp_path / "whole") as run:
        whole = served(run.stream(), 0)
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(plain))
    code = (
        "import os, sys, recipe\n"
        "run = recipe.start_run(recipe.load_recipe(sys.argv[1]), sys.argv[2])\n"
        "for step, _ in run.stream().batches(0, read_ahead=0):\n"
        "    if step == 7:\n        run.checkpoint(step=7)\n"
        "    if step == 9:\n        os.kill(os.getpid(), 9)\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "recipe.yaml"), str(tmp_path / "run")]
    done = subprocess.run(words, check=False, env={**os.environ})
    assert done.returncode == -signal.SIGKILL
    with recipe.open_run(tmp_path / "run") as run:
        assert run.step == 7 and served(run.stream(), 7) == whole[7:]


def test_their_files_travel_in_a_package(plain, tmp_path):
    """With whatever is needed to read them; what is derived from them is made again there."""
    with recipe.start_run(read(plain), tmp_path / "run") as run:
        expected = run.stream().ground.pools[0].fingerprint
        run.checkpoint(step=5)
    package = recipe.hand_over_run(tmp_path / "run", tmp_path / "p", Wanted(archive="none", tokens=True))
    (folder,) = {path.parent for path in package.path.rglob("files/*") if path.suffix in ENDINGS}
    again = read({**plain, "pools": {**plain["pools"], "a": {**plain["pools"]["a"], "path": str(folder)}}})
    assert recipe.make_plan(again).opened["a"].fingerprint == expected
    assert verify_package(package.path).ok


def test_files_are_named_by_a_pattern_and_viewed_by_length(tmp_path):
    (tmp_path / "files").mkdir()
    npy(tmp_path / "files")
    (tmp_path / "files" / "notes.parquet").touch()
    plain = over(tmp_path, {"path": "files/*.npy", "eos": EOS, "max_tokens": 20})
    plain["pools"]["long"] = {"of": "a", "min_tokens": 21}
    for one in plain["stages"].values():
        one["quotas"] = {"a": "40%", "b": "20%", "long": "40%"}
    plan = recipe.make_plan(read(plain))
    short, long = (plan.opened[name].num_documents for name in ("a", "long"))
    assert (short, long) == (sum(len(d) <= 20 for d in DOCUMENTS), sum(len(d) > 20 for d in DOCUMENTS))
    with recipe.start_run(read(plain), tmp_path / "run") as run:
        run.checkpoint(step=5)
    assert recipe.audit_run(tmp_path / "run", full=True, workers=1).findings == ()


def test_an_increment_behind_the_files_is_taken_up_by_an_amendment(tmp_path):
    """A file that sorts behind the others: the pool has grown, and the reading goes on."""
    (tmp_path / "files").mkdir()
    plain = over(tmp_path, {"path": "files", "eos": EOS, **npy(tmp_path / "files")})
    with recipe.start_run(read(plain), tmp_path / "run") as run:
        run.checkpoint(step=5)
    shutil.copytree(tmp_path / "files", tmp_path / "more")
    np.save(tmp_path / "more" / "2.npy", np.array([1, 2, 3, EOS] * 50, np.uint16))
    amend_run(tmp_path / "run", ["pools.a.path=more"], approval=WHY, opens="next-epoch")
    with recipe.open_run(tmp_path / "run") as run:
        assert run.step == 5
        run.checkpoint(step=run.num_steps)
    assert recipe.audit_run(tmp_path / "run", full=True, workers=1).findings == ()
