"""Sequences of a run or a recipe as files for other programs, a manifest per file."""

from recipe.integrations.exporting.exporting import Done, export
from recipe.integrations.exporting.layout import Wanted
from recipe.integrations.exporting.subject import Subject, of_recipe, of_run

__all__ = ["Done", "Subject", "Wanted", "export", "of_recipe", "of_run"]
