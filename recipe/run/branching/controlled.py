"""Whether two runs from one checkpoint can be compared: all that differs is what somebody named.

A comparison is *controlled* when the rest of both runs has the same steps, positions, batches and
contexts, the same tokenizer, the same pools by fingerprint and the same training settings (the
recipe's ``trainer`` block), and every other difference of their recipes was named. Everything that
speaks against it is listed; nothing is weighed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from recipe.config import Recipe, difference
from recipe.config.stage import BATCHES, LENGTHS, OBJECTIVE, SHARES
from recipe.mixing.curriculum import Curriculum
from recipe.run.branching.share_differences import (
    changes_no_share,
    members,
    recipe_differences,
    share_place,
)

_ALTERNATIVES = (LENGTHS, tuple(f"batch.{key}" for key in BATCHES))
"""Keys of a stage that replace each other: who names one also names that another goes."""

_Fact = int | list[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two runs that are compared, from a step on."""

    recipe: Recipe
    """In force from there on, settled."""
    pools: Mapping[str, str]
    """Fingerprint by pool."""
    tokenizers: Mapping[str, str | None]
    """Fingerprint of the tokenizer by pool."""
    step: int
    origin: str | None = None
    """Hash of the manifest that it starts from."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """What differs between two sides, and what of it makes the comparison uncontrolled."""

    named: tuple[str, ...]
    """Dotted keys that were named."""
    differs: tuple[str, ...]
    """Every difference of the recipes, as ``key: one → other``."""
    against: tuple[str, ...]
    """Why the comparison is not controlled; empty where it is."""

    @property
    def controlled(self) -> bool:
        """Whether what differs is what was named, and nothing else that a comparison must hold fixed."""
        return not self.against

    def to_plain(self) -> dict[str, Any]:
        """As a branch has it on record; ``against`` only where something is."""
        plain: dict[str, Any] = {
            "named": list(self.named),
            "differs": list(self.differs),
            "controlled": self.controlled,
        }
        return {**plain, "against": list(self.against)} if self.against else plain


def compare_sides(one: Side, other: Side, named: Iterable[str]) -> Control:
    """Hold two runs against each other from the step on at which they part.

    Args:
        one: the trunk, or a branch.
        other: a branch.
        named: dotted keys of the recipe that are meant to differ; a key names all below it, and the name
            of a pool group in a stage's shares names the shares of its members.
    """
    keys = tuple(dict.fromkeys(named))
    lines = recipe_differences(one.recipe, other.recipe)
    against = [*_fixed(one, other)]
    for line in lines:
        key = line.partition(":")[0]
        if key.partition(".")[0] in ("trainer", "tokenizer") or _is_harmless(key):
            continue
        if not _names(one, other, keys, key) and not changes_no_share(key, one.recipe, other.recipe):
            against.append(f"not named: {line}")
    return Control(named=keys, differs=tuple(lines), against=tuple(against))


def _is_harmless(key: str) -> bool:
    """Whether a key changes no batch and no training: names, places, accounting periods, files."""
    first, _, rest = key.partition(".")
    last = rest.rpartition(".")[2]
    return (
        first in ("name", "pools_root", "parallel", "sink")
        or (first == "pools" and last in ("path", "stock"))
        or (first == "stages" and last == "chunk")
    )


def _names(one: Side, other: Side, named: Sequence[str], key: str) -> bool:
    """Whether a difference is one that was named; a group's share is where all its pools' shares are."""
    recipes = (one.recipe, other.recipe)
    if any(_is_below(key, name) or _implies(recipes, name, key) for name in named):
        return True
    above, _, last = key.rpartition(".")
    pools = {pool for recipe in recipes for pool in members(recipe, last)}
    is_group = share_place(key) is not None and pools != {last}
    return is_group and all(_names(one, other, named, f"{above}.{pool}") for pool in pools)


def _implies(recipes: tuple[Recipe, Recipe], name: str, key: str) -> bool:
    """Whether a named key of a stage brings another one with it."""
    named, differing = name.split("."), key.split(".")
    if len(named) < 3 or named[0] != "stages" or named[:2] != differing[:2]:
        return False
    inner, changed = ".".join(named[2:]), ".".join(differing[2:])
    for alternatives in _ALTERNATIVES:
        mine = next((form for form in alternatives if _is_below(inner, form)), None)
        theirs = next((form for form in alternatives if _is_below(changed, form)), None)
        if mine is not None and theirs is not None and mine != theirs:
            return True
    is_of_loss = named[2] == differing[2] == OBJECTIVE
    if not is_of_loss and (named[2] not in SHARES or differing[2] not in (*SHARES, "shares")):
        return False
    return len(named) == 3 or any(differing[-1] in members(recipe, named[3]) for recipe in recipes)


def _is_below(key: str, form: str) -> bool:
    return key == form or key.startswith(f"{form}.")


def _fixed(one: Side, other: Side) -> Iterator[str]:
    """What must be the same on both sides and is not, as ``what: one → other``."""
    if one.origin != other.origin:
        yield f"checkpoint: {_mark(one.origin)} → {_mark(other.origin)}"
    yield from _course(one, other)
    a, b = set(one.tokenizers.values()) - {None}, set(other.tokenizers.values()) - {None}
    if a != b or (not a and one.recipe.tokenizer != other.recipe.tokenizer):
        yield f"tokenizer: {_tokenizer(one)} → {_tokenizer(other)}"
    for name in one.pools:
        if name in other.pools and one.pools[name] != other.pools[name]:
            yield f"pools.{name}: fingerprint {_mark(one.pools[name])} → {_mark(other.pools[name])}"
    if one.recipe.trainer != other.recipe.trainer:
        yield from (line for line in difference(one.recipe, other.recipe) if line.startswith("trainer"))


def _course(one: Side, other: Side) -> Iterator[str]:
    """Steps and positions that are left, and the batches and contexts of the steps that both have."""
    a, b = Curriculum.from_recipe(one.recipe), Curriculum.from_recipe(other.recipe)
    steps = (a.num_steps - one.step, b.num_steps - other.step)
    both = min(steps)
    facts: dict[str, tuple[_Fact, _Fact]] = {
        "steps left": steps,
        "positions left": (a.positions - a.positions_at(one.step), b.positions - b.positions_at(other.step)),
        "batches": (_sizes(a, one.step, both, "batch"), _sizes(b, other.step, both, "batch")),
        "contexts": (_sizes(a, one.step, both, "context"), _sizes(b, other.step, both, "context")),
    }
    for what, (mine, theirs) in facts.items():
        if mine != theirs:
            yield f"{what}: {_course_text(mine)} → {_course_text(theirs)}"


def _sizes(curriculum: Curriculum, step: int, num_steps: int, what: str) -> list[tuple[int, int]]:
    """Sizes of batch or context over some steps, in order: ``(steps, size)``."""
    stop = step + num_steps
    ahead = [
        (int(getattr(stretch, what)), min(stretch.stop_step, stop) - max(stretch.first_step, step))
        for stretch in curriculum.stretches
        if stretch.stop_step > step and stretch.first_step < stop
    ]
    return [(sum(steps for _, steps in run), size) for size, run in groupby(ahead, key=lambda pair: pair[0])]


def _course_text(value: _Fact) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(f"{size:,} for {steps:,} steps" for steps, size in value) or "none"


def _tokenizer(side: Side) -> str:
    marks = sorted({_mark(mark) for mark in side.tokenizers.values() if mark is not None})
    return ", ".join(marks) or str(side.recipe.tokenizer or "not stated")


def _mark(text: str | None) -> str:
    return "none" if text is None else text[:16]
