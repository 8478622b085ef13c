"""What a file holds, by its name."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["jsonl", "text", "parquet", "arrow", "tar"]
Format = Literal["auto", "jsonl", "text", "parquet", "arrow", "tar"]
FORMATS: tuple[Format, ...] = ("auto", "jsonl", "text", "parquet", "arrow", "tar")

#: Kinds whose records are rows, and are counted from 1 as lines are.
TABLES = ("parquet", "arrow")

COMPRESSED = (".gz", ".zst")
JSON_LINES = (".jsonl", ".ndjson", ".jsonlines")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
ARCHIVES = (".tar", ".tgz", ".tzst")
#: Names of tables and records that no reader takes apart: a file is one text.
TABLES_OF_TEXT = (".csv", ".tsv", ".json")
#: Names that hold no readable text.
UNREADABLE = (".zip", ".xz", ".bz2", ".bin", ".idx", ".npy")
READABLE = "JSON lines or text, plain, .gz or .zst; .parquet; .arrow; .tar, .tar.gz, .tar.zst"


def kind_of(name: str, *, in_folder: bool = True) -> Kind | None:
    """The kind of a file; None: a ``.json`` by itself, which may be one record or lines of them.

    >>> [kind_of(name) for name in ("a.jsonl.gz", "a.md", "a.parquet", "a.tar.zst")]
    ['jsonl', 'text', 'parquet', 'tar']
    """
    suffix, inner, packed = _suffixes(name)
    if suffix in ARCHIVES or inner in ARCHIVES:
        return "tar"
    if suffix in PARQUET:
        return "parquet"
    if suffix in ARROW:
        return "arrow"
    if inner in JSON_LINES or (packed and inner == ".json"):
        return "jsonl"
    return None if inner == ".json" and not in_folder else "text"


def why_unreadable(name: str, kind: Kind) -> str | None:
    """What there is in a name that no reader of this kind takes; None: nothing."""
    suffix, inner, packed = _suffixes(name)
    if suffix in UNREADABLE:
        return suffix
    if packed and (kind in TABLES or inner in (*PARQUET, *ARROW)):
        return f"{inner}{suffix}: a table packed a second time"
    return None


def inner_suffix(name: str) -> str:
    """The last suffix, below compression, in small letters.

    >>> inner_suffix("a/B.CSV.gz")
    '.csv'
    """
    return _suffixes(name)[1]


def _suffixes(name: str) -> tuple[str, str, bool]:
    """The last suffix, the one below compression, and whether there is compression."""
    path = PurePosixPath(name.lower())
    packed = path.suffix in COMPRESSED
    return path.suffix, PurePosixPath(path.stem).suffix if packed else path.suffix, packed
