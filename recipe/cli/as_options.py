"""What to write, as the verb calls it: rooms below speak of a recipe's keys, and a verb may have options."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace

from recipe.config.files import FILE_KEYS, READ_KEYS
from recipe.errors import Problem, RecipeError

_KEYS = dict.fromkeys((*READ_KEYS, *FILE_KEYS))
_SAID = re.compile(rf"\b({'|'.join(_KEYS)}): (?=\w)")
_IN_A_RECIPE = ("pools.", "evaluation.", "trainer.")
_OF_A_RECIPE = "in a recipe: "
"""Behind it stands what a recipe says."""
_MARK = "and the id of the end mark"
_NO_OPTION = (
    "this verb has no option that says it: name a pool of our own or, where token files made elsewhere are "
    "taken, files that say where documents end, as `recipe export FILES --format megatron --eos ID --out NEW`"
    " writes them"
)


def as_options(error: RecipeError, args: argparse.Namespace) -> RecipeError:
    """The error with fixes that name options of the verb that was called, where they name keys of a pool.

    What is wrong with a pool of a recipe (its place begins with one of its keys) is mended in the recipe.

    >>> said = RecipeError.single("f", "f.u16", given="ids", expected="an end", fix="write eos: ID")
    >>> as_options(said, argparse.Namespace(eos=None)).problems[0].fix
    'write --eos ID'
    >>> as_options(said, argparse.Namespace()).problems[0].fix[:32]
    'this verb has no option that say'
    """
    return RecipeError(error.title, [_as_option(problem, args) for problem in error.problems])


def _as_option(problem: Problem, args: argparse.Namespace) -> Problem:
    if not _SAID.search(problem.fix) or _OF_A_RECIPE in problem.fix or problem.where.startswith(_IN_A_RECIPE):
        return problem
    if not any(hasattr(args, key) for key in READ_KEYS):
        return replace(problem, fix=_NO_OPTION)

    def option(found: re.Match[str]) -> str:
        return f"--{found[1]} " if hasattr(args, found[1]) else f"in a recipe {found[0]}"

    fix = _SAID.sub(option, problem.fix)
    return replace(problem, fix=fix.replace(_MARK, "and --eos ID") if hasattr(args, "eos") else fix)
