"""Which files a path means, and of which kind they are: by their names and heads, never by a guess."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from recipe.errors import RecipeError
from recipe.pools.card import json_object
from recipe.pools.foreign import columns, flat, mds
from recipe.pools.foreign.exported import LIST_ENDING
from recipe.pools.foreign.form import Form
from recipe.pools.foreign.token_file import refuse

FLAT, DATATROVE, SHARDS, TABLE = "files of tokens", "datatrove files", "MDS folders", "tables"
_HEADS = {b"\x93NUMPY": FLAT, b"PAR1": TABLE, b"ARROW1": TABLE}
_STATE, _SPLITS = columns.STATES[0], "dataset_dict.json"
_SHARD_OF_SPLIT = re.compile(
    r"(train|test|validation|valid|val|dev|eval)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?\.(?:parquet|arrow)"
)
_CACHES = ("-document_index.npy", "-sample_index.npy", "-shuffle_index.npy")
"""Endings of what Megatron keeps beside its pairs."""


class Found(NamedTuple):
    """A file of somebody else: of MDS the index."""

    kind: str
    path: Path


def find_foreign(place: Path, form: Form) -> list[Found]:
    """The files that a file, folder or pattern means, in sorted order of their paths.

    Files of a folder that are of no known kind are not looked at; one that is named itself, or by a pattern,
    is read as raw tokens if the recipe says their type. Megatron's pairs are left out.

    Raises:
        RecipeError: files of different kinds, or several splits of one dataset.
    """
    named, below = _candidates(place)
    found = [one for path in named if (one := _kind(path, form, named=True)) is not None]
    found += [one for path in below if (one := _kind(path, form, named=False)) is not None]
    found = sorted(set(found), key=lambda one: one.path.parts)
    if form.boundaries is not None:
        found = [one for one in found if not one.path.name.endswith(form.boundaries)]
    else:
        _refuse_lists(place, found)
    found = _of_datasets(place, _unmerged(found))
    if place.is_dir():
        _refuse_splits(place, found)
    kinds = {one.kind: one.path for one in reversed(found)}
    if len(kinds) > 1:
        given = " and ".join(f"{kind} ({path.name})" for kind, path in sorted(kinds.items()))
        raise several_kinds(place, given, found[0].path)
    return found


def several_kinds(place: Path, given: str, example: Path) -> RecipeError:
    """The error for files of which it is not said which are meant."""
    folder = place if place.is_dir() else place.parent
    return RecipeError.single(
        str(place), str(place), given=given, expected="files of one kind",
        fix=f"name those that are meant, for example {folder}/**/*{example.suffix}",
    )  # fmt: skip


def _candidates(place: Path) -> tuple[list[Path], list[Path]]:
    """Files that are named, and files of folders."""
    if place.is_file():
        return [place], []
    if place.is_dir():
        return [], list(_below(place))
    if not glob.has_magic(str(place)):
        return [], []
    plain = next(parent for parent in place.parents if not glob.has_magic(str(parent)))
    matched = [path for path in plain.glob(str(place.relative_to(plain))) if _is_shown(path, plain)]
    return (
        [path for path in matched if path.is_file()],
        [file for path in matched if path.is_dir() for file in _below(path)],
    )


def _below(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if _is_shown(path, folder) and path.is_file())


def _is_shown(path: Path, folder: Path) -> bool:
    """Whether it lies in no hidden folder, such as our own, and is none."""
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _kind(path: Path, form: Form, *, named: bool) -> Found | None:
    """What a file is; None if it is no token file, or one of Megatron's."""
    name, ending = path.name, path.suffix
    if name.startswith("_") and not named:  # as readers of folders of tables pass over it
        return None
    if (
        ending == ".idx"
        or name.endswith(_CACHES)
        or (ending == ".bin" and path.with_suffix(".idx").is_file())
    ):
        return None
    if ending in columns.ENDINGS:
        return Found(TABLE, path)
    if ending == ".ds":
        return Found(DATATROVE, path)
    if name == mds.INDEX:
        return Found(SHARDS, path) if mds.is_mds(path) else None
    if ending in flat.ENDINGS:
        return Found(FLAT, path)
    if not named:
        return None
    with path.open("rb") as file:
        head = file.read(8)
    for magic, kind in _HEADS.items():
        if head.startswith(magic):
            return Found(kind, path)
    return Found(FLAT, path) if form.dtype is not None else None


def _unmerged(found: list[Found]) -> list[Found]:
    """Without the indices of shards that an index above them lists, too."""
    listed = {below for one in found if one.kind == SHARDS for below in mds.folders_below(one.path)}
    return [one for one in found if one.kind != SHARDS or one.path.parent not in listed]


def _of_datasets(place: Path, found: list[Found]) -> list[Found]:
    """Of folders that ``datasets`` saved, the files that its state lists, in that order."""
    if place.is_dir() and (place / _SPLITS).is_file():
        splits = json_object(place / _SPLITS).get("splits", [])
        example = place / ("train" if "train" in splits else str(splits[0]) if splits else "train")
        raise refuse(place, given=f"splits {', '.join(map(str, splits))} of a dataset", expected="one split",
                     fix=f"name one: {example}")  # fmt: skip
    kept, listed = [], set[Path]()
    for one in found:
        folder = one.path.parent
        if one.kind != TABLE or not (folder / _STATE).is_file():
            kept.append(one)
        elif folder not in listed:
            listed.add(folder)
            kept += _of_dataset(folder)
    return kept


def _refuse_lists(place: Path, found: list[Found]) -> None:
    """Lists of where documents end, as our exports and others write them, are no tokens."""
    paths = {one.path for one in found}
    lists = [path for path in paths if path.name.endswith(LIST_ENDING)]
    beside = [path for path in lists if path.with_name(path.name.removesuffix(LIST_ENDING) + ".npy") in paths]
    if beside:
        first = min(beside)
        tokens = first.name.removesuffix(LIST_ENDING) + ".npy"
        raise refuse(
            first, given=f"a file beside {tokens} that is called as a list of where its documents end",
            expected=f"boundaries: {LIST_ENDING}, by which such lists are read",
            fix=f"write boundaries: {LIST_ENDING} for {place}; or name the token files, if these are tokens",
        )  # fmt: skip


def _refuse_splits(place: Path, found: list[Found]) -> None:
    """Files of a dataset as hubs name them: whoever names their folder would train on its test split."""
    matched = [match for one in found if (match := _SHARD_OF_SPLIT.fullmatch(one.path.name))]
    splits = sorted({match[1] for match in matched})
    if len(splits) > 1:
        first = "train" if "train" in splits else splits[0]
        raise refuse(
            place, given=f"files of the splits {', '.join(splits)}", expected="one split",
            fix=f"name its files, such as {place}/**/{first}-*; or all by a pattern, if they are meant",
        )  # fmt: skip


def _of_dataset(folder: Path) -> list[Found]:
    state = json_object(folder / _STATE)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise refuse(folder / _STATE, given="a selection of rows by indices",
                     expected="a dataset of all its rows",
                     fix="dataset.flatten_indices().save_to_disk(FOLDER), and name that folder")  # fmt: skip
    listed = state.get("_data_files")
    if not isinstance(listed, list) or not all(isinstance(one, dict) and "filename" in one for one in listed):
        raise refuse(folder / _STATE, given="a state that lists no files", expected="that of a saved dataset",
                     fix="fetch the dataset again, or name its .arrow files by a pattern")  # fmt: skip
    names = [entry["filename"] for entry in listed]
    for name in names:
        if not (folder / name).is_file():
            raise refuse(folder / name, given="no file", expected=f"a file that {_STATE} lists",
                         fix="fetch the dataset again, with all of its files")  # fmt: skip
    return [Found(TABLE, folder / name) for name in names]
