"""What differs between the shares of two recipes: by pool and exactly, however the shares are written.

A recipe may state a pool's share by its own name or by its group's, as quotas, weights or tokens. What
counts is what each pool gets. A pool whose part is the same on both sides does not differ; where only the
proportion of weights counts, a pool does not differ because of another one's weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from recipe.config import Recipe, difference
from recipe.config.stage import SHARES
from recipe.maths.shares import percent_text

_PROPORTIONS = ("weights", "quotas_tokens")


def recipe_differences(one: Recipe, other: Recipe) -> list[str]:
    """Every difference of two recipes, a line a key; shares of the stages of both as they are, by pool.

    A share has the key that it is written by where both sides write it alike, else that of its pool:
    ``stages.S.quotas.P``, or ``stages.S.shares.P`` where not both have quotas.
    """
    lines = [line for line in difference(one, other) if _is_kept(line, one, other)]
    for stage in _of_both(one, other):
        if not _is_written_alike(stage, one, other):
            lines += _by_pool(stage, one, other)
    return lines


def share_place(key: str) -> tuple[str, str] | None:
    """The stage and the pool or group of a key that is a share; None for any other key.

    >>> share_place("stages.base.quotas.web"), share_place("stages.base.tokens")
    (('base', 'web'), None)
    """
    top, stage, form, name = (key.split(".", 3) + [""] * 4)[:4]
    return (stage, name) if top == "stages" and form in (*SHARES, "shares") and name else None


def members(recipe: Recipe, name: str) -> tuple[str, ...]:
    """The pools of a group; any other name stands for itself."""
    group = recipe.groups.get(name)
    return (name,) if group is None else tuple(group.pools)


def changes_no_share(key: str, one: Recipe, other: Recipe) -> bool:
    """Whether a key of a group, or of a ramp, differs and no pool's share does, in any stage of both."""
    words = key.split(".")
    stages = _of_both(one, other)
    if words[0] == "groups" and len(words) > 1:
        return all(_legs(one, stage) == _legs(other, stage) for stage in stages)
    if words[0] == "stages" and words[2:3] == ["quota_ramp"] and words[1] in stages:
        return _legs(one, words[1]) == _legs(other, words[1])
    return False


def _of_both(one: Recipe, other: Recipe) -> list[str]:
    return [name for name in one.stages if name in other.stages]


def _is_kept(line: str, one: Recipe, other: Recipe) -> bool:
    """Whether a line is of no share, or of one that both sides write alike and that is not the same."""
    place = share_place(line.partition(":")[0])
    if place is None or place[0] not in one.stages or place[0] not in other.stages:
        return True
    stage, name = place
    if not _is_written_alike(stage, one, other):
        return False
    moved = _moved(stage, one, other)
    return any(pool in moved for recipe in (one, other) for pool in members(recipe, name))


def _is_written_alike(stage: str, one: Recipe, other: Recipe) -> bool:
    """Whether both sides state a stage's shares in one form, and those of the same groups as groups."""
    forms, groups = (
        [recipe.stages[stage].shares_form for recipe in (one, other)],
        [{name for name in recipe.stages[stage].parts if name in recipe.groups} for recipe in (one, other)],
    )
    return forms[0] == forms[1] and groups[0] == groups[1]


def _moved(stage: str, one: Recipe, other: Recipe) -> dict[str, tuple[Fraction, Fraction]]:
    """The pools whose part of a stage is another one, with their parts.

    Two sets of weights are held against each other as they are or by share: as fewer pools differ.
    """
    shares = _pairs(one.shares(stage), other.shares(stage))
    form = one.stages[stage].shares_form
    if not shares or form != other.stages[stage].shares_form or form not in _PROPORTIONS:
        return shares
    parts = _pairs(
        *(
            {name: share * _whole(stage, recipe) for name, share in recipe.shares(stage).items()}
            for recipe in (one, other)
        )
    )
    return parts if len(parts) <= len(shares) else shares


def _pairs(
    before: Mapping[str, Fraction], after: Mapping[str, Fraction]
) -> dict[str, tuple[Fraction, Fraction]]:
    """The parts that differ, by pool; a pool that is not there has none."""
    nothing = Fraction(0)
    both = {name: (before.get(name, nothing), after.get(name, nothing)) for name in {**before, **after}}
    return {name: (was, becomes) for name, (was, becomes) in both.items() if was != becomes}


def _whole(stage: str, recipe: Recipe) -> Fraction:
    """The sum of a stage's weights or tokens."""
    stated = getattr(recipe.stages[stage], recipe.stages[stage].shares_form)
    return sum(map(Fraction, stated.values()), Fraction(0))


def _by_pool(stage: str, one: Recipe, other: Recipe) -> Iterator[str]:
    forms = {recipe.stages[stage].shares_form for recipe in (one, other)}
    form = "quotas" if forms == {"quotas"} else "shares"
    moved, shares = _moved(stage, one, other), (one.shares(stage), other.shares(stage))
    for pool in moved:
        was, becomes = (_share_text(side.get(pool, Fraction(0))) for side in shares)
        yield f"stages.{stage}.{form}.{pool}: {was} → {becomes}"


def _share_text(share: Fraction) -> str:
    try:
        return percent_text(share)
    except ValueError:
        return str(share)


def _legs(recipe: Recipe, stage: str) -> list[tuple[Fraction, dict[str, Fraction]]]:
    """The legs of a stage, those of the same shares as one; pools that have none left out."""
    legs = list[tuple[Fraction, dict[str, Fraction]]]()
    for leg in recipe.legs(stage):
        shares = {name: share for name, share in leg.shares.items() if share}
        if not legs or legs[-1][1] != shares:
            legs.append((leg.start, shares))
    return legs
