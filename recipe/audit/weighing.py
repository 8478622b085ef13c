"""What labels count in the loss: worked out from the recipe apart from what the stream hands out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from recipe.audit.layout import Leg, StageLayout
from recipe.config import Recipe


def weights_on_record(recipe: Recipe, layout: StageLayout, start: int, stop: int) -> list[dict[str, Any]]:
    """What a row over steps ``start..stop - 1`` says of the loss; nothing where every label counts once."""
    objective = recipe.objective(layout.name)
    if objective is None or start >= stop:
        return []
    legs = layout.legs[layout.leg_of(start) : layout.leg_of(stop - 1) + 1]
    begins = [max(start, leg.first_step) for leg in legs]
    ends = [*begins[1:], stop]
    return [
        {"step": begin, "pools": _weights(objective, leg)}
        for leg, begin, end in zip(legs, begins, ends, strict=True)
        if begin < end
    ]


def _weights(objective: dict[str, Fraction], leg: Leg) -> dict[str, str]:
    """By pool: objective times whole over part; a pool without a part has none."""
    parts = zip(objective.items(), leg.parts, strict=True)
    return {name: str(wanted * leg.whole / part if part else Fraction(0)) for (name, wanted), part in parts}
