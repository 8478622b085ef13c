"""The pools of a run, as they are now: found, the same ones, and their contents by hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.audit.account import Plain
from recipe.audit.aligning import lacks_edges
from recipe.audit.course import Course
from recipe.audit.findings import compared, shown
from recipe.audit.record import read_sealed
from recipe.config import Recipe, Rule
from recipe.config.places import place
from recipe.config.view import parent_name
from recipe.errors import RecipeError
from recipe.pools import Finding, Pool, open_pool
from recipe.pools.card import BOUNDARIES
from recipe.pools.erased import explained
from recipe.pools.foreign.form import form_of
from recipe.pools.foreign.opening import is_imported
from recipe.pools.metadata import open_metadata
from recipe.pools.offsets import boundary_fault
from recipe.pools.views import join_families, open_as
from recipe.run.manifest import manifest_path

SMALL_TOKENS = 32 << 20
"""Pools up to this size are always compared in full."""
SAMPLE_BLOCKS = 32


@dataclass(frozen=True, slots=True)
class Found:
    """Pools that are there and are the run's, what is wrong with the others, and how far was looked."""

    pools: Mapping[str, Pool]
    findings: tuple[Finding, ...]
    covered: Mapping[str, str]


def find_pools(
    folder: Path,
    course: Course,
    pools_root: Path | None,
    *,
    metadata_only: bool = False,
    tokenizer: str | None = None,
) -> Found:
    """Open the pools, or only their metadata, where the run's record says they are, or below another root.

    ``tokenizer``: where it is here, if that is not where the recipe says.
    """
    pools, covered = dict[str, Pool](), dict[str, str]()
    findings: list[Finding] = []
    recipes = course.recipes
    declared = {name: recipe for recipe in recipes for name in recipe.pools}  # by the last one that has it
    for name, path in _paths(folder, course, declared, pools_root).items():
        if metadata_only and _are_imported(declared[name], name, path):
            covered[name] = "imported token files: not covered (metadata only)"
            continue
        opened = open_metadata if metadata_only else open_pool
        pool, found = _opened(course, declared[name], name, path, opened)
        if name in course.holdings:
            findings += found
        if isinstance(pool, str):
            covered[name] = pool
        elif pool.fingerprint == course.held(name).get("fingerprint"):
            lacking = _reads_text(name, recipes) if metadata_only else None
            lacking = lacking or lacks_edges(pool, recipes, tokenizer) or _lost_texts(course, pool, recipes)
            if lacking is None:
                pools[name] = pool
            else:
                covered[name] = f"its cuts are aligned, nothing recomputed: {lacking}"
                pool.close()
        else:
            covered[name] = "another pool than the run's, nothing compared"
            pool.close()
    for recipe in recipes:
        join_families(recipe, pools)
    for name in [name for name, pool in pools.items() if not _knows_its_family(pool, recipes)]:
        covered[name] = "a pool that shares its folder is not there, nothing recomputed"
        pools.pop(name).close()
    return Found(pools, tuple(findings), covered)


def _knows_its_family(pool: Pool, recipes: Sequence[Recipe]) -> bool:
    """Whether all pools are there whose documents it may leave out."""
    return all(name in pool.before for rule in _rules(pool.name, recipes) for name in rule.behind)


def _reads_text(name: str, recipes: Sequence[Recipe]) -> str | None:
    """What metadata do not tell of a pool whose cuts are aligned at texts."""
    aligned = any(rule.align not in ("none", "section") for rule in _rules(name, recipes))
    return "tokens are not looked at (metadata only)" if aligned else None


def _lost_texts(course: Course, pool: Pool, recipes: Sequence[Recipe]) -> str | None:
    """What an erased pool does not tell of cuts that were aligned before its documents were withdrawn."""
    if not len(pool.erased) or _reads_text(pool.name, recipes) is None:
        return None
    first = course.lineage.marks[0]
    known = [first.terms.withdrawn[name].documents for name in first.terms.withdrawn]
    from_the_start = np.unique(np.concatenate([*known, np.empty(0, np.int64)]))
    if course.created.get("parent") is None and np.isin(pool.erased, from_the_start).all():
        return None
    return "the texts of withdrawn documents were erased; audit with the folder that holds them"


def _rules(name: str, recipes: Sequence[Recipe]) -> list[Rule]:
    """Those of a pool, in every stage of every recipe that has it."""
    return [recipe.rule(stage, name) for recipe in recipes if name in recipe.pools for stage in recipe.stages]


def _opened(
    course: Course, recipe: Recipe, name: str, path: Path, opened: Callable[..., Pool]
) -> tuple[Pool | str, list[Finding]]:
    """A pool held against the record, or why it is not there; and what is wrong with it."""
    try:
        pool = open_as(recipe, name, path, opened)
        pool.num_units  # noqa: B018 - what a view holds is looked up now
    except RecipeError as error:
        return "not there, nothing compared", _refused(name, error, recipe.folder(name), path)
    except OSError as error:
        reason = error.strerror or str(error)
        found = Finding("pools", f"pools.{name}: {path}", "a pool that can be read", reason)
        return "not readable, nothing compared", [found]
    return pool, _compared_with_record(course, pool)


def _paths(folder: Path, course: Course, recipes: Mapping[str, Recipe], root: Path | None) -> dict[str, Path]:
    """Of the pools in force, and of those that only rows behind a rewind were served from."""
    declared = {name: recipe.folder(name) or name for name, recipe in recipes.items()}
    if root is not None:
        return {name: _below(place(root), name, place(said)) for name, said in declared.items()}
    latest: Plain = {}
    if course.numbered[0]:
        file = read_sealed(folder, manifest_path(folder, course.numbered[0]))
        said = (file.value or {}).get("pools")
        latest = said if isinstance(said, dict) else {}
    paths = {}
    for name in declared:
        held = course.held(name)
        for holding in (latest.get(name), held):
            if not isinstance(holding, dict) or holding.get("fingerprint") != held.get("fingerprint"):
                continue
            if isinstance(holding.get("path"), str):
                paths[name] = place(holding["path"])
                break
        else:
            paths[name] = place(declared[name])
    return paths


def _refused(name: str, error: RecipeError, declared: str | Path | None, path: Path) -> list[Finding]:
    moved = "" if path.exists() else f"; if it was moved: {_elsewhere(name, declared)}"
    return [
        Finding(
            "pools", f"pools.{name}: {problem.where}", problem.expected + moved, shown(str(problem.given))
        )
        for problem in error.problems
    ]


def _compared_with_record(course: Course, pool: Pool) -> list[Finding]:
    """The pool against what the ledger says of it."""
    held = course.held(pool.name)
    if pool.fingerprint != held.get("fingerprint"):
        expected = f"{held.get('fingerprint')}, as in the run's record"
        return [
            Finding("pools", f"pools.{pool.name}: fingerprint of {pool.path}", expected, pool.fingerprint)
        ]
    where, first = course.stated.get(pool.name, ("", {}))
    if first.get("fingerprint") != pool.fingerprint:
        return []
    known = {"tokenizer": pool.card.tokenizer, "stock": pool.stock, "documents": pool.num_documents}
    said = {key: first.get(key) for key in known}
    return compared("pools", where, {"pools": {pool.name: known}}, {"pools": {pool.name: said}})


def _below(root: Path, name: str, declared: Path) -> Path:
    """Where a pool is below a root: as the recipe has it, or, where that is not there, under its name."""
    path = root / (declared.name if declared.is_absolute() else declared)
    try:
        return root / name if not path.exists() and (root / name).exists() else path
    except OSError:
        return path


def _elsewhere(name: str, declared: str | Path | None) -> str:
    """How a pool is found that is at another place now; as `_below` looks."""
    said = place(declared or name)
    below = said.name if said.is_absolute() else str(said)
    either = f"DIR/{below}" if below == name else f"DIR/{below} or DIR/{name}"
    return f"--pools-root DIR, where {either} is the pool or a link to it"


def _are_imported(recipe: Recipe, name: str, path: Path) -> bool:
    try:
        return is_imported(path, form_of(recipe.pools[parent_name(recipe.pools, name)]))
    except (RecipeError, OSError):
        return False


def leave_contents(found: Found) -> Found:
    """Say of every pool that its contents were not looked at."""
    looked = dict.fromkeys(found.pools, "contents not looked at (metadata only); boundaries compared")
    return replace(found, covered={**found.covered, **looked})


def verify_contents(
    found: Found, withdrawn: Mapping[str, NDArray[np.int64]], *, full: bool, seed: int
) -> Found:
    """Compare contents with the hashes they were written with: all, or a seeded choice of blocks.

    Documents in ``withdrawn`` may have been overwritten with zeros: that is told, and no finding. Pools
    whose lengths are damaged are left out of the result's: nothing can be computed from them.
    """
    findings, covered, usable = list(found.findings), dict(found.covered), dict[str, Pool]()
    for name, pool in found.pools.items():
        whole = full or pool.num_tokens <= SMALL_TOKENS
        faults = pool.verify(full=whole, sample=SAMPLE_BLOCKS, seed=seed, erased=False)
        faults, erased = _without_erased(pool, faults, withdrawn.get(name))
        lengths = faults if pool.layout.table is None else _check_lengths(pool)
        findings += [replace(fault, check="pools", where=f"pools.{name}: {fault.where}") for fault in faults]
        findings += [replace(fault, check="pools", where=f"pools.{name}: {fault.where}") for fault in lengths]
        if pool.layout.table is None:
            covered[name] = "imported without content hashes: not covered; indices and token files compared"
        else:
            some = f"{SAMPLE_BLOCKS} blocks of the token files compared with their hashes (seed {seed})"
            covered[name] = "all files compared with their hashes" if whole else some
        if erased:
            covered[name] += (
                f"; erased: {erased:,} documents that were withdrawn hold zeros; the others in their blocks "
                "have the hashes that the document table states"
            )
        if lengths:
            covered[name] += "; its lengths are damaged, so no row can be computed from it"
            pool.close()
        else:
            usable[name] = pool
    return Found(usable, tuple(findings), covered)


def _without_erased(
    pool: Pool, faults: list[Finding], withdrawn: NDArray[np.int64] | None
) -> tuple[list[Finding], int]:
    """Faults that documents which were withdrawn and erased do not explain, and the number of those."""
    if not faults or withdrawn is None or pool.layout.table is None:
        return faults, 0
    left, erased = explained(pool, faults, withdrawn)
    return left, len(erased)


def _check_lengths(pool: Pool) -> list[Finding]:
    """The files that every recomputation stands on: read whole whatever the sample."""
    findings = []
    for name in BOUNDARIES:
        folder = pool.layout.folder
        if name in pool.card.files and (fault := boundary_fault(folder, pool.card, name)) is not None:
            findings.append(Finding("contents", str(folder / name), *fault))
    return findings
