"""A folder of JSON lines, file by file in groups that become pools, and what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import blake2b
from pathlib import Path

from recipe.errors import Problem, RecipeError

GROUPS: Mapping[str, str] = {
    "verified_code": "verified_*",
    "maths": "math*",
    "tutorials": "doc_*",
    "chinese": "zh_*",
    "english": "en_*",
    "code": "code_*",
}
"""Pools and the names of their files. Of a text that several of them hold, the first one keeps it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextGroup:
    """Files that become one pool."""

    name: str
    files: tuple[Path, ...]
    is_held_out: bool = False
    """Nothing trains on them."""
    documents: int
    stored_bytes: int
    text_bytes: int
    """UTF-8 of all texts."""
    distinct_text_bytes: int
    """The same, equal texts once."""


def text_groups(
    folder: Path, groups: Mapping[str, str] = GROUPS, held_out: Sequence[str] = ()
) -> list[TextGroup]:
    """Files that are held out, each a group of its own; then the groups that have files, by priority.

    Args:
        folder: with ``*.jsonl`` in it.
        groups: a pattern of file names, by name.
        held_out: patterns of files that nothing trains on.

    Raises:
        RecipeError: no such folder, no file, or files that belong to no group.
    """
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    found: dict[str, list[Path]] = {name: [] for name in groups}
    left: list[Path] = []
    held = [path for path in files if any(fnmatch(path.stem, pattern) for pattern in held_out)]
    for path in (path for path in files if path not in held):
        name = next((name for name, pattern in groups.items() if fnmatch(path.stem, pattern)), None)
        (left if name is None else found[name]).append(path)
    if not files:
        raise RecipeError.single(
            "corpora", str(folder), given="no *.jsonl in it",
            expected="JSON lines {id, text, source, licence}",
            fix="name the folder that holds them",
        )  # fmt: skip
    if left:
        names = ", ".join(f"{name}={pattern}" for name, pattern in groups.items())
        problems = [
            Problem(
                str(path), path.name, f"a name of a group: {names}", "rename it, or add --group NAME=GLOB"
            )
            for path in left
        ]
        raise RecipeError("corpora", problems)
    apart = [_read(path.stem, [path], is_held_out=True) for path in held]
    return [*apart, *(_read(name, paths) for name, paths in found.items() if paths)]


def _read(name: str, files: Sequence[Path], *, is_held_out: bool = False) -> TextGroup:
    documents = text_bytes = distinct = 0
    seen: set[bytes] = set()
    for path in files:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                text = json.loads(line)["text"].encode()
                documents, text_bytes = documents + 1, text_bytes + len(text)
                if (digest := blake2b(text, digest_size=16).digest()) not in seen:
                    seen.add(digest)
                    distinct += len(text)
    return TextGroup(
        name=name, files=tuple(files), is_held_out=is_held_out, documents=documents, text_bytes=text_bytes,
        stored_bytes=sum(path.stat().st_size for path in files), distinct_text_bytes=distinct,
    )  # fmt: skip
