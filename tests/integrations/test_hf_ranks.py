"""Transformers' Trainer on two ranks over gloo, started as torchrun does: killed, resumed, evaluated."""

from __future__ import annotations

import os
import signal
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

import recipe
from recipe.integrations.held_out import held_out_rows
from recipe.integrations.hf import StreamTrainer
from tests.integrations.conftest import PLAIN, begun, equal, last, spent
from tests.integrations.ranks import on_ranks
from tests.integrations.test_hf import arguments, model


@dataclass(frozen=True)
class Training:
    """What the processes of a training are given."""

    folder: Path
    dies_at: int = 0
    """The step after which the process of rank 1 is killed."""
    area: str | None = None
    """Held-out text that is measured every fourth step."""
    settings: dict[str, Any] = field(default_factory=dict)


class Kill(TrainerCallback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step and args.process_index == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def train(_rank: int, it: Training) -> tuple[dict[int, float], dict[str, Any], int]:
    """Go on from the last checkpoint: losses by step, weights, tokens by the Trainer's own count."""
    out = it.folder / "out"
    settings = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 2, "ddp_backend": "gloo"}
    settings |= {"logging_steps": 1, "include_num_input_tokens_seen": "all", **it.settings}
    with warnings.catch_warnings(), recipe.open_run(it.folder / "run") as run:
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"callbacks": [Kill(it.dies_at)]}
        if it.area:
            settings |= {"eval_strategy": "steps", "eval_steps": 4, "per_device_eval_batch_size": 2}
            options["eval_dataset"] = held_out_rows(run, {it.area: it.folder / "held"}, most=5)
        args = arguments(out, **settings)
        trainer = StreamTrainer(model=model(), args=args, run=run, **options)
        trainer.train(resume_from_checkpoint=get_last_checkpoint(str(out)) if out.is_dir() else None)
    losses = {line["step"]: line["loss"] for line in trainer.state.log_history if "loss" in line}
    weights = {name: weight.numpy() for name, weight in trainer.model.state_dict().items()}
    return losses, weights, trainer.state.num_input_tokens_seen


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = begun(tmp_path_factory.mktemp("whole"))
    return folder, on_ranks(train, 2, Training(folder))


def test_two_ranks_learn_what_one_does_and_one_of_them_keeps_the_record(tmp_path, whole):
    folder, (ours, others) = whole
    alone = on_ranks(train, 1, Training(begun(tmp_path), settings={"gradient_accumulation_steps": 4}))[0]
    assert ours[0] == pytest.approx(alone[0], rel=1e-4) and ours[0] == others[0]
    assert all(np.allclose(ours[1][name], alone[1][name], atol=1e-4) for name in alone[1])
    assert [told.step for told in recipe.run_manifests(folder / "run")] == [4, 8, 12, 16, 20, 24]
    assert recipe.audit_run(folder / "run", pools_root=folder).findings == ()


def test_R01_a_rank_that_is_killed_ends_them_all_and_they_resume_to_the_same_bits(tmp_path, whole):
    folder = begun(tmp_path)
    with pytest.raises(AssertionError):
        on_ranks(train, 2, Training(folder, dies_at=18))
    assert recipe.run_status(folder / "run").step == 16
    losses, weights, seen = on_ranks(train, 2, Training(folder))[0]
    expected = whole[1][0]
    assert losses == expected[0] and equal(weights, expected[1]) and seen == expected[2] == 4096
    assert spent(folder) == spent(whole[0])
    assert recipe.audit_run(folder / "run", pools_root=folder).findings == ()


def test_what_is_evaluated_moves_nothing_and_is_counted_apart(tmp_path, whole):
    """Same weights, same tokens on record, same count of the Trainer's; the area's numbers on record."""
    folder = begun(tmp_path)
    losses, weights, seen = on_ranks(train, 2, Training(folder, area="news"))[0]
    expected, told = whole[1][0], last(folder)
    assert losses == expected[0] and equal(weights, expected[1]) and seen == expected[2]
    assert spent(folder) == spent(whole[0])
    with recipe.open_run(folder / "run") as run:
        rows = held_out_rows(run, {"news": folder / "held"}, most=5)["news"]
    measured = told["metrics"]["news"]
    assert (measured["tokens"], measured["labels"]) == (rows.num_tokens, rows.num_labels)
    assert 4 < measured["loss"] < 5 and "news" not in last(whole[0])["metrics"]
    assert not any(name.startswith("eval") for name in told["metrics"]["trainer"])


def test_an_objective_is_the_same_on_two_ranks(tmp_path):
    shares = {"quotas": {"a": "50%", "b": "50%"}, "objective": {"a": "80%", "b": "20%"}}
    stages = {name: stage | shares for name, stage in PLAIN["stages"].items()}
    one, two = (begun(tmp_path / name, stages=stages) for name in ("one", "two"))
    alone = on_ranks(train, 1, Training(one, settings={"gradient_accumulation_steps": 4}))[0]
    assert on_ranks(train, 2, Training(two))[0][0] == pytest.approx(alone[0], rel=1e-4)
