"""The files that sources name, in an order no file system decides."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Literal

from recipe.errors import Problem, RecipeError
from recipe.text.sections import Sectioning

OnBad = Literal["error", "skip", "replace"]
Format = Literal["auto", "jsonl", "text"]

COMPRESSED = (".gz", ".zst")
JSON_LINES = (".jsonl", ".ndjson", ".jsonlines")
#: Names that hold no readable text, with the way out.
UNREADABLE = (".parquet", ".arrow", ".tar", ".zip", ".xz", ".bz2", ".bin", ".idx", ".npy")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """How files become documents."""

    format: Format = "auto"
    """``auto``: by suffix, JSON lines (.jsonl, .ndjson, .json.gz …) or else one text a file."""
    text_key: str = "text"
    """Key of the text; ``a.b`` is a key of that name, or ``b`` inside ``a``."""
    id_key: str | None = None
    """Key of the id; None: ``id`` where the record has one, else its place."""
    place_ids: bool = False
    """Ids are places, whatever the records say: for records whose ids are not unique."""
    group_key: str | None = None
    tag_keys: tuple[str, ...] = ()
    units_key: str | None = None
    """Key of a list of ``{start, id, needs}``: sections of the text, starts in its characters."""
    sections: Sectioning | None = None
    """Rule by which sections of texts are found: ``markdown`` or ``python``."""
    group_depth: int | None = None
    """Files under the same first so many folders are one group."""
    include: tuple[str, ...] = ()
    """Globs over the name or the relative path of a folder's files; empty: every file not hidden."""
    exclude: tuple[str, ...] = ()
    on_bad: OnBad = "error"
    """``error`` stops; ``skip`` counts and quarantines; ``replace`` puts U+FFFD for what is no
    character and skips what that does not repair."""
    max_line_bytes: int = 256 << 20
    """Longest line, or text file, in bytes."""

    def __post_init__(self) -> None:
        """Refuse values that no reader understands."""
        if self.on_bad not in ("error", "skip", "replace"):
            raise ValueError(f"on_bad is error, skip or replace, not {self.on_bad!r}")
        if self.format not in ("auto", "jsonl", "text"):
            raise ValueError(f"format is auto, jsonl or text, not {self.format!r}")
        if self.sections not in (None, "markdown", "python"):
            raise ValueError(f"sections is markdown, python or nothing, not {self.sections!r}")
        if self.sections is not None and self.units_key is not None:
            raise RecipeError.single(
                "reading", "sections", given=f"{self.sections} with units_key {self.units_key!r}",
                expected="one of them", fix="take the sections of the records, or find them by a rule",
            )  # fmt: skip
        if self.place_ids and self.id_key is not None:
            raise RecipeError.single(
                "reading", "place_ids", given=f"with id_key {self.id_key!r}", expected="one of them",
                fix="name the key of the ids, or take places for them",
            )  # fmt: skip
        if self.max_line_bytes < 1:
            raise ValueError(f"max_line_bytes is at least 1, not {self.max_line_bytes}")
        if self.group_depth is not None and self.group_depth < 1:
            raise ValueError(f"group_depth is at least 1, not {self.group_depth}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """One file to read."""

    name: str
    """Relative to the folder that holds all the sources, with ``/``; unique."""
    path: Path
    kind: Literal["jsonl", "text"]
    size: int
    mtime_ns: int
    group: str | None = None
    """Group of its documents, from the folders above it."""


def list_sources(
    sources: Sequence[str | Path], options: ReadOptions, *, leave_out: Sequence[Path] = ()
) -> tuple[SourceFile, ...]:
    """The files of all sources, sorted by name.

    A folder is walked to its depths (linked folders are not entered, hidden names are left out).
    Names are relative to the deepest folder that holds all the sources, so that two folders with equal
    file names stay apart and a moved folder gives the same names.

    Raises:
        RecipeError: a source is missing, empty, unreadable or named twice; every problem at once.
    """
    problems: list[Problem] = []
    found: list[tuple[Path, Path | None]] = []
    for source in sources:
        if source == "":
            fix = "an empty shell variable? name the file or folder; . is the folder you are in"
            problems.append(Problem("sources", "''", "a file or a folder", fix))
            continue
        found.extend(_files_of(Path(source), options, leave_out, problems))
    if not sources:
        problems.append(Problem("sources", "(none)", "a file or a folder", "name what is to be read"))
    if problems:
        raise RecipeError("sources", problems)
    absolute = [path.absolute() for path, _ in found]
    root = Path(os.path.commonpath([_folder(Path(s)) for s in sources]))
    files = [
        _describe(path, root, tree, options, problems)
        for path, (_, tree) in zip(absolute, found, strict=True)
    ]
    files.sort(key=lambda file: file.name.split("/"))
    for one, two in pairwise(files):
        if one.name == two.name:
            problems.append(Problem(str(two.path), "named twice", "each file once", "remove one source"))
    if problems:
        raise RecipeError("sources", problems)
    return tuple(files)


def _folder(source: Path) -> Path:
    absolute = Path(os.path.normpath(source.absolute()))
    return absolute if absolute.is_dir() else absolute.parent


def _files_of(
    source: Path, options: ReadOptions, leave_out: Sequence[Path], problems: list[Problem]
) -> Iterator[tuple[Path, Path | None]]:
    """(file, folder it was found in) of one source."""
    source = Path(os.path.normpath(source.absolute()))
    if source.is_dir():
        files = [
            (path, source) for path in _walk(source, leave_out) if _wanted(path.relative_to(source), options)
        ]
        if not files:
            given = f"no file matching {' '.join(options.include)}" if options.include else "no file"
            problems.append(Problem(str(source), given, "a file to read", "check the path and --include"))
        yield from files
    elif source.is_file():
        yield source, None
    elif source.exists():
        fix = "write what it gives into a file first, and name that"
        problems.append(Problem(str(source), _sort_of(source), "a file or a folder", fix))
    else:
        problems.append(Problem(str(source), "missing", "a file or a folder", "check the path"))


def _sort_of(path: Path) -> str:
    """What is there, if it is no file and no folder."""
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode):
        return "a FIFO (a pipe): it can be read only once"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _walk(folder: Path, leave_out: Sequence[Path]) -> Iterator[Path]:
    apart = {os.path.realpath(path) for path in leave_out}
    for parent, folders, names in os.walk(folder):
        if os.path.realpath(parent) in apart:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _wanted(relative: Path, options: ReadOptions) -> bool:
    def matches(pattern: str) -> bool:
        path = relative.as_posix()
        # ``**/`` also stands for no folder at all, as in pathlib.
        short = pattern.removeprefix("**/")
        return fnmatchcase(relative.name, short) or fnmatchcase(path, pattern)

    included = not options.include or any(matches(pattern) for pattern in options.include)
    return included and not any(matches(pattern) for pattern in options.exclude)


def _describe(
    path: Path, root: Path, tree: Path | None, options: ReadOptions, problems: list[Problem]
) -> SourceFile:
    state = path.stat()
    relative = path.relative_to(root)
    try:
        relative.as_posix().encode()
    except UnicodeEncodeError:
        fix = "rename the file, or leave it out with --exclude"
        problems.append(Problem(repr(str(path)), "a name that is no text", "a name in UTF-8", fix))
    group = None
    if options.group_depth is not None and len(relative.parts) > 1:
        group = "/".join(relative.parts[:-1][: options.group_depth])
    return SourceFile(
        name=relative.as_posix(),
        path=path,
        kind=_kind(path, tree, options, problems),
        size=state.st_size,
        mtime_ns=state.st_mtime_ns,
        group=group,
    )


def _kind(
    path: Path, tree: Path | None, options: ReadOptions, problems: list[Problem]
) -> Literal["jsonl", "text"]:
    suffix = path.suffix.lower()
    if suffix in UNREADABLE:
        fix = "convert it to JSON lines, or leave it out with --exclude"
        problems.append(Problem(str(path), suffix, "JSON lines or text, plain, .gz or .zst", fix))
    if options.format != "auto":
        return options.format
    packed = suffix in COMPRESSED
    inner = Path(path.stem).suffix.lower() if packed else suffix
    if inner in JSON_LINES or (packed and inner == ".json"):
        return "jsonl"
    if inner == ".json" and tree is None:
        fix = "--format jsonl, or --format text to read the file as one document"
        problems.append(Problem(str(path), ".json", "a format that is clear", fix))
    return "text"
