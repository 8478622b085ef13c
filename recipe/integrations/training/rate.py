"""The learning rate of a step: a warm-up, a plateau, a decay."""

from __future__ import annotations

import math

from recipe.integrations.training.settings import Settings


def rate_at(step: int, num_steps: int, settings: Settings) -> float:
    """The learning rate with which a step is taken.

    Args:
        step: 0-based.
        num_steps: of the whole run, as planned.
        settings: the trainer's.

    Source:
        Loshchilov and Hutter 2017, arXiv 1608.03983 (cosine); Hu et al. 2024, arXiv 2404.06395 (plateau,
        then decay).

    >>> flat = Settings(warmup_steps=2, decay="linear", final_rate=0, decay_share=0.5, learning_rate=1)
    >>> [rate_at(step, 8, flat) for step in range(8)]
    [0.5, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    warm = min(1.0, (step + 1) / settings.warmup_steps) if settings.warmup_steps else 1.0
    begin = num_steps - num_steps * settings.decay_share
    gone = min(1.0, max(0.0, (step - begin) / max(1.0, num_steps - begin)))
    left = {"cosine": (1 + math.cos(math.pi * gone)) / 2, "linear": 1 - gone, "none": 1.0}[settings.decay]
    return settings.learning_rate * warm * (settings.final_rate + (1 - settings.final_rate) * left)
