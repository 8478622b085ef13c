"""The files of a run folder beside the ledger: identity, recipes, manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recipe.audit.account import Plain, manifest_pool
from recipe.audit.chain import Entry
from recipe.audit.course import Course, Intent
from recipe.audit.findings import Finding, compared
from recipe.config import Recipe, fingerprint, recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.maths.order import ORDER_VERSION
from recipe.run.canonical import digest
from recipe.run.manifest import latest_path, manifest_path, seal_of, yaml_value

_FILE = re.compile(r"(\d{6,})\.yaml")


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
    stated = seal_of(data)
    body, mark, rest = data.rpartition(b"hash: ")
    computed = digest(body) if mark and rest == f"{stated}\n".encode() else digest(data)
    whole = bool(mark) and stated == computed
    return Sealed(name, stated, computed, _value(path, body if mark else data) if parse or not whole else None)


def _value(path: Path, data: bytes) -> Plain | None:
    try:
        return yaml_value(path, data)
    except (RecipeError, ValueError, yaml.YAMLError, RecursionError):
        return None


def seal_findings(check: str, file: Sealed, on_record: str | None) -> list[Finding]:
    """A file against its own hash and the one the ledger names."""
    if file.computed is None:
        return [Finding(check, file.name, "a file that can be read", "no file")]
    if not file.is_whole:
        if on_record is not None and file.computed == on_record:
            return [Finding(check, f"{file.name}: hash", on_record, str(file.stated))]
        expected = f"contents with hash {on_record or file.stated}"
        return [Finding(check, file.name, expected, f"contents with hash {file.computed}")]
    if on_record is not None and file.stated != on_record:
        return [Finding(check, file.name, f"hash {on_record}, as the ledger says", f"hash {file.stated}")]
    return []


def check_identity(folder: Path, created: Mapping[str, Any]) -> list[Finding]:
    """run.yaml against the ledger's first row."""
    file = read_sealed(folder, folder / "run.yaml")
    found = seal_findings("run", file, created.get("run_hash"))
    if file.value is None:
        return found
    expected = {"name": created.get("run"), "id": created.get("id"), "created": created.get("time")}
    return found + compared("run", file.name, expected, {key: file.value.get(key) for key in expected})


def read_recipe(folder: Path, created: Mapping[str, Any]) -> tuple[Intent | None, list[Finding]]:
    """The recipe that the ledger names, laid out; if its file is damaged, as a manifest repeats it."""
    version, wanted = created.get("recipe"), created.get("recipe_fingerprint")
    if type(version) is not int or not 1 <= version <= 9999:
        return None, [Finding("recipe", "ledger.jsonl row 0: recipe", "number of a recipe version", str(version))]
    file = read_sealed(folder, folder / "recipes" / f"{version:04d}.yaml")
    found = seal_findings("recipe", file, created.get("recipe_hash")) + _unnamed(folder, version)
    recipe = _recipe((file.value or {}).get("recipe"))
    if recipe is not None and (observed := _fingerprint(recipe)) != wanted:
        found.append(Finding("recipe", f"{file.name}: recipe", f"fingerprint {wanted}", f"fingerprint {observed}"))
    if file.value is not None:
        head = {"format": 1, "version": version, "step": 0, "reason": "start", "fingerprint": wanted}
        found += compared("recipe", file.name, head, {key: file.value.get(key) for key in head})
    if found and (repeated := _recipe_in_manifests(folder, str(wanted))) is not None:
        stored = (file.value or {}).get("recipe")
        if stored is not None:
            found += compared("recipe", f"{file.name}: recipe", recipe_to_plain(repeated), stored)
        recipe = repeated
    if recipe is None:
        return None, [*found, Finding("recipe", file.name, "a recipe", "none that can be read")]
    try:
        return Intent.of(recipe, version), found
    except (ValueError, LookupError, ArithmeticError, RecipeError) as error:
        return None, [*found, Finding("recipe", file.name, "a recipe that can be laid out in steps", str(error))]


def _recipe(plain: object) -> Recipe | None:
    if not isinstance(plain, dict):
        return None
    try:
        return recipe_from_plain(plain, source="the run's record")
    except (RecipeError, ValueError, TypeError):
        return None


def _fingerprint(recipe: Recipe) -> str:
    return fingerprint(recipe)


def _unnamed(folder: Path, version: int) -> list[Finding]:
    """Recipe files that no row names."""
    names = sorted(path.name for path in (folder / "recipes").glob("*.yaml"))
    extra = [name for name in names if name != f"{version:04d}.yaml"]
    return [Finding("recipe", f"recipes/{name}", "no file: no row names it", "a file") for name in extra]


def _recipe_in_manifests(folder: Path, wanted: str) -> Recipe | None:
    for path in sorted((folder / "manifests").glob("[0-9]*.yaml"), reverse=True)[:8]:
        file = read_sealed(folder, path)
        recipe = _recipe(((file.value or {}).get("recipe") or {}).get("resolved"))
        if recipe is not None and fingerprint(recipe) == wanted:
            return recipe
    return None


def check_manifests(folder: Path, course: Course, parsed: set[int]) -> list[Finding]:
    """Every manifest that a checkpoint row names, against it; and manifests that no row names.

    ``parsed``: numbers of the manifests whose contents are compared; of the others only the bytes
    are held against the hash in the row.
    """
    found: list[Finding] = []
    for number, (entry, expected) in course.manifests.items():
        path = manifest_path(folder, number)
        file = read_sealed(folder, path, parse=number in parsed)
        found += seal_findings("manifest", file, expected["hash"])
        if file.value is not None:
            found += _contents(course, entry, file, expected)
    return found + _strangers(folder, course) + _latest(folder, course)


def _contents(course: Course, entry: Entry, file: Sealed, row: Plain) -> list[Finding]:
    """What a manifest says against the row, the recipe and the manifests before it."""
    assert file.value is not None
    value, intent = file.value, course.intent
    expected = {
        "format": 1,
        "run": course.run,
        **{key: row[key] for key in ("number", "time", "previous", "parent", "gpu_hours", "ledger", "readable_from")},
        **_from_recipe(intent),
        "positions": row["state"].positions,
        "sequences": row["state"].sequences,
        "prior": None,
        "stages": row["stages"],
        "warnings": list(row["warnings"]),
        "snapshot": row["state"].to_plain(),
    }
    if row["stages"] is None:
        del expected["stages"]
    found = compared("manifest", file.name, expected, {key: value.get(key) for key in expected})
    words = value.get("checkpoint") if isinstance(value.get("checkpoint"), dict) else {}
    said = {"step": row["state"].step, "uri": row["uri"]}
    found += compared("manifest", f"{file.name}: checkpoint", said, {key: words.get(key) for key in said})
    found += _manifest_recipe(course, file)
    return found + _manifest_pools(course, file, row)


def _from_recipe(intent: Intent) -> Plain:
    recipe = intent.recipe
    return {
        "num_steps": intent.layouts[-1].stop_step,
        "seed": recipe.seed,
        "labels": recipe.labels,
        "count": recipe.count,
    }


def _manifest_recipe(course: Course, file: Sealed) -> list[Finding]:
    value = (file.value or {}).get("recipe")
    value = value if isinstance(value, dict) else {}
    recipe = course.intent.recipe
    expected = {
        "version": course.intent.version,
        "fingerprint": fingerprint(recipe),
        "hash": course.recipe_hash,
        "resolved": recipe_to_plain(recipe),
    }
    found = compared("manifest", f"{file.name}: recipe", expected, value)
    software = (file.value or {}).get("software")
    order = software.get("order_version") if isinstance(software, dict) else None
    if order != ORDER_VERSION:
        where = f"{file.name}: software.order_version"
        found.append(Finding("manifest", where, str(ORDER_VERSION), str(order)))
    return found


def _manifest_pools(course: Course, file: Sealed, row: Plain) -> list[Finding]:
    pools = (file.value or {}).get("pools")
    if not isinstance(pools, dict) or list(pools) != list(course.intent.names):
        return [Finding("manifest", f"{file.name}: pools", ", ".join(course.intent.names), str(pools)[:80])]
    found = []
    for name, state in zip(course.intent.names, row["state"].pools, strict=True):
        said = pools[name] if isinstance(pools[name], dict) else {}
        held = row["holdings"].get(name, {})
        known = {key: held[key] for key in ("fingerprint", "tokenizer", "stock", "documents") if key in held}
        holding = {key: said.get(key) for key in ("path", "fingerprint", "tokenizer", "stock", "documents")} | known
        try:
            expected = manifest_pool(holding, state, course.intent.recipe.seed)
        except (TypeError, ArithmeticError, ValueError):
            expected = holding
        found += compared("manifest", f"{file.name}: pools.{name}", expected, said)
    return found


def _strangers(folder: Path, course: Course) -> list[Finding]:
    """Manifests that no row names: one may be left of a checkpoint that was cut short."""
    found = []
    for path in sorted((folder / "manifests").iterdir() if (folder / "manifests").is_dir() else []):
        match = _FILE.fullmatch(path.name)
        if match and int(match[1]) not in course.numbers:
            where, number = f"manifests/{path.name}", int(match[1])
            if number == course.numbered[0] + 1:
                found.append(Finding("unfinished", where, "a checkpoint row that names it", "none: it was cut short, or rows were cut off"))
            else:
                found.append(Finding("manifest", where, "a checkpoint row that names it", "none"))
    return found


def _latest(folder: Path, course: Course) -> list[Finding]:
    """latest.yaml is a copy of the last manifest."""
    number, hashed = course.numbered
    path = latest_path(folder)
    try:
        data: bytes | None = path.read_bytes()
    except OSError:
        data = None
    if data is None or not number:
        if data is None and number:
            return [Finding("unfinished", "manifests/latest.yaml", f"a copy of manifest {number}", "no file")]
        return [] if data is None else [Finding("manifest", "manifests/latest.yaml", "no file", "a file")]
    copies = {"manifest": number, "unfinished": number - 1}
    for kind, which in copies.items():
        original = manifest_path(folder, which)
        if which and original.is_file() and original.read_bytes() == data:
            if kind == "manifest":
                return []
            return [Finding(kind, "manifests/latest.yaml", f"a copy of manifest {number}", f"a copy of manifest {which}")]
    return [Finding("manifest", "manifests/latest.yaml", f"a copy of manifest {number}, hash {hashed}", f"hash {seal_of(data)}")]
