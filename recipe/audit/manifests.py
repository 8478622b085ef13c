"""Manifests against the ledger, in both directions."""

from __future__ import annotations

import re
from pathlib import Path

from recipe.audit import withdrawals
from recipe.audit.account import Plain, exchanged, manifest_pool
from recipe.audit.course import Course
from recipe.audit.findings import compared
from recipe.audit.intent import Intent
from recipe.audit.parent import COPY
from recipe.audit.record import Sealed, read_sealed, seal_findings, stated_hash, unnamed_recipes
from recipe.config import fingerprint, recipe_to_plain
from recipe.maths.order import ORDER_VERSION
from recipe.pools import Finding
from recipe.run.manifest import latest_path, manifest_path

_FILE = re.compile(r"(\d{6,})\.yaml")


def check_manifests(folder: Path, course: Course, parsed: set[int]) -> list[Finding]:
    """Every manifest that a checkpoint row names, against it; and manifests that no row names.

    ``parsed``: numbers of the manifests whose contents are compared; of the others only the bytes
    are held against the hash in the row.
    """
    found: list[Finding] = []
    for number, expected in course.manifests.items():
        path = manifest_path(folder, number)
        file = read_sealed(folder, path, parse=number in parsed)
        found += seal_findings("manifest", file, expected["hash"], f"{expected['where']}: manifest_hash")
        if file.value is not None:
            found += _contents(course, file, expected)
    strangers = (
        unnamed_recipes(folder, course.versions) + _strangers(folder, course) + _unnamed(folder, course)
    )
    return found + strangers + _latest(folder, course)


def _contents(course: Course, file: Sealed, row: Plain) -> list[Finding]:
    """What a manifest says against the row, the recipe in force and the manifests before it."""
    assert file.value is not None
    value, terms = file.value, row["terms"]
    kept = ("number", "time", "previous", "parent", "gpu_hours", "ledger", "turn")
    expected = {
        "format": 2,
        "run": course.created.get("run"),
        **{key: row[key] for key in kept},
        **_from_recipe(terms.intent),
        "positions": row["state"].positions,
        "sequences": row["state"].sequences,
        "prior": course.prior,
        "stages": row["stages"],
        "warnings": row["warnings"],
        "accepted_data_changes": row["accepted_data_changes"],
        "withdrawals": withdrawals.to_plain(terms.withdrawn, terms.withdrawals),
        "snapshot": row["state"].to_plain(),
    }
    if row["stages"] is None:
        del expected["stages"]
    found = compared("manifest", file.name, expected, {key: value.get(key) for key in expected})
    words = value.get("checkpoint")
    words = words if isinstance(words, dict) else {}
    said = {"step": row["state"].step, "uri": row["uri"]}
    found += compared("manifest", f"{file.name}: checkpoint", said, {key: words.get(key) for key in said})
    found += _manifest_recipe(file, terms.intent)
    return found + _manifest_pools(file, row)


def _from_recipe(intent: Intent) -> Plain:
    recipe = intent.recipe
    return {
        "num_steps": intent.layouts[-1].stop_step,
        "seed": recipe.seed,
        "labels": recipe.labels,
        "count": recipe.count,
    }


def _manifest_recipe(file: Sealed, intent: Intent) -> list[Finding]:
    value = (file.value or {}).get("recipe")
    value = value if isinstance(value, dict) else {}
    expected = {
        "version": intent.version,
        "fingerprint": fingerprint(intent.recipe),
        "hash": intent.hash,
        "resolved": recipe_to_plain(intent.recipe),
    }
    found = compared("manifest", f"{file.name}: recipe", expected, value)
    software = (file.value or {}).get("software")
    order = software.get("order_version") if isinstance(software, dict) else None
    if order != ORDER_VERSION:
        where = f"{file.name}: software.order_version"
        found.append(Finding("manifest", where, str(ORDER_VERSION), str(order)))
    return found


def _manifest_pools(file: Sealed, row: Plain) -> list[Finding]:
    pools, terms = (file.value or {}).get("pools"), row["terms"]
    if not isinstance(pools, dict) or list(pools) != list(terms.names):
        return [Finding("manifest", f"{file.name}: pools", ", ".join(terms.names), str(pools)[:80])]
    others = exchanged(terms.intent.recipe, row["accepted_data_changes"])
    found = []
    for name, state in zip(terms.names, row["state"].pools, strict=True):
        said = pools[name] if isinstance(pools[name], dict) else {}
        held = terms.holdings.get(name, {})
        known = {key: held[key] for key in ("fingerprint", "tokenizer", "stock", "documents") if key in held}
        holding = {
            key: said.get(key) for key in ("path", "fingerprint", "tokenizer", "stock", "documents")
        } | known
        try:
            expected = manifest_pool(holding, state, terms.intent.recipe, is_exchanged=name in others)
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
                found.append(
                    Finding(
                        "unfinished",
                        where,
                        "a checkpoint row that names it",
                        "none: it was cut short, or rows were cut off",
                    )
                )
            else:
                found.append(Finding("manifest", where, "a checkpoint row that names it", "none"))
    return found


def _unnamed(folder: Path, course: Course) -> list[Finding]:
    """Further files that no row names; one may be left of a write that was cut short."""
    following = f"withdrawn/{course.lists + 1:04d}.json"
    found = []
    for path in sorted([*folder.glob("withdrawn/*"), *folder.glob("evidence/*"), *folder.glob(COPY)]):
        name = path.relative_to(folder).as_posix()
        if name not in course.files and not path.name.startswith("."):
            is_left = name == following or name.startswith("evidence/")
            check = "unfinished" if is_left else path.parent.name if path.parent != folder else "parent"
            found.append(Finding(check, name, "no file: no row names it", "a file"))
    return found


def _latest(folder: Path, course: Course) -> list[Finding]:
    """latest.yaml is a copy of the last manifest, late ones left aside; after a crash, of the one before."""
    name = "manifests/latest.yaml"
    try:
        data: bytes | None = latest_path(folder).read_bytes()
    except OSError:
        data = None
    if not course.copied:
        return [] if data is None else [Finding("manifest", name, "no file", "a file")]
    last = course.copied[-1]
    if data is None:
        return [Finding("unfinished", name, f"a copy of manifest {last}", "no file")]
    for number in reversed(course.copied):
        original = manifest_path(folder, number)
        if original.is_file() and original.read_bytes() == data:
            if number == last:
                return []
            expected, observed = (f"a copy of manifest {which}" for which in (last, number))
            return [Finding("unfinished", name, expected, observed)]
    return [Finding("manifest", name, f"a copy of manifest {last}", f"hash {stated_hash(data)}")]
