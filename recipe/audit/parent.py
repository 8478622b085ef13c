"""The parent of a branch, as far as the branch goes on from it: read from the manifest it has a copy of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.findings import shown
from recipe.audit.following import Following
from recipe.audit.intent import Intent
from recipe.audit.record import read_sealed, seal_findings
from recipe.audit.state import Malformed, State, mapping, whole
from recipe.audit.terms import HOLDING, Terms
from recipe.audit.withdrawals import from_plain
from recipe.config import Recipe, recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.pools import Finding

COPY = "parent.yaml"
_SHARES = ("quotas", "weights", "quotas_tokens", "objective")


@dataclass(frozen=True, slots=True)
class Parent:
    """What a parent's manifest says, as far as a branch goes on from it."""

    value: Plain
    terms: Terms
    """Its own, pools called as they were."""
    called: Intent
    """Its recipe, pools called as in the branch."""
    state: State


@dataclass(frozen=True, slots=True)
class Wish:
    """How the branch's pools are read, as its row has it."""

    fresh: frozenset[str]
    renamed: Mapping[str, str]
    """New names by old ones."""
    is_retokenised: bool

    @classmethod
    def of(cls, said: Mapping[str, Any], names: tuple[str, ...]) -> Wish:
        """From the row's ``parent``."""
        fresh = names if said.get("data") == "fresh" else said.get("fresh") or []
        renamed = mapping(said.get("renamed") or {}, "parent.renamed")
        return cls(frozenset(fresh), renamed, said.get("retokenised") is True)


def read_parent(course: Following, entry: Entry, said: Mapping[str, Any], wish: Wish) -> Parent | None:
    """The parent's manifest, checked by its hash; None where it cannot be read."""
    if course.folder is None:
        return None
    course.files.add(COPY)
    file = read_sealed(course.folder, course.folder / COPY)
    course.findings[entry.line] += seal_findings(
        "parent", file, said.get("hash"), f"{entry.where}: parent.hash"
    )
    if file.value is None:
        return None
    value = {**file.value, "hash": file.stated}
    try:
        plain = mapping(value.get("recipe"), "recipe")
        recipe = recipe_from_plain(plain.get("resolved"), source=COPY)  # type: ignore[arg-type]
        intent = Intent.of(recipe, whole(plain.get("version"), "recipe.version"), str(plain.get("hash")))
        pools = mapping(value.get("pools"), "pools")
        known, number = from_plain(value.get("withdrawals"))
        holdings = {name: {key: pools[name].get(key) for key in HOLDING} for name in intent.names}
        state = intent.state(value.get("snapshot"))
        called = Intent.of(_renamed(recipe, wish.renamed), intent.version)
    except (Malformed, RecipeError, ValueError, TypeError, LookupError, AttributeError) as error:
        found = Finding("parent", COPY, "a manifest that a run can go on from", shown(str(error)))
        course.findings[entry.line].append(found)
        return None
    carried = state.stage if any(pool.debt for pool in state.pools) else None
    intent, called = replace(intent, carried=carried), replace(called, carried=carried)
    return Parent(value, Terms(intent, holdings, known, number), called, state)


def _renamed(recipe: Recipe, names: Mapping[str, str]) -> Recipe:
    """The recipe with pools called otherwise, their orders as they were."""
    if not names:
        return recipe
    plain = recipe_to_plain(recipe)
    for old in names:
        plain["pools"][old].setdefault("renamed_from", old)
    for pool in plain["pools"].values():
        if "of" in pool:
            pool["of"] = names.get(pool["of"], pool["of"])
    for group in plain.get("groups", {}).values():
        group["pools"] = [names.get(name, name) for name in group["pools"]]
    tables = [plain, *plain["stages"].values(), *(g.get("within") for g in plain.get("groups", {}).values())]
    for table in tables:
        for key in ("pools", "shares", "transform", *_SHARES):
            if isinstance(table, dict) and isinstance(table.get(key), dict):
                table[key] = {names.get(name, name): value for name, value in table[key].items()}
    return recipe_from_plain(plain, source=COPY)
