"""Where answers go: JSON and tables on stdout, progress on stderr and only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_LIMITLESS = 1 << 16
"""Columns that rich may use: what a terminal cannot show in a line it folds."""


class _Console(Console):
    """A console that leaves a closed pipe to the command line, which knows the exit code."""

    def on_broken_pipe(self) -> None:
        """Rich would end the process with 1 here; called while the error is handled."""
        raise BrokenPipeError from None


def print_json(value: object) -> None:
    """Write one JSON value and a line end on stdout; text stays readable."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write("\n")


def print_tables(tables: Iterable[RenderableType]) -> None:
    """Print tables on stdout, each as wide as its numbers are, and texts in them as they were given.

    A narrow terminal folds the lines; nothing is ever cut, for half a number is another number.
    """
    console = _Console(width=_LIMITLESS, highlight=False, markup=False, emoji=False)
    for table in tables:
        console.print(table, width=max(console.measure(table).maximum, 1), crop=False, soft_wrap=False)


def say(text: str, *, quiet: bool = False) -> None:
    """One line for the person watching, on stderr."""
    if not quiet:
        print(text, file=sys.stderr)


def progress(*, quiet: bool = False) -> Progress:
    """Progress bars on stderr; nothing is drawn when nobody watches."""
    console = _Console(stderr=True)
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeRemainingColumn(compact=True),
    )
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)


def no_write(*, dry_run: bool) -> int:
    """The exit code where nothing was written: 0 where nothing was to be, 1 where nobody agreed."""
    if dry_run:
        return 0
    say("nothing was written; --yes agrees without asking")
    return 1


def confirm(question: str, *, yes: bool) -> bool:
    """Ask before something costly; ``--yes`` answers, and without a terminal the answer is no."""
    if yes:
        return True
    if not sys.stdin.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
