"""A run's account in MLflow, W&B and TensorBoard, written and read back with their own packages."""

from __future__ import annotations

import inspect
import os
import socket
import struct
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import recipe
from recipe.errors import RecipeError
from recipe.integrations.logging import MLflowLog, TensorBoardLog, WandbLog, identity, progress
from tests.integrations.conftest import started


def records(content: bytes) -> Iterator[bytes]:
    """Whole records of a W&B file: LevelDB's log format behind a header of seven bytes."""
    at, parts = 7, b""
    assert content[:4] == b":W&B"[: len(content)]
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack("<IHB", content[at : at + 7])
        if at + 7 + size > len(content):
            return
        parts += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield parts
            parts = b""


def told(file: Path) -> tuple[set[str], bool]:
    """Keys of a W&B file's history so far, and whether the run's end is in it."""
    from wandb.proto import wandb_internal_pb2

    keys, is_finished = set(), False
    for data in records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        keys |= {item.key or "/".join(item.nested_key) for item in record.history.item}
        is_finished |= record.WhichOneof("record_type") == "exit"
    return keys, is_finished


@pytest.fixture
def run(tmp_path):
    started(tmp_path)
    with recipe.open_run(tmp_path / "run") as run:
        yield run


def test_progress_is_what_a_checkpoint_would_record(run):
    stream = run.stream()
    for _, _batch in stream.batches(0, stop=20):
        pass
    found, at = progress(stream, 20), stream.snapshot(20)
    assert (found["recipe/step"], found["recipe/stage"], found["recipe/context"]) == (20, 1, 64)
    assert [found["recipe/tokens/a"], found["recipe/tokens/b"]] == [pool.spent for pool in at.pools]
    assert found["recipe/share/a"] + found["recipe/share/b"] == pytest.approx(1)
    assert found["recipe/debt/a"] == at.pools[0].spent - at.pools[0].owed
    assert "recipe/share/a" not in progress(stream, 0)


def test_tensorboard_goes_on_where_the_run_does(run, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tensorboard's own, of what it imports
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        with TensorBoardLog(tmp_path / "tb", identity(run)) as log:
            for step in (2, 4, 6):
                log.log(progress(run.stream(), step), step)
        run.checkpoint(4)
        with TensorBoardLog(tmp_path / "tb", identity(run)) as log:
            log.log(progress(run.stream(), 4), 4)
        read = EventAccumulator(str(tmp_path / "tb")).Reload()
    steps = [event.step for event in read.Scalars("recipe/tokens/a")]
    assert steps == [2, 4]
    assert any("fingerprint" in tag for tag in read.Tags()["tensors"])


def test_mlflow_goes_on_in_the_same_run(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the only local store of mlflow-skinny
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, of what it imports
        from mlflow.tracking import MlflowClient

        uri = (tmp_path / "mlruns").as_uri()
        with MLflowLog(uri, identity(run)) as log:
            log.log(progress(run.stream(), 2), 2)
        with MLflowLog(uri, identity(run)) as again:
            again.log(progress(run.stream(), 4), 4)
        client = MlflowClient(tracking_uri=uri)
        steps = [each.step for each in client.get_metric_history(log.run_id, "recipe/tokens/a")]
        params = client.get_run(log.run_id).data.params
    assert again.run_id == log.run_id and steps == [2, 4]
    assert params["recipe.fingerprint"] == identity(run)["recipe.fingerprint"]


def test_wandb_writes_its_files_offline(run, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB__SERVICE_WAIT", "WANDB_INIT_TIMEOUT"):
        monkeypatch.setenv(name, "600")  # seconds, for its process to come up on a slow machine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # wandb's own, of what it imports
        with WandbLog(tmp_path, identity(run)) as log:
            log.log(progress(run.stream(), 2), 2)
        (file,) = (tmp_path / "wandb").glob(f"offline-run-*/run-{log.run_id}.wandb")
        keys, is_finished = told(file)
        while not is_finished:  # its process may write on when the run is closed
            time.sleep(0.05)
            keys, is_finished = told(file)
    assert {"recipe/tokens/a", "recipe/step"} <= keys


def test_a_store_that_mlflow_refuses_is_told(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RecipeError, match="mlflow"):
            MLflowLog("nonsense://x", identity(run))


@pytest.mark.parametrize(
    "answers", [False, True], ids=["nobody listens", "somebody listens and says nothing"]
)
def test_a_server_that_does_not_answer_is_told_in_bounded_time(run, monkeypatch, answers):
    """MLflow's own bounds are two minutes a try and seven tries; they are the trainer's again afterwards."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "0")
    before = dict(os.environ)
    with socket.socket() as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.bind(("127.0.0.1", 0))
        if answers:
            server.listen()
        where = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RecipeError, match=r"a server that answers[\s\S]*mlflow server"):
            MLflowLog(where, identity(run))
    assert dict(os.environ) == before


@pytest.mark.parametrize("log", [MLflowLog, WandbLog, TensorBoardLog])
def test_every_log_is_opened_alike(log):
    assert list(inspect.signature(log).parameters)[:2] == ["where", "identity"]


@pytest.mark.parametrize(
    ("package", "log"),
    [("mlflow.tracking", MLflowLog), ("wandb", WandbLog), ("torch.utils.tensorboard", TensorBoardLog)],
)
def test_a_package_that_is_not_there_is_named(package, log, run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RecipeError, match="pip install"):
        log(str(tmp_path / "x"), identity(run))
