"""MosaicML Streaming's MDS: a folder with ``index.json`` and shards of samples, plain or compressed."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from recipe.pools.card import Marks, json_object
from recipe.pools.foreign.decoded import Encoded, decode, kept_type
from recipe.pools.foreign.form import Form, token_type
from recipe.pools.foreign.lists_of_ids import Rows
from recipe.pools.foreign.token_file import TokenFile, refuse

INDEX = "index.json"
_TYPES = {
    8: "uint8",
    9: "int8",
    16: "uint16",
    17: "int16",
    32: "uint32",
    33: "int32",
    64: "uint64",
    65: "int64",
}
_KEYS = {"column_names", "column_encodings", "column_sizes", "compression", "raw_data", "samples"}
_BYTES_AT_ONCE = 1 << 24
_BUFFER = 1 << 20
_FIX = "write the samples again with a column of token ids: ndarray, or bytes and dtype in the recipe"


class Shard(NamedTuple):
    """One shard as the index describes it."""

    path: Path
    compression: str | None
    names: list[str]
    encodings: list[str]
    sizes: list[int | None]
    samples: int
    raw_bytes: int


def is_mds(index: Path) -> bool:
    """Whether an ``index.json`` is that of MDS shards."""
    shards = json_object(index).get("shards")
    return isinstance(shards, list) and all(
        isinstance(shard, dict) and shard.get("format") == "mds" for shard in shards
    )


def _shards(index: Path) -> list[dict[str, Any]]:
    """What an index says of its shards.

    Raises:
        RecipeError: it leaves something out.
    """
    shards: list[dict[str, Any]] = json_object(index)["shards"]
    for number, shard in enumerate(shards):
        lacking = _KEYS - shard.keys()
        if lacking or not {"basename", "bytes"} <= shard["raw_data"].keys():
            what = ", ".join(sorted(lacking)) or "its name or size"
            raise refuse(index, given=f"shard {number} without {what}",
                         expected=f"{', '.join(sorted(_KEYS))} of each shard",
                         fix="fetch the index again")  # fmt: skip
    return shards


def folders_below(index: Path) -> set[Path]:
    """Folders below that of an index in which shards of it lie: it was merged from theirs."""
    names = [Path(str(shard["raw_data"]["basename"])).parent for shard in _shards(index)]
    return {index.parent / name for name in names} - {index.parent}


def mds_shards(index: Path, form: Form, marks: Marks) -> Iterator[Callable[[], TokenFile]]:
    """What reads the shards of a folder as parts, in the order of its index; each sample is a document.

    They raise RecipeError: a shard that is missing or damaged, columns that hold no ids, or several that may.

    Source:
        mosaicml-streaming 0.13: a shard is the number of samples, their offsets (uint32), a JSON text, and
        the samples: the sizes (uint32) of columns without a fixed one, then the columns; ``NDArray``.
    """
    for plain in _shards(index):
        yield partial(_read_shard, index, plain, form, marks)


def _read_shard(index: Path, plain: dict[str, Any], form: Form, marks: Marks) -> TokenFile:
    shard = _shard(index, plain)
    at = _column(shard, index, form)
    encoding = shard.encodings[at]
    found = _type_of(shard, encoding, form)
    dtype = token_type(kept_type(found, form))
    rows = partial(_rows, shard, at, encoding, found)
    rule = ("mds", shard.names[at], encoding, found)
    return decode(Encoded(shard.path, (shard.path,), dtype, rule, rows, (index,)), form, marks)


def _shard(index: Path, plain: dict[str, Any]) -> Shard:
    folder = index.parent
    raw, packed = plain["raw_data"], plain.get("zip_data")
    path, compression = folder / raw["basename"], None
    if not path.is_file() and packed:
        path, compression = folder / packed["basename"], str(plain["compression"]).partition(":")[0]
    if not path.is_file():
        raise refuse(path, given="no file", expected=f"a shard that {index.name} lists",
                     fix="fetch the folder again, with all of its shards")  # fmt: skip
    if compression not in (None, "zstd", "gz"):
        raise refuse(path, given=f"a shard compressed with {compression}", expected="zstd, gz, or none",
                     fix="decompress the shards (mosaicml-streaming does), beside index.json")  # fmt: skip
    expected = (raw if compression is None or packed is None else packed)["bytes"]
    if (size := path.stat().st_size) != expected:
        raise refuse(path, given=f"{size} bytes", expected=f"{expected}, as {index.name} says",
                     fix="fetch the shard again")  # fmt: skip
    return Shard(
        path, compression, plain["column_names"], plain["column_encodings"], plain["column_sizes"],
        plain["samples"], raw["bytes"],
    )  # fmt: skip


def _column(shard: Shard, index: Path, form: Form) -> int:
    if form.column is not None:
        if form.column not in shard.names:
            raise refuse(index, given=f"no column {form.column}", expected=f"one of {', '.join(shard.names)}",
                         fix=f"write column: {shard.names[0]}")  # fmt: skip
        return shard.names.index(form.column)
    likely = [
        name
        for name, kind in zip(shard.names, shard.encodings, strict=True)
        if kind.startswith(("ndarray", "bytes"))
    ]
    if len(likely) != 1:
        given = (
            f"columns {', '.join(f'{n} ({e})' for n, e in zip(shard.names, shard.encodings, strict=True))}"
        )
        fix = f"say which: column: {likely[0]}" if likely else _FIX
        raise refuse(index, given=given, expected="one column of token ids", fix=fix)
    return shard.names.index(likely[0])


def _type_of(shard: Shard, encoding: str, form: Form) -> str:
    """The type of the ids in the shard: stated by the column, by its first sample, or by the recipe."""
    kind, _, rest = encoding.partition(":")
    if kind == "bytes":
        if form.dtype is None:
            raise refuse(shard.path, given="a column of bytes", expected="the type of the ids in them",
                         fix="write dtype: uint16, or what they are")  # fmt: skip
        return form.dtype
    if kind != "ndarray":
        raise refuse(shard.path, given=f"a column of {encoding}", expected="ndarray or bytes", fix=_FIX)
    name = rest.partition(":")[0]
    if not name:
        name = "int64"  # each sample says its own
    if name not in _TYPES.values():
        raise refuse(shard.path, given=f"a column of {encoding}", expected="whole numbers", fix=_FIX)
    return name


def _rows(shard: Shard, at: int, encoding: str, found: str) -> Iterator[Rows]:
    """Samples of a shard, some at a time; it is read from its start to its end, once."""
    with _opened(shard) as file:
        count = int.from_bytes(file.read(4), "little")
        offsets = np.frombuffer(file.read(4 * (count + 1)), "<u4").astype(np.int64)
        if count != shard.samples or len(offsets) != count + 1 or int(offsets[-1]) != shard.raw_bytes:
            raise refuse(shard.path, given="a head that does not fit the shard",
                         expected=f"{shard.samples} samples", fix="fetch the shard again")  # fmt: skip
        file.read(int(offsets[0]) - 4 * (count + 2))  # how it was written, as text
        ids, size = list[NDArray[Any]](), 0
        for number, length in enumerate(np.diff(offsets).tolist()):
            sample = memoryview(file.read(length))
            try:
                if len(sample) < length:
                    raise EOFError
                ids.append(_ids(_value(sample, shard, at), encoding, found))
            except (KeyError, ValueError, IndexError, EOFError) as error:
                raise refuse(shard.path, given=f"sample {number}, which cannot be read ({error!r})",
                             expected=f"whole numbers, as {encoding}", fix=_FIX) from error  # fmt: skip
            size += length
            if size >= _BYTES_AT_ONCE:
                yield _joined(ids)
                ids, size = [], 0
        if ids:
            yield _joined(ids)


def _joined(ids: list[NDArray[Any]]) -> Rows:
    return Rows(np.concatenate(ids), np.array([len(one) for one in ids], np.int64))


def _value(sample: memoryview, shard: Shard, at: int) -> memoryview:
    """The bytes of one column of a sample."""
    start = 4 * sum(1 for size in shard.sizes if not size)
    written = iter(np.frombuffer(sample, "<u4", start // 4).tolist())
    for column, size in enumerate(shard.sizes):
        length = size or next(written)
        if column == at:
            return sample[start : start + length]
        start += length
    raise AssertionError(at)


def _ids(value: memoryview, encoding: str, found: str) -> NDArray[Any]:
    """The ids in a column of a sample."""
    parts, start, name = encoding.split(":"), 0, found
    says_type = parts == ["ndarray"]
    if says_type:
        name, start = _TYPES[value[0]], 1
    if parts[0] == "ndarray" and len(parts) < 3:
        head = value[start]
        start += 1 + (head >> 2) * 2 ** (head % 4)
    ids = np.frombuffer(value[start:], token_type(name))
    return ids.astype(np.int64) if says_type else ids


@contextmanager
def _opened(shard: Shard) -> Iterator[BinaryIO]:
    """A shard as it was before it was compressed."""
    try:
        with shard.path.open("rb") as file:
            if shard.compression == "zstd":
                stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
                yield io.BufferedReader(stream, _BUFFER)
            elif shard.compression == "gz":
                with gzip.open(file) as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield file
    except (zstandard.ZstdError, EOFError, zlib.error, OSError) as error:
        raise refuse(shard.path, given=f"a shard that cannot be read ({error})", expected="a whole shard",
                     fix="fetch it again") from error  # fmt: skip
