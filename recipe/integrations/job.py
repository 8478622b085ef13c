"""The main job: the stream of an open run into files, a checkpoint at every chunk's close.

What is on record never runs ahead of the files: the file that holds a chunk's last step is on disk
under its name before the checkpoint that counts it. Killed anywhere, the next start goes on from
the last checkpoint and leaves the same bytes. Each checkpoint answers for the bytes of the files up
to it (:mod:`recipe.run.files`).
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from recipe.config import Recipe, SinkConfig, fingerprint
from recipe.errors import Problem, RecipeError
from recipe.integrations.holding import Gap, Holding
from recipe.integrations.parquet import FileRules, ParquetSink, steps_of
from recipe.mixing.stream import Stream
from recipe.run.canonical import Plain
from recipe.run.files import LINES_NAME, SEQUENCES, Content, Line, content_of, link_of, linked, read_lines
from recipe.run.run import Run
from recipe.run.stream import RunStream
from recipe.run.writes import locked, replace_file

BYTES_PER_POSITION = 3
"""About what a position takes in a compressed file."""
_WRITER = ".writer"
_NAMED_SECONDS, _LOOK_SECONDS = 1.0, 0.02
"""How long the record of who writes is waited for, and between two looks."""


def write_run(run: Run, watch: Callable[[int], None] = lambda step: None) -> None:
    """Serve an open run to its end into ``RUN/sequences``; call it with :func:`only_writer` held.

    The files of the steps before are there as :func:`repair` leaves them.

    Args:
        run: opened where it goes on, after the folder was held.
        watch: called with the number of steps written, after each.
    """
    if run.complete:
        return
    curriculum = run.stream().curriculum
    stages = list(run.recipe.stages)
    folder = run.path / SEQUENCES
    lines = _Lines(folder, [line for line in read_lines(folder) if line.content.stop <= run.step])
    with ParquetSink(folder, _rules(run.name, run.recipe), start=run.step) as sink:
        close = curriculum.chunk_close(run.step)
        for step, batch in run.stream().batches(run.step):
            sink.write(step, stages[curriculum.stretch(step).stage], batch)
            if sink.step == close:
                _checkpoint(run, sink, lines)
                close = curriculum.chunk_close(close) if close < curriculum.num_steps else close
            watch(sink.step)
        if run.step < sink.step or not run.complete:
            _checkpoint(run, sink, lines)  # A pool ran dry and ended the run before its planned length.


def repair(run: Run, holding: Holding) -> list[Gap]:
    """Write the files of consumed steps again where they are missing or damaged; with the folder held.

    They hold the same sequences, and the same bytes where the libraries are the same; else a
    manifest more answers for the new ones.

    Args:
        run: opened where it goes on.
        holding: of its folder, as :func:`inspect` found it.

    Returns:
        Steps that no file was ever written for and none can be: their data was replaced since.

    Raises:
        RecipeError: files that were written cannot be written again, because their data was replaced
            since. All others are.
    """
    folder = run.path / SEQUENCES
    floor = _floor(run.stream())
    written = [line.content for line in holding.lines]
    left = []
    for gap in holding.gaps:
        if gap.first < floor:
            left.append(gap if gap.is_on_record else replace(gap, stop=min(gap.stop, floor)))
        if gap.first >= floor or (gap.stop > floor and not gap.is_on_record):
            written += _write_again(run, replace(gap, first=max(gap.first, floor)))
    lines = list(linked(sorted(written, key=lambda content: content.first)))
    names = {content.file for content in written}
    for path in holding.strangers:
        first, stop = steps_of(path)
        if path.name not in names and not any(first < gap.stop and gap.first < stop for gap in left):
            path.unlink(missing_ok=True)
    if lost := [gap for gap in left if gap.is_on_record]:
        raise _lost(folder, lost, floor)
    record = _Lines(folder, lines)
    if record.uri and record.link != holding.stated:
        run.checkpoint(step=run.step, uri=record.uri, digest=record.link)
    return left


def _floor(stream: RunStream) -> int:
    """The first step that can be served again: back to where the run began, or data was replaced since."""
    while stream.floor:
        try:
            stream = stream.at(stream.floor - 1)
        except RecipeError:
            break
    return stream.floor


def _write_again(run: Run, gap: Gap) -> list[Content]:
    """Serve the steps of a gap once more, each turn of the run by its own recipe."""
    written, first = list[Content](), gap.first
    while first < gap.stop:
        stream, stop = run.stream().at(gap.stop - 1), gap.stop
        while stream.floor > first:
            stop, stream = stream.floor, stream.at(stream.floor - 1)
        written += _write_turn(run, stream, first, stop)
        first = stop
    return written


def _write_turn(run: Run, stream: RunStream, first: int, stop: int) -> list[Content]:
    """Serve steps of one turn once more, into files that end where they ended."""
    curriculum, stages = stream.curriculum, list(stream.recipe.stages)
    stream.snapshot(first)  # from the nearest one on record
    close = curriculum.chunk_close(first)
    rules = _rules(run.name, stream.recipe)
    with ParquetSink(run.path / SEQUENCES, rules, start=first, keep_later=True) as sink:
        # As any stream: what is served again is no progress of the trainer's.
        for step, batch in Stream.batches(stream, first, stop=stop):
            sink.write(step, stages[curriculum.stretch(step).stage], batch)
            if sink.step == close < stop:
                sink.close_file()
                close = curriculum.chunk_close(close)
    return [content_of(*steps_of(path), path) for path in sink.finished]


class _Lines:
    """The record of a folder's files, open to be added to."""

    def __init__(self, folder: Path, lines: Sequence[Line]) -> None:
        """Put these lines in the place of what is there, unless it is the same."""
        self.link = link_of(lines)
        self.uri = f"{SEQUENCES}/{lines[-1].content.file}" if lines else None
        """Of the last file, as manifests name it."""
        self._path = folder / LINES_NAME
        data = b"".join(line.to_bytes() for line in lines)
        self._end = len(data)
        if not self._path.is_file() or self._path.read_bytes() != data:
            replace_file(self._path, data)

    def add(self, paths: Sequence[Path]) -> None:
        """Add finished files, durably."""
        if not paths:
            return
        lines = list(linked([content_of(*steps_of(path), path) for path in paths], self.link))
        data = b"".join(line.to_bytes() for line in lines)
        with locked(self._path) as append:
            append(data, at=self._end, size=self._end)
        self._end += len(data)
        self.link, self.uri = lines[-1].link, f"{SEQUENCES}/{paths[-1].name}"


def expected_bytes(run: Run, gaps: Sequence[Gap] = ()) -> int:
    """About how many bytes the steps that are left, and those to be written again, will take."""
    curriculum = run.stream().curriculum
    left = 0 if run.complete else curriculum.positions - curriculum.positions_at(run.step)
    again = sum(curriculum.positions_at(gap.stop) - curriculum.positions_at(gap.first) for gap in gaps)
    return (left + again) * BYTES_PER_POSITION


def sink_of(recipe: Recipe) -> SinkConfig:
    """The recipe's sink; Parquet files where it names none."""
    return recipe.sink or SinkConfig()


def _rules(name: str, recipe: Recipe) -> FileRules:
    sink = sink_of(recipe)
    return FileRules(
        pools=tuple(recipe.pools),
        about={"run": name, "fingerprint": fingerprint(recipe), "labels": recipe.labels},
        rows_per_file=sink.rows_per_file,
        compression=sink.compression,
        weighted=recipe.is_weighted,
    )


def _checkpoint(run: Run, sink: ParquetSink, lines: _Lines) -> None:
    sink.close_file()
    lines.add(sink.finished)
    sink.finished.clear()
    run.checkpoint(step=sink.step, uri=lines.uri, digest=lines.link if lines.uri else None)


def _lost(folder: Path, gaps: Sequence[Gap], floor: int) -> RecipeError:
    return RecipeError(
        f"{folder}: files that cannot be written again",
        [
            Problem(
                f"{gap.file}, steps {gap.first} to {gap.stop - 1}",
                gap.why,
                f"the file as it was written: before step {floor} it came from data that was replaced since",
                "take the file from a copy, or start another run from the new data (--name)",
            )
            for gap in gaps
        ],
    )


@contextmanager
def only_writer(run_folder: Path, name: str = SEQUENCES) -> Iterator[None]:
    """Hold a folder of a run's for one writer; the system lets go of it when the process ends in any way.

    Raises:
        RecipeError: another process holds them.
    """
    folder = run_folder / name
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
    who, end = "another process", "end it"
    if (owner := _owner(folder / _WRITER)) is not None:
        who = f"process {owner['pid']} on {owner['host']}"
        end = f"end it (kill {owner['pid']} there)"
    return RecipeError.single(
        str(folder.parent),
        folder.name,
        given=f"being written by {who}",
        expected="one writer of a run at a time",
        fix=f"let it finish, or {end}, and the same command goes on from its last checkpoint; "
        f"`recipe status {quote(str(folder.parent))}` shows how far it is; --name NAME starts another run",
    )


def _owner(record: Path) -> Plain | None:
    """Who holds a folder; None where it does not say so soon: it writes that once it holds it."""
    give_up = time.monotonic() + _NAMED_SECONDS
    while time.monotonic() < give_up:
        with suppress(OSError, ValueError):
            owner = json.loads(record.read_bytes())
            if isinstance(owner, dict) and {"pid", "host"} <= owner.keys():
                return owner
        time.sleep(_LOOK_SECONDS)
    return None
