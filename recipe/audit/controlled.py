"""Whether a branch may be compared with its parent: what differs, and what speaks against it on any reading.

A branch's record names what differs from its parent and says whether that is all that was named. How a
name covers what it brings along is the branching's own rule; here is what no name can cover.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from recipe.audit.account import Plain
from recipe.audit.intent import Intent
from recipe.config import Recipe, difference
from recipe.config.stage import Stage
from recipe.maths.shares import percent_text

_FORMS = ("quotas", "weights", "quotas_tokens")
_HARMLESS = ("name", "pools_root", "sink")
Side = tuple[Intent, Mapping[str, Plain]]
"""A recipe, and the pools by name."""


def differences(old: Recipe, new: Recipe) -> list[str]:
    """What differs between two recipes, a line a key; shares are held by pool, however written."""
    told, rewritten = list[str](), list[str]()
    changed = {name: _changed(name, old, new) for name in old.stages if name in new.stages}
    for name in changed:
        a, b = (
            (stage.shares_form, set(stage.parts) & set(recipe.groups))
            for stage, recipe in _of(name, old, new)
        )
        rewritten += [name] * (a != b)
    for line in difference(old, new):
        stage, name = _share_of(line.partition(":")[0])
        moved = changed.get(stage or "", set()) & (_pools(name, old) | _pools(name, new))
        if stage not in changed or (moved and stage not in rewritten):
            told.append(line)
    return told + [line for name in rewritten for line in _shares(name, changed[name], old, new)]


def _of(stage: str, *recipes: Recipe) -> list[tuple[Stage, Recipe]]:
    return [(recipe.stages[stage], recipe) for recipe in recipes]


def _share_of(key: str) -> tuple[str | None, str]:
    """The stage and the name that a key is the share of."""
    top, stage, form, name = (key.split(".", 3) + [""] * 4)[:4]
    return (stage, name) if top == "stages" and form in _FORMS and name else (None, "")


def _pools(name: str, recipe: Recipe) -> set[str]:
    return set(recipe.groups[name].pools) if name in recipe.groups else {name}


def _changed(stage: str, old: Recipe, new: Recipe) -> set[str]:
    """Pools whose share is another one; of weights, those with another weight, if they are not more."""
    one, other = old.shares(stage), new.shares(stage)
    by_share = {name for name in {**one, **other} if one.get(name, 0) != other.get(name, 0)}
    forms = {recipe.stages[stage].shares_form for recipe in (old, new)}
    if not by_share or len(forms) > 1 or forms == {"quotas"}:
        return by_share
    form = forms.pop()
    was, becomes = (
        sum(Fraction(part) for part in getattr(x, form).values()) for x, _ in _of(stage, old, new)
    )
    by_weight = {name for name in {**one, **other} if one.get(name, 0) * was != other.get(name, 0) * becomes}
    return by_share if len(by_weight) > len(by_share) else by_weight


def _shares(stage: str, changed: set[str], old: Recipe, new: Recipe) -> Iterator[str]:
    one, other = old.shares(stage), new.shares(stage)
    form = "quotas" if old.stages[stage].quotas and new.stages[stage].quotas else "shares"
    for pool in [*one, *(name for name in other if name not in one)]:
        was, becomes = one.get(pool, Fraction(0)), other.get(pool, Fraction(0))
        if pool in changed:
            yield f"stages.{stage}.{form}.{pool}: {_share(was)} → {_share(becomes)}"


def _share(share: Fraction) -> str:
    try:
        return percent_text(share)
    except ValueError:
        return str(share)


def unfixed(one: Side, other: Side, step: int) -> list[str]:
    """What must be the same for a comparison and is not: beginnings of the lines that must say so."""
    (old, held), (new, holds) = one, other
    found = []
    rest = [_rest(intent, step) for intent in (old, new)]
    for what in ("steps left", "positions left"):
        found += [what] * (rest[0][what] != rest[1][what])
    steps = min(rest[0]["steps left"], rest[1]["steps left"])
    for what in ("batches", "contexts"):
        a, b = (_sizes(intent, (step, step + steps), what) for intent in (old, new))
        found += [what] * (a != b)
    marks = [{pool.get("tokenizer") for pool in side.values()} - {None} for side in (held, holds)]
    if marks[0] != marks[1] or (not marks[0] and old.recipe.tokenizer != new.recipe.tokenizer):
        found.append("tokenizer")
    for name, pool in held.items():
        if name in holds and holds[name].get("fingerprint") != pool.get("fingerprint"):
            found.append(f"pools.{name}")
    return found + ["trainer"] * (old.recipe.trainer != new.recipe.trainer)


def _rest(intent: Intent, step: int) -> dict[str, int]:
    last = intent.layouts[-1]
    return {
        "steps left": last.stop_step - step,
        "positions left": last.stop_position - intent.positions_at(step),
    }


def _sizes(intent: Intent, steps: tuple[int, int], what: str) -> list[tuple[int, int]]:
    """Batch or context of consecutive steps: how many steps have which."""
    sizes: list[tuple[int, int]] = []
    for layout in intent.layouts:
        for plateau in layout.plateaus:
            begin, end = plateau.first_step, plateau.first_step + plateau.num_steps
            many = min(end, steps[1]) - max(begin, steps[0])
            size = plateau.batch if what == "batches" else layout.context
            if many > 0 and sizes and sizes[-1][1] == size:
                sizes[-1] = (sizes[-1][0] + many, size)
            elif many > 0:
                sizes.append((many, size))
    return sizes


def unnamed(differs: list[str], named: list[str], old: Recipe, new: Recipe) -> list[str]:
    """Lines of what differs that nothing named can be about: another part of the recipe, another stage."""
    tops = {_top(key) for key in named}
    found = []
    for line in differs:
        key = line.partition(":")[0]
        is_fixed = key.partition(".")[0] in ("trainer", "tokenizer", *_HARMLESS)
        is_place = key.startswith(("pools.", "stages.")) and key.endswith((".path", ".stock", ".chunk"))
        if not (is_fixed or is_place or _top(key) in tops or _is_nothing(key, old, new)):
            found.append(line)
    return found


def _is_nothing(key: str, old: Recipe, new: Recipe) -> bool:
    """Whether a key of a group or a ramp leaves every pool's share as it is, at every place of the stages."""
    words = key.split(".")
    both = [name for name in old.stages if name in new.stages]
    if words[0] == "stages" and words[2:3] == ["quota_ramp"]:
        both = [name for name in both if name == words[1]]
    elif words[0] != "groups":
        return False
    return bool(both) and all(_course(old, name) == _course(new, name) for name in both)


def _course(recipe: Recipe, stage: str) -> list[tuple[Fraction, dict[str, Fraction]]]:
    """Where in a stage the shares change, and to what."""
    course = [
        (leg.start, {name: part for name, part in leg.shares.items() if part}) for leg in recipe.legs(stage)
    ]
    return [leg for place, leg in enumerate(course) if not place or leg[1] != course[place - 1][1]]


def _top(key: str) -> tuple[str, ...]:
    """The stage, the pool, or else the first word that a dotted key is about."""
    words = key.split(".")
    return tuple(words[:2] if words[0] in ("stages", "pools", "groups") else words[:1])
