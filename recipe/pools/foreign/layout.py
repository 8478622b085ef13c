"""Other people's token files as one pool: a part for each, in sorted order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.errors import Problem, RecipeError
from recipe.pools.card import ALL, NONE, SOME, Marks, PartRecord, content_hash, extent_units
from recipe.pools.finding import Finding as Fault
from recipe.pools.foreign.columns import read_column
from recipe.pools.foreign.datatrove import read_datatrove
from recipe.pools.foreign.finding import DATATROVE, FLAT, SHARDS, TABLE, Found
from recipe.pools.foreign.flat import read_flat
from recipe.pools.foreign.form import Form
from recipe.pools.foreign.identity import sampled_hash, samples_of
from recipe.pools.foreign.mds import mds_shards
from recipe.pools.foreign.token_file import TokenFile, refuse
from recipe.pools.imported import card_loader, common_folder
from recipe.pools.layout import Layout
from recipe.pools.pool import Pool

_READERS: dict[str, Callable[[Path, Form, Marks], TokenFile | list[TokenFile]]] = {
    FLAT: read_flat,
    DATATROVE: read_datatrove,
    TABLE: read_column,
}
_AT_ONCE = 4
"""Files that are looked at together: their disk may be far away, and each may take tens of megabytes."""
_MOST_TOKENS = (1 << 31) - 1
_Reading = Callable[[], TokenFile | list[TokenFile]]
_SHORT = {FLAT: "raw", DATATROVE: "datatrove", SHARDS: "mds", TABLE: "columns"}


@dataclass(frozen=True)
class Said:
    """What decides how files are read: the recipe's words for them."""

    form: Form
    marks: Marks
    """eos and bos."""


def open_foreign(path: Path, found: Sequence[Found], said: Said, reopen: Callable[..., Pool]) -> Layout:
    """The layout of files read as one pool.

    Raises:
        RecipeError: with everything that is wrong with the first kind of fault; nothing is left out unsaid.
    """
    kind = found[0].kind
    parts, empty = _without_empty(path, _read(found, said), said.form)
    _check_types(path, parts)
    folder = path if path.is_dir() else common_folder([file for part in parts for file in part.files])
    part_documents = np.cumsum([0, *(part.num_documents for part in parts)], dtype=np.int64)
    part_offsets = np.cumsum([0, *(part.tokens.count for part in parts)], dtype=np.int64)
    num_documents, num_tokens = int(part_documents[-1]), int(part_offsets[-1])
    hashes = _hashes(parts, samples_of(len(parts)))
    names = tuple(part.files[0].relative_to(folder).as_posix() + part.label for part in parts)
    eos, bos = said.marks
    source = {_SHORT[kind]: len(parts)}
    copied = sum(part.copied_bytes for part in parts)
    return Layout(
        fingerprint=_fingerprint(kind, said, parts, hashes),
        token_dtype=parts[0].tokens.dtype,
        folder=folder,
        part_names=names,
        part_documents=part_documents,
        part_offsets=part_offsets,
        num_units=num_documents,
        extent_units=extent_units(num_tokens, num_documents),
        bos=bos,
        eos=eos,
        bos_stored=NONE if bos is None else SOME,
        eos_stored=_eos_stored(kind, said, parts),
        load_card=card_loader(
            source | ({"decoded_bytes": copied} if copied else {}),
            lambda: [_record(*one) for one in zip(names, parts, hashes, strict=True)],
        ),
        load_offsets=lambda: _offsets(parts, part_offsets),
        load_units=None,
        table=None,
        ids_are_numbers=True,
        reopen=reopen,
        declared=said.marks,
        load_part=lambda index: parts[index].tokens.map(),
        part_files=tuple((*part.files, *part.beside) for part in parts),
        prefix=lambda first, end: _prefix(kind, said, parts[first:end]),
        check=lambda full: _changed(parts, hashes, full),
        notes=tuple(_notes(parts, said, empty)),
    )


def _eos_stored(kind: str, said: Said, parts: Sequence[TokenFile]) -> str:
    """Where documents end at their mark, each has it, and none is looked at."""
    if said.marks[0] is None:
        return NONE
    scanned = _delimiter(kind, said)[0] == "eos"
    return ALL if scanned and not any(part.unended for part in parts) else SOME


def _read(found: Sequence[Found], said: Said) -> list[TokenFile]:
    """The parts; some files at a time, since what is derived from them may have to be made."""
    parts, problems = list[TokenFile](), list[Problem]()

    def read(one: _Reading) -> TokenFile | list[TokenFile] | RecipeError:
        try:
            return one()
        except RecipeError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for part in threads.map(read, _readings(found, said)):
            if isinstance(part, RecipeError):
                problems += part.problems
            else:
                parts += [part] if isinstance(part, TokenFile) else part
    if problems:
        raise RecipeError(str(found[0].path.parent), _once_each(problems))
    return parts


def _once_each(problems: Sequence[Problem]) -> list[Problem]:
    """Of what is wrong with many files in the same way the first, and how many more there are."""
    alike = dict[tuple[object, ...], list[Problem]]()
    for problem in problems:
        alike.setdefault((str(problem.given), problem.expected, problem.fix), []).append(problem)
    return [
        same[0] if len(same) == 1 else replace(same[0], given=f"{same[0].given}; and so {len(same) - 1} more")
        for same in alike.values()
    ]


def _readings(found: Sequence[Found], said: Said) -> Iterator[_Reading]:
    """What reads each file."""
    for one in found:
        if one.kind == SHARDS:
            yield from mds_shards(one.path, said.form, said.marks)
        else:
            yield partial(_READERS[one.kind], one.path, said.form, said.marks)


def _without_empty(
    path: Path, parts: Sequence[TokenFile], form: Form
) -> tuple[list[TokenFile], list[TokenFile]]:
    """Files with tokens, and those without, if the recipe lets them be left out."""
    kept, empty = [p for p in parts if p.tokens.count], [p for p in parts if not p.tokens.count]
    if empty and (form.empty == "error" or not kept):
        raise RecipeError(str(path), [
            Problem(str(part.files[0]), f"no token ({part.files[0].stat().st_size} bytes)",
                    "a file with tokens", "fetch it again; or write empty: skip, if it is meant to be empty")
            for part in empty
        ])  # fmt: skip
    return kept, empty


def _check_types(path: Path, parts: Sequence[TokenFile]) -> None:
    first = parts[0]
    for part in parts:
        if part.tokens.dtype != first.tokens.dtype:
            raise RecipeError.single(
                str(path), str(part.files[0]), given=f"tokens of type {part.tokens.dtype}",
                expected=f"{first.tokens.dtype}, as in {first.files[0]}",
                fix="name the files of each type as a pool of their own",
            )  # fmt: skip


def _offsets(parts: Sequence[TokenFile], part_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[documents + 1] of all parts."""
    pieces = []
    for part, start in zip(parts, part_offsets[:-1].tolist(), strict=True):
        ends = part.ends()
        if part.tokens.count > _MOST_TOKENS:
            _check_longest(part, ends)
        pieces.append(ends[:-1] + start)
        pieces.append(np.array([start + part.tokens.count]))
    return np.concatenate([np.zeros(1, np.int64), *pieces], dtype=np.int64)


def _check_longest(part: TokenFile, ends: NDArray[np.int64]) -> None:
    lengths = np.diff(ends, prepend=0)
    at = int(lengths.argmax())
    if lengths[at] > _MOST_TOKENS:
        raise refuse(
            part.files[0], given=f"document {at} of {lengths[at]} tokens",
            expected=f"{_MOST_TOKENS} tokens at most",
            fix="say what ends a document: eos: ID with documents: eos, or boundaries: ENDING",
        )  # fmt: skip


def _hashes(parts: Sequence[TokenFile], samples: int) -> list[list[str]]:
    """Of each part's files; a file that several parts lie in is looked at once."""
    files = list(dict.fromkeys(file for part in parts for file in part.files))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        known = dict(zip(files, threads.map(lambda file: sampled_hash(file, samples), files), strict=True))
    return [[known[file] for file in part.files] for part in parts]


def _fingerprint(kind: str, said: Said, parts: Sequence[TokenFile], hashes: Sequence[list[str]]) -> str:
    """Hash of contents and of what decides which documents are in them; names and places do not enter."""
    identity = [
        [part.tokens.dtype.name, part.num_documents, part.tokens.count, *part.rule, *of]
        for part, of in zip(parts, hashes, strict=True)
    ]
    return content_hash([_SHORT[kind], *_delimiter(kind, said), identity])


def _delimiter(kind: str, said: Said) -> tuple[str, int | None]:
    """What ends documents, and the id if it is one."""
    form, (eos, bos) = said.form, said.marks
    if form.boundaries is not None:
        return "list", None
    word = form.documents or {FLAT: "eos", DATATROVE: "index"}.get(kind, "row")
    return word, {"eos": eos, "bos": bos}.get(word)


def _prefix(kind: str, said: Said, parts: Sequence[TokenFile]) -> str:
    return _fingerprint(kind, said, parts, _hashes(parts, samples_of(len(parts))))


def _record(name: str, part: TokenFile, hashes: Sequence[str]) -> PartRecord:
    return PartRecord(
        name=name,
        documents=part.num_documents,
        tokens=part.tokens.count,
        bytes=part.files[0].stat().st_size,
        hash=hashes[0],
        index_bytes=sum(file.stat().st_size for file in part.files[1:]),
        index_hash=hashes[1] if len(hashes) > 1 else "",
        rows_hash="",
    )


def _changed(parts: Sequence[TokenFile], hashes: Sequence[list[str]], full: bool) -> list[Fault]:
    """Files that are not what they were when the pool was opened, ends that are none, damaged copies."""
    samples = samples_of(len(parts))
    known = {
        file: one
        for part, of in zip(parts, hashes, strict=True)
        for file, one in zip(part.files, of, strict=True)
    }
    faults = []
    for file, expected in known.items():
        try:
            observed = sampled_hash(file, samples)
        except RecipeError as error:
            observed = str(error.problems[0].given)
        if observed != expected:
            faults.append(Fault("contents", str(file), expected, observed))
    for part in parts:
        try:
            part.ends()
            if full and part.verify is not None:
                part.verify()
        except RecipeError as error:
            (problem,) = error.problems
            faults.append(Fault("index", problem.where, problem.expected, str(problem.given)))
    return faults


def _notes(parts: Sequence[TokenFile], said: Said, empty: Sequence[TokenFile]) -> list[str]:
    notes = []
    unended = [part for part in parts if part.unended]
    if unended:
        first, mark, which = unended[0].files[0].name, said.marks[0], "last"
        how = "end"
        if said.form.documents == "bos":
            how, mark, which = "begin", said.marks[1], "first"
        notes.append(
            f"{len(unended)} of {len(parts)} files {how} without the mark {mark} (the first is {first}): "
            f"the {which} document of each is cut"
        )
    if empty:
        names = ", ".join(part.files[0].name for part in empty[:5])
        notes.append(f"left out, as they hold no token: {names} ({len(empty)} in all)")
    if copied := sum(part.copied_bytes for part in parts):
        notes.append(f"its tokens are decoded into {parts[0].tokens.path.parent}: {copied:,} bytes in all")
    return notes
