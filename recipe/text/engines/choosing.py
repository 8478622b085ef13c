"""Which engine runs the tasks: as the options say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from recipe.config.extras import how_to_install
from recipe.errors import RecipeError
from recipe.text.engines.local import Tasks, run_here, run_in_processes
from recipe.text.engines.on_ray import run_on_ray
from recipe.text.preparation import PrepareOptions, Tell
from recipe.text.tokenise import Work
from recipe.text.tokenizers import ByteTokenizer, JsonTokenizer

Engine = Callable[[Tasks, Work, Path], None]
"""Puts the run of every task into the folder; the same bytes whoever makes them. A `RecipeError` is of the
first task that has one, or of workers that died."""

#: Stored bytes below which other processes would start later than this one is done.
SMALL_BYTES = 4 << 20
SMALL_BYTES_OF_BYTES = 64 << 20


def check_engine(options: PrepareOptions) -> None:
    """Refuse an engine that is not installed, before anything is read.

    Raises:
        RecipeError: how it is installed.
    """
    if options.engine == "ray" and find_spec("ray") is None:
        raise RecipeError.single(
            "prepare", "engine", given="ray, which is not installed", expected="the package ray",
            fix=f"{how_to_install('ray')}, or --engine local",
        )  # fmt: skip


def engine_for(options: PrepareOptions, work: Work, total_bytes: int | None, tell: Tell) -> Engine:
    """The engine that was asked for; for what is small, this process alone."""
    if options.engine == "ray":
        return partial(run_on_ray, options=options, tell=tell)
    small = SMALL_BYTES_OF_BYTES if isinstance(work.tokenizer, ByteTokenizer) else SMALL_BYTES
    if options.num_workers == 1 or (total_bytes or 0) < small:
        return run_here
    if isinstance(work.tokenizer, JsonTokenizer):
        work.tokenizer.expect(total_bytes or 0)
    return partial(run_in_processes, num_workers=options.num_workers)
