"""Pools that share a folder: who owns which documents in every stage, and how often each document is read.

Documents that the same pools hold are a *cell*. In a stage all of a cell belongs to the first of its holders
that draws from the folder there, and is read as often as that pool is. Over the run the readings of a cell
add up, whoever reads it: they are what ``max_epochs`` of the folder's pool allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from recipe.config import Recipe
from recipe.config.drawing import draws_from
from recipe.config.view import families, parent_name
from recipe.errors import Problem
from recipe.mixing.routes import Route, routes_of
from recipe.pools import Pool
from recipe.sequences.pieces import measure

_PIECE = 1 << 20


class Cell(NamedTuple):
    """Documents that the same pools hold."""

    holders: tuple[str, ...]
    """In the order in which they own; none: no pool holds them."""
    documents: int
    tokens: int
    """Body tokens."""

    def owner(self, recipe: Recipe, stage: str) -> str | None:
        """The pool that they belong to in a stage."""
        return next((name for name in self.holders if draws_from(recipe, stage, name)), None)


@dataclass(frozen=True, slots=True)
class Family:
    """The pools of one folder."""

    parent: str
    pools: tuple[str, ...]
    """In the order in which they own documents."""
    cells: tuple[Cell, ...]
    readings: tuple[Mapping[str, tuple[str, Fraction]], ...]
    """Of each cell by stage: the pool that it belongs to, and how often it is read there."""
    allowed: int
    """Readings of a document that are allowed."""
    routes: tuple[Route, ...]

    def total(self, cell: int) -> Fraction:
        """Readings of a cell over the run."""
        return sum((times for _, times in self.readings[cell].values()), Fraction(0))

    def owned(self, stage: str, pool: str) -> tuple[int, int]:
        """Documents and body tokens that belong to a pool in a stage."""
        mine = [c for c, by in zip(self.cells, self.readings, strict=True) if by.get(stage, ("",))[0] == pool]
        return sum(cell.documents for cell in mine), sum(cell.tokens for cell in mine)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe plan --json``."""
        cells = zip(self.cells, self.readings, strict=True)
        return {
            "pools": list(self.pools),
            "allowed": self.allowed,
            "cells": [
                {
                    "held_by": list(cell.holders),
                    "documents": cell.documents,
                    "tokens": cell.tokens,
                    "stages": {s: {"owner": name, "readings": float(n)} for s, (name, n) in by.items()},
                    "readings": float(sum(times for _, times in by.values())),
                }
                for cell, by in cells
            ],
            "routes": [route._asdict() | {"stages": list(route.stages)} for route in self.routes],
        }


def families_of(
    recipe: Recipe, pools: Mapping[str, Pool], epochs: Mapping[str, Mapping[str, Fraction]]
) -> dict[str, Family]:
    """By the pool that names the folder; ``epochs``: by stage, how often it reads each pool."""
    found = {}
    for names in families(recipe.pools):
        if any(name not in pools for name in names):
            continue
        parent, cells = parent_name(recipe.pools, names[0]), cells_of(names, pools)
        readings = tuple(_readings(recipe, cell, epochs) for cell in cells)
        allowed, routes = recipe.epochs_allowed(parent), tuple(routes_of(recipe, names, pools))
        found[parent] = Family(parent, names, cells, readings, allowed, routes)
    return found


def cells_of(names: Sequence[str], pools: Mapping[str, Pool]) -> tuple[Cell, ...]:
    """The cells of a folder that hold a document, those held by the first pools first."""
    folder, sums = pools[names[0]], dict[int, tuple[int, int]]()
    for start in range(0, folder.num_numbers, _PIECE):
        numbers = np.arange(start, min(start + _PIECE, folder.num_numbers))
        tokens, held = measure(folder, numbers).tokens, np.zeros(len(numbers), np.int64)
        for k, name in enumerate(names):
            held |= pools[name].holds(numbers).astype(np.int64) << k
        for code in np.unique(held).tolist():
            mine = held == code
            documents, body = sums.get(code, (0, 0))
            sums[code] = documents + int(mine.sum()), body + int(tokens[mine].sum())
    holders = {code: tuple(name for k, name in enumerate(names) if code >> k & 1) for code in sums}
    order = sorted(sums, key=lambda code: [not code >> k & 1 for k in range(len(names))])
    return tuple(Cell(holders[code], *sums[code]) for code in order)


def _readings(
    recipe: Recipe, cell: Cell, epochs: Mapping[str, Mapping[str, Fraction]]
) -> dict[str, tuple[str, Fraction]]:
    owners = {stage: cell.owner(recipe, stage) for stage in epochs}
    return {stage: (name, epochs[stage][name]) for stage, name in owners.items() if name is not None}


def reading_problems(
    recipe: Recipe, found: Mapping[str, Family], spread: Fraction
) -> tuple[list[Problem], list[str]]:
    """Documents that several pools read more often than is allowed, for certain (problems) or perhaps.

    What one pool alone reads too often is told of that pool.
    """
    problems, warnings = [], []
    for family in found.values():
        for number, cell in enumerate(family.cells):
            by = _by_reader(recipe, family.readings[number])
            times, readers = sum(by.values(), Fraction(0)), list(by)
            alone = len(readers) == 1 and recipe.epochs_allowed(readers[0]) <= family.allowed
            if alone or times * (1 + spread) <= family.allowed:
                continue
            told = f"{cell.documents:,} documents ({cell.tokens:,} tokens) read by {' and '.join(readers)}"
            if times * (1 - spread) > family.allowed:
                problems.append(_too_often(family, told, times))
            else:
                warnings.append(
                    f"folder of {family.parent!r}: {told} may be read {float(times):.3f} of {family.allowed} "
                    f"times, give or take {float(spread):.1%}; `recipe plan --exact` decides"
                )
    return problems, warnings


def ahead_warnings(
    recipe: Recipe,
    pools: Mapping[str, Pool],
    read: Mapping[str, Fraction],
    ahead: Mapping[str, Mapping[str, Fraction]],
) -> list[str]:
    """Documents that several pools may read more often than is allowed, from a place in a run on.

    Args:
        recipe: in force.
        pools: of the recipe.
        read: how often each pool was read so far; a pool is taken to have read all that it holds.
        ahead: by stage that is left, how often it reads each pool.
    """
    warnings = []
    for family in families_of(recipe, pools, ahead).values():
        for number, cell in enumerate(family.cells):
            times = family.total(number) + sum((read[name] for name in cell.holders), Fraction(0))
            if len(cell.holders) > 1 and family.total(number) and times > family.allowed:
                told = f"{cell.documents:,} documents that {' and '.join(cell.holders)} hold"
                warnings.append(
                    f"folder of {family.parent!r}: {told} may be read {float(times):.3f} of {family.allowed} "
                    "times by the run's end"
                )
    return warnings


def _by_reader(recipe: Recipe, by: Mapping[str, tuple[str, Fraction]]) -> dict[str, Fraction]:
    """Readings by pool; one that does not repeat for ever reads no more often than it may."""
    found: dict[str, Fraction] = {}
    for name, times in by.values():
        if times:
            found[name] = found.get(name, Fraction(0)) + times
    capped = {name: Fraction(recipe.epochs_allowed(name)) for name in found}
    return {n: t if recipe.exhaustion(n) == "repeat" else min(t, capped[n]) for n, t in found.items()}


def _too_often(family: Family, told: str, times: Fraction) -> Problem:
    return Problem(
        f"pools.{family.parent}.max_epochs",
        f"{told}: {float(times):.3f} readings",
        f"at most {family.allowed}, of a document by all pools of its folder",
        f"set pools.{family.parent}.max_epochs={ceil(times)}, lower their quotas, or add text",
    )
