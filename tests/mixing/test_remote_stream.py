"""The stream over pools in a store: byte for byte that of pools on a disk, within the cache's bound."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import yaml

import recipe
from recipe.errors import RecipeError
from recipe.mixing.cursor_block import BlockCache
from recipe.mixing.fetching import Ahead
from recipe.mixing.loads import begun
from recipe.mixing.opening import open_pools, settle_with
from recipe.mixing.reader import Deal
from recipe.mixing.sheets import Library
from recipe.mixing.stream import Stream
from recipe.mixing.traffic import traffic_of
from recipe.pools.remote import asking
from recipe.pools.remote.cache import cache
from tests.mixing.build import make, stage
from tests.pools.loopback import Proxy, store, upload

STAGES = [
    stage(256, {"english": 3, "chinese": 1, "maths": 0}, batch=4, steps=60, slicing={"stride": 192}),
    stage(512, {"english": 1, "chinese": 1, "maths": 1}, batch=6, steps=30),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pools of other widths and marks."""
    root = tmp_path_factory.mktemp("pools")
    for k, (name, vocab, eos) in enumerate(
        (("english", 500, 1), ("chinese", 90_000, 1), ("maths", 250, None))
    ):
        draw = np.random.default_rng(k)
        documents = [draw.integers(2, vocab, n) for n in draw.integers(1, 2200, 400)]
        recipe.write_pool(root / name, documents, vocab_size=vocab, eos=eos, part_tokens=120_000)
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Proxy]:
    with store() as proxy:
        fsspec.filesystem("s3").mkdir("mixed")
        upload(folder, "s3://mixed")
        yield proxy


@pytest.fixture
def proxy(server: Proxy, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The server in order, and a cache of one hundredth of the pools."""
    monkeypatch.setenv("RECIPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RECIPE_CACHE_BYTES", str(pool_bytes(folder) // 100))
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.001)
    server.fault, server.latency = None, 0.0
    server.gets.clear()
    yield server
    server.fault = None


def pool_bytes(folder: Path) -> int:
    return sum(part.stat().st_size for part in folder.rglob("*.bin"))


def stream(
    root: str | Path, stages: Any = STAGES, pools: Mapping[str, Any] | None = None, **keys: Any
) -> Stream:
    names = pools or {"english": "english", "chinese": "chinese", "maths": "maths"}
    loaded = make(Path(root), names, stages, **keys)
    loaded = loaded.model_copy(update={"pools_root": str(root)})
    opened = open_pools(loaded)
    return Stream(settle_with(loaded, opened), opened)


def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert np.array_equal(found[name], array), name


def test_every_batch_is_that_of_pools_on_a_disk(folder: Path, proxy: Proxy):
    there, here = stream("s3://mixed").batches(), stream(folder).batches()
    steps = 0
    for (step, found), (_, expected) in zip(there, here, strict=True):
        same(found, expected)
        steps += step == steps
    assert steps == 90


def test_pools_on_a_disk_and_in_a_store_are_mixed(folder: Path, proxy: Proxy):
    pools = {"english": "english", "chinese": "s3://mixed/chinese", "maths": "maths"}
    for (_, found), (_, expected) in zip(
        stream(folder, pools=pools).batches(), stream(folder).batches(), strict=True
    ):
        same(found, expected)
    assert not any("english" in path for path, _ in proxy.gets)


def test_any_step_rank_and_row_in_any_order(folder: Path, proxy: Proxy):
    there, here = stream("s3://mixed"), stream(folder)
    for step in (70, 3, 5, 7, 9, 11, 11, 2):
        same(there.batch(step, 1, 2, cu_seqlens=True), here.batch(step, 1, 2, cu_seqlens=True))
    same(there.rows(5, [3, 0]), here.rows(5, [3, 0]))
    assert there.provenance(5, 3) == here.provenance(5, 3)
    assert there.num_labels(8) == here.num_labels(8)


def test_ranks_and_rows_that_are_read_in_turn_are_each_fetched_ahead(folder: Path, proxy: Proxy):
    there, here = stream("s3://mixed"), stream(folder)
    for step in range(12):
        for rank in (0, 1):
            same(there.batch(step, rank, 2), here.batch(step, rank, 2))
        for rows in ([0, 1], [3]):
            same(there.rows(step, rows), here.rows(step, rows))
    assert cache().used <= cache().bound


def test_the_plan_says_what_is_asked_for(folder: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch):
    """Every byte used is read, and requests are those of loads that the cache has room for."""
    loaded = make(folder, {"english": "english"}, [stage(256, {"english": 1}, batch=4, steps=20)])
    loaded = loaded.model_copy(update={"pools_root": "s3://mixed"})
    opened = open_pools(loaded)
    settled = settle_with(loaded, opened)
    told = traffic_of(settled, opened)
    assert told is not None
    assert (told.pools, told.steps) == (("english",), 20)
    assert told.bytes_used <= told.bytes_read <= 2 * told.bytes_used
    opened["english"].offsets  # noqa: B018 - read before
    read = proxy.num_bytes
    monkeypatch.setattr("recipe.mixing.fetching.LOADS", 1 << 30)
    list(Stream(settled, opened).batches())
    assert told.bytes_used <= proxy.num_bytes - read <= 2 * told.bytes_used
    assert (
        traffic_of(
            settled, {"english": open_pools(loaded.model_copy(update={"pools_root": str(folder)}))["english"]}
        )
        is None
    )


def test_rows_dealt_by_their_cost_are_the_same(folder: Path, proxy: Proxy):
    there, here = stream("s3://mixed", deal="balanced"), stream(folder, deal="balanced")
    for (_, found), (_, expected) in zip(there.batches(0, 1, 2), here.batches(0, 1, 2), strict=True):
        same(found, expected)


def test_cuts_at_texts_in_a_store_are_those_on_a_disk(folder: Path, proxy: Proxy):
    stages = [
        stage(256, {"maths": 1}, batch=4, steps=20, slicing={"align": "word", "stride": 192}),
        stage(128, {"maths": 1}, batch=4, steps=20, slicing={"align": "line"}),
    ]
    keys = {"stages": stages, "pools": {"maths": "maths"}, "tokenizer": {"builtin": "bytes"}}
    for (_, found), (_, expected) in zip(
        stream("s3://mixed", **keys).batches(), stream(folder, **keys).batches(), strict=True
    ):
        same(found, expected)


def test_the_next_block_is_cut_at_its_texts_while_the_open_one_is_read(folder: Path, proxy: Proxy):
    stages = [stage(256, {"maths": 1}, batch=1, steps=400, slicing={"align": "word"})]
    pools = {"maths": {"path": "maths", "block_units": 64}}
    opened = stream("s3://mixed", stages, pools, tokenizer={"builtin": "bytes"})
    opened.batch(0)
    blocks, until = opened.ground.blocks, time.monotonic() + 60
    while len(blocks._blocks) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert [block.place.block for block in blocks._blocks.values()] == [0, 1]
    assert all(block.looked > (0, 0) for block in blocks._blocks.values())


def test_what_goes_wrong_ahead_is_told_when_the_block_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    blocks = BlockCache(4)

    def broken():
        raise OSError("gone")

    blocks.begin("next", broken)
    with pytest.raises(OSError, match="gone"):
        blocks.get("next", broken)
    assert not blocks._ahead
    monkeypatch.setattr("threading.Thread.start", lambda _: (_ for _ in ()).throw(RuntimeError("no thread")))
    blocks.begin("other", broken)
    assert not blocks._ahead


def test_broken_answers_change_nothing(folder: Path, proxy: Proxy):
    kinds = ("503", "reset", "truncate")
    proxy.fault = lambda _path, number: kinds[number // 5 % 3] if number % 5 == 0 else None
    for (_, found), (_, expected) in zip(
        stream("s3://mixed").batches(50, stop=70), stream(folder).batches(50, stop=70), strict=True
    ):
        same(found, expected)


def blocks_on_disk(root: Path) -> int:
    """Bytes of the files without a name that this process has below a folder, as the disk counts them."""
    total, seen = 0, set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            place, state = str(link.readlink()), link.stat()
        except OSError:
            continue
        if place.startswith(str(root)) and place.endswith("(deleted)") and state.st_ino not in seen:
            seen.add(state.st_ino)
            total += state.st_blocks * 512
    return total


def test_the_cache_never_grows_above_its_bound(folder: Path, proxy: Proxy, tmp_path: Path):
    """Of 1 % of the pools; two readers at once share it."""
    most, done = [0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            with cache()._changes:  # room is taken and given back under it: what is seen is one moment
                most.append(blocks_on_disk(tmp_path / "cache"))

    watching = threading.Thread(target=watch)
    watching.start()
    opened = stream("s3://mixed")
    for (_, one), (_, two) in zip(opened.batches(), opened.batches(), strict=True):
        same(one, two)
    done.set()
    watching.join()
    bound = pool_bytes(folder) // 100
    assert 0 < max(most) <= bound == cache().bound
    assert cache().used == 0


def test_what_is_let_go_after_the_cache_was_placed_elsewhere_is_free(
    folder: Path, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    room, reader = cache(), stream("s3://mixed")._new_reader(90)
    load = begun((reader._library, reader.looked_up), [0], Deal(), now=True)
    monkeypatch.setenv("RECIPE_CACHE", str(tmp_path / "elsewhere"))
    assert load is not None and load.size == room.used > 0
    load.wait()
    load.release()
    load.let_go()
    while room.used:  # it is said on the loop's thread that it is filled
        time.sleep(0.01)
    assert cache() is not room and blocks_on_disk(tmp_path) == 0


def test_a_cache_that_holds_no_step_is_refused_with_what_it_needs(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RECIPE_CACHE_BYTES", "4Ki")
    with pytest.raises(
        RecipeError, match=r"RECIPE_CACHE_BYTES\n +given +4,096 bytes\n +expected +at least [0-9,]+ bytes"
    ):
        list(stream("s3://mixed").batches(60))
    monkeypatch.setenv("RECIPE_CACHE_BYTES", "many")
    with pytest.raises(RecipeError, match="such as 512Mi"):
        list(stream("s3://mixed").batches(60))


@pytest.fixture(scope="module")
def large(server: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two million tokens."""
    root, draw = tmp_path_factory.mktemp("large"), np.random.default_rng(3)
    documents = [draw.integers(2, 500, n) for n in draw.integers(1, 4000, 1000)]
    recipe.write_pool(root / "large", documents, vocab_size=500, eos=1)
    upload(root, "s3://mixed")
    return root


@pytest.mark.parametrize("step", [40, 3960])
def test_Z03_less_than_a_hundredth_is_read_before_the_first_batch(
    large: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, step: int
):
    """Card, boundaries, the tokens of one step and of those after it, at 1 % and at 99 % of the run."""
    size = pool_bytes(large)
    monkeypatch.setenv("RECIPE_CACHE_BYTES", str(size // 200))
    stages, pools = [stage(256, {"large": 1}, batch=4, steps=4000)], {"large": "large"}
    here = stream(large, stages, pools)
    at, there = here.snapshot(step), stream("s3://mixed", stages, pools)
    there = Stream(there.recipe, dict(zip(there.pools, there.ground.pools, strict=True)), [at])
    batches = there.batches(step, read_ahead=0)
    _, found = next(batches)
    assert proxy.num_bytes < size / 100
    same(found, here.batch(step))
    batches.close()


def test_Z03_cuts_at_texts_take_about_a_hundredth_of_the_pool(server: Proxy, proxy: Proxy, tmp_path: Path):
    """The first block is the whole pool: a cut in half of its documents. A plan counts what that reads."""
    draw, letters = np.random.default_rng(4), np.frombuffer(b"abcdefghijklmno    ", np.uint8)
    documents = [draw.choice(letters, n).astype(np.int64) for n in draw.integers(1, 4000, 1000)]
    recipe.write_pool(tmp_path / "prose", documents, vocab_size=500)
    upload(tmp_path / "prose", "s3://mixed/prose")
    drawn = stage(2048, {"prose": 1}, batch=1, slicing={"align": "word"}, steps=50)
    there = stream("s3://mixed", [drawn], {"prose": "prose"}, tokenizer={"builtin": "bytes"})
    there.batch(0)
    [first] = [block for block in there.ground.blocks._blocks.values() if block.place.epoch == 0]
    size = pool_bytes(tmp_path / "prose")
    assert 300 < first.looked[0] < 1000 and first.looked[1] < size / 50
    told = traffic_of(there.recipe, dict(zip(there.pools, there.ground.pools, strict=True)))
    assert told is not None and told.aligned == ("prose",)
    assert 0 < told.looked_requests < told.requests
    assert 1 < told.bytes_read / told.bytes_used < 1.1


def test_C07_a_part_that_changes_in_mid_run_stops_it_and_is_named(folder: Path, proxy: Proxy):
    system = fsspec.filesystem("s3")
    whole = (folder / "maths" / "part-00000.bin").read_bytes()
    stages = [stage(128, {"maths": 1}, batch=2, steps=400)]
    batches = stream("s3://mixed", stages, {"maths": "maths"}).batches()
    next(batches)
    try:
        system.pipe("mixed/maths/part-00000.bin", whole[::-1])
        with pytest.raises(
            RecipeError, match=r"s3://mixed/maths/part-00000\.bin[\s\S]*when the pool was opened"
        ):
            list(batches)
    finally:
        system.pipe("mixed/maths/part-00000.bin", whole)


def every_second(first: int, opened: Stream) -> list[Any]:
    return [opened.batch(step)["input_ids"] for step in range(first, 30, 2)]


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_two_workers_read_the_same_pools_each_with_a_cache_of_its_own(folder: Path, proxy: Proxy, how: str):
    """A forked one inherits a stream that is being read."""
    expected = [batch["input_ids"] for _, batch in stream(folder).batches(stop=30)]
    opened = stream("s3://mixed")
    for step in range(4):
        opened.batch(step)
    context = get_context(how)
    if how == "fork":
        _FORKED.append(opened)
    with ProcessPoolExecutor(2, context) as workers:
        todo = [workers.submit(_work, first, how, "s3://mixed") for first in (0, 1)]
        found = [one.result() for one in todo]
    for first in (0, 1):
        for a, b in zip(found[first], expected[first::2], strict=True):
            assert np.array_equal(a, b)
    same(opened.batch(4), stream(folder).batch(4))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_X03_a_fork_finds_no_lock_held_by_what_plans_ahead(folder: Path, proxy: Proxy):
    opened, looking = stream("s3://mixed"), threading.Lock()
    reader = opened._new_reader(60)

    def rows_of(step: int, deal: Deal) -> Any:
        with looking:
            time.sleep(0.1 * (step > 0))
            return reader.looked_up(step, deal)

    ahead = Ahead(Library(opened.ground.pools), rows_of, stride=1)
    with ahead.held(0, Deal()):
        pass
    while not looking.locked():
        time.sleep(0.001)
    if (child := os.fork()) == 0:
        os._exit(0 if looking.acquire(blocking=False) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ahead.close()


_FORKED: list[Stream] = []


def _work(first: int, how: str, root: str) -> list[Any]:
    return every_second(first, _FORKED[-1] if how == "fork" else stream(root))


def run_files(run: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((run / "sequences").glob("*.parquet"))}


def test_a_run_that_is_killed_goes_on_and_leaves_no_cache(folder: Path, proxy: Proxy, tmp_path: Path):
    """kill -9 in the middle; then the same command: the files of a run over pools on a disk."""
    weights = {"english": 3, "maths": 1}
    stages = {"one": {"context": 256, "batch": {"sequences": 4}, "steps": 60, "weights": weights}}
    for name, root in (("there", "s3://mixed"), ("here", str(folder))):
        pools = {pool: {"path": pool} for pool in weights}
        plain = {"name": "run", "seed": 5, "pools_root": root, "pools": pools, "stages": stages}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(plain))
    proxy.latency = 0.05
    command = [sys.executable, "-m", "recipe", "run", "--yes", "--runs-dir"]
    running = subprocess.Popen([*command, "there", "there.yaml"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    while running.poll() is None and not list(tmp_path.glob("there/run/sequences/*.parquet")):
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    proxy.latency = 0.0
    assert [file for file in (tmp_path / "cache").iterdir() if file.name != "pools"] == []
    for name in ("there", "here"):
        subprocess.run([*command, name, f"{name}.yaml"], cwd=tmp_path, check=True, capture_output=True)
    assert len(run_files(tmp_path / "there/run")) > 1
    assert run_files(tmp_path / "there/run") == run_files(tmp_path / "here/run")
