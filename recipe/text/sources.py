"""The files that sources name, in an order no file system decides."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Literal

from recipe.errors import Problem, RecipeError
from recipe.text.dataset_folders import check_splits, without_descriptions
from recipe.text.folders import Found, files_of, is_wanted
from recipe.text.kinds import (
    FORMATS,
    READABLE,
    TABLES_OF_TEXT,
    Format,
    Kind,
    inner_suffix,
    kind_of,
    why_unreadable,
)
from recipe.text.leads import check_marker
from recipe.text.sections import Sectioning
from recipe.text.stores import Remote, Stored, stored

OnBad = Literal["error", "skip", "replace"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """How files become documents."""

    format: Format = "auto"
    """``auto``: by suffix, JSON lines (.jsonl, .ndjson, .json.gz …), Parquet (.parquet), Arrow (.arrow), tar
    (.tar, .tar.gz, .tar.zst), or else one text a file."""
    text_key: str = "text"
    """Key, or column, of the text; ``a.b`` is a key of that name, or ``b`` inside ``a``."""
    text_member: str | None = None
    """Of a tar: suffix of the member that is a record's text (``md``), or ``json``: the text is in its keys;
    None: ``txt`` where the record has one, else ``json``."""
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
    marker: str | None = None
    """What stands in front of each document of a group, as special tokens: ``<|file_sep|>{path}``."""
    group_depth: int | None = None
    """Files under the same first so many folders are one group."""
    include: tuple[str, ...] = ()
    """Globs over the name or the relative path of a folder's files; empty: every file not hidden."""
    exclude: tuple[str, ...] = ()
    on_bad: OnBad = "error"
    """``error`` stops; ``skip`` counts and quarantines; ``replace`` puts U+FFFD for what is no
    character and skips what that does not repair."""
    max_line_bytes: int = 256 << 20
    """Longest line, text file, text of a row, or member, in bytes."""

    def __post_init__(self) -> None:
        """Refuse values that no reader understands."""
        if self.on_bad not in ("error", "skip", "replace"):
            raise ValueError(f"on_bad is error, skip or replace, not {self.on_bad!r}")
        if self.format not in FORMATS:
            raise ValueError(f"format is one of {', '.join(FORMATS)}, not {self.format!r}")
        if self.sections not in (None, "markdown", "python"):
            raise ValueError(f"sections is markdown, python or nothing, not {self.sections!r}")
        if self.sections is not None and self.units_key is not None:
            raise RecipeError.single(
                "reading", "sections", given=f"{self.sections} with units_key {self.units_key!r}",
                expected="one of them", fix="take the sections of the records, or find them by a rule",
            )  # fmt: skip
        if self.marker is not None:
            check_marker(self.marker)
        if self.place_ids and self.id_key is not None:
            raise RecipeError.single(
                "reading", "place_ids", given=f"with id_key {self.id_key!r}", expected="one of them",
                fix="name the key of the ids, or take places for them",
            )  # fmt: skip
        if self.group_depth is not None and self.group_key is not None:
            raise RecipeError.single(
                "reading", "group_depth", given=f"{self.group_depth} with group_key {self.group_key!r}",
                expected="one of them", fix="take the groups of the records, or those of the folders",
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
    path: Stored
    kind: Kind
    size: int
    mtime_ns: int
    """Of an object in a store: a number made of its version; -1: the store names none."""
    group: str | None = None
    """Group of its documents, from the folders above it."""


def list_sources(
    sources: Sequence[str | Path],
    options: ReadOptions,
    *,
    leave_out: Sequence[Path] = (),
    on_hidden: Callable[[list[str]], None] = lambda names: None,
) -> tuple[SourceFile, ...]:
    """The files of all sources, sorted by name.

    A folder is walked to its depths (linked folders are not entered, hidden names are left out); of a
    dataset that ``datasets`` saved, the files that it lists are read. A URL (``s3://bucket/web``) names an
    object of a store, or all below it. Names are relative to the deepest folder that holds all the sources,
    so that two folders with equal file names stay apart and a moved folder gives the same names.

    Args:
        sources: files, folders, URLs.
        options: which files are wanted, and how they are read.
        leave_out: folders that are not entered.
        on_hidden: called with the paths, below their source, of files that are wanted but for a name on the
            way to them that begins with a dot, if there are any.

    Raises:
        RecipeError: a source is missing, empty, unreadable or named twice; every problem at once.
    """
    problems: list[Problem] = []
    found: list[Found] = []
    tops: list[PurePosixPath] = []
    hidden: list[str] = []
    for source in sources:
        if source == "":
            fix = "an empty shell variable? name the file or folder; . is the folder you are in"
            problems.append(Problem("sources", "''", "a file or a folder", fix))
            continue
        top, below = _files_of(source, options, leave_out, problems)
        hidden += [str(file.relative) for file in below if file.is_hidden]
        found += [file for file in below if not file.is_hidden]
        tops += [] if top is None else [top]
    if not sources:
        problems.append(Problem("sources", "(none)", "a file or a folder", "name what is to be read"))
    _check_one_store(sources, problems)
    if problems:
        raise RecipeError("sources", problems)
    root = PurePosixPath(os.path.commonpath(tops))
    files = [_describe(file, root, options, problems) for file in found]
    files.sort(key=lambda file: file.name.split("/"))
    for one, two in pairwise(files):
        if one.name == two.name:
            problems.append(Problem(str(two.path), "named twice", "each file once", "remove one source"))
    if problems:
        raise RecipeError("sources", problems)
    if hidden:
        on_hidden(hidden)
    return tuple(files)


def _files_of(
    source: str | Path, options: ReadOptions, leave_out: Sequence[Path], problems: list[Problem]
) -> tuple[PurePosixPath | None, list[Found]]:
    """The folder that a source is, or is in, and those of its wanted files, hidden ones too."""
    answer = files_of(stored(source), leave_out)
    if isinstance(answer, Problem):
        problems.append(answer)
        return None, []
    top, below = answer
    found = [file for file in below if not file.is_hidden]
    if not below or below[0].folder is not None:
        found = _without_dead_links(found, options, problems)
        kept = without_descriptions(found, problems) if options.format in ("auto", "arrow") else found
        kept = [file for file in kept if is_wanted(file.relative, options.include, options.exclude)]
        check_splits(found, kept, problems)
        if not kept:
            given = "only hidden files" if below and not found else "no file"
            given = f"no file matching {' '.join(options.include)}" if options.include else given
            problems.append(Problem(str(source), given, "a file to read", "check the path and --include"))
        wanted = (file for file in below if is_wanted(file.relative, options.include, options.exclude))
        return top, [*kept, *(file for file in wanted if file.is_hidden)]
    if not is_wanted(found[0].relative, options.include, options.exclude):
        fix = "leave it out of the sources, or let it in: globs are for named files, too"
        given = "named, and left out by --include or --exclude"
        problems.append(Problem(str(source), given, "a file to read", fix))
    return top, found


def _without_dead_links(found: list[Found], options: ReadOptions, problems: list[Problem]) -> list[Found]:
    """Refuse links to what is not there, among the files that are wanted: their texts would be missing."""
    for file in found:
        if file.leads_nowhere and is_wanted(file.relative, options.include, options.exclude):
            fix = "fetch what it leads to, or leave it out with --exclude"
            problems.append(Problem(str(file.place), "a link to nothing", "a file to read", fix))
    return [file for file in found if not file.leads_nowhere]


def _check_one_store(sources: Sequence[str | Path], problems: list[Problem]) -> None:
    places = [stored(source) for source in sources]
    schemes = {place.url.partition("://")[0] if isinstance(place, Remote) else "file" for place in places}
    if len(schemes) > 1:
        fix = "prepare one pool after the other, with --extends; or copy the sources to one place"
        problems.append(Problem("sources", ", ".join(sorted(schemes)), "sources in one kind of store", fix))


def _describe(file: Found, root: PurePosixPath, options: ReadOptions, problems: list[Problem]) -> SourceFile:
    relative = file.path.relative_to(root)
    try:
        str(relative).encode()
    except UnicodeEncodeError:
        fix = "rename the file, or leave it out with --exclude"
        problems.append(Problem(repr(str(file.place)), "a name that is no text", "a name in UTF-8", fix))
    group = None
    if options.group_depth is not None and len(relative.parts) > 1:
        group = "/".join(relative.parts[:-1][: options.group_depth])
    return SourceFile(
        name=str(relative),
        path=file.place,
        kind=_kind(file, options, problems),
        size=file.state.size,
        mtime_ns=file.state.stamp,
        group=group,
    )


def tables_as_text(files: Sequence[SourceFile]) -> dict[str, int]:
    """Files by suffix that are read as one text each, though what is called so holds a table or records."""
    found = Counter(inner_suffix(file.name) for file in files if file.kind == "text")
    return {suffix: found[suffix] for suffix in TABLES_OF_TEXT if found[suffix]}


def _as_it_is(path: str) -> str:
    """How a recipe reads a file of token ids, which need not be prepared; nothing of other files."""
    stem, dot, suffix = path.rpartition(".")
    said = {"npy": f"{path}, eos: ID", "bin": f"{path}, dtype: uint16, eos: ID", "idx": stem}.get(
        suffix.lower()
    )
    if said is None or not dot:
        return ""
    what = "Megatron's pairs are" if suffix.lower() == "idx" else "token ids are"
    return f"{what} a pool as they are, in a recipe: pools: {{NAME: {{path: {said}}}}}"


def _kind(file: Found, options: ReadOptions, problems: list[Problem]) -> Kind:
    name = file.path.name
    by_name = kind_of(name, in_folder=file.folder is not None)
    kind = by_name if options.format == "auto" else options.format
    if kind is None:
        fix = "--format jsonl, or --format text to read the file as one document"
        problems.append(Problem(str(file.place), ".json", "a format that is clear", fix))
        return "text"
    if (what := why_unreadable(name, kind)) is not None:
        fix = f"{_as_it_is(str(file.place)) or 'convert it'}, or leave it out with --exclude"
        problems.append(Problem(str(file.place), what, READABLE, fix))
    elif kind in ("jsonl", "text") and by_name not in ("jsonl", "text", None):
        fix = f"--format {by_name}, or none: the suffix says it"
        problems.append(Problem(str(file.place), f"--format {kind}", f"the format of {name}", fix))
    return kind
