"""Lightning's own Trainer over a run: killed and resumed to the same weights, saved late in a thread."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO

import recipe
from recipe.errors import RecipeError
from recipe.integrations.lightning import RunCheckpointIO, RunDataModule
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from recipe.run.branching.origin import find_origin
from recipe.run.manifest import latest_path, read_manifest
from tests.integrations.child import in_a_child
from tests.integrations.conftest import equal, started

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*resuming from a checkpoint that ended before:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*isn't JSON|.*Checkpoint directory .* exists:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*litlogger.*"),
    pytest.mark.filterwarnings("ignore:The dirpath has changed:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*"),
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),
]


class Module(LightningModule):
    """The reference GPT, in Lightning's words."""

    def __init__(self) -> None:
        super().__init__()
        self.net = GPT(GPTConfig(vocab_size=100, layers=1, heads=2, width=16))

    def training_step(self, batch: dict[str, torch.Tensor], _index: int) -> torch.Tensor:
        logits = self.net(batch["input_ids"], batch["position_ids"], batch["segment_ids"])
        scale = self.trainer.accumulate_grad_batches  # which Lightning divides by
        return token_losses(logits, batch["labels"]).sum() / batch["num_labels"] * scale

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


class Kill(Callback):
    """Ends the process after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def train(
    path: Path, out: Path, *, late: bool = False, kill: int = 0, **data: Any
) -> dict[str, torch.Tensor]:
    """Go on with a run from the last checkpoint of the trainer; its weights at the end."""
    torch.manual_seed(0)
    every = ModelCheckpoint(dirpath=out, every_n_train_steps=4, save_top_k=-1, filename="{step}")
    with recipe.open_run(path) as run:
        rows, module = RunDataModule(run, **data), Module()
        io: Any = RunCheckpointIO(rows)
        trainer = Trainer(
            max_steps=run.num_steps,
            accumulate_grad_batches=2 if "micro_batch" in data else 1,
            callbacks=[every, *([Kill(kill)] if kill else [])],
            plugins=[AsyncCheckpointIO(io) if late else io],
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        files = sorted(out.glob("step=*.ckpt"), key=lambda file: int(file.stem.split("=")[1]))
        trainer.fit(module, rows, ckpt_path=str(files[-1]) if files else None)
        return module.net.state_dict()


@pytest.fixture
def path(state: bytes, tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    return tmp_path / "run"


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, torch.Tensor]:
    torch.set_num_threads(1)
    started(tmp_path / "other")
    return train(tmp_path / "other/run", tmp_path / "other/out")


@pytest.mark.parametrize("late", [False, True])
def test_every_checkpoint_of_the_trainer_is_on_record(path, tmp_path, whole, late):
    assert equal(train(path, tmp_path / "out", late=late), whole)
    told = recipe.run_manifests(path)
    assert [each.step for each in told] == [4, 8, 12, 16, 20, 24]
    assert told[1].uri == str(tmp_path / "out/step=8.ckpt")
    assert recipe.audit_run(path, pools_root=tmp_path).findings == ()


@pytest.mark.parametrize("step", [2, 6, 16, 23])
def test_killed_and_resumed_it_ends_at_the_same_bits(path, tmp_path, whole, step):
    assert in_a_child(lambda: train(path, tmp_path / "out", kill=step)) == -signal.SIGKILL
    assert equal(train(path, tmp_path / "out"), whole)
    assert recipe.run_status(path).step == 24
    assert recipe.audit_run(path, pools_root=tmp_path).findings == ()


def test_micro_batches_add_up_to_the_step(path, tmp_path, whole):
    done = train(path, tmp_path / "out", micro_batch=2)
    assert all(torch.allclose(done[name], whole[name], atol=1e-4) for name in done)


def test_micro_batches_resume_too(path, tmp_path):
    started(tmp_path / "third")
    reference = train(tmp_path / "third/run", tmp_path / "third/out", micro_batch=2)
    assert in_a_child(lambda: train(path, tmp_path / "out", kill=10, micro_batch=2)) == -signal.SIGKILL
    assert equal(train(path, tmp_path / "out", micro_batch=2), reference)


@pytest.mark.parametrize("workers", [1, 2])
def test_F3_workers_change_nothing(path, tmp_path, whole, workers):
    assert equal(train(path, tmp_path / "out", num_workers=workers), whole)


def test_an_older_checkpoint_rewinds_the_record(path, tmp_path, whole):
    train(path, tmp_path / "out")
    for step in (16, 20, 24):
        (tmp_path / f"out/step={step}.ckpt").unlink()
    with pytest.warns(UserWarning, match=r"record is at step 24, the weights at step 12"):
        assert equal(train(path, tmp_path / "out"), whole)
    assert recipe.run_status(path).step == 24
    assert recipe.audit_run(path, pools_root=tmp_path).findings == ()


def test_what_the_trainer_removes_is_forgotten_on_record(path, tmp_path):
    train(path, tmp_path / "out")
    with recipe.open_run(path) as run:
        RunCheckpointIO(RunDataModule(run)).remove_checkpoint(tmp_path / "out/step=8.ckpt")
    assert [each.step for each in recipe.run_manifests(path) if each.forgotten] == [8]
    assert not (tmp_path / "out/step=8.ckpt").exists()


def last_only(run: recipe.Run, out: Path, *, stop: int, ckpt: Path | None = None) -> None:
    """Train to a step; ``last.ckpt`` is written over at every third."""
    rows, module = RunDataModule(run), Module()
    trainer = Trainer(
        max_steps=run.num_steps,
        callbacks=[
            ModelCheckpoint(dirpath=out, every_n_train_steps=3, save_last=True, save_top_k=0),
            Stop(stop),
        ],
        plugins=[RunCheckpointIO(rows)],
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, rows, ckpt_path=None if ckpt is None else str(ckpt))


class Stop(Callback):
    """Ends the training after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        trainer.should_stop = trainer.global_step >= self.step


@pytest.fixture
def written_over(path: Path, tmp_path: Path) -> Path:
    """Step 3 was last.ckpt's before step 6 was; its bytes of step 3 are kept aside."""
    with recipe.open_run(path) as run:
        last_only(run, tmp_path / "out", stop=3)
        (tmp_path / "three.ckpt").write_bytes((tmp_path / "out/last.ckpt").read_bytes())
    with recipe.open_run(path) as run:
        last_only(run, tmp_path / "out", stop=6, ckpt=tmp_path / "out/last.ckpt")
    return path


def test_weights_that_were_written_over_are_gone_on_record(written_over, tmp_path):
    last = tmp_path / "out/last.ckpt"
    told = [
        (each.step, each.forgotten) for each in recipe.run_manifests(written_over) if each.uri == str(last)
    ]
    assert told == [(3, "written over at step 6 by the trainer"), (6, None)]
    digest = read_manifest(latest_path(written_over))["checkpoint"]["digest"]
    assert digest == hashlib.sha256(last.read_bytes()).hexdigest()
    with pytest.raises(RecipeError, match="written over at step 6"):
        find_origin(written_over, step=3)
    assert recipe.audit_run(written_over, pools_root=tmp_path).findings == ()


def test_a_branch_does_not_go_on_from_weights_that_are_ahead_of_it(written_over, tmp_path):
    """A branch of step 3 that is given last.ckpt, of step 6 by now; then the weights that it begins with."""
    last = tmp_path / "out/last.ckpt"
    with recipe.open_run(written_over, step=3) as run:
        run.checkpoint(3, str(tmp_path / "three.ckpt"))
    recipe.branch_run(f"{written_over}@step:3", recipe.Wish(name="side"))
    with recipe.open_run(tmp_path / "side") as branch, pytest.raises(RecipeError, match="saved by run run"):
        last_only(branch, tmp_path / "other", stop=6, ckpt=last)
    assert recipe.run_status(tmp_path / "side").step == 3
    with recipe.open_run(tmp_path / "side") as branch:
        last_only(branch, tmp_path / "other", stop=6, ckpt=tmp_path / "three.ckpt")
    assert recipe.run_status(tmp_path / "side").step == 6
    assert recipe.audit_run(tmp_path / "side", pools_root=tmp_path).findings == ()


def test_a_run_that_was_opened_before_its_weights_is_not_gone_on_with(written_over, tmp_path):
    with recipe.open_run(written_over, step=3) as run, pytest.raises(RecipeError, match="opened at step 3"):
        last_only(run, tmp_path / "other", stop=6, ckpt=tmp_path / "out/last.ckpt")


def test_other_bytes_than_those_on_record_are_not_loaded(written_over, tmp_path):
    last = tmp_path / "out/last.ckpt"
    last.write_bytes((tmp_path / "three.ckpt").read_bytes())
    with recipe.open_run(written_over) as run, pytest.raises(RecipeError, match="other weights than those"):
        last_only(run, tmp_path / "out", stop=9, ckpt=last)


def test_a_checkpoint_at_the_same_step_whose_weights_are_kept_is_branched_from(written_over, tmp_path):
    with recipe.open_run(written_over) as run:
        run.checkpoint(6, str(tmp_path / "out/last.ckpt"))
        run.checkpoint(6, "s3://w/gone")
        run.forget(recipe.run_manifests(written_over)[-1].manifest)
    assert (
        find_origin(written_over, step=6).uri
        == find_origin(written_over).uri
        == str(tmp_path / "out/last.ckpt")
    )


@pytest.mark.parametrize("late", [False, True])
def test_the_end_of_the_training_is_on_record_also_between_two_checkpoints(path, tmp_path, late):
    with recipe.open_run(path) as run:
        rows = RunDataModule(run)
        io: Any = RunCheckpointIO(rows)
        every = ModelCheckpoint(dirpath=tmp_path / "out", every_n_train_steps=10, save_top_k=-1)
        trainer = Trainer(
            max_steps=run.num_steps,
            callbacks=[every],
            plugins=[AsyncCheckpointIO(io) if late else io],
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Module(), rows)
    told = recipe.run_manifests(path)
    assert [(each.step, each.uri is None) for each in told] == [(10, False), (20, False), (24, True)]
    assert recipe.run_status(path).complete
    assert recipe.audit_run(path, pools_root=tmp_path).findings == ()


def test_a_training_that_begins_anew_says_what_it_discards(path, tmp_path):
    assert in_a_child(lambda: train(path, tmp_path / "out", kill=6)) == -signal.SIGKILL
    with pytest.warns(UserWarning, match=r'Steps 0 to 3 are trained again[\s\S]*ckpt_path="last"'):
        train(path, tmp_path / "new")


def test_settings_that_are_not_the_recipes_are_refused(path, tmp_path):
    with recipe.open_run(path) as run:
        options = {
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": False,
            "enable_model_summary": False,
        }
        trainer = Trainer(max_steps=3, accumulate_grad_batches=3, enable_progress_bar=False, **options)
        with pytest.raises(RecipeError) as caught:
            trainer.fit(Module(), RunDataModule(run))
        assert "24, the run's" in str(caught.value) and "accumulate_grad_batches=1" in str(caught.value)
