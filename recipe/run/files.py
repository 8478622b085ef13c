"""The files of a run's ``sequences`` folder on record: a JSON line a file, each chained to the one before.

A checkpoint that the main job writes states the last link as its ``digest``, so the manifest answers
for the bytes of every file up to it; its ``uri`` names the last of them. The lines themselves,
``sequences/_files.jsonl``, can be made again from the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from recipe.run.canonical import Plain, canonical, hash_of
from recipe.run.ledger import read_tail
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.row import is_aside
from recipe.run.surviving import surviving

SEQUENCES = "sequences"
"""Folder of a run that holds its files."""
LINES_NAME = "_files.jsonl"
"""Readers of a folder of Parquet files pass over names that begin so."""
START = hash_of([])
"""The link before the first file."""


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of one file."""

    first: int
    """Its first step."""
    stop: int
    """The step after its last."""
    file: str
    """Its name in the folder."""
    size: int
    """In bytes."""
    hash: str
    """blake2b-256 of its bytes."""


@dataclass(frozen=True, slots=True)
class Line:
    """A file on record."""

    content: Content
    link: str
    """Hash of the link before and this content."""

    def to_bytes(self) -> bytes:
        """The line, with its end."""
        return canonical({**asdict(self.content), "link": self.link}) + b"\n"


def content_of(first: int, stop: int, path: Path) -> Content:
    """What a file holds now."""
    return Content(first, stop, path.name, path.stat().st_size, hash_of_file(path))


def hash_of_file(path: Path) -> str:
    """blake2b-256 of a file, in hexadecimal."""
    found = hashlib.blake2b(digest_size=32)
    with path.open("rb", buffering=0) as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.hexdigest()


def linked(contents: Iterable[Content], after: str = START) -> Iterator[Line]:
    """Lines of files in step order, chained on from a link."""
    for content in contents:
        after = hash_of([after, asdict(content)])
        yield Line(content, after)


def link_of(lines: Iterable[Line]) -> str:
    """The last link."""
    return [START, *(line.link for line in lines)][-1]


def read_lines(folder: Path) -> tuple[Line, ...]:
    """The lines of a ``sequences`` folder, up to the first that is damaged or does not follow on."""
    try:
        data = (folder / LINES_NAME).read_bytes()
    except OSError:
        return ()
    found: list[Line] = []
    link, step = START, 0
    for text in data.splitlines(keepends=True):
        content = _content(text)
        if content is None or content.first < step:
            break
        line = next(linked([content], link))
        if line.to_bytes() != text:
            break
        found.append(line)
        link, step = line.link, content.stop
    return tuple(found)


def stated_link(run: Path) -> tuple[int, str]:
    """The step and the last link that the latest checkpoint with files of the run states; 0 and START: none.

    Checkpoints that a trainer wrote, and those that a rewind discarded, are passed over.
    """
    ledger = run / "ledger.jsonl"
    for row in surviving(ledger, read_tail(ledger)):
        if (
            row.kind == "checkpoint"
            and not is_aside(row)
            and str(row.data["uri"]).startswith(f"{SEQUENCES}/")
        ):
            path = manifest_path(run, int(row.data["manifest"]))
            checkpoint = read_manifest(path, str(row.data["manifest_hash"]))["checkpoint"]
            if checkpoint["digest"] is not None:
                return row.end_step, str(checkpoint["digest"])
    return 0, START


def _content(text: bytes) -> Content | None:
    try:
        plain: Plain = json.loads(text)
        plain.pop("link")
        content = Content(**plain)
        numbers = (content.first, content.stop, content.size)
        whole = all(type(n) is int for n in numbers) and content.first < content.stop
        return content if whole and Path(content.file).name == content.file else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
