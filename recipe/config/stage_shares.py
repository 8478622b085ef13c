"""The shares that a stage states in one of three forms, amended and written down again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pydantic_core import PydanticCustomError

from recipe.config.problems import Fault, faults, problem
from recipe.config.share_changes import Ground, Parts, balanced, name_faults, part_of, total, with_part
from recipe.config.share_values import LARGEST_TERM, LONGEST_PERCENT, read_share, read_weight, write_weight
from recipe.config.stage import OBJECTIVE, SHARES, Stage
from recipe.config.values import read_tokens
from recipe.maths.shares import percent_text, weight_text

_READ: Mapping[str, Callable[[object], Any]] = {
    "quotas": read_share,
    "weights": read_weight,
    "quotas_tokens": read_tokens,
    OBJECTIVE: read_share,
}
_PERCENTS = ("quotas", OBJECTIVE)


def share_text(share: Fraction) -> str:
    """A share for people, exact also where it has no finite percent.

    >>> [share_text(Fraction(share)) for share in ("0.616", "1/15")]
    ['61.6%', '20/3%']
    """
    return f"{weight_text(share * 100)}%"


def parts_in_force(stage: Stage, form: str) -> Parts:
    """The parts that an override of a form starts from: nothing where it replaces another form whole."""
    if form == "quotas":
        return stage.parts
    return {name: Fraction(part) for name, part in (getattr(stage, form) or {}).items()}


def read_asked(form: str, asked: Mapping[str, object], ground: Ground) -> dict[str, Fraction | str]:
    """What is asked for by name, as exact parts or the word ``rest``.

    Raises:
        PydanticCustomError: with every fault, as `problem`; places are relative to the form.
    """
    found, values = list(name_faults(asked, ground)), dict[str, Any]()
    for name, value in asked.items():
        try:
            part = _READ[form](value)
            values[name] = part if part == "rest" else Fraction(part)
        except PydanticCustomError as error:
            found += [fault.below((name,)) for fault in faults_in(error)]
    if found:
        raise faults(found)
    return values


def amended_parts(
    stage: Stage, form: str, asked: Mapping[str, object], ground: Ground, from_pool: str | None
) -> Parts:
    """The parts of a stage with what is asked for by name.

    Args:
        stage: as it is in force.
        form: the form that the values are written in.
        asked: what each name shall have, as written.
        ground: what names stand for.
        from_pool: the pool that takes the difference.

    Raises:
        PydanticCustomError: with every fault, as `problem`; places are relative to the form.
    """
    ground = replace(ground, text=share_text if form in _PERCENTS else weight_text)
    values, before = read_asked(form, asked, ground), parts_in_force(stage, form)
    fixed = {name: part for name, part in values.items() if isinstance(part, Fraction)}
    rest = [name for name in values if name not in fixed]
    parts = _with_all(before, fixed, ground)
    found = list[Fault]()
    if len(rest) > 1:
        given = f"{' and '.join(rest)}: rest"
        found.append(Fault((), given, "rest at most once", "give all but one a share"))
    if from_pool is not None:
        is_same = not rest and all(part_of(before, name, ground) == part for name, part in fixed.items())
        kept = "shares that are stated whole" if not before else "the shares in force" if is_same else None
        found += _from_faults(from_pool, values, kept, ground)
    if found:
        raise faults(found)
    if from_pool is not None:
        return balanced(before, parts, from_pool, ground)
    if form not in _PERCENTS:
        return parts
    return _with_rest(parts, rest[0], ground) if rest else _whole(parts, fixed, ground)


def _with_all(before: Parts, fixed: Parts, ground: Ground) -> Parts:
    parts, found = before, list[Fault]()
    for name, part in fixed.items():
        try:
            parts = with_part(parts, name, part, ground)
        except PydanticCustomError as error:
            found += faults_in(error)
    if found:
        raise faults(found)
    return parts


def _from_faults(pool: str, values: Mapping[str, object], kept: str | None, ground: Ground) -> list[Fault]:
    """Faults of the pool that the difference is taken from; ``kept`` says why there is no difference."""
    if touched := [name for name in values if pool in ground.members(name)]:
        group = touched[0] in ground.groups
        given = f"{touched[0]} changed, with --from {pool}{', which is in it' if group else ''}"
        fix = "name another pool with --from, or leave it out"
        if group:
            inside = ground.members(touched[0])
            others = ", ".join(name for name in ground.pools if name not in inside)
            fix = f"name a pool outside of {touched[0]}: {others}; or change its pools by their own names"
        return [Fault((pool,), given, "a pool whose share is not asked for itself", fix)]
    if "rest" in values.values():
        fix = "leave --from out, or give the rest a share"
        return [Fault((), f"a rest, with --from {pool}", "one place for the difference", fix)]
    if kept is not None:
        expected = f"a changed share whose difference {pool} takes"
        return [Fault((), f"{kept}, with --from {pool}", expected, "leave --from out, or change a share")]
    return []


def _with_rest(parts: Parts, name: str, ground: Ground) -> Parts:
    others = total(parts.values()) - part_of(parts, name, ground)
    if others > 1:
        fix = f"lower the other shares by {share_text(others - 1)}"
        given = f"{share_text(others)} without {name}"
        raise problem(name, given=given, expected="at most 100% without the rest", fix=fix)
    return with_part(parts, name, 1 - others, ground)


def _whole(parts: Parts, fixed: Parts, ground: Ground) -> Parts:
    """The parts, when they are all of it: nothing is renormalised."""
    more = total(parts.values()) - 1
    if more == 0:
        return parts
    touched = {pool for name in fixed for pool in ground.members(name)}
    others = [name for name in parts if name in ground.pools and name not in touched]
    largest = max(others, key=lambda name: parts[name], default="POOL")
    written = ", ".join(f"{name}: {share_text(part)}" for name, part in parts.items())
    change = f"take {share_text(more)}" if more > 0 else f"give {share_text(-more)}"
    whom = "from" if more > 0 else "to"
    fix = f"{change} {whom} one pool: --from {largest}, or change its share too"
    expected = "shares that sum to exactly 100%"
    raise problem("", given=f"sum {share_text(1 + more)} of {{{written}}}", expected=expected, fix=fix)


def write_shares(stage: dict[str, Any], form: str, parts: Parts) -> None:
    """State a stage's shares in plain values: in the form, or as ``weights`` where it cannot hold them.

    What the loss counts has one form, and replaces none of the others.

    Raises:
        PydanticCustomError: as `problem`, where no form can hold them.
    """
    if form == OBJECTIVE:
        stage[form] = _objective(parts)
        return
    plain: dict[str, Any] | None = None
    if form == "quotas":
        plain = _percents(parts)
    elif form == "quotas_tokens" and all(part.denominator == 1 for part in parts.values()):
        plain = {name: int(part) for name, part in parts.items()}
    if plain is None:
        form, plain = "weights", _weights(parts, 100 if form == "quotas" else 1)
    for other in SHARES:
        stage.pop(other, None)
    stage[form] = plain


def _percents(parts: Parts) -> dict[str, Any] | None:
    try:
        plain = {name: percent_text(part) for name, part in parts.items()}
    except ValueError:
        return None
    return plain if all(len(text) <= LONGEST_PERCENT for text in plain.values()) else None


def _objective(parts: Parts) -> dict[str, Any]:
    plain = _percents(parts)
    if plain is None:
        endless = next((name for name, part in parts.items() if _percents({name: part}) is None), "")
        fix = "ask for rounder shares, or name the pools of the group one by one"
        expected = f"percent text of at most {LONGEST_PERCENT} characters"
        raise problem(endless, given=share_text(parts[endless]), expected=expected, fix=fix)
    return plain


def _weights(parts: Parts, scale: int) -> dict[str, Any]:
    weights = {name: part * scale for name, part in parts.items()}
    for name, weight in weights.items():
        if max(weight.numerator, weight.denominator) > LARGEST_TERM:
            expected = "a share that is a ratio of two whole numbers of at most 10**30"
            raise problem(name, given=weight_text(weight), expected=expected, fix="ask for a rounder share")
    return {name: write_weight(weight) for name, weight in weights.items()}


def faults_in(error: PydanticCustomError) -> list[Fault]:
    """The faults that an error of `problem` or `faults` holds."""
    return list((error.context or {})["faults"])
