"""Pools of the demo that are not there yet, made from text that is on the machine."""

from __future__ import annotations

from recipe.config import Recipe


def prepare_missing(recipe: Recipe, source: str, *, quiet: bool) -> None:
    """placeholder"""
