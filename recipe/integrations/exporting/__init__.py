"""Sequences of a run or a recipe, or the documents of a pool, as files for other programs."""

from recipe.integrations.exporting.exporting import Done, export
from recipe.integrations.exporting.layout import Wanted
from recipe.integrations.exporting.pools import PoolDone, PoolWanted, export_pool
from recipe.integrations.exporting.subject import Subject, of_recipe, of_run

__all__ = [
    "Done",
    "PoolDone",
    "PoolWanted",
    "Subject",
    "Wanted",
    "export",
    "export_pool",
    "of_recipe",
    "of_run",
]
