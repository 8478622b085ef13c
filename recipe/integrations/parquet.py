"""The stream as Parquet files: one row a sequence, a file per stretch of steps.

The files are a function of the recipe and the steps alone. A file starts where the last one
stopped and ends at the first step that brings it to ``rows_per_file`` rows, or earlier when the
caller closes it at a checkpoint; so a run that was killed and goes on from a checkpoint writes the
very same bytes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recipe.errors import RecipeError
from recipe.mixing.reader import LOSS_WEIGHT

ARRAYS = ("input_ids", "labels", "position_ids", "segment_ids")
ROW_GROUP_POSITIONS = 1 << 20
"""A row group closes at the first batch that fills this many positions: memory stays flat."""

FORMAT = 1
ZSTD_LEVEL = 1
_NAME = re.compile(r"steps-(\d+)-(\d+)\.parquet")
_UNFINISHED = ".unfinished-"
_ELEMENTS = pa.list_(pa.field("element", pa.int32(), nullable=False))
SCHEMA = pa.schema(
    [
        pa.field("step", pa.int64(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
        pa.field("pool", pa.string(), nullable=False),
        *(pa.field(name, _ELEMENTS, nullable=False) for name in ARRAYS),
    ]
)

_WEIGHT = pa.field(LOSS_WEIGHT, pa.float32(), nullable=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRules:
    """What is the same for every file of a run."""

    pools: tuple[str, ...]
    """Names that stand for the indices in a batch's ``pool``."""
    about: Mapping[str, str]
    """Facts that go into each file's metadata, such as the run's name and the recipe's fingerprint."""
    rows_per_file: int = 8192
    """Sequences in a file, about: a file holds whole steps."""
    compression: str = "zstd"
    weighted: bool = False
    """Whether rows have a weight in the loss: one column more, ``loss_weight``."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the files."""
        return SCHEMA.append(_WEIGHT) if self.weighted else SCHEMA


def files_in(folder: Path) -> list[tuple[int, int, Path]]:
    """The finished files of a folder as ``(first step, step after the last, path)``, in step order."""
    paths = [path for path in folder.glob("steps-*.parquet") if _NAME.fullmatch(path.name)]
    return sorted((*steps_of(path), path) for path in paths)


def steps_of(path: Path) -> tuple[int, int]:
    """First step and the step after the last of a finished file, from its name.

    >>> steps_of(Path("steps-000000003-000000008.parquet"))
    (3, 8)
    """
    match = _NAME.fullmatch(path.name)
    assert match, f"{path.name} is no file of a sink"
    return int(match[1]), int(match[2])


class ParquetSink:
    """Writes batches in step order; each file appears at once, whole, under its final name."""

    def __init__(self, folder: Path, rules: FileRules, *, start: int, keep_later: bool = False) -> None:
        """Go on at step ``start``: files from there on are no part of the run yet and are removed.

        With ``keep_later`` they stay: the steps written are those that a file is missing for.
        """
        self.folder = folder
        self.step = start
        self.finished: list[Path] = []
        """Files that were completed, in order; the caller may empty it."""
        self._stage = ""
        self._rows = 0
        self._rules = rules
        self._first = start
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_positions = 0
        folder.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(folder)
        if not keep_later:
            _clear_from(folder, start)

    def write(self, step: int, stage: str, batch: Mapping[str, np.ndarray[Any, Any]]) -> Path | None:
        """Add the batch of ``step``; the path of the file that it completed, if it did.

        A rank's part of the batch says in ``row`` int64[rows] which rows of the global one it has.

        A stage's first batch starts a file of its own.

        Raises:
            ValueError: the steps do not follow one another.
        """
        if step != self.step:
            raise ValueError(f"step {step} was written where step {self.step} follows")
        if stage != self._stage:
            self.close_file()
        if self._writer is None:
            self._open(stage)
        self._pending.append(_table(step, batch, self._rules))
        self._pending_positions += batch["input_ids"].size
        self._rows += len(batch["input_ids"])
        self.step = step + 1
        if self._pending_positions >= ROW_GROUP_POSITIONS:
            self._flush()
        if self._rows >= self._rules.rows_per_file:
            return self.close_file()
        return None

    def close_file(self) -> Path | None:
        """Finish the open file, durably, and give its path; None when no step was written since the last."""
        if self._writer is None:
            self._first = self.step
            return None
        self._flush()
        final = self.folder / f"steps-{self._first:09d}-{self.step:09d}.parquet"
        with _told(final):
            self._writer.add_key_value_metadata({"recipe.steps": f"{self._first}:{self.step}"})
            self._writer.close()
            self._writer = None
            _publish(self._unfinished, final)
        self._first = self.step
        self.finished.append(final)
        return final

    def abandon(self) -> None:
        """Drop the unfinished file; its steps will be written again."""
        if self._writer is not None:
            with suppress(OSError):  # the disk may be full: what it wanted to add is dropped anyway
                self._writer.close()
            self._writer = None
        with suppress(OSError):
            self._unfinished.unlink(missing_ok=True)
        self._pending.clear()

    def __enter__(self) -> Self:
        """Use as a context: whatever is unfinished when it ends badly is dropped."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the last file, or drop it when an error passes through."""
        if kind is None:
            self.close_file()
        else:
            self.abandon()

    @property
    def _unfinished(self) -> Path:
        return self.folder / f"{_UNFINISHED}{self._first:09d}"

    def _open(self, stage: str) -> None:
        self._stage = stage
        self._rows = 0
        about = {f"recipe.{key}": value for key, value in self._rules.about.items()}
        about |= {
            "recipe.format": str(FORMAT),
            "recipe.stage": stage,
            "recipe.pools": json.dumps(self._rules.pools, ensure_ascii=False),
        }
        with _told(self._unfinished):
            self._writer = pq.ParquetWriter(
                self._unfinished,
                self._rules.schema.with_metadata(about),
                compression=self._rules.compression,
                compression_level=ZSTD_LEVEL if self._rules.compression == "zstd" else None,
                use_dictionary=[
                    "pool",
                    "input_ids.list.element",
                    "labels.list.element",
                    "segment_ids.list.element",
                ],
                column_encoding={"position_ids.list.element": "DELTA_BINARY_PACKED"},
                write_statistics=["step", "row", "pool"],
            )

    def _flush(self) -> None:
        if self._pending and self._writer is not None:
            table = pa.concat_tables(self._pending)
            with _told(self._unfinished):
                self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._pending.clear()
        self._pending_positions = 0


def _table(step: int, batch: Mapping[str, np.ndarray[Any, Any]], rules: FileRules) -> pa.Table:
    rows, context = batch["input_ids"].shape
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(context))
    names = np.array(rules.pools, dtype=object)[np.asarray(batch["pool"])]
    columns = [
        pa.array(np.full(rows, step, dtype=np.int64)),
        pa.array(np.asarray(batch.get("row", np.arange(rows)), dtype=np.int32)),
        pa.array(names, type=pa.string()),
    ]
    for name in ARRAYS:
        flat = pa.array(np.ascontiguousarray(batch[name], dtype=np.int32).reshape(-1))
        columns.append(pa.ListArray.from_arrays(offsets, flat, type=_ELEMENTS))
    if rules.weighted:
        columns.append(pa.array(batch.get(_WEIGHT.name, np.ones(rows, np.float32)), type=_WEIGHT.type))
    return pa.Table.from_arrays(columns, schema=rules.schema)


def _publish(written: Path, final: Path) -> None:
    with written.open("rb") as file:
        os.fsync(file.fileno())
    written.replace(final)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What the system refuses, with the path, which pyarrow leaves out."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        free = shutil.disk_usage(path.parent).free
        raise RecipeError.single(
            f"{path}: not written",
            str(path),
            given=f"{reason} ({free:,} bytes free)",
            expected="a folder that can be written, with room",
            fix="free space or repair the folder and run the same again: it goes on from the last checkpoint",
        ) from error


def _remove_unfinished(folder: Path) -> None:
    for path in folder.glob(f"{_UNFINISHED}*"):
        path.unlink()


def _clear_from(folder: Path, start: int) -> None:
    """Remove the files from step ``start`` on."""
    for first, stop, path in files_in(folder):
        if first < start < stop:
            raise RecipeError.single(
                str(folder),
                path.name,
                given=f"steps {first} to {stop - 1}",
                expected=f"a file that ends at step {start}, where the run goes on",
                fix="go on from a checkpoint at which a file ends, or move this folder away",
            )
        if first >= start:
            path.unlink()
