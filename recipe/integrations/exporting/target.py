"""The folder that is exported to: whole files only, each with a manifest that has its digest."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.pools.workplace import NO_SPACE, refuse_inside, sync, write_durably
from recipe.run.handover.staging import sha256_of

STATEMENT, MANIFESTS, INDEX = "_export.json", "_manifests", "_manifest.json"
"""Readers of a folder of Parquet files pass over names that begin so."""
_UNFINISHED, _LOCK = ".unfinished", ".writer"

Plain = dict[str, Any]


class Target:
    """An export folder."""

    def __init__(self, path: Path) -> None:
        """Nothing is made yet."""
        self.path = path
        self._made = list[Path]()
        """What this writer put there, files and folders, in order: for the case that nothing comes of it."""

    def strangers(self) -> list[str]:
        """What is there without being an export's: something to ask about."""
        if not self.path.is_dir() or self.statement() is not None:
            return []
        return sorted(item.name for item in self.path.iterdir() if item.name != _LOCK)

    def statement(self) -> Plain | None:
        """What the export that is there said it was, if one is."""
        return _read(self.path / STATEMENT)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only writer; refused before any file was finished, nothing is left that was not there.

        Raises:
            RecipeError: another process is, or it is no folder, or a pool's.
        """
        if self.path.exists() and not self.path.is_dir():
            raise self.refused("a file", "a folder, or a path where nothing is yet", "choose another --out")
        refuse_inside(self.path)
        wanted = [self.path / _LOCK, self.path, *self.path.parents]
        new = [each for each in wanted if not each.exists()][::-1]
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self.refused("being written by another process", "one writer", "wait for it") from None
            self._made = new
            try:
                yield
            except RecipeError:
                if not any((self.path / MANIFESTS).glob("*.json")):
                    self._leave_nothing()
                raise

    def take_back(self, manifests: Sequence[Plain]) -> None:
        """Remove files that were published, and their manifests before them."""
        for manifest in manifests:
            (self.path / MANIFESTS / f"{stem_of(manifest)}.json").unlink(missing_ok=True)
            for name in manifest["files"]:
                (self.path / name).unlink(missing_ok=True)

    def _note(self, path: Path) -> None:
        if not path.exists():
            self._made.append(path)

    def _leave_nothing(self) -> None:
        for path in reversed(self._made):
            if path.is_dir():
                with suppress(OSError):  # something of others is in it
                    path.rmdir()
            else:
                path.unlink(missing_ok=True)
        self._made.clear()

    def begin(self, statement: Plain) -> None:
        """Say what the export is, or find that the one that is there is the same.

        Raises:
            RecipeError: it is another one.
        """
        found = self.statement()
        if found is not None and found | {"lossy": True} == statement:
            found = None  # what an export finished without loss is the same with it
        if found is not None and found != statement:
            told = [f"{key} {found.get(key)}, now {statement.get(key)}" for key in statement]
            differs = [
                line for line, key in zip(told, statement, strict=True) if found.get(key) != statement[key]
            ]
            raise self.refused(
                f"another export: {'; '.join(differs) or found}",
                "an empty folder, or one with the same export begun",
                "choose another --out, or remove this folder",
            )
        if found is None:
            self._note(self.path / STATEMENT)
            write_durably(self.path / STATEMENT, _bytes(statement))

    def manifest(self, stem: str, identity: Mapping[str, Any]) -> Plain | None:
        """The manifest of files that are there as they were written; None where they are to be written."""
        found = _read(self.path / MANIFESTS / f"{stem}.json")
        if found is None or any(found.get(key) != value for key, value in identity.items()):
            return None
        whole = all(_is(self.path / name, file) for name, file in found["files"].items())
        return found if whole else None

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """An empty folder to write files in; what is left there when it ends badly is removed."""
        folder = self.path / _UNFINISHED
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.mkdir()
            yield folder
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            free = shutil.disk_usage(self.path).free
            raise self.refused(
                f"{os.strerror(error.errno)} ({free:,} bytes free)", "room for the files that are left",
                "free space and run the same again: it goes on behind the last whole file",
            ) from error  # fmt: skip
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, folder: Path, stem: str, about: Plain) -> Plain:
        """Give the files of a workplace their names, then write their manifest."""
        files = {}
        for path in sorted(folder.glob(f"{stem}.*")):
            sync(path)
            files[path.name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
            path.replace(self.path / path.name)
        sync(self.path)
        manifest = about | {"files": files}
        self._note(self.path / MANIFESTS)
        (self.path / MANIFESTS).mkdir(exist_ok=True)
        write_durably(self.path / MANIFESTS / f"{stem}.json", _bytes(manifest))
        return manifest

    def close(self, statement: Plain, manifests: Sequence[Plain]) -> str:
        """Write the index over all manifests; its SHA-256, which answers for every byte of the export."""
        link, lines = "", []
        for manifest in manifests:
            digest = hashlib.sha256(_bytes(manifest)).hexdigest()
            link = hashlib.sha256((link + digest).encode()).hexdigest()
            lines.append(
                {"manifest": f"{MANIFESTS}/{stem_of(manifest)}.json", "sha256": digest, "link": link}
            )
        if statement["format"] == "mds":
            shards = [manifest["mds"] for manifest in manifests]
            write_durably(self.path / "index.json", _bytes({"version": 2, "shards": shards}))
        data = _bytes({"export": statement, "manifests": lines})
        if _read(self.path / INDEX) != json.loads(data):
            write_durably(self.path / INDEX, data)
        return hashlib.sha256(data).hexdigest()

    def refused(self, given: str, expected: str, fix: str) -> RecipeError:
        """An error about the folder."""
        return RecipeError.single(str(self.path), "--out", given=given, expected=expected, fix=fix)


def stem_of(manifest: Plain) -> str:
    """The name that a manifest's files begin with."""
    first, stop = manifest["steps"]
    return f"steps-{first:09d}-{stop:09d}"


def _is(path: Path, file: Mapping[str, Any]) -> bool:
    return path.is_file() and path.stat().st_size == file["bytes"] and sha256_of(path) == file["sha256"]


def _bytes(value: Plain) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def _read(path: Path) -> Plain | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
