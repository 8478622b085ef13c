"""Folders that the ``datasets`` library saved: which of their files hold rows.

``Dataset.save_to_disk`` writes ``state.json``, which lists the Arrow files in order, beside files that hold
no text; a later ``map`` may leave ``cache-….arrow`` there, which are not the dataset.
``DatasetDict.save_to_disk`` writes such a folder for each split, and ``dataset_dict.json`` above them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from recipe.errors import Problem
from recipe.text.folders import Found
from recipe.text.stores import read_small

STATE, INFO, DICT = "state.json", "dataset_info.json", "dataset_dict.json"

#: Such files are small; a larger one of that name is something else.
MOST_BYTES = 64 << 20


def without_descriptions(found: Sequence[Found], problems: list[Problem]) -> list[Found]:
    """The files that hold records: of a saved dataset, those that its state lists."""
    folders: dict[PurePosixPath, dict[str, Found]] = {}
    for file in found:
        folders.setdefault(file.path.parent, {})[file.path.name] = file
    kept: list[Found] = []
    for files in folders.values():
        kept += _of_folder(files, problems)
    return kept


def check_splits(found: Sequence[Found], kept: Sequence[Found], problems: list[Problem]) -> None:
    """Refuse several splits of one dataset in one pool: its test split would be trained on.

    Args:
        found: all files below a source.
        kept: those that are read.
        problems: filled.
    """
    for file in found:
        if file.path.name == DICT and isinstance((names := _load(file).get("splits")), list):
            top = file.path.parent
            read = {str(one.path.relative_to(top).parts[0]) for one in kept if top in one.path.parents}
            splits = sorted(read & set(map(str, names)))
            if len(splits) > 1:
                given = f"splits {', '.join(splits)} of one dataset"
                split = str(file.place).removesuffix(DICT) + ("train" if "train" in splits else splits[0])
                fix = f"name {split}, or leave the others out with --exclude"
                problems.append(Problem(str(file.place), given, "one split", fix))


def _of_folder(files: dict[str, Found], problems: list[Problem]) -> list[Found]:
    state = _load(files[STATE]) if STATE in files else {}
    if isinstance(state.get("_data_files"), list):
        return _listed(files, state, problems)
    has_rows = any(name.endswith(".arrow") for name in files)
    described = {DICT, INFO} if has_rows else {DICT}
    if DICT in files and not isinstance(_load(files[DICT]).get("splits"), list):
        described -= {DICT}
    return [file for name, file in files.items() if name not in described]


def _listed(files: dict[str, Found], state: dict[str, Any], problems: list[Problem]) -> list[Found]:
    """The files of a saved dataset, in its order."""
    where = str(files[STATE].place)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        fix = "datasets.load_from_disk(…).flatten_indices().save_to_disk(…), and name that folder"
        problems.append(
            Problem(where, "a selection of rows by indices", "a dataset whose rows are all of it", fix)
        )
    names = [str(entry.get("filename")) for entry in state["_data_files"] if isinstance(entry, dict)]
    for name in names:
        if name not in files:
            fix = "fetch the dataset again, with all of its files"
            problems.append(
                Problem(where, f"{name}, which is missing", "all files that the dataset lists", fix)
            )
    return [files[name] for name in names if name in files]


def _load(file: Found) -> dict[str, Any]:
    """A JSON object, or nothing where it is something else."""
    if file.state.size > MOST_BYTES:
        return {}
    try:
        data = json.loads(read_small(file.place))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
