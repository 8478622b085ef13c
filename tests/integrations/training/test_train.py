"""The reference trainer: on record, resumed to the bit, killed anywhere."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import recipe
from recipe.config import Recipe, recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.integrations.training import weights as saved
from recipe.integrations.training.loop import Trainer, check_trainer, train
from recipe.integrations.training.model import GPTConfig
from recipe.integrations.training.settings import settings_of
from recipe.run.start import resume_or_start
from tests.integrations.child import in_a_child
from tests.integrations.conftest import equal
from tests.integrations.training.conftest import weights

Build = Callable[..., Recipe]


def trained(told: Recipe, path: Path) -> Path:
    with resume_or_start(told, path) as run:
        train(run)
    return path


@pytest.fixture
def whole(tmp_path: Path, build: Build) -> Path:
    return trained(build(), tmp_path / "whole")


def test_every_checkpoint_is_on_record_with_its_digest_and_measures(whole, pools):
    told = recipe.run_manifests(whole)
    assert [each.step for each in told] == [4, 8, 12, 16, 20, 24]
    assert [each.uri for each in told] == [f"checkpoints/step-{n:09d}.pt" for n in (4, 8, 12, 16, 20, 24)]
    hours = [each.gpu_hours for each in told]
    assert hours == sorted(hours) and hours[0] > 0
    assert recipe.audit_run(whole, pools_root=pools).findings == ()


def test_it_learns(tmp_path, build):
    losses: list[float] = []
    with recipe.start_run(build({"learning_rate": "1e-2"}), tmp_path / "run") as run:
        train(run, lambda step, loss: losses.append(loss))
    assert len(losses) == 24 and losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("cut", range(1, 24, 3))
def test_stopped_and_started_again_it_ends_at_the_same_bits(tmp_path, build, whole, cut):
    def stop(step: int, loss: float) -> None:
        if step == cut:
            raise InterruptedError

    with pytest.raises(InterruptedError), recipe.start_run(build(), tmp_path / "run") as run:
        train(run, stop)
    trained(build(), tmp_path / "run")
    assert equal(weights(tmp_path / "run", 24), weights(whole, 24))


def test_stopped_and_started_again_it_leaves_the_same_files_and_goes_on_counting_hours(
    tmp_path, build, whole
):
    with recipe.start_run(build(), tmp_path / "run") as run:
        train(run, stop_step=12)
    before = recipe.run_manifests(tmp_path / "run")[-1].gpu_hours
    trained(build(), tmp_path / "run")
    digests = [
        {path.name: path.read_bytes() for path in saved.files(run)} for run in (tmp_path / "run", whole)
    ]
    assert digests[0] == digests[1] and len(digests[0]) == 6
    hours = [told.gpu_hours for told in recipe.run_manifests(tmp_path / "run") if told.step > 12]
    assert hours == sorted(hours) and hours[0] > before


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def until_killed(told: Recipe, path: Path, dice: random.Random) -> None:
    """Train; be killed after a step or two, or between a file's save and its manifest."""
    left, real = dice.choice((0, 0, 1, 1, 2)), saved.save

    def watch(step: int, loss: float) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            kill()

    def save(*given: Any) -> tuple[str, str]:
        answer = real(*given)
        if dice.random() < 0.3:
            kill()
        return answer

    saved.save = save
    with resume_or_start(told, path) as run:
        train(run, watch)


def test_killed_fifty_times_it_ends_at_the_same_bits(tmp_path, build):
    """SIGKILL at random steps of one training; what is saved by then is on record, or is not."""
    one = {"context": 32, "batch": {"sequences": 4}, "quotas": {"text": "60%", "code": "40%"}, "steps": 60}
    told = build({"checkpoint_steps": 1}, stages={"one": one})
    reference, path = trained(told, tmp_path / "whole"), tmp_path / "run"
    dice, codes = random.Random(11), list[int]()
    while not codes or codes[-1] != 0:
        own = random.Random(dice.random())
        codes.append(in_a_child(lambda own=own: until_killed(told, path, own)))
        assert codes[-1] in (0, -signal.SIGKILL)
    assert len(codes) > 50
    assert equal(weights(path, 60), weights(reference, 60))
    assert recipe.run_status(path).step == 60


def test_a_branch_goes_on_from_its_parents_weights(tmp_path, build, whole):
    unchanged, other = recipe.branch_run(
        f"{whole}@step:8",
        [
            recipe.Wish(name="same"),
            recipe.Wish(name="other", overrides=("stages.one.quotas.text=20%", "stages.one.quotas.code=80%")),
        ],
    )
    for path in (unchanged, other):
        with recipe.open_run(path) as run:
            train(run)
    assert equal(weights(unchanged, 24), weights(whole, 24))
    assert not equal(weights(other, 12), weights(whole, 12))
    compared = recipe.compare_runs([whole, other])
    assert compared.step == 24


def test_a_branch_of_a_branch_takes_its_own_parents_weights(tmp_path, build, whole):
    (first,) = recipe.branch_run(f"{whole}@step:8", recipe.Wish(name="first"))
    with recipe.open_run(first) as run:
        train(run)
    shutil.rmtree(whole)
    (second,) = recipe.branch_run(f"{first}@step:12", recipe.Wish(name="second"))
    with recipe.open_run(second) as run:
        train(run)
    assert equal(weights(second, 24), weights(first, 24))


def test_missing_and_changed_weights_are_named(tmp_path, build, whole):
    recipe.branch_run(f"{whole}@step:8", recipe.Wish(name="late"))
    file = whole / "checkpoints/step-000000008.pt"
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with recipe.open_run(tmp_path / "late") as run, pytest.raises(RecipeError, match="SHA-256"):
        train(run)
    file.unlink()
    with recipe.open_run(tmp_path / "late") as run, pytest.raises(RecipeError, match="no weights to go on"):
        train(run)


def test_weights_of_another_shape_are_refused(tmp_path, build, whole):
    (path,) = recipe.branch_run(f"{whole}@step:8", recipe.Wish(name="wide", overrides=("trainer.width=32",)))
    with recipe.open_run(path) as run, pytest.raises(RecipeError, match="another model"):
        train(run)


def test_only_the_newest_checkpoints_stay_and_the_record_says_so(tmp_path, build):
    path = trained(build({"keep": 2}), tmp_path / "run")
    told = recipe.run_manifests(path)
    assert [bool(each.forgotten) for each in told] == [True] * 4 + [False] * 2
    assert sorted(file.name for file in (path / "checkpoints").glob("*.pt")) == [
        "step-000000020.pt",
        "step-000000024.pt",
    ]
    with pytest.raises(RecipeError, match="keeps 2"):
        recipe.branch_run(f"{path}@step:8", recipe.Wish(name="late"))


def test_V04_held_out_pools_are_measured_the_same_each_time_and_spend_nothing(tmp_path, build, whole):
    held = {"validation": {"text": "held_text", "code": "held_code"}, "validation_sequences": 5}
    path = trained(build(held), tmp_path / "run")
    assert equal(weights(path, 24), weights(whole, 24)), "an evaluation moves nothing"
    (measured,) = recipe.compare_runs([path]).runs
    assert {"text", "code", "pool:text", "pool:code"} == set(measured.metrics)
    assert measured.metrics["code"]["loss"] > 0
    shown = recipe.run_status(path).measured
    assert shown["code"] == measured.metrics["code"] and 0 < shown["code"]["labels"] <= 5 * 64
    assert measured.counted == recipe.compare_runs([whole]).runs[0].counted


def test_the_final_test_stays_sealed(tmp_path, build):
    path = trained(build({"final": {"exam": "held_text"}}), tmp_path / "run")
    assert "final/exam" in recipe.compare_runs([path]).sealed


@pytest.mark.parametrize("kind", ["validation", "final"])
def test_a_pool_of_the_run_is_no_held_out_pool(tmp_path, build, kind):
    with recipe.start_run(build({kind: {"code": "code"}}), tmp_path / "run") as run:
        with pytest.raises(RecipeError, match="does not train on"):
            train(run)
        assert run.step == 0


def test_labels_as_inputs_are_shifted_by_the_trainer(tmp_path, build):
    losses: list[float] = []
    with recipe.start_run(build({"learning_rate": "1e-2"}, labels="inputs"), tmp_path / "run") as run:
        train(run, lambda step, loss: losses.append(loss))
    assert losses[-1] < losses[0] - 0.5


def test_a_full_disk_is_one_message_and_the_run_goes_on(tmp_path, build, whole, monkeypatch):
    real, calls = saved.replace_file, []

    def full(path: Path, data: bytes) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise RecipeError.single(str(path), "disk", given="full", expected="room", fix="make room")
        real(path, data)

    monkeypatch.setattr(saved, "replace_file", full)
    with recipe.start_run(build(), tmp_path / "run") as run, pytest.raises(RecipeError, match="make room"):
        train(run)
    trained(build(), tmp_path / "run")
    assert equal(weights(tmp_path / "run", 24), weights(whole, 24))


def test_a_loss_that_is_no_number_stops_the_training_and_is_not_on_record(tmp_path, build):
    with recipe.start_run(build({"learning_rate": "1e30", "clip": "1e30"}), tmp_path / "run") as run:
        with pytest.raises(RecipeError, match="learning_rate"):
            train(run)
        assert run.step == 0
    assert "nan" not in (tmp_path / "run/ledger.jsonl").read_text().lower()
    assert recipe.run_manifests(tmp_path / "run") == []


def test_weights_that_a_branch_has_yet_to_start_from_stay(tmp_path, build):
    with recipe.start_run(build({"keep": 1}), tmp_path / "trunk") as run:
        train(run, stop_step=12)
    (path,) = recipe.branch_run(f"{tmp_path / 'trunk'}@step:12", recipe.Wish(name="later"))
    trained(build({"keep": 1}), tmp_path / "trunk")
    kept = sorted(file.name for file in (tmp_path / "trunk/checkpoints").glob("*.pt"))
    assert kept == ["step-000000012.pt", "step-000000024.pt"]
    with recipe.open_run(path) as run:
        train(run)


@pytest.mark.parametrize("change", ["amend", "skip", "withdraw"])
def test_a_run_is_not_turned_back_to_weights_that_are_gone(tmp_path, build, change):
    path = trained(build({"keep": 1}), tmp_path / "run")
    approval = recipe.Approval(reason="try", approved_by="A")
    ways = {
        "amend": lambda: recipe.amend_run(
            path, ["stages.two.quotas.text=55%"], at=20, from_pool="code", approval=approval
        ),
        "skip": lambda: recipe.skip_run(path, (20, 22), reason="spike"),
        "withdraw": lambda: recipe.withdraw_run(
            path, documents=[0], ticket=recipe.Ticket(reason="take-down"), at=20
        ),
    }
    with pytest.raises(RecipeError, match="a checkpoint that is gone"):
        ways[change]()
    assert recipe.run_status(path).step == 24


def test_a_pool_without_text_measures_nothing_and_is_refused(tmp_path, build, pools):
    if not (pools / "empty").exists():
        recipe.write_pool(pools / "empty", [[]], vocab_size=61, eos=60)
    told = r"trainer\.validation\.a(.|\n)*no label"
    held = build({"validation": {"a": "empty"}})
    with recipe.start_run(held, tmp_path / "run") as run, pytest.raises(RecipeError, match=told):
        train(run)


def test_a_pool_of_ids_that_the_model_has_no_row_for_is_refused_before_training(tmp_path, build, pools):
    if not (pools / "large").exists():
        recipe.write_pool(pools / "large", [range(90, 99)], vocab_size=100, eos=60)
    with pytest.raises(RecipeError, match="98"):
        check_trainer(build({"validation": {"a": "large"}}))


def counted(told: Recipe, **objective: str) -> Recipe:
    """The recipe whose first stage counts pools so in its loss."""
    plain = recipe_to_plain(told)
    plain["stages"]["one"]["objective"] = objective
    return recipe_from_plain(plain, source="test")


def test_a_step_learns_by_the_weights_of_its_rows(tmp_path, build):
    """Sampled 60:40 and counted 90:10: weights 3/2 and 1/4; the gradient is that of a plain loop."""
    told = counted(build(), text="90%", code="10%")
    with recipe.start_run(told, tmp_path / "run") as run:
        ((_, batch),) = run.stream().batches(0, stop=1)
    rows = {name: torch.from_numpy(array) for name, array in batch.items()}
    config = GPTConfig(vocab_size=61, layers=1, heads=2, width=16)
    one, other = (Trainer(config, settings_of(told.trainer), told) for _ in range(2))
    loss = torch.zeros(())
    for row in range(4):
        losses, labels = other.losses({name: array[row : row + 1] for name, array in rows.items()})
        loss = loss + (1.5, 0.25)[int(rows["pool"][row])] * losses[labels != -100].sum()
    loss = loss / (rows["labels"] != -100).sum()
    assert len(rows["pool"].unique()) == 2
    assert one.take(rows, rate=0.01) == pytest.approx(float(loss.detach()), rel=1e-5)
    other.optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(other.model.parameters(), other.settings.clip)
    for group in other.optimizer.param_groups:
        group["lr"] = 0.01
    other.optimizer.step()
    for mine, plain in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.allclose(mine, plain, atol=1e-5)


def test_a_pool_that_does_not_count_is_not_learnt_from(tmp_path, build):
    """Other tokens in its rows give the same weights."""
    told = counted(build(), text="100%", code="0%")
    with recipe.start_run(told, tmp_path / "run") as run:
        ((_, batch),) = run.stream().batches(0, stop=1)
    rows = {name: torch.from_numpy(array.copy()) for name, array in batch.items()}
    unheard = rows["pool"] == 1
    config = GPTConfig(vocab_size=61, layers=1, heads=2, width=16)
    one, other = (Trainer(config, settings_of(told.trainer), told) for _ in range(2))
    one.take(rows, rate=0.01)
    rows["input_ids"][unheard] = 7
    other.take(rows, rate=0.01)
    assert unheard.any() and not unheard.all()
    assert equal(one.model.state_dict(), other.model.state_dict())


def test_a_weighted_training_stopped_and_started_again_ends_at_the_same_bits(tmp_path, build, whole):
    told = counted(build(), text="90%", code="10%")
    with recipe.start_run(told, tmp_path / "run") as run:
        train(run, stop_step=9)
    trained(told, tmp_path / "run")
    unbroken = trained(told, tmp_path / "unbroken")
    assert equal(weights(tmp_path / "run", 24), weights(unbroken, 24))
    assert not equal(weights(unbroken, 24), weights(whole, 24)), "the weights matter"


def test_f6_held_out_pools_are_scored_by_the_recipes_own_windows(tmp_path, build):
    held, rule = {"validation": {"text": "held_text"}}, {"window": 32, "stride": 12, "offset": 5}
    path = trained(build(held, evaluation=rule), tmp_path / "run")
    (measured,) = recipe.compare_runs([path]).runs
    whole = trained(build(held), tmp_path / "packed")
    (packed,) = recipe.compare_runs([whole]).runs
    assert measured.metrics["text"]["loss"] != packed.metrics["text"]["loss"]
    assert equal(weights(path, 24), weights(whole, 24))
