"""The stream under Transformers' Trainer: its own loop, its own checkpoints, the run's order and record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset
from transformers import Trainer, TrainerCallback

from recipe.errors import RecipeError
from recipe.integrations.held_out import HeldOutRows
from recipe.integrations.hf_model import call_problems, first_loss
from recipe.integrations.hf_settings import check_settings, split_problems
from recipe.integrations.record import course_of, forget_removed, forget_weights, opened_at
from recipe.integrations.torch.losses import IGNORED
from recipe.integrations.torch.masks import attention_bias, check_attention, varlen
from recipe.integrations.torch.place import TrainerPlace
from recipe.integrations.torch.workers import worker_and_workers
from recipe.mixing.reader import LOSS_WEIGHT
from recipe.run.run import Run

Attention = Literal["mask", "flash", "none"]
ATTENTIONS: tuple[str, ...] = get_args(Attention)
Inputs = dict[str, Any]
_COURSE = "StreamTrainer"
"""Where the Trainer's state says whose rows its weights have seen."""


def model_inputs(batch: Mapping[str, torch.Tensor], *, labels: str, attention: Attention = "mask") -> Inputs:
    """What a causal model of Transformers takes, from rows of the stream.

    Args:
        batch: rows of an item.
        labels: the recipe's: ``inputs`` are shifted by the model, ``shifted`` are given as ``shift_labels``.
        attention: ``mask`` for eager and SDPA attention, [rows, 1, context, context]; ``flash`` for the
            lengths of all rows' segments, rows laid behind each other in one; ``none`` lets rows be whole.

    Returns:
        ``input_ids, labels, position_ids`` int64, and what the attention needs.
    """
    check_attention(attention, ATTENTIONS)
    inputs: Inputs = {"input_ids": batch["input_ids"], "labels": batch["labels"]}
    inputs["position_ids"] = batch["position_ids"].long()
    if attention == "flash":
        inputs = {name: array.reshape(1, -1) for name, array in inputs.items()}
        lengths = varlen(batch)
        inputs |= {"cu_seq_lens_q": lengths.cu_seqlens, "cu_seq_lens_k": lengths.cu_seqlens}
        inputs |= {"max_length_q": lengths.max_seqlen, "max_length_k": lengths.max_seqlen}
    if attention == "mask":
        visible = attention_bias(batch["segment_ids"])
        inputs["attention_mask"] = torch.zeros(visible.shape).masked_fill(~visible, float("-inf"))
    if labels == "shifted":
        inputs["shift_labels"] = inputs["labels"]
    return inputs


class StreamTrainer(Trainer):
    """Transformers' Trainer over a run: as many optimizer steps as it has, its rows, its record.

    ::

        run = recipe.resume_or_start(recipe.load_recipe("my.yaml"), "runs/mine")
        args = TrainingArguments("out", per_device_train_batch_size=4, gradient_accumulation_steps=8)
        trainer = StreamTrainer(model=model, args=args, run=run)
        trainer.train(resume_from_checkpoint=run.step > 0)

    The same lines start it and, after a kill, go on from its last checkpoint. A plain ``train()`` begins at
    step 0 whatever the record says, and warns of what that discards; a branch goes on from the weights that
    it branched from, ``train(resume_from_checkpoint="out/checkpoint-400")``.

    Its global step is the run's. Each of its checkpoints is put on record by the process of rank 0; resumed
    from an older one, the run is opened there and the record says what was discarded. Weights that are ahead
    of the record, and not this run's own, are refused.

    With ``labels: shifted`` the model's loss has to take ``shift_labels``, as those of Transformers do; the
    first loss shows it. A model that shifts labels by itself wants ``labels: inputs``. What it evaluates is
    on record in a set of its own for every area: ``eval_dataset=held_out_rows(run, {"news": "pools/news"})``.
    """

    def __init__(self, *args: Any, run: Run, attention: Attention = "mask", **options: Any) -> None:
        """As ``Trainer``, without ``train_dataset``; ``max_steps`` may be left out.

        Args:
            args: for ``Trainer``.
            run: opened where the training goes on; processes of other ranks write nothing to it.
            attention: how documents of a row are kept apart, see :func:`model_inputs`.
            options: for ``Trainer``.

        Raises:
            RecipeError: steps or batch sizes that are not the recipe's; a model that is split over processes,
                or has no place for what the stream gives; tokens that are to be counted by the mask; labels
                that would be shifted twice.
        """
        settings = options["args"] if "args" in options else args[1]
        check_settings(settings, run, run.step)
        check_attention(attention, ATTENTIONS)
        settings.max_steps = run.num_steps
        settings.ignore_data_skip = True
        settings.remove_unused_columns = False
        super().__init__(*args, train_dataset=_Nothing(), **options)
        if problems := split_problems(self.accelerator):  # a model may say so, too
            raise RecipeError(f"{run.path}: not the recipe's rows", problems)
        labels = (
            "inputs" if run.recipe.is_weighted else run.recipe.labels
        )  # weighted, the loss is worked out here
        if problems := call_problems(self.model, labels, attention):
            raise RecipeError(f"{run.path}: a model that does not take its rows", problems)
        self.run, self._attention = run, attention
        self._serves, self._is_tried = False, False
        otherwise: Any = self.data_collator
        self.data_collator: Any = _Collator(run.recipe.labels, attention, otherwise)
        self.loss_is_scaled_for_ga: bool | None = None
        self.add_callback(_Record(self))

    def compute_loss(
        self, model: Any, inputs: Inputs, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The model's own loss; where the recipe has an objective, ``sum(weight * loss) / num_labels``.

        That is the step's, once it is added up over micro-batches; times the ranks, over which gradients are
        averaged.
        """
        if LOSS_WEIGHT not in inputs:
            self.loss_is_scaled_for_ga = getattr(type(self), "loss_is_scaled_for_ga", None)
            if self._is_tried:
                return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            loss, outputs = self._tried(super().compute_loss, model, inputs, num_items_in_batch)
            return (loss, outputs) if return_outputs else loss
        inputs = dict(inputs)
        weights, whole = inputs.pop(LOSS_WEIGHT), inputs.pop("num_labels")
        labels, shifted = inputs.pop("labels"), inputs.pop("shift_labels", None)
        outputs = model(**inputs)
        logits = (outputs["logits"] if isinstance(outputs, dict) else outputs[0]).float()
        if shifted is None:
            logits, shifted, weights = logits[:, :-1], labels[:, 1:], weights[:, 1:]
        losses = cross_entropy(
            logits.flatten(0, 1), shifted.flatten(), ignore_index=IGNORED, reduction="none"
        )
        loss = (losses * weights.flatten()).sum() / whole.clamp(min=1) * self.args.world_size
        self.loss_is_scaled_for_ga = True
        return (loss, outputs) if return_outputs else loss

    def _tried(self, compute: Any, model: Any, inputs: Inputs, num_items_in_batch: Any) -> Any:
        is_models_own = self.compute_loss_func is None and self.label_smoother is None
        found = first_loss(
            lambda inputs: compute(model, inputs, True, num_items_in_batch),
            inputs,
            is_models_own=is_models_own,
        )
        self._is_tried = True
        return found

    def evaluation_loop(self, dataloader: Any, *args: Any, **options: Any) -> Any:
        """As the Trainer's, with the tokens and labels of a held-out pool: they are none of the run's."""
        output = super().evaluation_loop(dataloader, *args, **options)
        rows = dataloader.dataset
        if isinstance(rows, HeldOutRows):
            prefix = args[3] if len(args) > 3 else options.get("metric_key_prefix", "eval")
            told = {f"{prefix}_tokens": rows.num_tokens, f"{prefix}_labels": rows.num_labels}
            output.metrics.update(told)
        return output

    def get_train_dataloader(self) -> DataLoader[Inputs]:
        """This rank's micro-batches, from the trainer's step on; not dealt out once more by others."""
        return _Loader(self)

    def rows(self) -> _MicroBatches:
        """The same, as a dataset."""
        ranks = (self.args.process_index, self.args.world_size)
        return _MicroBatches(self.run, ranks, self.args.per_device_train_batch_size, self._attention)

    def stand(self) -> Run:
        """The run, opened where the weights are: the Trainer knows only once it begins."""
        step, told = self.state.global_step, self.state.stateful_callbacks.get(_COURSE)
        if not self._serves or step < self.run.step:
            resume = "train(resume_from_checkpoint=True)"
            self.run = opened_at(self.run, step, told and told["args"], resume)
        check_settings(self.args, self.run, step)
        self._serves = True
        return self.run

    def train(self, *args: Any, **options: Any) -> Any:
        """As the Trainer's: its weights may be others than those that it had before."""
        self._serves = False
        return super().train(*args, **options)

    def _save_checkpoint(self, *args: Any, **options: Any) -> None:
        """As the Trainer's; its state says whose rows the weights have seen."""
        self.state.stateful_callbacks[_COURSE] = {"args": course_of(self.run), "attributes": {}}
        super()._save_checkpoint(*args, **options)


class _Collator:
    """Rows of held-out pools as the model takes them; other examples as the Trainer lays them together."""

    def __init__(self, labels: str, attention: Attention, otherwise: Any) -> None:
        self._how, self._otherwise = (labels, attention), otherwise

    def __call__(self, examples: list[Any]) -> Any:
        if not isinstance(examples[0], Mapping) or "segment_ids" not in examples[0]:
            return self._otherwise(examples)
        batch = {name: torch.stack([each[name] for each in examples]) for name in examples[0]}
        labels, attention = self._how
        return model_inputs(batch, labels=labels, attention=attention)


class _Loader(DataLoader[Inputs]):
    """A loader that finds out where to begin when it is asked for the first batch."""

    def __init__(self, trainer: StreamTrainer) -> None:
        args = trainer.args
        options = {"num_workers": args.dataloader_num_workers, "pin_memory": args.dataloader_pin_memory}
        self.rows = trainer.rows()
        super().__init__(self.rows, batch_size=None, **options)
        self.trainer = trainer

    def __iter__(self) -> Any:
        self.rows.stand_at(self.trainer.stand(), self.trainer.state.global_step)
        return super().__iter__()


class _Nothing(IterableDataset[Inputs]):
    """The Trainer asks for a dataset before it asks for its loader."""

    def __iter__(self) -> Iterator[Inputs]:
        return iter(())


class _MicroBatches(IterableDataset[Inputs]):
    """Micro-batches of a rank in their order; a worker serves every n-th of them."""

    def __init__(self, run: Run, ranks: tuple[int, int], micro_batch: int, attention: Attention) -> None:
        self._deal = (*ranks, micro_batch)
        self._how: tuple[str, Attention] = (run.recipe.labels, attention)
        self.stand_at(run, run.step)

    def stand_at(self, run: Run, step: int) -> None:
        """Begin at a step, whatever the last checkpoint on record is."""
        rank, size, each = self._deal
        self._place = TrainerPlace(run.state(run.step), dp_rank=rank, dp_size=size, micro_batch=each)
        self._place.step = step

    def __iter__(self) -> Iterator[Inputs]:
        number, workers = worker_and_workers()
        labels, attention = self._how
        count = 0
        for step in self._place.steps_left():
            for part in self._place.micro_batches(self._place.item(step)):
                if count % workers == number:
                    inputs = model_inputs(part.batch, labels=labels, attention=attention)
                    yield inputs | _weights_of(part.batch, inputs["labels"])
                count += 1


def _weights_of(batch: Mapping[str, torch.Tensor], labels: torch.Tensor) -> Inputs:
    """What :meth:`StreamTrainer.compute_loss` takes off again: the weight of every position, of the shape of
    the labels, and the labels of the whole step; nothing where the recipe has no objective."""
    if LOSS_WEIGHT not in batch:
        return {}
    weights = batch[LOSS_WEIGHT][:, None].expand(batch["labels"].shape)
    return {LOSS_WEIGHT: weights.reshape(labels.shape), "num_labels": batch["num_labels"]}


class _Record(TrainerCallback):
    """Puts the Trainer's checkpoints on record, once their files are there."""

    def __init__(self, trainer: StreamTrainer) -> None:
        self._trainer = trainer

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Rank 0 says where the weights of so many steps are, and what was measured."""
        if state.is_world_process_zero:
            run, folder = self._trainer.run, Path(args.output_dir).absolute()
            uri = str(folder / f"checkpoint-{state.global_step}")
            number = run.checkpoint(state.global_step, uri, metrics=self._metrics(state))
            forget_weights(run, {uri}, f"written over at step {state.global_step} by the trainer", but=number)
            forget_removed(run, folder)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The end is on record also where nothing was saved there."""
        run = self._trainer.run
        if state.is_world_process_zero and run.step < state.global_step:
            run.checkpoint(state.global_step, metrics=self._metrics(state))

    def _metrics(self, state: Any) -> dict[str, dict[str, float]]:
        """Numbers of the Trainer's log since its last step; evaluations in a set of their area."""
        here = [line for line in state.log_history if line.get("step") == state.global_step]
        named = self._trainer.eval_dataset
        areas = {f"eval_{area}_": area for area in named} if isinstance(named, dict) else {}
        prefixes, found = areas | {"eval_": "eval"}, dict[str, dict[str, float]]()
        for name, value in (item for line in here for item in line.items()):
            prefix = next((each for each in prefixes if name.startswith(each)), "")
            if isinstance(value, float) or (prefix and isinstance(value, int)):
                found.setdefault(prefixes.get(prefix, "trainer"), {})[name.removeprefix(prefix)] = value
        return found
