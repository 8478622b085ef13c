"""Sealed files of a run folder: identity and recipes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recipe.audit.account import Plain
from recipe.audit.findings import compared
from recipe.audit.intent import Intent
from recipe.config import Recipe, fingerprint, recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.pools import Finding
from recipe.run.canonical import digest
from recipe.run.manifest import yaml_value


@dataclass(frozen=True, slots=True)
class Sealed:
    """A file that ends with its hash, as far as it can be read."""

    name: str
    stated: str | None
    computed: str | None
    value: Plain | None
    """What it says, also when its hash is wrong; None when it is missing or no mapping."""

    @property
    def is_whole(self) -> bool:
        """Whether the hash is that of the bytes."""
        return self.computed is not None and self.stated == self.computed


def read_sealed(folder: Path, path: Path, *, parse: bool = True) -> Sealed:
    """A sealed file; nothing is raised for what is wrong with it."""
    name = str(path.relative_to(folder))
    try:
        data = path.read_bytes()
    except OSError:
        return Sealed(name, None, None, None)
    stated = stated_hash(data)
    body, mark, rest = data.rpartition(b"hash: ")
    whole = bool(mark) and rest == f"{digest(body)}\n".encode()
    computed = digest(body) if whole or (mark and rest.endswith(b"\n")) else digest(data)
    return Sealed(
        name, stated, computed, _value(path, body if mark else data) if parse or not whole else None
    )


def stated_hash(data: bytes) -> str:
    """The hash that the last line of a sealed file states."""
    return data.rpartition(b"hash: ")[2].decode(errors="replace").strip()


def _value(path: Path, data: bytes) -> Plain | None:
    try:
        return yaml_value(path, data)
    except (RecipeError, ValueError, yaml.YAMLError, RecursionError):
        return None


def seal_findings(check: str, file: Sealed, on_record: object, said_by: str) -> list[Finding]:
    """A file against its own hash and the one that the ledger names; ``said_by`` is where it does."""
    if file.computed is None:
        return [Finding(check, file.name, "a file that can be read", "no file")]
    if file.is_whole and file.stated != on_record:
        return [
            Finding(check, file.name, f"hash {on_record}, as {said_by} says", f"hash {file.stated}"),
            Finding(check, said_by, f"{file.stated}, as {file.name} says", str(on_record)),
        ]
    if not file.is_whole and file.computed == on_record:
        return [Finding(check, f"{file.name}: hash", str(on_record), str(file.stated))]
    if not file.is_whole:
        return [
            Finding(
                check, file.name, f"contents with hash {on_record}", f"contents with hash {file.computed}"
            )
        ]
    return []


def check_identity(folder: Path, created: Mapping[str, Any]) -> list[Finding]:
    """run.yaml against the ledger's first row; the file is right where its hash is the one on record."""
    file = read_sealed(folder, folder / "run.yaml")
    found = seal_findings("run", file, created.get("run_hash"), "ledger.jsonl row 0: run_hash")
    if file.value is None:
        return found
    in_row = {key: created.get(key) for key in ("run", "id", "time", "parent")}
    in_file = dict(zip(in_row, map(file.value.get, ("name", "id", "created", "parent")), strict=True))
    if found:
        return found + compared("run", file.name, in_row, in_file)
    return compared("run", "ledger.jsonl row 0", in_file, in_row)


@dataclass(frozen=True, slots=True)
class NamedRecipe:
    """A recipe version as a row names it."""

    where: str
    """How findings call the row."""
    version: Any
    hash: Any
    fingerprint: Any
    told: Mapping[str, Any]
    """What its file must say besides: from which step it holds, why, and who said so."""

    @classmethod
    def of(cls, where: str, row: Mapping[str, Any]) -> NamedRecipe:
        """By a row that brings a recipe."""
        told = {"step": row.get("step")}
        if row.get("kind") != "created":
            told |= {key: row.get(key) for key in ("reason", "approved_by")}
        elif row.get("parent") is None:
            told |= {"reason": "start", "approved_by": None}
        return cls(where, row.get("recipe"), row.get("recipe_hash"), row.get("recipe_fingerprint"), told)


def read_recipe(folder: Path, created: Mapping[str, Any]) -> tuple[Intent | None, list[Finding]]:
    """The recipe that the ledger's first row names, laid out."""
    return read_version(folder, NamedRecipe.of("ledger.jsonl row 0", created))


def read_version(folder: Path, named: NamedRecipe) -> tuple[Intent | None, list[Finding]]:
    """A recipe that a row names, laid out; if its file is damaged, as a manifest repeats it."""
    version, wanted = named.version, named.fingerprint
    if type(version) is not int or not 1 <= version <= 9999:
        return None, [_no_version(named, f"1..9999, not {version!r}")]
    file = read_sealed(folder, folder / "recipes" / f"{version:04d}.yaml")
    found = [_no_version(named, f"a version that is there, not {file.name}")] if file.computed is None else []
    found += seal_findings("recipe", file, named.hash, f"{named.where}: recipe_hash")
    recipe = _recipe((file.value or {}).get("recipe"))
    if file.is_whole and recipe is not None and (true := fingerprint(recipe)) != wanted:
        found.append(Finding("recipe", f"{named.where}: recipe_fingerprint", true, str(wanted)))
    found += _version_findings(file, named)
    if found and (repeated := _recipe_in_manifests(folder, str(wanted))) is not None:
        if file.value is not None:
            plain = recipe_to_plain(repeated)
            found += compared("recipe", f"{file.name}: recipe", plain, file.value.get("recipe"))
        recipe = repeated
    try:
        return (None if recipe is None else Intent.of(recipe, version, str(named.hash))), found
    except (ValueError, LookupError, ArithmeticError, RecipeError) as error:
        return None, [*found, Finding("recipe", file.name, "a recipe that gives steps", str(error))]


def _no_version(named: NamedRecipe, expected: str) -> Finding:
    return Finding("recipe", f"{named.where}: recipe", expected, "no such recipe")


def _version_findings(file: Sealed, named: NamedRecipe) -> list[Finding]:
    """What a recipe file says of itself; where it is whole, the row is what was changed."""
    if file.value is None:
        return []
    wanted = named.fingerprint
    expected = {"format": 1, "version": named.version, "fingerprint": wanted}
    found = compared("recipe", file.name, expected, {key: file.value.get(key) for key in expected})
    told = {key: file.value.get(key) for key in named.told}
    if file.is_whole and file.stated == named.hash:
        found += compared("recipe", named.where, told, dict(named.told))
    else:
        found += compared("recipe", file.name, dict(named.told), told)
    recipe = _recipe(file.value.get("recipe"))
    observed = "none that can be read" if recipe is None else fingerprint(recipe)
    if observed != wanted:
        found.append(Finding("recipe", f"{file.name}: recipe", f"fingerprint {wanted}", observed))
    return found


def _recipe(plain: object) -> Recipe | None:
    if not isinstance(plain, dict):
        return None
    try:
        return recipe_from_plain(plain, source="the run's record")
    except (RecipeError, ValueError, TypeError):
        return None


def unnamed_recipes(folder: Path, known: Collection[int]) -> list[Finding]:
    """Recipe files that no row names; the next number may be left of an amendment that was cut short."""
    names = {f"{version:04d}.yaml" for version in known}
    following = f"{max(known, default=0) + 1:04d}.yaml"
    found = []
    for path in sorted((folder / "recipes").glob("*.yaml")):
        if path.name not in names:
            check = "unfinished" if path.name == following else "recipe"
            found.append(Finding(check, f"recipes/{path.name}", "no file: no row names it", "a file"))
    return found


def _recipe_in_manifests(folder: Path, wanted: str) -> Recipe | None:
    for path in sorted((folder / "manifests").glob("[0-9]*.yaml"), reverse=True):
        if wanted.encode() not in _bytes(path):
            continue
        file = read_sealed(folder, path)
        recipe = _recipe(((file.value or {}).get("recipe") or {}).get("resolved"))
        if recipe is not None and fingerprint(recipe) == wanted:
            return recipe
    return None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
