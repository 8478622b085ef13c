"""What a job of Megatron has to keep of a recipe: who sees whom, and how rows are dealt."""

from __future__ import annotations

from typing import Literal, get_args

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.integrations.torch.masks import check_attention

Attention = Literal["none", "mask", "cu_seqlens"]


def attention_of(recipe: Recipe, context: int, given: Attention | None = None) -> Attention:
    """What tells the kernel who may see whom in the stages of a context: as asked, or as the recipe needs it.

    Returns:
        What was given; else ``mask`` where a pool's pieces do not see each other, and ``none`` elsewhere.

    Raises:
        RecipeError: no such way, or ``none`` where rows hold several pieces that may not see each other.
    """
    if given is not None:
        check_attention(given, get_args(Attention))
    stages = [name for name, stage in recipe.stages.items() if stage.context == context]
    rules = {(stage, pool): recipe.rule(stage, pool) for stage in stages for pool in recipe.pools}
    apart = {place: rule for place, rule in rules.items() if rule.attention != "sequence"}
    if given is None:
        return "mask" if apart else "none"
    mixed = [
        f"pool {pool} in stage {stage}" for (stage, pool), rule in apart.items() if rule.method != "none"
    ]
    if given == "none" and mixed:
        raise RecipeError.single(
            "Megatron",
            "attention",
            given="none, under which pieces of a row see each other",
            expected=f"mask or cu_seqlens, for the recipe keeps pieces apart (attention: piece): {mixed[0]}",
            fix='leave attention out, which gives the mask, or take "cu_seqlens" for such kernels; '
            "or let the recipe say packing: {attention: sequence}",
        )
    return given


def check_dealt(recipe: Recipe, dp_size: int | None, micro_batch: int | None) -> None:
    """Refuse to deal rows evenly to micro-batches that nobody told.

    Raises:
        RecipeError: the recipe says ``deal: balanced``, and a size is missing.
    """
    sizes = {"dp_size": dp_size, "micro_batch": micro_batch}
    absent = [name for name, size in sizes.items() if size is None]
    if recipe.deal == "balanced" and absent:
        raise RecipeError.single(
            "Megatron",
            " and ".join(absent),
            given="nothing",
            expected="this job's, for the recipe says deal: balanced: rows go where micro-batches even out",
            fix="give dp_size=parallel_state.get_data_parallel_world_size() and "
            "micro_batch=get_micro_batch_size(), both Megatron-core's",
        )
