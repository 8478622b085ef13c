"""First pass: what is read, cut into tasks, given to an engine; what is done already is not done again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from recipe.errors import Problem
from recipe.text.documents import MAX_PROBLEMS, RecordsError
from recipe.text.engines import engine_for
from recipe.text.inputs import Batch, Input
from recipe.text.preparation import PrepareOptions, Progress, Tell
from recipe.text.spill import repeated_ids, report_file
from recipe.text.tokenise import Work

PLACE_IDS = "--place-ids takes file and line for the id; --id-key names another key"


def tokenise(source: Input, work: Work, folder: Path, options: PrepareOptions, tell: Tell) -> int:
    """Run every task that is not done yet; the number of tasks.

    Raises:
        RecipeError: a bad record (``on_bad: error``), ids that are not unique, or a worker that died.
    """
    num_tasks = 0

    def tasks() -> Iterator[tuple[int, Batch]]:
        nonlocal num_tasks
        for number, (batch, done) in enumerate(source.batches()):
            num_tasks = number + 1
            if not report_file(folder, number).exists():
                yield number, batch
            if num_tasks >= 8 and num_tasks & number == 0:  # hours before the end, at little cost
                done_tasks = (n for n in count() if not report_file(folder, n).exists())
                check_ids(folder, next(done_tasks))
            tell(Progress(phase="read", done=done, total=source.total_bytes))

    engine_for(options, work, source.total_bytes, tell)(tasks(), work, folder)
    check_ids(folder, num_tasks)
    return num_tasks


def check_ids(folder: Path, num_tasks: int) -> None:
    """Refuse ids that several documents of these tasks have.

    Raises:
        RecipeError: naming the first ones and both places.
    """
    found = repeated_ids(folder, num_tasks, MAX_PROBLEMS)
    problems = [
        Problem(two, f"id {id!r}, as {one}", "an id of its own for each document", PLACE_IDS)
        for id, one, two in found
    ]
    if problems:
        raise RecordsError("ids that several documents have", problems)
