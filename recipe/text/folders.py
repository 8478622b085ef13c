"""What a source names: a file, or the files below a folder, of this machine or of a store."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from recipe.errors import Problem
from recipe.text.stores import Remote, State, Stored, objects_below, path_in_store, state_of


@dataclass(frozen=True, slots=True)
class Found:
    """A file that a source names."""

    place: Stored
    path: PurePosixPath
    """From the root of the machine, or of the store: bucket and key."""
    folder: PurePosixPath | None
    """The source, where that is a folder; None: the file itself was named."""
    state: State
    leads_nowhere: bool = False
    """It is a link to something that is not there."""
    is_hidden: bool = False
    """Its name, or that of a folder on the way to it, begins with a dot."""

    @property
    def relative(self) -> PurePosixPath:
        """Below the folder that was named."""
        return self.path.relative_to(self.folder or self.path.parent)


def files_of(source: Stored, leave_out: Sequence[Path]) -> tuple[PurePosixPath, list[Found]] | Problem:
    """The folder that holds a source's files, and these, hidden ones too; or what is wrong with it."""
    return _remote_files(source) if isinstance(source, Remote) else _local_files(source, leave_out)


def is_wanted(relative: PurePosixPath, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether globs over the name or the relative path let a file in."""

    def matches(pattern: str) -> bool:
        # ``**/`` also stands for no folder at all, as in pathlib.
        short = pattern.removeprefix("**/")
        return fnmatchcase(relative.name, short) or fnmatchcase(str(relative), pattern)

    return (not include or any(map(matches, include))) and not any(map(matches, exclude))


def _remote_files(source: Remote) -> tuple[PurePosixPath, list[Found]] | Problem:
    below = objects_below(source)
    top = path_in_store(source)
    if below is None:
        return Problem(str(source), "missing", "an object or a folder of a store", "check the name")
    is_folder, objects = below
    if not is_folder:
        return top.parent, [Found(source, top, None, objects[0][1])]
    paths = [(place, path_in_store(place), state) for place, state in objects]
    hidden = [any(name.startswith(".") for name in path.relative_to(top).parts) for _, path, _ in paths]
    return top, [
        Found(place, path, top, state, is_hidden=apart)
        for (place, path, state), apart in zip(paths, hidden, strict=True)
    ]


def _local_files(source: Path, leave_out: Sequence[Path]) -> tuple[PurePosixPath, list[Found]] | Problem:
    source = Path(os.path.normpath(source.absolute()))
    top = PurePosixPath(source)
    if source.is_dir():
        found = []
        for path in _walk(source, leave_out):
            apart = any(name.startswith(".") for name in path.relative_to(source).parts)
            if (state := state_of(path)) is not None:
                found.append(Found(path, PurePosixPath(path), top, state, is_hidden=apart))
            elif apart:
                continue
            elif path.is_symlink():
                found.append(Found(path, PurePosixPath(path), top, State(0, -1), leads_nowhere=True))
        return top, found
    if source.is_file() and (state := state_of(source)) is not None:
        return top.parent, [Found(source, top, None, state)]
    if source.exists():
        fix = "write what it gives into a file first, and name that"
        return Problem(str(source), _sort_of(source), "a file or a folder", fix)
    return Problem(str(source), "missing", "a file or a folder", "check the path")


def _sort_of(path: Path) -> str:
    """What is there, if it is no file and no folder."""
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode):
        return "a FIFO (a pipe): it can be read only once"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _leads_nowhere(path: Path) -> bool:
    return path.is_symlink() and not path.exists()


def _walk(folder: Path, leave_out: Sequence[Path]) -> Iterator[Path]:
    apart = {os.path.realpath(path) for path in leave_out}
    for parent, folders, names in os.walk(folder):
        if os.path.realpath(parent) in apart:
            folders.clear()
            continue
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file() or _leads_nowhere(path):
                yield path
