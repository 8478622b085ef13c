"""Entries of held-out pools that stand outside of a recipe's ``evaluation:``, read as those in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from recipe.config.evaluation import HeldOutConfig
from recipe.config.problems import Fault, Place, faults_of_detail
from recipe.config.vocabulary import VOCABULARY
from recipe.errors import RecipeError

_AS = ("evaluation", "pools")


def held_out_entries(given: Mapping[str, Any], where: str) -> dict[str, HeldOutConfig]:
    """Entries by area, of folders or of mappings as a recipe writes them.

    Raises:
        RecipeError: with every fault, under the dotted key ``where``.

    >>> held_out_entries({"code": "held/code"}, "held_out")["code"].path
    'held/code'
    """
    entries, found = dict[str, HeldOutConfig](), list[Fault]()
    for area, one in given.items():
        try:
            entries[area] = HeldOutConfig.model_validate(str(one) if isinstance(one, Path) else one)
        except ValidationError as error:
            found += entry_faults(
                ({**detail, "loc": (area, *detail["loc"])} for detail in error.errors()), (where,)
            )
    if found:
        raise RecipeError(where, [fault.problem() for fault in found])
    return entries


def entry_faults(details: Iterable[ErrorDetails], place: Place) -> list[Fault]:
    """The faults that a validation found in entries; each detail's place begins with the area."""
    found = [fault for detail in details for fault in faults_of_detail(detail, VOCABULARY, _AS)]
    return [replace(fault, place=(*place, *fault.place[len(_AS) :])) for fault in found]
