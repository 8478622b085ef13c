"""A loop in torchtitan's way: two ranks over gloo, DCP in the background, killed and resumed to the bit."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful

import recipe
from recipe.errors import RecipeError
from recipe.integrations.titan import TitanLoader, TitanSettings, record_when_saved, titan_dataloader
from recipe.integrations.torch import StreamDataset
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from recipe.run.manifest import manifest_path, read_manifest
from tests.integrations.conftest import PLAIN, started
from tests.integrations.ranks import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")
Losses = dict[int, float]


class Training:
    """A rank's share: what torchtitan's trainer does with the loader, without its models and meshes."""

    def __init__(self, folder: Path, rank: int, size: int) -> None:
        torch.manual_seed(0)
        self.folder, self.rank, self.step = folder, rank, 0
        self.model = GPT(GPTConfig(vocab_size=100, layers=1, heads=2, width=8))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.accumulation = 4 // size
        state = (folder / "state").read_bytes()
        ranks = {"dp_rank": rank, "dp_world_size": size}
        settings = TitanSettings(**ranks, local_batch_size=1, global_batch_size=4, seq_len=64, steps=24)
        self.loader = titan_dataloader(state, settings)
        self.saving: Future[Any] | None = None
        self.told: Future[int] | None = None
        self.savers = dist.new_group(backend="gloo")

    def everything(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "dataloader": self.loader, "train_state": self}

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]

    def resume(self) -> None:
        """From the last checkpoint that is whole: DCP writes ``.metadata`` last."""
        done = [int(path.parent.name) for path in self.folder.glob("dcp/*/.metadata")]
        if done:
            state = self.everything()
            dcp.load(state, checkpoint_id=str(self.folder / f"dcp/{max(done)}"))
            self.model.load_state_dict(state["model"])

    def train_step(self, batches: Iterator[Any]) -> float:
        """Gather, count labels over all ranks, go through the model, add gradients up."""
        parts = [next(batches) for _ in range(self.accumulation)]
        labels = torch.tensor(sum(int((labels != -100).sum()) for _, labels in parts))
        dist.all_reduce(labels)
        total = torch.zeros(())
        for inputs, targets in parts:
            segments = (inputs["positions"] == 0).cumsum(1)  # as its masks find documents
            logits = self.model(inputs["input"], inputs["positions"], segments)
            loss = token_losses(logits, targets).sum() / labels
            loss.backward()
            total += loss.detach()
        for weight in self.model.parameters():
            dist.all_reduce(weight.grad)
        self.optimizer.step()
        self.optimizer.zero_grad()
        dist.all_reduce(total)
        return float(total)

    def save(self, run: recipe.Run | None, dies_at: tuple[int, str]) -> None:
        """In the background; on record once it is whole."""
        self.wait()
        where = str(self.folder / f"dcp/{self.step}")
        self.saving = dcp.async_save(self.everything(), checkpoint_id=where, process_group=self.savers)
        if dies_at == (self.step, "saved"):  # on no rank is it on record
            self.saving.result()
            os.kill(os.getpid(), signal.SIGKILL)
        if dies_at == (self.step, "saving"):
            os.kill(os.getpid(), signal.SIGKILL)
        if run:
            self.told = record_when_saved(run, self.step, self.saving, where)

    def wait(self) -> None:
        for future in (self.saving, self.told):
            if future:
                future.result()


def train(rank: int, folder: Path, size: int, dies_at: tuple[int, str] = (-1, "")) -> tuple[Losses, Any]:
    """From the last checkpoint to the end, saving every fourth step; losses and weights."""
    it, losses = Training(folder, rank, size), Losses()
    it.resume()
    run = recipe.open_run(folder / "run", state=it.loader.state()) if rank == 0 else None
    batches = iter(it.loader)
    while it.step < 24:
        it.step += 1
        losses[it.step] = it.train_step(batches)
        if dies_at == (it.step, "step"):
            it.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        if it.step % 4 == 0:
            it.save(run, dies_at)
    it.wait()
    return losses, {name: weight.numpy() for name, weight in it.model.state_dict().items()}


def begun(folder: Path) -> Path:
    state = started(folder)
    (folder / "state").write_bytes(state)
    return folder


def good(folder: Path) -> bool:
    assert recipe.run_status(folder / "run").step == 24
    return recipe.audit_run(folder / "run", pools_root=folder).findings == ()


def tokens(folder: Path) -> Any:
    last = recipe.run_manifests(folder / "run")[-1].manifest
    return read_manifest(manifest_path(folder / "run", last))["pools"]["b"]["tokens"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = begun(tmp_path_factory.mktemp("whole"))
    return folder, on_ranks(train, 2, folder, 2)[0]


@pytest.mark.parametrize("dies_at", [(3, "step"), (18, "step"), (8, "saving"), (8, "saved"), (16, "saved")])
def test_R01_killed_and_resumed_it_ends_at_the_same_bits(tmp_path, whole, dies_at):
    folder = begun(tmp_path)
    with pytest.raises(AssertionError, match="without a word"):
        on_ranks(train, 2, folder, 2, dies_at)
    losses, weights = on_ranks(train, 2, folder, 2)[0]
    other, (all_losses, all_weights) = whole
    assert losses == {step: all_losses[step] for step in losses}
    assert all((weights[name] == all_weights[name]).all() for name in all_weights)
    assert good(folder) and tokens(folder) == tokens(other)


def test_every_checkpoint_is_on_record_where_its_files_are(whole):
    folder = whole[0]
    told = recipe.run_manifests(folder / "run")
    assert [each.step for each in told] == [4, 8, 12, 16, 20, 24] and good(folder)
    assert all(Path(each.uri, ".metadata").exists() for each in told)


def test_an_older_checkpoint_rewinds_the_record(tmp_path, whole):
    folder = begun(tmp_path)
    on_ranks(train, 2, folder, 2)
    for step in (12, 16, 20, 24):
        (folder / f"dcp/{step}/.metadata").unlink()
    losses, _ = on_ranks(train, 2, folder, 2)[0]
    assert losses == {step: loss for step, loss in whole[1][0].items() if step > 8}
    rows = [json.loads(line)["kind"] for line in (folder / "run/ledger.jsonl").read_text().splitlines()]
    assert rows.count("rewind") == 1 and good(folder) and tokens(folder) == tokens(whole[0])


def test_R04_it_resumes_with_another_number_of_ranks(tmp_path, whole):
    """Same batches; the order in which gradients are added up is another, so to rounding only."""
    folder = begun(tmp_path)
    with pytest.raises(AssertionError, match="without a word"):
        on_ranks(train, 2, folder, 2, (10, "step"))
    losses, _ = on_ranks(train, 1, folder, 1)[0]
    assert sorted(losses) == list(range(9, 25)) and good(folder)
    assert losses == pytest.approx({step: whole[1][0][step] for step in losses}, rel=1e-4)


def test_a_checkpoint_that_failed_is_not_on_record(tmp_path):
    started(tmp_path)
    saving = Future[None]()
    with recipe.open_run(tmp_path / "run") as run:
        told = record_when_saved(run, 4, saving, "nowhere")
        saving.set_exception(OSError("disk full"))
        with pytest.raises(OSError, match="disk full"):
            told.result()
        assert run.step == 0
    assert recipe.run_manifests(tmp_path / "run") == []


@pytest.mark.parametrize("workers", [0, 2])
def test_the_step_saved_is_the_one_taken_and_half_a_step_is_served_again(state, workers):
    settings = TitanSettings(local_batch_size=2, num_workers=workers)
    loader = titan_dataloader(state, settings)
    taken = iter(loader)
    steps = []
    for _ in range(5):
        next(taken)
        steps.append(loader.state_dict()["step"])
    assert steps == [0, 1, 1, 2, 2]
    other = titan_dataloader(state, TitanSettings(local_batch_size=2))
    other.load_state_dict(loader.state_dict())
    inputs, labels = next(iter(other))
    assert torch.equal(inputs["input"], StreamDataset(state, micro_batch=2)[2]["input_ids"][:2])
    assert labels.dtype == inputs["positions"].dtype == torch.int64


def test_documents_are_told_apart_by_positions_that_are_0(state):
    for step, (inputs, _) in enumerate(titan_dataloader(state, TitanSettings(local_batch_size=4))):
        segments = StreamDataset(state)[step]["segment_ids"]
        edges = segments[:, 1:] != segments[:, :-1]
        assert (inputs["positions"][:, 1:] == 0)[edges].all()
        assert not (inputs["positions"][:, 1:] == 0)[~edges & (segments[:, 1:] >= 0)].any()


def test_it_keeps_the_contract_of_stateful(state):
    loader = titan_dataloader(state, TitanSettings(local_batch_size=4))
    assert isinstance(loader, TitanLoader) and isinstance(loader, Stateful)
    loader.load_state_dict({})
    assert loader.state_dict()["step"] == 0


def test_settings_that_are_not_the_recipes_are_refused_at_once(tmp_path):
    stages = {name: stage | {"packing": {"positions": "continue"}} for name, stage in PLAIN["stages"].items()}
    state = started(tmp_path, stages=stages, labels="inputs")
    settings = TitanSettings(local_batch_size=1, global_batch_size=8, seq_len=32, steps=9)
    with pytest.raises(RecipeError) as caught:
        titan_dataloader(state, settings)
    where = [problem.where for problem in caught.value.problems]
    packings = ["stages.short.packing", "stages.long.packing"]
    training = ["training.steps", "training.seq_len", "training.global_batch_size"]
    assert where == ["labels", *packings, *training]


def test_an_objective_is_refused_as_its_loss_takes_no_weights(tmp_path):
    objective = {"objective": {"a": "100%", "b": "0%"}}
    state = started(tmp_path, stages=PLAIN["stages"] | {"short": PLAIN["stages"]["short"] | objective})
    with pytest.raises(RecipeError, match="weighted_loss") as caught:
        titan_dataloader(state, TitanSettings(local_batch_size=4))
    assert [problem.where for problem in caught.value.problems] == ["stages.short.objective"]
