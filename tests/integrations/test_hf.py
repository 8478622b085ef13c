"""Transformers' own Trainer over a run: killed and resumed to the same weights; documents kept apart."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.parallelism_config import ParallelismConfig
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint

import recipe
from recipe.errors import RecipeError
from recipe.integrations.held_out import held_out_rows
from recipe.integrations.hf import StreamTrainer, model_inputs
from recipe.integrations.torch import StreamDataset
from tests.integrations.child import in_a_child
from tests.integrations.conftest import PLAIN, WEIGHTED, started

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]
TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 100, "n_positions": 64}
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


def model() -> GPT2LMHeadModel:
    torch.manual_seed(4)
    return GPT2LMHeadModel(GPT2Config(**TINY, **NO_DROPOUT))


def arguments(out: Path, **changes: Any) -> TrainingArguments:
    settings = {
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 2,
        "save_steps": 4,
        "logging_steps": 4,
        "learning_rate": 1e-2,
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
    }
    return TrainingArguments(str(out), **settings | changes)


class Killer(TrainerCallback):
    """Ends the process after a step, or right after a save: before or after it is on record."""

    def __init__(self, step: int, event: str) -> None:
        self.step, self.event = step, event

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.event == "step" and state.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.event == "save" and state.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def train(path: Path, out: Path, **options: Any) -> dict[str, torch.Tensor]:
    """Go on with a run from the Trainer's last checkpoint; its weights at the end."""
    last = get_last_checkpoint(str(out)) if out.is_dir() else None
    with recipe.open_run(path) as run:
        trainer = StreamTrainer(model=model(), args=arguments(out), run=run, **options)
        trainer.train(resume_from_checkpoint=last)
        return trainer.model.state_dict()


@pytest.fixture
def path(state: bytes, tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    return tmp_path / "run"


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, torch.Tensor]:
    torch.set_num_threads(1)
    started(tmp_path / "other")
    return train(tmp_path / "other/run", tmp_path / "other/out")


def test_every_checkpoint_of_the_trainer_is_on_record(path, tmp_path, whole):
    done = train(path, tmp_path / "out")
    assert all(torch.equal(done[name], whole[name]) for name in whole)
    told = recipe.run_manifests(path)
    assert [each.step for each in told] == [4, 8, 12, 16, 20, 24]
    assert told[0].uri == str(tmp_path / "out/checkpoint-4")
    assert recipe.audit_run(path, pools_root=tmp_path).findings == ()


@pytest.mark.parametrize(
    ("step", "event"), [(3, "step"), (6, "step"), (16, "step"), (21, "step"), (8, "save")]
)
def test_killed_and_resumed_it_ends_at_the_same_bits(path, tmp_path, whole, step, event):
    killer = [Killer(step, event)]
    assert in_a_child(lambda: train(path, tmp_path / "out", callbacks=killer)) == -signal.SIGKILL
    done = train(path, tmp_path / "out")
    assert all(torch.equal(done[name], whole[name]) for name in whole)
    assert recipe.run_status(path).step == 24
    assert recipe.audit_run(path, pools_root=tmp_path).findings == ()


def test_resumed_from_an_older_checkpoint_the_record_rewinds(path, tmp_path, whole):
    train(path, tmp_path / "out")
    with recipe.open_run(path) as run:
        trainer = StreamTrainer(model=model(), args=arguments(tmp_path / "out"), run=run)
        with pytest.warns(UserWarning, match="record is at step 24, the weights at step 8"):
            trainer.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-8"))
        done = trainer.model.state_dict()
    assert all(torch.equal(done[name], whole[name]) for name in whole)
    status = recipe.run_status(path)
    assert status.step == 24 and recipe.audit_run(path, pools_root=tmp_path).findings == ()


@pytest.mark.parametrize("workers", [1, 2])
def test_F3_workers_change_nothing(path, tmp_path, whole, workers):
    with recipe.open_run(path) as run:
        args = arguments(tmp_path / "out", dataloader_num_workers=workers)
        trainer = StreamTrainer(model=model(), args=args, run=run)
        trainer.train()
    assert all(torch.equal(trainer.model.state_dict()[name], whole[name]) for name in whole)


def test_labels_that_the_model_shifts_itself_train_the_same_positions(tmp_path, whole):
    """Only labels at cuts, and of end marks that found no room, are lost; here there are none."""
    torch.set_num_threads(1)
    whole_rows = {"slicing": {"oversize": "drop", "window": 24}}
    stages = {name: stage | whole_rows for name, stage in PLAIN["stages"].items()}
    for name in ("inputs", "shifted"):
        started(tmp_path / name, labels=name, stages=stages)
    ends = [train(tmp_path / name / "run", tmp_path / name / "out") for name in ("inputs", "shifted")]
    assert all(torch.allclose(ends[0][name], ends[1][name], atol=1e-4) for name in ends[0])


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_C2_documents_of_a_row_do_not_see_each_other(state, kind, implementation):
    torch.manual_seed(1)
    shape = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}
    config = GPT2Config(**TINY, **NO_DROPOUT) if kind == "gpt2" else LlamaConfig(vocab_size=100, **shape)
    config._attn_implementation = implementation
    net = (GPT2LMHeadModel if kind == "gpt2" else LlamaForCausalLM)(config).eval()
    batch = StreamDataset(state)[18]
    assert batch["segment_ids"].max() >= 1

    def logits(ids: torch.Tensor) -> torch.Tensor:
        inputs = model_inputs({**batch, "input_ids": ids}, labels="shifted")
        with torch.no_grad():
            return net(**inputs).logits

    first = batch["segment_ids"] == 0
    changed = torch.where(first, (batch["input_ids"] + 7) % 99, batch["input_ids"])
    before, after = logits(batch["input_ids"]), logits(changed)
    assert torch.equal(before[~first], after[~first]) and not torch.equal(before[first], after[first])


def test_shifted_labels_are_not_shifted_once_more(state):
    net, batch = model().eval(), StreamDataset(state)[18]
    with torch.no_grad():
        told = net(**model_inputs(batch, labels="shifted"))
    expected = torch.nn.functional.cross_entropy(told.logits.flatten(0, 1), batch["labels"].flatten())
    assert torch.allclose(told.loss, expected)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"gradient_accumulation_steps": 1}, "gradient_accumulation_steps=2"),
        ({"per_device_train_batch_size": 3}, "sizes whose product it is"),
        ({"max_steps": 23}, "24, the run's"),
        ({"parallelism_config": ParallelismConfig(tp_size=2)}, "tp_size 2"),
        ({"include_num_input_tokens_seen": "non_padding"}, "all or no"),
    ],
)
def test_settings_that_are_not_the_recipes_are_refused_before_training(path, tmp_path, changes, told):
    with recipe.open_run(path) as run, pytest.raises(RecipeError, match=told):
        StreamTrainer(model=model(), args=arguments(tmp_path / "out", **changes), run=run)


@pytest.mark.parametrize("attention", ["mask", "none"])
def test_held_out_rows_are_measured_as_the_model_is_trained(path, tmp_path, attention):
    """In batches of any size: the loss is the model's own over all labels where one batch holds them all."""
    recipe.write_pool(tmp_path / "held", [range(k, 40 + k) for k in range(6)], vocab_size=100, eos=99)
    with recipe.open_run(path) as run:
        rows = held_out_rows(run, {"news": tmp_path / "held"})["news"]
        args = arguments(tmp_path / "out", per_device_eval_batch_size=len(rows))
        trainer = StreamTrainer(model=model(), args=args, run=run, attention=attention)
        told = trainer.evaluate(rows)
        batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        loss = model().eval()(**model_inputs(batch, labels="shifted", attention=attention)).loss
        assert told["eval_loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
        assert (told["eval_tokens"], told["eval_labels"]) == (6 * 41, 6 * 40)
        own = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 3
        assert "eval_tokens" not in trainer.evaluate(own), "other data sets are the Trainer's own"
        with pytest.raises(RecipeError, match=r"held_out\.news"):
            held_out_rows(run, {"news": tmp_path / "pools/a"})


def test_a_misspelt_attention_is_refused(path, tmp_path, state):
    with recipe.open_run(path) as run, pytest.raises(RecipeError, match="mask, flash, none"):
        StreamTrainer(model=model(), args=arguments(tmp_path / "out"), run=run, attention="flash_attn")
    with pytest.raises(RecipeError, match="mask, flash, none"):
        model_inputs(StreamDataset(state)[0], labels="shifted", attention="Mask")


def test_steps_of_another_batch_are_refused_also_where_only_the_weights_are_there(tmp_path):
    """Six steps of four rows, then six of two; the record is at step 6, the weights at step 4."""
    stages = {
        name: stage | {"batch": {"sequences": n}}
        for (name, stage), n in zip(PLAIN["stages"].items(), (4, 2), strict=True)
    }
    started(tmp_path, stages=stages)
    torch.set_num_threads(1)
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(16)
        trainer = StreamTrainer(
            model=model(), args=arguments(tmp_path / "out", gradient_accumulation_steps=1), run=run
        )
        trainer.state.global_step = 4
        with (
            pytest.warns(UserWarning, match="weights at step 4"),
            pytest.raises(RecipeError, match="4 sequences, the recipe's batch"),
        ):
            trainer.stand()


def test_a_training_that_begins_anew_says_what_it_discards_and_how_to_go_on(path, tmp_path, whole):
    """Killed after step 6, on record at step 4: as the docstring has it, the same lines go on."""
    killer = [Killer(6, "step")]
    assert in_a_child(lambda: train(path, tmp_path / "out", callbacks=killer)) == -signal.SIGKILL
    with recipe.open_run(path) as run:
        trainer = StreamTrainer(model=model(), args=arguments(tmp_path / "out"), run=run)
        trainer.add_callback(StopAt(1))
        told = r"Steps 0 to 3 are trained again[\s\S]*resume_from_checkpoint=True"
        with pytest.warns(UserWarning, match=told):
            trainer.train()
    started(tmp_path / "again")
    path = tmp_path / "again/run"
    assert in_a_child(lambda: train(path, tmp_path / "more", callbacks=killer)) == -signal.SIGKILL
    with recipe.open_run(path) as run:
        trainer = StreamTrainer(model=model(), args=arguments(tmp_path / "more"), run=run)
        trainer.train(resume_from_checkpoint=run.step > 0)
    assert all(torch.equal(trainer.model.state_dict()[name], whole[name]) for name in whole)


class StopAt(TrainerCallback):
    """Ends the training after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = state.global_step >= self.step


def test_weights_that_are_ahead_of_a_branch_are_refused(path, tmp_path):
    """Its own, saved and killed before they were on record, are gone on from: see the kills after a save."""
    train(path, tmp_path / "out", callbacks=[StopAt(12)])
    recipe.branch_run(f"{path}@step:8", recipe.Wish(name="side"))
    for last, step in (("checkpoint-12", 8), ("checkpoint-8", 12)):
        with recipe.open_run(tmp_path / "side") as run:
            args = arguments(tmp_path / "other")
            trainer = StreamTrainer(model=model(), args=args, run=run, callbacks=[StopAt(12)])
            weights = str(tmp_path / "out" / last)
            if step == 8:
                with pytest.raises(RecipeError, match="weights of step 12, saved by run run"):
                    trainer.train(resume_from_checkpoint=weights)
            else:
                trainer.train(resume_from_checkpoint=weights)
        assert recipe.run_status(tmp_path / "side").step == step
    assert recipe.audit_run(tmp_path / "side", pools_root=tmp_path).findings == ()


def test_weights_that_the_trainer_removes_are_gone_on_record(path, tmp_path):
    with recipe.open_run(path) as run:
        args = arguments(tmp_path / "out", save_total_limit=2)
        StreamTrainer(model=model(), args=args, run=run).train()
    told = recipe.run_manifests(path)
    assert [each.step for each in told if each.forgotten is None] == [20, 24]
    assert {each.forgotten for each in told} == {None, "removed by the trainer"}
    assert all(Path(each.uri).is_dir() == (each.forgotten is None) for each in told)


class Shifting(torch.nn.Module):
    """A model that shifts labels by itself, and swallows what it does not know."""

    def __init__(self, net: torch.nn.Module, kind: str) -> None:
        super().__init__()
        self.net, self.kind, self.config = net, kind, net.config

    def forward(self, labels: torch.Tensor, num_items_in_batch: Any = None, **told: Any) -> dict[str, Any]:
        told.pop("shift_labels", None)
        logits = self.net(**told).logits
        how = {"reduction": "sum"} if self.kind == "sum" else {}
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), **how)
        if self.kind == "sum":
            loss = loss / num_items_in_batch
        if self.kind == "others":
            extra = (logits**2).mean() * 0.01
            loss = torch.nan_to_num(loss) + extra
            return {"loss": loss, "logits": logits, "aux_loss": extra}
        return {"loss": loss, "logits": logits}


class Strict(torch.nn.Module):
    """A model that has no place for labels that are shifted."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.net, self.config = net, net.config

    def forward(
        self, input_ids: Any, attention_mask: Any = None, position_ids: Any = None, labels: Any = None
    ) -> Any:
        return self.net(input_ids, attention_mask=attention_mask, position_ids=position_ids, labels=labels)


@pytest.mark.parametrize("kind", ["mean", "sum", "others"])
def test_a_model_that_would_shift_labels_once_more_is_refused(tmp_path, kind):
    """Before its first step; with labels: inputs it trains."""
    torch.set_num_threads(1)
    for labels in ("shifted", "inputs"):
        started(tmp_path / labels, labels=labels)
        with recipe.open_run(tmp_path / labels / "run") as run:
            args = arguments(tmp_path / labels / "out", save_strategy="no")
            trainer = StreamTrainer(model=Shifting(model(), kind), args=args, run=run, callbacks=[StopAt(2)])
            if labels == "shifted":
                with pytest.raises(RecipeError, match="labels: inputs"):
                    trainer.train()
                assert trainer.state.global_step == 0
            else:
                trainer.train()
                assert trainer.state.global_step == 2


def test_a_model_without_a_place_for_what_the_stream_gives_is_refused(path, tmp_path):
    with recipe.open_run(path) as run, pytest.raises(RecipeError, match=r"shift_labels[\s\S]*labels: inputs"):
        StreamTrainer(model=Strict(model()), args=arguments(tmp_path / "out"), run=run)


def test_smoothed_labels_are_not_shifted_once_more(path, tmp_path):
    args = arguments(tmp_path / "out", label_smoothing_factor=0.1)
    with recipe.open_run(path) as run, pytest.raises(RecipeError, match="label_smoothing_factor"):
        StreamTrainer(model=model(), args=args, run=run)


@pytest.mark.parametrize("attention", ["mask", "none"])
def test_a_model_with_another_loss_beside_is_no_false_alarm(path, tmp_path, attention):
    """Experts: the loss of labels that are hidden is that of the router, which takes no mask of pairs."""
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape |= {"num_key_value_heads": 2, "num_local_experts": 2, "max_position_embeddings": 64}
    routed = attention == "none"
    net = MixtralForCausalLM(MixtralConfig(vocab_size=100, output_router_logits=routed, **shape))
    with recipe.open_run(path) as run:
        args = arguments(tmp_path / "out", save_strategy="no")
        trainer = StreamTrainer(model=net, args=args, run=run, attention=attention, callbacks=[StopAt(2)])
        trainer.train()
    assert trainer.state.global_step == 2


@pytest.mark.parametrize("attention", ["mask", "none"])
def test_a_model_that_takes_no_such_mask_is_told_so(path, tmp_path, attention):
    net = OpenAIGPTLMHeadModel(OpenAIGPTConfig(**TINY, **NO_DROPOUT))
    with recipe.open_run(path) as run:
        args = arguments(tmp_path / "out", save_strategy="no")
        trainer = StreamTrainer(model=net, args=args, run=run, attention=attention, callbacks=[StopAt(1)])
        if attention == "none":
            trainer.train()
        else:
            with pytest.raises(RecipeError, match=r"attention='flash'[\s\S]*attention='none'"):
                trainer.train()


def test_faults_of_other_kinds_stay_what_they_are(path, tmp_path):
    """A context longer than the model's table of positions is no fault of the mask."""
    small = GPT2LMHeadModel(GPT2Config(**TINY | {"n_positions": 16}, **NO_DROPOUT))
    with recipe.open_run(path) as run, pytest.raises(IndexError):
        StreamTrainer(model=small, args=arguments(tmp_path / "out"), run=run).train()


@pytest.mark.parametrize("labels", ["shifted", "inputs"])
@pytest.mark.parametrize("accepts", [True, False])
def test_a_step_counts_labels_by_the_objective_over_all_its_micro_batches(tmp_path, labels, accepts):
    """The loss that the Trainer logs is ``sum(weight * loss) / num_labels`` of the whole step."""
    torch.set_num_threads(1)
    state = started(tmp_path, stages=WEIGHTED, labels=labels)
    item = StreamDataset(state)[0]
    plain = model_inputs(item, labels="shifted")
    targets = item["labels"]
    if labels == "inputs":
        targets = torch.cat([targets[:, 1:], torch.full_like(targets[:, :1], -100)], dim=1)
    before = {name: plain[name] for name in ("input_ids", "position_ids", "attention_mask")}
    logits = model()(**before).logits
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    weights = torch.tensor([1.6, 0.4])[item["pool"]]
    expected = (losses * weights[:, None]).sum() / int(item["num_labels"])
    assert int(item["num_labels"]) == int((targets != -100).sum())
    with recipe.open_run(tmp_path / "run") as run:
        trainer = StreamTrainer(model=model(), args=arguments(tmp_path / "out", logging_steps=1), run=run)
        trainer.model_accepts_loss_kwargs = accepts
        trainer.train()
    assert trainer.state.log_history[0]["loss"] == pytest.approx(float(expected.detach()), rel=1e-3)
    assert recipe.audit_run(tmp_path / "run", pools_root=tmp_path).findings == ()
