"""Megatron's flags for a recipe: one launch for every stage, each with its own.

Sources:
    Megatron-LM, ``megatron/training/arguments.py``: training is told in iterations or in samples, a ramp in
    samples only. ``update_train_iters`` of ``megatron/training/training.py``: without a ramp, samples are
    divided by the batch of this launch. ``RampupBatchsizeNumMicroBatchesCalculator`` of
    ``megatron/core/num_microbatches_calculator.py``. ``_get_ltor_masks_and_position_ids`` of
    ``megatron/core/datasets/gpt_dataset.py``: resets happen after EOD ids only, and the attention mask is
    reset only where the data loader makes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from recipe.config import Recipe
from recipe.mixing.curriculum import Curriculum, Stretch
from recipe.run.handover.setting import Habits, Setting

LEFT_OUT = "leave out"
"""Value of an option that must not be given."""


def megatron_shared(recipe: Recipe, habits: Habits) -> list[Setting]:
    """Flags that all launches of a settled recipe share."""
    contexts = [stage.context for stage in recipe.stages.values()]
    declared = recipe.model.max_positions if recipe.model is not None else None
    settings = [
        Setting(
            "--dataloader-type",
            "single",
            "samples in order: recipe.integrations.megatron.MegatronStream is indexed by consumed samples; "
            "external where the script asks the stream for the rows of its rank itself",
        ),
        Setting(
            "--max-position-embeddings",
            declared or max(contexts),
            "the longest context of the curriculum, or the model's own table",
        ),
        *_resets(habits),
        Setting(
            "--calculate-per-token-loss",
            True,
            "rows carry different numbers of labels (overlap, padding, ends): the loss is a mean over labels",
        ),
    ]
    if recipe.model is not None and recipe.model.vocab_size is not None:
        settings.append(
            Setting("--vocab-size", recipe.model.vocab_size, "rows of the embedding; every id is below it")
        )
    settings += _places(recipe)
    if recipe.deal == "balanced":
        why = (
            "rows are dealt so that micro-batches even out: MegatronStream(dp_size=, micro_batch=) needs both"
        )
        settings.append(Setting("deal", "balanced", why))
    if recipe.labels == "inputs":
        settings.append(
            Setting("labels", "do not fit", "Megatron takes labels that are shifted already: labels: shifted")
        )
    return settings


def _places(recipe: Recipe) -> list[Setting]:
    """How the model and a batch are split, as far as the recipe says it."""
    settings = []
    each = (recipe.trainer or {}).get("micro_batch_size")
    if each is not None:
        settings.append(Setting("--micro-batch-size", each, "trainer.micro_batch_size of the recipe"))
    parallel = recipe.parallel
    sizes = {"tensor-model": parallel.tp, "pipeline-model": parallel.pp, "context": parallel.cp}
    settings += [
        Setting(f"--{name}-parallel-size", size, "parallel of the recipe")
        for name, size in sizes.items()
        if size > 1
    ]
    if parallel.sequence_parallel:
        settings.append(Setting("--sequence-parallel", True, "parallel of the recipe"))
    return settings


def _resets(habits: Habits) -> list[Setting]:
    return [
        _switch(
            "--reset-position-ids",
            habits.restarts,
            "positions start again at 0 in each piece",
            "positions run on through the row",
        ),
        _switch(
            "--reset-attention-mask",
            habits.isolated,
            "pieces of a row do not see each other; has an effect only where the data loader makes a mask: "
            "with --no-create-attention-mask-in-dataloader give the kernel cu_seqlens instead",
            "the whole row is one sequence to attention",
        ),
        _switch(
            "--no-create-attention-mask-in-dataloader",
            None if habits.isolated is None else not habits.isolated,
            "a causal mask is all there is: the kernel has its own",
            'MegatronStream gives the mask by itself; set the flag with attention="cu_seqlens"',
        ),
        _switch(
            "--eod-mask-loss",
            None if habits.crosses is None else not habits.crosses,
            "the position of an end mark predicts nothing: no label crosses documents",
            "an end mark predicts the next document's first token",
        ),
    ]


def _switch(option: str, on: bool | None, why: str, why_not: str) -> Setting:
    """A flag that is set, left out, or cannot say what the rules say."""
    if on is None:
        return Setting(option, LEFT_OUT, "pools or stages differ: only the arrays of the batch say which")
    return Setting(option, True if on else LEFT_OUT, why if on else why_not)


def megatron_launches(recipe: Recipe) -> dict[str, list[Setting]]:
    """Flags of every launch beside the shared ones, by name.

    A stage is one launch, because Megatron's context is fixed; a ramp that Megatron cannot say is one for
    every size of the batch. Each loads the checkpoint of the one before it, with its consumed samples.
    """
    curriculum = Curriculum.from_recipe(recipe)
    launches: dict[str, list[Setting]] = {}
    for index, layout in enumerate(curriculum.stages):
        stretches = [stretch for stretch in curriculum.stretches if stretch.stage == index]
        ramp = _rampup(stretches) if index == 0 and len(stretches) > 1 else None
        context = Setting("--seq-length", layout.context, "context of the stage; a stage is a job of its own")
        if ramp is not None or len(stretches) == 1:
            launches[layout.name] = [context, *_launch(curriculum, stretches[-1], ramp)]
            continue
        for stretch in stretches:
            name = f"{layout.name}, from step {stretch.first_step}"
            refused = Setting("--rampup-batch-size", LEFT_OUT, "it cannot change at these steps")
            launches[name] = [context, *_launch(curriculum, stretch, None), refused]
    return launches


def _launch(curriculum: Curriculum, last: Stretch, ramp: str | None) -> list[Setting]:
    """Batch and end of a launch whose last steps are these."""
    divides = "the data-parallel size times --micro-batch-size must divide it"
    settings = [Setting("--global-batch-size", last.batch, f"of step {last.first_step} and after; {divides}")]
    samples = curriculum.sequences_at(last.stop_step)
    if ramp is not None:
        settings.append(Setting("--rampup-batch-size", ramp, "grows at the recipe's samples"))
    if ramp is not None or samples == last.stop_step * last.batch:
        why = f"sequences of the run until then; the step after the last one is {last.stop_step}"
        return [*settings, Setting("--train-samples", samples, why)]
    why = f"the step after the last one ({samples} samples): earlier steps had other batches"
    return [*settings, Setting("--train-iters", last.stop_step, why)]


def megatron_argv(settings: Sequence[Setting]) -> list[str]:
    """What is typed: ``--option value`` or a switch; nothing for what is left out.

    >>> megatron_argv([Setting("--rampup-batch-size", "2 2 16", ""), Setting("--eod-mask-loss", True, "")])
    ['--rampup-batch-size', '2', '2', '16', '--eod-mask-loss']
    """
    argv: list[str] = []
    for setting in settings:
        if setting.option.startswith("--") and setting.value != LEFT_OUT:
            argv += [setting.option, *([] if setting.value is True else str(setting.value).split())]
    return argv


def _rampup(stretches: Sequence[Stretch]) -> str | None:
    """``start increment samples`` under which Megatron's batch grows at the very same steps, if any.

    Its k-th increment comes with the first batch that starts at or after k * samples / increments.
    """
    increments = {after.batch - before.batch for before, after in pairwise(stretches)}
    if len(increments) > 1 or min(increments) < 1:
        return None
    ends = [(after.first_sequence, before.batch) for before, after in pairwise(stretches)]
    each = min(end // k for k, (end, _) in enumerate(ends, 1))
    if any(k * each <= end - batch for k, (end, batch) in enumerate(ends, 1)):
        return None
    return f"{stretches[0].batch} {increments.pop()} {each * len(ends)}"
