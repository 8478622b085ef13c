"""The manifest that `recipe export POOL` writes beside its files is believed where they are read.

Files that we exported are token files like any other, but they need not be described again: their manifest
has the marks that the pool stored, and how ends of documents are told. Words of a recipe that say otherwise
are refused, and so is a file that is no longer what its manifest lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipe.errors import Problem, RecipeError
from recipe.pools.card import ALL, NONE, SOME, Marks
from recipe.pools.foreign.form import Form
from recipe.pools.foreign.token_file import refuse

EXPORTED = "_manifest.json"
"""Beside the files that `recipe export POOL` writes."""
LIST_ENDING = ".offsets.npy"
"""Of the lists beside exported ``.npy`` files."""


@dataclass(frozen=True, slots=True)
class StatedMarks:
    """What a manifest says of marks."""

    bos: int | None
    eos: int | None
    bos_stored: str
    eos_stored: str


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest of an exported pool in a folder; None where there is none, or another program's."""
    try:
        said = json.loads((folder / EXPORTED).read_bytes())
    except (OSError, ValueError):
        return None
    is_ours = isinstance(said, dict) and {"pool", "marks", "format"} <= said.keys()
    return said if is_ours and isinstance(said.get("files"), dict) else None


def lists(file: Path, manifest: Mapping[str, Any] | None) -> bool:
    """Whether a manifest lists a file with as many bytes as it has."""
    entry = manifest["files"].get(file.name) if manifest is not None else None
    return isinstance(entry, dict) and file.is_file() and entry.get("bytes") == file.stat().st_size


def exported_form(place: Path, form: Form) -> Form:
    """The form of files, where their manifest says that lists tell where documents end.

    Args:
        place: file, folder or pattern that is opened.
        form: what the recipe says; what it says of documents is kept.
    """
    if form.boundaries is not None or form.documents is not None:
        return form
    manifest = manifest_of(place if place.is_dir() else place.parent)
    if manifest is None or manifest["format"] != "npy":
        return form
    is_listed = not place.is_file() or place.name in manifest["files"]
    return replace(form, boundaries=LIST_ENDING) if is_listed else form


def exported_marks(place: Path, name: str, files: Sequence[Path], marks: Marks) -> StatedMarks | None:
    """The marks that the manifests beside files state; None where there is none.

    Args:
        place: what is opened, for messages.
        name: of the pool.
        files: that hold tokens.
        marks: eos and bos as the recipe says them; None: nothing is said.

    Raises:
        RecipeError: a file is another than its manifest lists, the recipe says another mark, or some of the
            files say other marks than the rest, or none.
    """
    manifests = {folder: manifest_of(folder) for folder in {file.parent for file in files}}
    if not any(manifests.values()):
        return None
    found = {file: _marks_beside(file, manifests[file.parent]) for file in files}
    stated = {file: one for file, one in found.items() if one is not None}
    if not stated:
        return None
    first, one = next(iter(stated.items()))
    other = next((file for file, known in stated.items() if known != one), None)
    silent = next((file for file in files if found[file] is None), None)
    if other is not None:
        raise refuse(
            other, given=f"{_told(stated[other])}, as {other.parent / EXPORTED} says",
            expected=f"{_told(one)}, as {first.parent / EXPORTED} says of {first.name}",
            fix="name the exports as pools of their own",
        )  # fmt: skip
    _check_said(place, name, (first, one), marks)
    if silent is not None and (one.eos, one.bos) != marks:
        raise refuse(
            silent, given=f"a file that no {EXPORTED} lists, beside exported ones ({_told(one)})",
            expected="files that say the same of their marks",
            fix=f"name it as a pool of its own; or write {_words(one)} if that is true of it too",
        )  # fmt: skip
    if silent is not None:
        return replace(one, bos_stored=_some(one.bos_stored), eos_stored=_some(one.eos_stored))
    return one


def _marks_beside(file: Path, manifest: Mapping[str, Any] | None) -> StatedMarks | None:
    if manifest is None or file.name not in manifest["files"]:
        return None
    if not lists(file, manifest):
        raise refuse(
            file, given=f"{file.stat().st_size} bytes",
            expected=f"{manifest['files'][file.name].get('bytes')}, as the {EXPORTED} beside it says",
            fix=f"export it again; or write eos: ID and remove {EXPORTED}, if it is meant to be another",
        )  # fmt: skip
    marks = manifest["marks"]
    try:
        known = StatedMarks(marks["bos"], marks["eos"], marks["bos_stored"], marks["eos_stored"])
    except (KeyError, TypeError):
        return None
    words = {known.bos_stored, known.eos_stored} <= {ALL, NONE, SOME}
    ids = all(mark is None or isinstance(mark, int) for mark in (known.bos, known.eos))
    return known if words and ids else None


def _check_said(place: Path, name: str, of: tuple[Path, StatedMarks], marks: Marks) -> None:
    file, one = of
    problems = [
        Problem(
            f"pools.{name}.{mark}", str(given),
            f"{'none' if stated is None else stated}, as {file.parent / EXPORTED} says of {file.name}",
            f"leave {mark} out: what an export says of itself is used",
        )
        for mark, given, stated in (("eos", marks[0], one.eos), ("bos", marks[1], one.bos))
        if given is not None and given != stated
    ]  # fmt: skip
    if problems:
        raise RecipeError(str(place), problems)


def _some(stored: str) -> str:
    return NONE if stored == NONE else SOME


def _told(one: StatedMarks) -> str:
    said = [f"{name} {mark}" for name, mark in (("bos", one.bos), ("eos", one.eos)) if mark is not None]
    return " and ".join(said) or "no marks"


def _words(one: StatedMarks) -> str:
    said = [f"{name}: {mark}" for name, mark in (("eos", one.eos), ("bos", one.bos)) if mark is not None]
    return " and ".join(said) or "their marks"
