"""What stands in a folder, by name; of this machine, or of a store that fsspec opens."""

from __future__ import annotations

import os
from pathlib import Path

from recipe.config.places import is_stored, place
from recipe.errors import RecipeError


def below(root: str | None, path: str) -> Path:
    """The folder of a path that is relative to ``pools_root``, or whole."""
    return place(root or "", path)


def names_in(folder: Path) -> dict[str, bool]:
    """What is in a folder, sorted by name, and whether it is a folder; nothing where there is no such folder.

    Raises:
        RecipeError: nobody may look into it, or the store does not answer.

    >>> names_in(Path("no such folder"))
    {}
    """
    found = _stored(folder) if is_stored(folder) else _local(folder)
    return dict(sorted(found.items()))


def is_there(folder: Path) -> bool:
    """Whether a folder of this machine is there; a store has folders where something is in them."""
    return bool(names_in(folder)) or (not is_stored(folder) and folder.is_dir())


def _local(folder: Path) -> dict[str, bool]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_dir() for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _closed(
            folder, error.strerror or str(error), "choose another, or ask for its permissions"
        ) from error


def _stored(folder: Path) -> dict[str, bool]:
    from fsspec.core import url_to_fs  # takes long to import

    try:
        store, path = url_to_fs(str(folder))
        store.invalidate_cache()  # what came since it was last listed
        entries = store.ls(path, detail=True)
    except FileNotFoundError:
        return {}
    except Exception as error:  # each store's package has exceptions of its own
        given = " ".join(f"{type(error).__name__}: {error}".split())
        raise _closed(
            folder, f"{given:.300}", "check name and credentials, or install what it names"
        ) from error
    named = {entry["name"].rstrip("/").rpartition("/")[2]: entry["type"] == "directory" for entry in entries}
    return {name: is_folder for name, is_folder in named.items() if name}


def _closed(folder: Path, given: str, fix: str) -> RecipeError:
    return RecipeError.single(
        "pools", str(folder), given=given, expected="a folder that can be listed", fix=fix
    )
