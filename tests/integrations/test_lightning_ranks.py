"""Lightning's Trainer on two ranks over gloo, started as torchrun does: killed, resumed, evaluated."""

from __future__ import annotations

import os
import signal
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.utils.data import DataLoader

import recipe
from recipe.integrations.held_out import held_out_rows
from recipe.integrations.lightning import RunCheckpointIO, RunDataModule
from recipe.integrations.torch import StreamDataset
from recipe.integrations.training.model import token_losses
from tests.integrations.conftest import begun, equal, spent
from tests.integrations.ranks import on_ranks
from tests.integrations.test_lightning import Module

QUIET: dict[str, Any] = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@dataclass(frozen=True)
class Training:
    """What the processes of a training are given."""

    folder: Path
    size: int = 2
    late: bool = False
    """Saved in a thread."""
    dies_at: int = 0
    """The step after which the process of rank 1 is killed."""
    evaluated: bool = False
    data: dict[str, Any] = field(default_factory=dict)


class Watch(Callback):
    """Losses of every step over all ranks; the end of rank 1 after a step."""

    def __init__(self, dies_at: int) -> None:
        self.dies_at, self.losses, self.so_far = dies_at, dict[int, float](), 0.0

    def on_train_start(self, trainer: Any, *_: Any) -> None:
        self.last = trainer.global_step

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        self.so_far += module.told
        step = trainer.global_step
        if step == self.last:  # a micro-batch of a step that is not whole
            return
        self.last = step
        self.losses[step], self.so_far = self.so_far, 0.0
        if step == self.dies_at and trainer.global_rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class Parallel(Module):
    """Its loss is the step's share of this micro-batch; Lightning averages over ranks and micro-batches."""

    def __init__(self) -> None:
        super().__init__()
        self.told, self.measured = 0.0, list[float]()

    def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        share = super().training_step(batch, index)
        self.told = float(self.all_gather(share.detach()).sum()) / self.trainer.accumulate_grad_batches
        return share * self.trainer.world_size

    def validation_step(self, batch: dict[str, torch.Tensor], _index: int) -> None:
        logits = self.net(batch["input_ids"], batch["position_ids"], batch["segment_ids"])
        self.measured.append(float(token_losses(logits, batch["labels"]).sum()))


def train(_rank: int, it: Training) -> tuple[dict[int, float], dict[str, Any], list[float]]:
    """Go on from the last checkpoint: losses by step, weights, what was measured."""
    torch.manual_seed(0)
    out, watch, module = it.folder / "out", Watch(it.dies_at), Parallel()
    every = ModelCheckpoint(dirpath=out, every_n_train_steps=4, save_top_k=-1, filename="{step}")
    with warnings.catch_warnings(), recipe.open_run(it.folder / "run") as run:
        warnings.simplefilter("ignore")
        rows = RunDataModule(run, **({"micro_batch": 1} | it.data))
        io: Any = RunCheckpointIO(rows)
        options: dict[str, Any] = {"val_check_interval": 8} if it.evaluated else {}
        held = held_out_rows(run, {"news": it.folder / "held"}, most=4)["news"] if it.evaluated else None
        trainer = Trainer(
            max_steps=run.num_steps,
            strategy="ddp",
            devices=it.size,
            accumulate_grad_batches=4 // it.size if it.data.get("micro_batch", 1) else 1,
            callbacks=[every, watch],
            plugins=[AsyncCheckpointIO(io) if it.late else io],
            num_sanity_val_steps=0,
            **QUIET,
            **options,
        )
        if held is not None:
            rows.val_dataloader = lambda: DataLoader(held, batch_size=2)
        files = sorted(out.glob("step=*.ckpt"), key=lambda file: int(file.stem.split("=")[1]))
        trainer.fit(module, rows, ckpt_path=str(files[-1]) if files else None)
    weights = {name: weight.numpy() for name, weight in module.net.state_dict().items()}
    return watch.losses, weights, module.measured


def good(folder: Path) -> bool:
    assert [told.step for told in recipe.run_manifests(folder / "run")][-1] == 24
    return recipe.audit_run(folder / "run", pools_root=folder).findings == ()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = begun(tmp_path_factory.mktemp("whole"))
    return folder, on_ranks(train, 2, Training(folder))


def test_two_ranks_learn_what_one_does(tmp_path, whole):
    """Micro-batches of one; also all rows of a rank at once."""
    for name, size, data in (("one", 1, {}), ("all", 2, {"micro_batch": None})):
        found = on_ranks(train, size, Training(begun(tmp_path / name), size, data=data))[0]
        assert found[0] == pytest.approx(whole[1][0][0], rel=1e-4)
        assert all(np.allclose(found[1][name], whole[1][0][1][name], atol=1e-4) for name in found[1])


@pytest.mark.parametrize("late", [False, True])
def test_R01_a_rank_that_is_killed_ends_them_all_and_they_resume_to_the_same_bits(tmp_path, whole, late):
    folder = begun(tmp_path)
    with pytest.raises(AssertionError):
        on_ranks(train, 2, Training(folder, dies_at=18, late=late))
    resumed = recipe.run_status(folder / "run").step
    assert resumed in ((12, 16) if late else (16,))
    losses, weights, _ = on_ranks(train, 2, Training(folder, late=late))[0]
    assert losses == {step: whole[1][0][0][step] for step in losses} and max(losses) == 24
    assert min(losses) == resumed + 1
    assert equal(weights, whole[1][0][1]) and spent(folder) == spent(whole[0]) and good(folder)


def test_one_rank_keeps_the_record_also_late(tmp_path, whole):
    folder = begun(tmp_path)
    late = on_ranks(train, 2, Training(folder, late=True))
    assert equal(late[0][1], whole[1][0][1]) and equal(late[1][1], late[0][1])
    told = recipe.run_manifests(folder / "run")
    assert [each.step for each in told] == [4, 8, 12, 16, 20, 24] and good(folder) and good(whole[0])
    assert all(Path(each.uri).is_file() for each in told)


def test_what_is_evaluated_moves_nothing_and_is_counted_apart(tmp_path, whole):
    folder = begun(tmp_path)
    ranks = on_ranks(train, 2, Training(folder, evaluated=True))
    assert equal(ranks[0][1], whole[1][0][1]) and spent(folder) == spent(whole[0]) and good(folder)
    assert ranks[0][0] == whole[1][0][0] and all(rank[2] for rank in ranks)


def _rows_of_a_split_model(_rank: int, folder: Path) -> list[Any]:
    rows: list[Any] = []

    class Reader(Module):
        def configure_model(self) -> None:
            """What each process holds of the model does not matter here."""

        def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
            rows.append(batch["input_ids"].tolist())
            return super().training_step(batch, index)

    with warnings.catch_warnings(), recipe.open_run(folder / "run") as run:
        warnings.simplefilter("ignore")
        strategy = ModelParallelStrategy(data_parallel_size=1, tensor_parallel_size=2)
        options = QUIET | {"enable_checkpointing": False}
        trainer = Trainer(max_steps=run.num_steps, strategy=strategy, devices=2, **options)
        trainer.fit(Reader(), RunDataModule(run))
    return rows


def test_processes_that_share_a_model_read_the_same_rows(tmp_path):
    folder = begun(tmp_path)
    with recipe.open_run(folder / "run") as run:
        dataset = StreamDataset(run.state())
        right = [dataset[step]["input_ids"].tolist() for step in range(24)]
    assert on_ranks(_rows_of_a_split_model, 2, folder) == [right, right]
