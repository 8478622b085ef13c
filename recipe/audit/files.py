"""The files of a run's ``sequences`` folder against the manifest that answers for them.

``sequences/_files.jsonl`` has a line a file: steps, name, size, hash of the bytes, and a link: the hash
of the link before and the rest of the line. A checkpoint of the main job states the last link as its
digest and names the last file as its URI. Written by no code of the job's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from recipe.audit.account import Plain
from recipe.audit.course import Course
from recipe.audit.coverage import FILES_GONE
from recipe.audit.record import read_sealed
from recipe.pools import Finding
from recipe.run.canonical import hash_of
from recipe.run.manifest import manifest_path

FOLDER = "sequences"
NAME = f"{FOLDER}/_files.jsonl"
HASHED_BYTES = 8 << 30
"""So many bytes are hashed, from the newest file on, unless everything is."""


def check_files(folder: Path, course: Course, *, full: bool) -> tuple[list[Finding], str]:
    """What is missing or damaged of the files on record, and how far they were looked at; "" for no files."""
    stated = _stated(folder, course)
    if stated is None:
        return [], ""
    if not (folder / FOLDER).is_dir():
        return [], f"files of {FOLDER}: {FILES_GONE}"
    where, step, link = stated
    contents, reached = _on_record(folder, step)
    if reached != link:
        wrong = "no file" if not (folder / NAME).is_file() else f"last link {reached}"
        return [Finding("files", NAME, f"last link {link} up to step {step}, as {where} says", wrong)], ""
    chosen = _to_hash(contents, full=full)
    found = [
        finding
        for index, content in enumerate(contents)
        for finding in _fault(folder, content, hashed=index in chosen)
    ]
    how = (
        f"{len(contents)} files of {FOLDER}: sizes of all, bytes of {len(chosen)} compared with their hashes"
    )
    return found, how


def _stated(folder: Path, course: Course) -> tuple[str, int, str] | None:
    """Manifest, step and link of the last checkpoint that answers for files and that no rewind discarded."""
    for point in reversed(course.lineage.checkpoints):
        row = course.manifests.get(point.manifest, {})
        if not str(row.get("uri")).startswith(f"{FOLDER}/"):
            continue
        file = read_sealed(folder, manifest_path(folder, point.manifest))
        words = (file.value or {}).get("checkpoint")
        link = words.get("digest") if isinstance(words, dict) else None
        if isinstance(link, str):
            return file.name, point.step, link
    return None


def _on_record(folder: Path, step: int) -> tuple[list[Plain], str]:
    """The files up to a step, and the link that their lines give."""
    contents, link = [], hash_of([])
    for content in _lines(folder / NAME):
        if content["stop"] > step:
            break
        contents.append(content)
        link = hash_of([link, content])
    return contents, link


def _lines(path: Path) -> Iterator[Plain]:
    """Lines up to the first that says nothing of a file."""
    try:
        texts = path.read_bytes().splitlines()
    except OSError:
        return
    for text in texts:
        try:
            content = json.loads(text)
            del content["link"]
            numbers = all(type(content[key]) is int for key in ("first", "stop", "size"))
            named = Path(content["file"]).name == content["file"] and isinstance(content["hash"], str)
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        if not (numbers and named):
            return
        yield content


def _to_hash(contents: list[Plain], *, full: bool) -> set[int]:
    chosen, total = set(), 0
    for index in reversed(range(len(contents))):
        total += contents[index]["size"]
        if total > HASHED_BYTES and not full:
            break
        chosen.add(index)
    return chosen


def _fault(folder: Path, content: Plain, *, hashed: bool) -> list[Finding]:
    where = f"{FOLDER}/{content['file']}, steps {content['first']} to {content['stop'] - 1}"
    path = folder / FOLDER / content["file"]
    try:
        size = path.stat().st_size
        if size != content["size"]:
            return [Finding("files", where, f"{content['size']} bytes", f"{size} bytes")]
        if hashed and (found := _hash(path)) != content["hash"]:
            return [Finding("files", where, f"bytes with hash {content['hash']}", f"hash {found}")]
    except OSError as error:
        return [Finding("files", where, f"{content['size']} bytes", error.strerror or "no file")]
    return []


def _hash(path: Path) -> str:
    found = hashlib.blake2b(digest_size=32)
    with path.open("rb", buffering=0) as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.hexdigest()
