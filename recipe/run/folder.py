"""What lies where in a run folder, and the two files written at its birth: run.yaml and recipes/.

The ledger's first row holds the hashes of both, so they are under the chain as well.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from recipe.config import Recipe, fingerprint, recipe_from_plain, recipe_to_plain
from recipe.config.naming import PLAIN_NAME, is_plain_name
from recipe.errors import Problem, RecipeError
from recipe.run.canonical import Plain
from recipe.run.manifest import unseal
from recipe.run.shapes import IDENTITY, VERSION, lacking

FORMAT = 1
FOLDERS = ("recipes", "manifests", "snapshots", "lease")
_OWN = ("run.yaml", "ledger.jsonl", "parent.yaml", *FOLDERS, "withdrawn", "evidence")
"""Files and folders of the record, which no link may lead elsewhere."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of a run."""

    path: Path

    @property
    def name(self) -> str:
        """What the folder is called; the name of a run that is started in it."""
        return self.path.absolute().name

    @property
    def identity(self) -> Path:
        """run.yaml: name, creation, parent, format versions."""
        return self.path / "run.yaml"

    @property
    def parent(self) -> Path:
        """A branch's copy of the manifest that it started from."""
        return self.path / "parent.yaml"

    @property
    def ledger(self) -> Path:
        """The append-only rows."""
        return self.path / "ledger.jsonl"

    @property
    def lease(self) -> Path:
        """Folder of the lease."""
        return self.path / "lease"

    @property
    def snapshots(self) -> Path:
        """Folder of derived snapshots; may be deleted at any time."""
        return self.path / "snapshots"

    @property
    def progress(self) -> Path:
        """Hint: the last step served; may be deleted at any time."""
        return self.path / "progress.json"

    def recipe(self, version: int) -> Path:
        """A recipe version."""
        return self.path / "recipes" / f"{version:04d}.yaml"

    @property
    def is_run(self) -> bool:
        """Whether this looks like a run."""
        return self.identity.is_file() and self.ledger.is_file()

    def check(self) -> None:
        """Raise RecipeError unless this looks like a run."""
        if not self.is_run:
            raise RecipeError.single(
                f"{self.path}: no run",
                str(self.path),
                given=self._lacking(),
                expected="a run folder, as `recipe run` makes it",
                fix="give the path of a run, or start one; of a damaged one, `recipe audit` names the rest",
            )
        links = [self.path / name for name in _OWN if (self.path / name).is_symlink()]
        if links:
            expected = "a file or folder of the run's own"
            fix = "put it there itself: what is written to a run stays in its folder; see `recipe audit`"
            problems = [Problem(str(path), "a link", expected, fix) for path in links]
            raise RecipeError(f"{self.path}: links in place of its files", problems)

    def _lacking(self) -> str:
        if not self.path.is_dir():
            return "no such folder"
        files = [path for path in (self.identity, self.ledger) if not path.is_file()]
        return "; ".join(
            f"{path.name} is no file" if os.path.lexists(path) else f"no {path.name}" for path in files
        )


def check_name(name: str, where: str) -> None:
    """Raise RecipeError unless a run may have the name: one folder's, which can be shown and typed.

    Args:
        name: of the run.
        where: how the error names its place, such as an option or a path.
    """
    if not is_plain_name(name):
        raise RecipeError.single(
            f"{name!r:.80}: no name for a run",
            where,
            given=f"{name!r:.80}",
            expected=PLAIN_NAME,
            fix="choose another name, such as the recipe's",
        )


@dataclass(frozen=True, slots=True)
class RecipeVersion:
    """A recipe in force from a step on, and who wanted it."""

    version: int
    step: int
    reason: str
    approved_by: str | None
    recipe: Recipe
    """Settled: every share and block size a number."""
    declared: Recipe
    """As it was written, before pools were looked at."""
    hash: str = ""
    """Of the file, once it is written."""

    def to_plain(self) -> Plain:
        """What recipes/NNNN.yaml holds."""
        settled, declared = recipe_to_plain(self.recipe), recipe_to_plain(self.declared)
        plain: Plain = {
            "format": FORMAT,
            "version": self.version,
            "step": self.step,
            "reason": self.reason,
            "approved_by": self.approved_by,
            "fingerprint": fingerprint(self.recipe),
            "recipe": settled,
        }
        return plain if settled == declared else {**plain, "declared": declared}


def read_identity(folder: RunFolder) -> Plain:
    """What run.yaml says.

    Raises:
        RecipeError: missing or damaged.
    """
    path = folder.identity
    try:
        plain = unseal(path, path.read_bytes())
    except OSError as error:
        raise _lost(path, error.strerror, "the run's identity") from error
    if (key := lacking(plain, IDENTITY)) is not None:
        raise _lost(path, f"{key}: {plain.get(key)!s:.60}", "an identity as this version writes it")
    return plain


def read_version(folder: RunFolder, version: int, expected_hash: str | None = None) -> RecipeVersion:
    """A stored recipe version.

    Args:
        folder: the run's.
        version: its number, from 1.
        expected_hash: of the file, as the ledger states it.

    Raises:
        RecipeError: missing, damaged, or not what the ledger says.
    """
    path = folder.recipe(version)
    try:
        plain = unseal(path, path.read_bytes())
    except OSError as error:
        raise _lost(path, error.strerror, "the recipe the ledger names") from error
    if expected_hash is not None and plain["hash"] != expected_hash:
        raise _lost(path, f"hash {plain['hash']}", f"hash {expected_hash}, as the ledger says")
    if plain.get("format") != FORMAT:
        raise _lost(path, f"format {plain.get('format')}", f"format {FORMAT}")
    if (key := lacking(plain, VERSION)) is not None:
        raise _lost(path, f"{key}: {plain.get(key)!s:.60}", "a recipe version as this version writes it")
    recipe = recipe_from_plain(plain["recipe"], source=str(path))
    declared = plain.get("declared")
    return RecipeVersion(
        version=plain["version"],
        step=plain["step"],
        reason=plain["reason"],
        approved_by=plain["approved_by"],
        hash=plain["hash"],
        recipe=recipe,
        declared=recipe if declared is None else recipe_from_plain(declared, source=str(path)),
    )


def _lost(path: Path, given: object, expected: str) -> RecipeError:
    return RecipeError.single(
        f"{path}: not readable",
        str(path),
        given=given,
        expected=expected,
        fix="take the file from a copy: it is part of the run's record; `recipe audit` names every fault",
    )
