"""The flags of a launch, as a script types them."""

from __future__ import annotations

from recipe.config import Recipe
from recipe.run.handover.megatron import megatron_argv, megatron_launches, megatron_shared
from recipe.run.handover.setting import habits_of


def megatron_flags(recipe: Recipe, launch: str | None = None) -> list[str]:
    """Arguments for ``pretrain_gpt.py`` that keep to a settled recipe (``make_plan(recipe).recipe``).

    Args:
        recipe: with every share, block and chunk a number.
        launch: name of a stage, as ``recipe flags`` prints it; None where there is one launch only. A ramp
            that Megatron cannot say is a launch for every size of the batch: ``STAGE, from step N``.

    Raises:
        ValueError: no such launch, or None where there are several.
    """
    launches = megatron_launches(recipe)
    if launch is None and len(launches) == 1:
        launch = next(iter(launches))
    if launch is None or launch not in launches:
        raise ValueError(f"launch {launch!r} is none of {', '.join(launches)}")
    return megatron_argv([*launches[launch], *megatron_shared(recipe, habits_of(recipe))])
