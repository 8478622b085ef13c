"""Settings of trainers that keep to the sequence rules: each with what it is for.

Sources:
    Transformers, ``_flash_attention_forward`` of ``modeling_flash_attention_utils.py`` (all four
    variable-length arguments, or none counts) and ``ForCausalLMLoss`` (``shift_labels``). FlashAttention,
    ``flash_attn_varlen_func``. Megatron's are in :mod:`recipe.run.handover.megatron`.
"""

from __future__ import annotations

from recipe.config import Recipe
from recipe.run.canonical import Plain
from recipe.run.handover.data import plain_of
from recipe.run.handover.megatron import megatron_launches, megatron_shared
from recipe.run.handover.setting import Habits, Setting, habits_of

FORMAT = 1

FEED = (
    "hand the arrays of the batch to the model as they are: input_ids, labels, position_ids, and segment_ids "
    "(or cu_seqlens, max_seqlen) for attention. A trainer that derives positions, mask and loss from ids "
    "alone resets them after EOS ids only: a piece that was cut inside a document ends without one"
)


def trainer_settings(recipe: Recipe) -> Plain:
    """Settings for Megatron-LM, Transformers, FlashAttention and plain PyTorch, for a settled recipe."""
    habits = habits_of(recipe)
    return {
        "format": FORMAT,
        "feed": FEED,
        "megatron": {
            "all_stages": _plain(megatron_shared(recipe, habits)),
            "stages": {name: _plain(settings) for name, settings in megatron_launches(recipe).items()},
        },
        "transformers": _plain(_transformers(recipe, habits)),
        "flash_attention": _plain(_flash_attention(habits)),
        "pytorch": _plain(_pytorch(recipe)),
        "declared": plain_of(recipe.trainer),
    }


def _plain(settings: list[Setting]) -> list[Plain]:
    return [setting._asdict() for setting in settings]


def _transformers(recipe: Recipe, habits: Habits) -> list[Setting]:
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
    return [*labels, positions, *mask, *_dealing(recipe)]


def _flash_attention(habits: Habits) -> list[Setting]:
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
    weighted = Setting(
        "loss",
        "sum(batch['loss_weight'][:, None] * losses) / num_labels",
        "losses with reduction='none'; num_labels of the whole step, over all ranks and micro-batches",
    )
    return [
        Setting("cross_entropy(ignore_index=)", -100, f"positions without a label; {shift}"),
        *([weighted] if recipe.is_weighted else []),
        Setting(
            "scaled_dot_product_attention(attn_mask=)",
            "(segment_ids[:, :, None] == segment_ids[:, None, :]) & tril",
            "for attention: piece; rows of padding may see themselves, nothing is made of them",
        ),
        *_dealing(recipe),
    ]


def _dealing(recipe: Recipe) -> list[Setting]:
    """How rows go to ranks, where that is not the order in which they are scheduled."""
    if recipe.deal == "order":
        return []
    why = "micro-batches even out; StreamTrainer and StreamDataset(dp_rank=, dp_size=, micro_batch=) deal so"
    return [Setting("deal", recipe.deal, why)]
