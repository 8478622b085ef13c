"""Where tasks run changes no byte: a real Ray cluster, whose workers, nodes and callers are killed.

All tests of Ray are in this file, so that one process of the suite has one cluster.
"""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from recipe.cli.main import main
from recipe.errors import RecipeError
from recipe.text.engines.remote_tasks import answer, package_version, sent_function
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenise import Work
from recipe.text.tokenizers import ByteTokenizer, load_tokenizer
from tests.text import watched
from tests.text.watched import Watched, given, processes_of, run_script, wait_until

if find_spec("ray") is None:
    pytest.skip("ray is not installed", allow_module_level=True)

BYTES = ByteTokenizer()
STORE = 150 << 20
STEADY = {
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_health_check_timeout_ms": "120000",
}
"""Not given up: a worker on a machine with little memory left, and what answers late on a slow one."""
DOCUMENTS, TASKS = 1200, 12
"""Of `corpus`; about so many tasks."""


@pytest.fixture(scope="module")
def environment():
    """Ray's files in a folder with a short name, and a key of its own for its clusters.

    The name is that of sockets, too, which may have a hundred letters: it is not below any TMPDIR. Ray, once
    imported, does not look for a key again: it is imported when the key is there.
    """
    folder = Path(mkdtemp(prefix="ray", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in STEADY.items():
            patch.setenv(name, value)
        patch.setenv("RAY_TMPDIR", str(folder))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", uuid.uuid4().hex * 2)
        patch.delenv("RAY_ADDRESS", raising=False)
        import ray

        ray.cloudpickle.register_pickle_by_value(watched)  # workers have not got that file
        yield folder
    assert wait_until(lambda: processes_of(folder) == []), processes_of(folder)
    rmtree(folder)


@pytest.fixture(scope="module")
def cluster(environment):
    """Two workers on the head."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=head)
    yield found
    found.shutdown()


@pytest.fixture
def on_ray(cluster):
    """Options for the cluster."""

    def options(**more):
        return PrepareOptions(engine="ray", ray_address=cluster.address, **more)

    return options


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Three files of 4 MB."""
    folder = tmp_path_factory.mktemp("corpus")
    for part in range(3):
        with (folder / f"{part}.jsonl").open("w") as file:
            for i in range(400):
                text = f"{part} {i} " + "the quick brown fox " * (500 + i % 7)
                file.write(json.dumps({"id": 1000 * part + i, "text": text, "repo": i // 3}) + "\n")
    return folder


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """The pool as processes of this machine make it."""
    return contents(prepare_pool([corpus], tmp_path_factory.mktemp("whole") / "pool", BYTES).path)


def contents(folder):
    """Every file of a pool, byte for byte."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Stop(BaseException):
    """Stands for a kill at one place."""


def stopping(at):
    calls = []

    def tell(progress):
        calls.append(progress)
        if len(calls) == at:
            raise Stop

    return tell, calls


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_of_a_cluster_makes_the_bytes_of_local(
    corpus, tmp_path, tokenizer_file, on_ray, workers
):
    read = ReadOptions(group_key="repo", tag_keys=("id",))
    tokenizer = load_tokenizer(tokenizer_file)
    one = prepare_pool([corpus], tmp_path / "local", tokenizer, PrepareOptions(read=read, workers=1))
    two = prepare_pool([corpus], tmp_path / "ray", tokenizer, on_ray(read=read, workers=workers))
    assert contents(one.path) == contents(two.path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["local", "ray"]


def test_splits_without_duplicates_are_those_of_local(corpus, in_tmp, cluster):
    Path("again.jsonl").write_text((corpus / "1.jsonl").read_text())
    words = [str(corpus), "again.jsonl", "--place-ids", "--duplicates", "drop", "--split", "a=70%,b=30%"]
    assert main(["prepare", "local", *words]) == 0
    assert main(["prepare", "ray", *words, "--engine", "ray", "--ray-address", cluster.address]) == 0
    for name in ("a", "b"):
        assert contents(Path("local", name)) == contents(Path("ray", name))


def test_bad_records_are_told_as_by_the_local_engine_the_first_one_first(corpus, tmp_path, on_ray):
    (tmp_path / "in").mkdir()
    for path in corpus.iterdir():
        bad = "" if path.stem == "0" else '{"body": "bad"}\n'
        (tmp_path / "in" / path.name).write_text(bad + path.read_text())
    told = []
    for options in (PrepareOptions(), on_ray()):
        with pytest.raises(RecipeError) as caught:
            prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES, options)
        told.append(str(caught.value))
        assert not (tmp_path / "pool").exists()
    assert told[0] == told[1]
    assert "1.jsonl:1\n" in told[0]


def test_a_worker_that_is_killed_costs_its_task_alone(corpus, whole, tmp_path, on_ray):
    log = tmp_path / "log"
    pool = prepare_pool([corpus], tmp_path / "pool", Watched(log, deadly="0 0 ", deaths=2), on_ray())
    assert contents(pool.path) == whole
    counts = given(log)
    repeated = {text for text, count in counts.items() if count == 3}
    assert repeated == {f"0 {i} " for i in range(len(repeated))}
    assert 1 < len(repeated) < 2 * DOCUMENTS // TASKS
    assert Counter(counts.values()) == {3: len(repeated), 1: DOCUMENTS - len(repeated)}


def test_a_task_that_kills_every_worker_is_named_and_the_same_command_goes_on(
    corpus, whole, tmp_path, on_ray
):
    log = tmp_path / "log"
    with pytest.raises(RecipeError, match=r"task \d+, from [01]\.jsonl:\d+ on\n +given +4 workers that died"):
        prepare_pool([corpus], tmp_path / "pool", Watched(log, deadly="1 0 ", deaths=99), on_ray())
    before = given(log)
    assert before["1 0 "] == 4
    reports = [json.loads(path.read_bytes()) for path in tmp_path.glob(".pool.prepare/task-*.json")]
    done = sum(report["tally"]["kept"] for report in reports)
    assert contents(prepare_pool([corpus], tmp_path / "pool", Watched(log), on_ray()).path) == whole
    assert 0 < sum((given(log) - before).values()) == DOCUMENTS - done < DOCUMENTS


def test_cut_anywhere_it_goes_on_by_either_engine_to_the_same_bytes(corpus, whole, tmp_path, on_ray, cluster):
    import ray

    tell, calls = stopping(0)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        prepare_pool([corpus], tmp_path / "0", BYTES, progress=tell)
        assert len(calls) > TASKS
        for at in range(1, len(calls) + 1, 2):
            engines = (on_ray(), PrepareOptions()) if at % 4 == 1 else (PrepareOptions(), on_ray())
            with pytest.raises(Stop):
                prepare_pool([corpus], tmp_path / f"{at}", BYTES, engines[0], progress=stopping(at)[0])
            assert not (tmp_path / f"{at}").exists()
            assert contents(prepare_pool([corpus], tmp_path / f"{at}", BYTES, engines[1]).path) == whole
        assert ray.is_initialized(), "whoever connected this process stays connected"
    finally:
        ray.shutdown()


@pytest.mark.parametrize("at", [3, TASKS + 1])
def test_a_caller_that_is_killed_goes_on_to_the_same_bytes(corpus, whole, tmp_path, cluster, at):
    address = {"RAY_ADDRESS": cluster.address}
    assert run_script(corpus, tmp_path / "pool", at, **address) == -signal.SIGKILL
    assert not (tmp_path / "pool").exists()
    assert run_script(corpus, tmp_path / "pool", 0, **address) == 0
    assert contents(tmp_path / "pool") == whole


@pytest.mark.parametrize(("at", "code"), [(5, -signal.SIGKILL), (0, 0)])
def test_a_cluster_that_is_started_here_ends_with_the_caller_though_it_is_killed(
    corpus, whole, tmp_path, environment, at, code
):
    own = Path(mkdtemp(prefix="own", dir=environment))
    assert run_script(corpus, tmp_path / "pool", at, RAY_TMPDIR=str(own)) == code
    assert wait_until(lambda: processes_of(own) == []), processes_of(own)
    assert contents(prepare_pool([corpus], tmp_path / "pool", BYTES).path) == whole


def test_a_node_that_is_lost_costs_its_tasks_alone(corpus, whole, tmp_path, cluster, on_ray):
    log = tmp_path / "log"
    node = cluster.add_node(num_cpus=2, object_store_memory=STORE)

    def lose():
        assert wait_until(lambda: log.exists() and node.node_id in log.read_text())
        cluster.remove_node(node, allow_graceful=False)

    with ThreadPoolExecutor(1) as beside:
        losing = beside.submit(lose)
        pool = prepare_pool([corpus], tmp_path / "pool", Watched(log, stuck=node.node_id), on_ray())
        losing.result()
    assert contents(pool.path) == whole
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    on_lost_node = {text for text, where in rows if where == node.node_id}
    repeated = {text for text, count in given(log).items() if count > 1}
    assert repeated
    assert repeated <= on_lost_node
    assert {where for text, where in rows if text in repeated} != {node.node_id}


def test_a_record_larger_than_a_share_of_the_object_store_goes_through(tmp_path, on_ray):
    line = json.dumps({"text": "one two " * (60 << 17)})
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n' + line + '\n{"text": "three"}\n')
    one = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "local", BYTES)
    two = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "ray", BYTES, on_ray())
    assert contents(one.path) == contents(two.path)


def made_work(**more):
    values = {"tokenizer": BYTES, "fingerprint": BYTES.fingerprint(), "seed": 0, "read": ReadOptions()}
    return Work(files=(), **{**values, **more})


@pytest.mark.parametrize(
    ("version", "work", "given"),
    [
        ("0.0", made_work(), rf"token-recipe {package_version()}\n +expected +token-recipe 0\.0"),
        (package_version(), made_work(fingerprint="other"), "tokenizer bytes another fingerprint"),
    ],
)
def test_a_worker_with_other_packages_says_so(version, work, given):
    stated = version, uuid.uuid4().bytes
    found = answer(stated, lambda: pickle.dumps(work), 0, b"")
    assert isinstance(found, RecipeError)
    with pytest.raises(RecipeError, match=given):
        raise found


def test_a_worker_without_this_package_says_so(environment, monkeypatch):
    monkeypatch.setitem(sys.modules, "recipe.text.engines.remote_tasks", None)
    assert "remote_tasks" in str(sent_function()((package_version(), b""), [], 0, b""))


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nowhere"])
def test_an_address_where_no_cluster_answers_is_refused_at_once(in_tmp, capsys, environment, address):
    Path("a.jsonl").write_text('{"text": "one"}\n')
    assert main(["prepare", "pool", "a.jsonl", "--engine", "ray", "--ray-address", address]) == 2
    assert f"ray_address\n    given     {address}: " in capsys.readouterr().err
    assert [path.name for path in Path.cwd().iterdir()] == ["a.jsonl"]


def test_without_ray_the_extra_is_named_before_anything_is_read(in_tmp, capsys, monkeypatch):
    Path("a.jsonl").write_text('{"body": "bad"}\n')
    monkeypatch.setattr("recipe.text.engines.choosing.find_spec", lambda name: None)
    assert main(["prepare", "pool", "a.jsonl", "--engine", "ray"]) == 2
    assert "pip install" in (told := capsys.readouterr().err) and "[ray]'" in told


def test_an_address_without_the_engine_is_refused(in_tmp, capsys):
    assert main(["prepare", "pool", ".", "--ray-address", "auto"]) == 2
    assert "add --engine ray" in capsys.readouterr().err
    with pytest.raises(ValueError, match="local, ray"):
        PrepareOptions(engine="slurm")


def test_ray_is_imported_only_when_asked_for(in_tmp):
    Path("a.jsonl").write_text('{"text": "one"}\n')
    code = "import sys; from recipe.cli.main import main; main(sys.argv[1:]); sys.exit('ray' in sys.modules)"
    words = [sys.executable, "-c", code, "prepare", "pool", "a.jsonl"]
    assert subprocess.run(words, check=False, capture_output=True).returncode == 0
