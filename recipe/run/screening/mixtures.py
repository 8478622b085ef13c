"""Mixtures of a stage to try: from a grid, from Dirichlet draws, or from a table of weights.

A mixture gives every name that the stage states (a pool or a group) an exact share. Names that are not
varied keep theirs; those that are share what they have together.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from recipe.config import Recipe, recipe_from_plain, recipe_to_plain
from recipe.config.naming import is_plain_name
from recipe.config.stage import SHARES, Stage
from recipe.errors import Problem, RecipeError
from recipe.maths.mixtures import MIXTURE_GRAIN, dirichlet, grid_points, num_grid_points
from recipe.maths.shares import parse_weight, percent_text, weight_text

MOST_MIXTURES = 1000
"""More are refused: each is a run."""
_NAME = "name"
"""The column of a table that names its mixtures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixture:
    """Exact shares under a name."""

    name: str
    shares: Mapping[str, Fraction]
    """Of every name the stage states; they sum to one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Every mixture on a lattice."""

    step: Fraction
    least: Fraction = Fraction(0)
    """Every varied name has at least that much."""

    def to_plain(self) -> dict[str, Any]:
        """As a screen has it on record."""
        return {"grid": percent_text(self.step), "least": percent_text(self.least)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Draws:
    """Dirichlet draws around the stage's own shares, or around even ones."""

    number: int
    concentration: Fraction
    seed: int
    centre: Literal["own", "even"] = "own"

    def to_plain(self) -> dict[str, Any]:
        """As a screen has it on record."""
        return {
            "dirichlet": self.number,
            "concentration": weight_text(self.concentration),
            "seed": self.seed,
            "centre": self.centre,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Weights from a CSV file: a column for every varied name, a row for every mixture."""

    path: Path

    def to_plain(self) -> dict[str, Any]:
        """As a screen has it on record."""
        return {"weights": self.path.name}


How = Grid | Draws | Table


def mixtures(stage: Stage, how: How, over: Sequence[str] = ()) -> list[Mixture]:
    """The mixtures of a stage.

    Args:
        stage: whose shares are varied.
        how: where they come from.
        over: the names to vary; default: all that the stage states, or the table's columns.

    Raises:
        RecipeError: a name the stage does not state, a step that does not fit, a table that is none, or
            too many mixtures.
    """
    columns, rows = _table(how.path) if isinstance(how, Table) else ([], [])
    varied = list(over) or columns or list(stage.parts)
    _check_names(stage, varied, columns)
    mass = sum((stage.parts[name] for name in varied), Fraction(0))
    if isinstance(how, Grid):
        found = list(_on_grid(how, varied, mass))
    elif isinstance(how, Draws):
        found = list(_drawn(how, [stage.parts[name] for name in varied], mass))
    else:
        found = _weighed(how, rows, mass)
    width = max(3, len(str(len(found) - 1)))
    return [
        Mixture(
            name=name or f"m{number:0{width}d}",
            shares={**stage.parts, **dict(zip(varied, shares, strict=True))},
        )
        for number, (name, shares) in enumerate(found)
    ]


def _check_names(stage: Stage, varied: Sequence[str], columns: Sequence[str]) -> None:
    known = ", ".join(stage.parts)
    problems = [
        Problem("--over", name, f"a name whose share the stage states: {known}", "correct the name")
        for name in varied
        if name not in stage.parts
    ]
    problems += [
        Problem("--over", f"{name} {list(varied).count(name)} times", "each name once", "remove one")
        for name in dict.fromkeys(varied)
        if list(varied).count(name) > 1
    ]
    if columns and sorted(columns) != sorted(varied):
        fix = "leave --over out: the table's columns say it"
        problems.append(Problem("--over", ", ".join(varied), f"{', '.join(columns)}, as the table", fix))
    if not problems and len(varied) < 2:
        problems.append(Problem("--over", ", ".join(varied), "two names or more", "name what to vary"))
    if not problems and not any(stage.parts[name] for name in varied):
        fix = "vary names that have a share"
        problems.append(Problem("--over", f"{', '.join(varied)}, which have 0% together", "a share", fix))
    if problems:
        raise RecipeError("recipe screen", problems)


_Named = tuple[str | None, list[Fraction]]


def _on_grid(how: Grid, varied: Sequence[str], mass: Fraction) -> Iterator[_Named]:
    parts, least = mass / how.step, how.least / how.step
    if parts.denominator != 1 or least.denominator != 1:
        wrong, share = ("--grid", mass) if parts.denominator != 1 else ("--least", how.least)
        why = f": the grid cuts the share that {', '.join(varied)} hold together" if share is mass else ""
        raise RecipeError.single(
            "recipe screen",
            wrong,
            given=f"steps of {_percent(how.step)}",
            expected=f"steps that {_percent(share)} is a whole number of{why}",
            fix=f"choose a step such as {_percent(share / 10)}",
        )
    number = num_grid_points(len(varied), int(parts), int(least))
    _check_number(number, f"a grid in steps of {_percent(how.step)} over {len(varied)} names")
    for point in grid_points(len(varied), int(parts), int(least)):
        yield None, [part * how.step for part in point]


def _check_number(number: int, what: str) -> None:
    if not 0 < number <= MOST_MIXTURES:
        raise RecipeError.single(
            "recipe screen",
            "mixtures",
            given=f"{number:,}: {what}",
            expected=f"1 to {MOST_MIXTURES:,}: each is a run",
            fix="take a larger step, vary fewer names (--over), or draw some (--dirichlet N)",
        )


def _drawn(how: Draws, parts: Sequence[Fraction], mass: Fraction) -> Iterator[_Named]:
    _check_number(how.number, "draws")
    even = Fraction(1, len(parts))
    centre = [even if how.centre == "even" else part / mass for part in parts]
    for index in range(how.number):
        drawn = dirichlet(centre, how.concentration, how.seed, index)
        yield None, [mass * Fraction(part, MIXTURE_GRAIN) for part in drawn]


def _weighed(how: Table, rows: Sequence[tuple[int, dict[str, str]]], mass: Fraction) -> list[_Named]:
    _check_number(len(rows), f"rows of {how.path}")
    problems: list[Problem] = []
    found: list[_Named] = []
    for line, row in rows:
        name, weights = row.get(_NAME), []
        for column, text in row.items():
            if column == _NAME:
                continue
            try:
                weights.append(parse_weight(text.strip()))
            except ValueError:
                weights.append(Fraction(-1))
            if weights[-1] < 0:
                fix = "write weights such as 3, 0.25 or 2/3; they are normalised exactly"
                problems.append(Problem(f"{how.path}:{line}", f"{column} {text!r}", "a number >= 0", fix))
        if name is not None and not is_plain_name(name):
            fix = "name it like m1: a folder is called so"
            problems.append(Problem(f"{how.path}:{line}", f"{_NAME} {name!r}", "a plain name", fix))
        if name is not None and name in [known for known, _ in found]:
            problems.append(Problem(f"{how.path}:{line}", f"{name} again", "each name once", "rename one"))
        total = sum(weights, Fraction(0))
        if total <= 0 and min(weights) >= 0:
            problems.append(Problem(f"{how.path}:{line}", "weights of 0", "one above 0", "raise one"))
        found.append((name, [mass * weight / total for weight in weights] if total > 0 else []))
    if problems:
        raise RecipeError(str(how.path), problems)
    return found


def _table(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns of weights, and the rows with their line numbers."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = [column.strip() for column in next(reader, [])]
            lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        fix = "write a line of names, then lines of numbers, with commas between them"
        raise RecipeError.single(
            str(path), "--weights", given=str(error), expected="a CSV file", fix=fix
        ) from error
    problems = [
        Problem(
            f"{path}:{line}", f"{len(row)} cells", f"{len(header)}, as the first line", "correct the line"
        )
        for line, row in lines
        if len(row) != len(header)
    ]
    if len(set(header)) < len(header) or "" in header:
        problems.insert(
            0, Problem(f"{path}:1", ", ".join(header), "names that differ", "name each column once")
        )
    if problems:
        raise RecipeError(str(path), problems)
    columns = [column for column in header if column != _NAME]
    return columns, [(line, dict(zip(header, row, strict=True))) for line, row in lines]


def _percent(share: Fraction) -> str:
    try:
        return percent_text(share)
    except ValueError:
        return f"{share} of all"


def stated(shares: Mapping[str, Fraction]) -> tuple[str, dict[str, str]]:
    """The form and the texts in which a stage states exact shares: percents where they are finite.

    >>> stated({"a": Fraction(1, 4), "b": Fraction(3, 4)}), stated({"a": Fraction(1, 3), "b": Fraction(2, 3)})
    (('quotas', {'a': '25%', 'b': '75%'}), ('weights', {'a': '1/3', 'b': '2/3'}))
    """
    try:
        return "quotas", {name: percent_text(share) for name, share in shares.items()}
    except ValueError:
        return "weights", {name: weight_text(share) for name, share in shares.items()}


def with_mixture(recipe: Recipe, stage: str, mixture: Mixture) -> Recipe:
    """The recipe with the shares of a mixture in a stage."""
    data = recipe_to_plain(recipe)
    form, texts = stated(mixture.shares)
    values = {key: value for key, value in data["stages"][stage].items() if key not in SHARES}
    data["stages"][stage] = {**values, form: texts}
    return recipe_from_plain(data, source=f"{recipe.name}, mixture {mixture.name}")
