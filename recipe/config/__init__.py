"""Recipes: what a person writes, checked whole, as the rest of the program reads it.

What composes with Hydra is imported when it is first used: a run that exists needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from recipe.config.amending import amended, with_shares
from recipe.config.building import recipe_from_plain, recipe_to_plain
from recipe.config.group import GroupConfig, Within
from recipe.config.identity import difference, fingerprint
from recipe.config.legs import Leg
from recipe.config.model import (
    Batch,
    ModelConfig,
    Packing,
    ParallelConfig,
    PolicyConfig,
    PoolConfig,
    QuotaRamp,
    SinkConfig,
    StartConfig,
    TokenizerConfig,
)
from recipe.config.recipe import Recipe, Rule
from recipe.config.schema import recipe_schema
from recipe.config.settling import settle
from recipe.config.slicing import Slicing, SlicingConfig
from recipe.config.spans import Span, Stretch, stage_spans
from recipe.config.stage import Stage
from recipe.config.strict_yaml import parse_yaml, read_yaml
from recipe.config.targets import make_policy, resolve_target

if TYPE_CHECKING:
    from recipe.config.loading import load_recipe
    from recipe.config.override_text import expand_sweep, sweep_labels

__all__ = [
    "Batch",
    "GroupConfig",
    "Leg",
    "ModelConfig",
    "Packing",
    "ParallelConfig",
    "PolicyConfig",
    "PoolConfig",
    "QuotaRamp",
    "Recipe",
    "Rule",
    "SinkConfig",
    "Slicing",
    "SlicingConfig",
    "Span",
    "Stage",
    "StartConfig",
    "Stretch",
    "TokenizerConfig",
    "Within",
    "amended",
    "difference",
    "expand_sweep",
    "fingerprint",
    "load_recipe",
    "make_policy",
    "parse_yaml",
    "read_yaml",
    "recipe_from_plain",
    "recipe_schema",
    "recipe_to_plain",
    "resolve_target",
    "settle",
    "stage_spans",
    "sweep_labels",
    "with_shares",
]

_LATER = {
    "expand_sweep": "recipe.config.override_text",
    "load_recipe": "recipe.config.loading",
    "sweep_labels": "recipe.config.override_text",
}


def __getattr__(name: str) -> object:
    """A name that brings Hydra with it."""
    if name not in _LATER:
        raise AttributeError(f"module 'recipe.config' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
