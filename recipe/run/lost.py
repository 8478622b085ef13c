"""Whether rows of the ledger were lost: the copy of the last manifest is never ahead of them."""

from __future__ import annotations

from dataclasses import replace

from recipe.errors import RecipeError
from recipe.run.folder import RunFolder
from recipe.run.head import read_head
from recipe.run.manifest import latest_path, seal_of, unseal


def check_nothing_lost(folder: RunFolder) -> None:
    """Raise RecipeError if ``latest.yaml`` is ahead of the ledger: then rows were lost or cut off."""
    path = latest_path(folder.path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecipeError.single(
            f"{path}: not readable",
            str(path),
            given=error.strerror or error,
            expected="a file, the copy of the last manifest, in a folder of manifests",
            fix="take manifests/ from a copy of the run; `recipe audit` names every fault",
        ) from error
    numbered = read_head(folder.ledger).numbered  # read second: a writer adds the row before the copy
    written = int(numbered.data["manifest"]) if numbered else 0
    if numbered and seal_of(data) == numbered.data["manifest_hash"]:
        return
    try:
        latest = int(unseal(path, data)["number"])
    except RecipeError as error:
        fix = f"delete {path.name}: it is a copy of the last manifest, and is written anew"
        raise RecipeError(error.title, [replace(problem, fix=fix) for problem in error.problems]) from error
    if latest > written:
        raise RecipeError.single(
            f"{folder.ledger}: rows are missing",
            str(folder.ledger),
            given=f"manifest {written} as the last one on record",
            expected=f"manifest {latest}, which {path.name} is a copy of",
            fix="take the ledger from a copy: rows are never made up again; `recipe audit` names every fault",
        )
