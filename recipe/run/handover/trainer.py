"""Settings of trainers that keep to the sequence rules: each with what it is for.

Sources:
    Megatron-LM, ``megatron/training/arguments.py`` and ``_get_ltor_masks_and_position_ids`` of
    ``megatron/core/datasets/gpt_dataset.py``: resets happen after EOD ids only, and the attention mask is
    reset only where the data loader makes one. Transformers, ``_flash_attention_forward`` of
    ``modeling_flash_attention_utils.py`` (all four variable-length arguments, or none counts) and
    ``ForCausalLMLoss`` (``shift_labels``). FlashAttention, ``flash_attn_varlen_func``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from recipe.config import Recipe
from recipe.mixing.curriculum import Curriculum
from recipe.run.canonical import Plain
from recipe.run.handover.data import plain_of

FORMAT = 1

FEED = (
    "hand the arrays of the batch to the model as they are: input_ids, labels, position_ids, and segment_ids "
    "(or cu_seqlens, max_seqlen) for attention. A trainer that derives positions, mask and loss from ids "
    "alone resets them after EOS ids only: a piece that was cut inside a document ends without one"
)


class Setting(NamedTuple):
    """One option of a trainer."""

    option: str
    value: object
    why: str


class _Habits(NamedTuple):
    """What all pools in all stages have in common; None where they differ."""

    isolated: bool | None
    restarts: bool | None
    crosses: bool | None


def trainer_settings(recipe: Recipe) -> Plain:
    """Settings for Megatron-LM, Transformers, FlashAttention and plain PyTorch, for a settled recipe."""
    habits = _habits(recipe)
    return {
        "format": FORMAT,
        "feed": FEED,
        "megatron": {
            "all_stages": _plain(_megatron(recipe, habits)),
            "stages": {name: _plain(settings) for name, settings in _megatron_stages(recipe).items()},
        },
        "transformers": _plain(_transformers(recipe, habits)),
        "flash_attention": _plain(_flash_attention(habits)),
        "pytorch": _plain(_pytorch(recipe)),
        "declared": plain_of(recipe.trainer),
    }


def _plain(settings: list[Setting]) -> list[Plain]:
    return [setting._asdict() for setting in settings]


def _habits(recipe: Recipe) -> _Habits:
    rules = [recipe.rule(stage, pool) for stage in recipe.stages for pool in recipe.pools]

    def common(values: set[bool]) -> bool | None:
        return values.pop() if len(values) == 1 else None

    return _Habits(
        common({rule.attention != "sequence" for rule in rules}),
        common({rule.positions == "restart" for rule in rules}),
        common({rule.cross_labels for rule in rules}),
    )


def _megatron(recipe: Recipe, habits: _Habits) -> list[Setting]:
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
            "--eod-mask-loss",
            None if habits.crosses is None else not habits.crosses,
            "the position of an end mark predicts nothing: no label crosses documents",
            "an end mark predicts the next document's first token",
        ),
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
    if recipe.labels == "inputs":
        settings.append(
            Setting("labels", "do not fit", "Megatron takes labels that are shifted already: labels: shifted")
        )
    return settings


def _switch(option: str, on: bool | None, why: str, why_not: str) -> Setting:
    """A flag that is set, left out, or cannot say what the rules say."""
    if on is None:
        return Setting(option, "leave out", "pools or stages differ: only the arrays of the batch say which")
    return Setting(option, True if on else "leave out", why if on else why_not)


def _megatron_stages(recipe: Recipe) -> dict[str, list[Setting]]:
    curriculum = Curriculum.from_recipe(recipe)
    stages: dict[str, list[Setting]] = {}
    for index, layout in enumerate(curriculum.stages):
        sizes = [(s.first_step, s.batch) for s in curriculum.stretches if s.stage == index]
        divides = "the data-parallel size times --micro-batch-size must divide it"
        stages[layout.name] = [
            Setting("--seq-length", layout.context, "context of the stage; a stage is a job of its own"),
            *(
                Setting("--global-batch-size", batch, f"from step {step} on; {divides}")
                for step, batch in sizes
            ),
            Setting("--train-iters", layout.stop_step, "the step after the stage's last one, from the run's"),
            Setting(
                "--train-samples",
                curriculum.sequences_at(layout.stop_step),
                "the same in sequences; one of the two, this one with a ramp",
            ),
        ]
        if len(sizes) > 1:
            stages[layout.name].append(_rampup(curriculum, index))
    return stages


def _rampup(curriculum: Curriculum, stage: int) -> Setting:
    """Megatron's own ramp where it changes at the same samples: equal increments over equal stretches."""
    option, stretches = "--rampup-batch-size", [s for s in curriculum.stretches if s.stage == stage]
    steps = {after.batch - before.batch for before, after in pairwise(stretches)}
    lengths = {s.num_steps * s.batch for s in stretches[:-1]}
    if stage == 0 and len(steps) == len(lengths) == 1 and min(steps) > 0:
        samples = lengths.pop() * (len(stretches) - 1)
        return Setting(
            option, f"{stretches[0].batch} {steps.pop()} {samples}", "grows at the recipe's samples"
        )
    return Setting(option, "leave out", "it cannot change at these steps: start again with each size")


def _transformers(recipe: Recipe, habits: _Habits) -> list[Setting]:
    if recipe.labels == "inputs":
        labels = [Setting("labels", "batch['labels']", "the model shifts them, as it does by itself")]
    else:
        labels = [
            Setting("labels", "batch['labels']", "only so that the model computes a loss at all"),
            Setting(
                "shift_labels",
                "batch['labels']",
                "they are shifted already; given as labels alone the model would shift them once more",
            ),
        ]
    positions = Setting("position_ids", "batch['position_ids']", "else the model counts through the row")
    if habits.isolated is False:
        mask = [Setting("attention_mask", "batch['attention_mask']", "masks padding and nothing else")]
    else:
        mask = [
            Setting(
                "attn_implementation", "flash_attention_2", "so that rows of several pieces cost nothing"
            ),
            Setting("attention_mask", None, "a mask would hide the pieces: it is unpadded, not cut"),
            Setting("cu_seq_lens_q, cu_seq_lens_k", "batch['cu_seqlens']", "where pieces begin and end"),
            Setting("max_length_q, max_length_k", "batch['max_seqlen']", "all four or none of them counts"),
        ]
    return [*labels, positions, *mask]


def _flash_attention(habits: _Habits) -> list[Setting]:
    if habits.isolated is False:
        return [Setting("flash_attn_func(causal=)", True, "the whole row is one sequence to attention")]
    return [
        Setting(
            "flash_attn_varlen_func(cu_seqlens_q=, cu_seqlens_k=)",
            "batch['cu_seqlens']",
            "ask for it with cu_seqlens=True; over the flattened rows, padding is a segment of its own",
        ),
        Setting("flash_attn_varlen_func(max_seqlen_q=, max_seqlen_k=)", "batch['max_seqlen']", "its longest"),
        Setting("flash_attn_varlen_func(causal=)", True, "a token sees itself and what stands before it"),
    ]


def _pytorch(recipe: Recipe) -> list[Setting]:
    shift = "logits as they are" if recipe.labels == "shifted" else "logits[:, :-1] against labels[:, 1:]"
    return [
        Setting("cross_entropy(ignore_index=)", -100, f"positions without a label; {shift}"),
        Setting(
            "scaled_dot_product_attention(attn_mask=)",
            "(segment_ids[:, :, None] == segment_ids[:, None, :]) & tril",
            "for attention: piece; rows of padding may see themselves, nothing is made of them",
        ),
    ]
