"""The formats: each writes the rows of one file into a folder and says what its reader must know."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from recipe.config import fingerprint
from recipe.errors import Problem, RecipeError
from recipe.integrations.exporting.layout import Format, Shard, Wanted
from recipe.integrations.exporting.mds import MOST_BYTES, config_of, entry_of
from recipe.integrations.exporting.rows import batches_of
from recipe.integrations.parquet import ARRAYS, FileRules, ParquetSink
from recipe.mixing.reader import LOSS_WEIGHT, Batch
from recipe.pools.megatron import write_index

Facts = dict[str, Any]
Writer = Callable[[Path, Shard, Wanted], Facts]
NUMBERS = ("pool", "row", "step")
NO_LABEL = -100
_UINT16_VOCAB = 65500
"""Megatron keeps ids of smaller vocabularies in two bytes (``DType.optimal_dtype``)."""


class WouldLoseError(RecipeError):
    """The format cannot hold what is exported: no part of such an export is of use."""


def write_parquet(folder: Path, shard: Shard, wanted: Wanted) -> Facts:
    """One Parquet file as the Parquet sink of a run writes it."""
    recipe = shard.stream.recipe
    about = {"run": recipe.name, "fingerprint": fingerprint(recipe), "labels": recipe.labels}
    rules = FileRules(
        pools=shard.stream.pools,
        about=about,
        rows_per_file=shard.rows + 1,
        weighted=recipe.is_weighted,
    )
    with ParquetSink(folder, rules, start=shard.first) as sink:
        for step, batch in batches_of(shard, wanted):
            sink.write(step, shard.stage, batch)
    return {"dtype": "int32"}


def write_npy(folder: Path, shard: Shard, wanted: Wanted) -> Facts:
    """An array a file, ``STEM.NAME.npy``: int32[rows, context], and int64[rows] of pool, row and step.

    Of a recipe with an objective also float32[rows] of ``loss_weight``.
    """
    shape = (shard.rows, shard.context)
    files = {name: _npy(folder, shard, name, np.int32, shape) for name in ARRAYS}
    files |= {name: _npy(folder, shard, name, np.int64, shape[:1]) for name in NUMBERS}
    if shard.stream.recipe.is_weighted:
        files[LOSS_WEIGHT] = _npy(folder, shard, LOSS_WEIGHT, np.float32, shape[:1])
    for here, batch in _filled(shard, wanted):
        for name, array in files.items():
            array[here] = batch[name]
    for array in files.values():
        array.flush()
    return {"dtype": "int32", "pools": list(shard.stream.pools)}


def write_mds(folder: Path, shard: Shard, wanted: Wanted) -> Facts:
    """One shard of MosaicML Streaming's MDS, a sample a sequence.

    Source:
        mosaicml-streaming 0.13, ``MDSWriter.encode_joint_shard`` and ``encode_sample``: the number of samples
        and their offsets as uint32, the columns as JSON, then the samples, columns in the order of their
        names, each of a fixed size.
    """
    columns = {name: f"ndarray:int32:{shard.context}" for name in ARRAYS} | dict.fromkeys(NUMBERS, "int")
    columns |= {LOSS_WEIGHT: "float32"} if shard.stream.recipe.is_weighted else {}
    types: Facts = {name: ("<i4", (shard.context,)) for name in ARRAYS}
    types |= dict.fromkeys(NUMBERS, ("<i8",)) | {LOSS_WEIGHT: ("<f4",)}
    names = sorted(columns)
    row = np.dtype([(name, *types[name]) for name in names])
    config = config_of(columns, {name: row[name].itemsize for name in names})
    head, size = json.dumps(config, sort_keys=True).encode(), sum(config["column_sizes"])
    start = 4 + 4 * (shard.rows + 1) + len(head)
    total = start + size * shard.rows
    if total > MOST_BYTES:
        raise RecipeError.single(
            "recipe export", "--rows-per-file", given=f"{shard.rows} rows of {size} bytes in a shard",
            expected="less than 4 GiB in a shard of MDS", fix="lower --rows-per-file",
        )  # fmt: skip
    with (folder / f"{shard.stem}.mds").open("wb") as file:
        file.write(np.uint32(shard.rows).tobytes())
        file.write((start + size * np.arange(shard.rows + 1, dtype=np.int64)).astype("<u4").tobytes())
        file.write(head)
        for here, batch in _filled(shard, wanted):
            samples = np.empty(here.stop - here.start, row)
            for name in names:
                samples[name] = batch[name]
            file.write(samples.tobytes())
    index = entry_of(config, f"{shard.stem}.mds", total, shard.rows)
    return {"dtype": "int32", "pools": list(shard.stream.pools), "mds": index}


def write_megatron(folder: Path, shard: Shard, wanted: Wanted) -> Facts:
    """A ``.bin`` and ``.idx`` pair in which every sequence is one document.

    With shifted labels a document has context + 1 ids: the inputs, and the last position's label (0 where
    it has none). What it cannot hold is counted: positions without a label, labels that are not the id of the
    next position, segments and positions, and of a recipe with an objective rows whose weight is not 1.

    Raises:
        WouldLoseError: something would be lost, and ``lossy`` was not said.
    """
    sizes = [pool.card.vocab_size for pool in shard.stream.ground.pools]
    is_small = all(size is not None and size < _UINT16_VOCAB for size in sizes)
    dtype = np.dtype("<u2" if is_small else "<i4")
    shifted = shard.stream.recipe.labels == "shifted"
    lost = {"positions_without_label": 0, "labels_other_than_next_id": 0, "boundaries_between_segments": 0}
    if shard.stream.recipe.is_weighted:
        lost["rows_of_another_weight"] = 0
    with (folder / f"{shard.stem}.bin").open("wb") as file:
        for step, batch in batches_of(shard, wanted):
            ids, found = megatron_rows(batch, shifted=shifted)
            if LOSS_WEIGHT in batch:
                found["rows_of_another_weight"] = int((batch[LOSS_WEIGHT] != 1).sum())
            if any(found.values()) and not wanted.lossy:
                raise _would_lose(step, found)
            lost = {name: lost[name] + found.get(name, 0) for name in lost}
            file.write(ids.astype(dtype).tobytes())
    lengths = np.full(shard.rows, shard.context + shifted, np.int32)
    with (folder / f"{shard.stem}.idx").open("wb") as file:
        write_index(file, lengths, dtype)
    return {
        "dtype": dtype.name,
        "ids_per_document": shard.context + shifted,
        "lost": lost,
        "reading": "document i is sequence i: inputs ids[:-1], labels ids[1:]. A GPTDataset cuts documents "
        "anew: read documents whole (IndexedDataset), or use recipe.integrations.megatron",
    }


def megatron_rows(batch: Batch, *, shifted: bool) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The ids of every row's document, and what they cannot say."""
    inputs, labels, segments = batch["input_ids"], batch["labels"], batch["segment_ids"]
    ids = inputs
    if shifted:
        last = np.where(labels[:, -1:] == NO_LABEL, 0, labels[:, -1:])
        ids = np.concatenate([inputs, last], axis=1)
    else:
        labels = labels[:, 1:]
    counted = labels != NO_LABEL
    return ids, {
        "positions_without_label": int((~counted).sum()),
        "labels_other_than_next_id": int((counted & (labels != ids[:, 1:])).sum()),
        "boundaries_between_segments": int((segments[:, 1:] != segments[:, :-1]).sum()),
    }


def _would_lose(step: int, found: dict[str, int]) -> WouldLoseError:
    told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in found.items())
    expected = "sequences that ids alone say: documents joined, every position a label of weight 1"
    fix = "add --lossy to leave out mask, weights, isolation; or train from recipe.integrations.megatron"
    given = f"megatron; step {step} has {told}"
    return WouldLoseError("recipe export", [Problem("--format", given, expected, fix)])


def _npy(folder: Path, shard: Shard, name: str, dtype: Any, shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    return open_memmap(folder / f"{shard.stem}.{name}.npy", mode="w+", dtype=dtype, shape=shape)


def _filled(shard: Shard, wanted: Wanted) -> Iterator[tuple[slice, Batch]]:
    """Batches with the rows of the file that they fill."""
    done = 0
    for step, batch in batches_of(shard, wanted):
        rows = len(batch["pool"])
        yield slice(done, done + rows), batch | {"step": np.full(rows, step)}
        done += rows


WRITERS: dict[Format, Writer] = {
    "parquet": write_parquet,
    "megatron": write_megatron,
    "mds": write_mds,
    "npy": write_npy,
}
BYTES_PER_POSITION: dict[Format, int] = {"parquet": 3, "megatron": 4, "mds": 16, "npy": 16}
"""About what a position takes."""
