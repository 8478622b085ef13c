"""The main job: the stream of an open run into files, a checkpoint at every chunk's close.

What is on record never runs ahead of the files: the file that holds a chunk's last step is on disk
under its name before the checkpoint that counts it. Killed anywhere, the next start goes on from
the last checkpoint and leaves the same bytes.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recipe.config import Recipe, SinkConfig, fingerprint
from recipe.errors import RecipeError
from recipe.integrations.parquet import FileRules, ParquetSink, files_in
from recipe.run.run import Run

SEQUENCES = "sequences"
"""Folder of a run that holds its files."""
BYTES_PER_POSITION = 3
"""About what a position takes in a compressed file."""
_WRITER = ".writer"


def write_run(run: Run, watch: Callable[[int], None] = lambda step: None) -> None:
    """Serve an open run to its end into ``RUN/sequences``; call it with :func:`only_writer` held.

    Args:
        run: opened where it goes on, after the folder was held.
        watch: called with the number of steps written, after each.

    Raises:
        RecipeError: the run's files do not end where it goes on.
    """
    if run.complete:
        return
    curriculum = run.stream().curriculum
    stages = list(run.recipe.stages)
    folder = run.path / SEQUENCES
    with ParquetSink(folder, _rules(run), start=run.step) as sink:
        close = curriculum.chunk_close(run.step)
        for step, batch in run.stream().batches(run.step):
            sink.write(step, stages[curriculum.stretch(step).stage], batch)
            if sink.step == close:
                _checkpoint(run, sink)
                close = curriculum.chunk_close(close) if close < curriculum.num_steps else close
            watch(sink.step)
        if run.step < sink.step or not run.complete:
            _checkpoint(run, sink)  # A pool ran dry and ended the run before its planned length.


def missing_steps(run: Run) -> list[tuple[int, int]]:
    """Stretches of consumed steps, half-open, that no file holds."""
    gaps, reached = [], 0
    for first, stop, _ in files_in(run.path / SEQUENCES):
        if first > reached:
            gaps.append((reached, min(first, run.step)))
        reached = max(reached, stop)
    if reached < run.step:
        gaps.append((reached, run.step))
    return gaps


def expected_bytes(run: Run) -> int:
    """About how many bytes the steps that are left will take."""
    curriculum = run.stream().curriculum
    return (curriculum.positions - curriculum.positions_at(run.step)) * BYTES_PER_POSITION


def sink_of(recipe: Recipe) -> SinkConfig:
    """The recipe's sink; Parquet files where it names none."""
    return recipe.sink or SinkConfig()


def _rules(run: Run) -> FileRules:
    sink = sink_of(run.recipe)
    return FileRules(
        pools=tuple(run.recipe.pools),
        about={"run": run.name, "fingerprint": fingerprint(run.recipe), "labels": run.recipe.labels},
        rows_per_file=sink.rows_per_file,
        compression=sink.compression,
    )


def _checkpoint(run: Run, sink: ParquetSink) -> None:
    sink.close_file()
    files = files_in(sink.folder)
    run.checkpoint(step=sink.step, uri=f"{SEQUENCES}/{files[-1][2].name}" if files else None)


@contextmanager
def only_writer(run_folder: Path) -> Iterator[None]:
    """Hold a run's files for one writer; the system lets go of them when the process ends in any way.

    Raises:
        RecipeError: another process holds them.
    """
    folder = run_folder / SEQUENCES
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / _WRITER, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(folder) from None
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        yield
    finally:
        os.close(handle)


def _taken(folder: Path) -> RecipeError:
    try:
        owner = json.loads((folder / _WRITER).read_bytes())
        who = f"process {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process"
    return RecipeError.single(
        str(folder.parent),
        folder.name,
        given=f"being written by {who}",
        expected="one writer of a run at a time",
        fix="wait for it, or give this run another name with --name",
    )
