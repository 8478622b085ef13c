"""Long documents that one pool routes to another: both stay whole wherever a stage draws from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from recipe.config import Recipe, Rule
from recipe.config.drawing import draws_from
from recipe.config.view import families
from recipe.config.view_checks import ROUTE, route_targets
from recipe.errors import Problem
from recipe.pools import Pool, View
from recipe.pools.card import NONE


class Route(NamedTuple):
    """Longer documents of one pool that another one takes."""

    source: str
    target: str
    units: int
    tokens: int
    stages: tuple[str, ...]
    """That draw them."""


def routes_of(recipe: Recipe, names: Sequence[str], pools: Mapping[str, Pool]) -> Iterator[Route]:
    """What pools of a family route."""
    for source, target in _routed(recipe, names):
        view = pools[target]
        assert isinstance(view, View)
        drawn = tuple(stage for stage in recipe.stages if draws_from(recipe, stage, target))
        yield Route(source, target, view.num_units, view.selection.body, drawn)


def _routed(recipe: Recipe, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for source in names:
        slicing = recipe.pools[source].slicing
        if slicing is not None and slicing.oversize == ROUTE:
            yield from ((source, target) for target in route_targets(recipe, source))


def route_problems(recipe: Recipe, pools: Mapping[str, Pool]) -> list[Problem]:
    """Units of pools that route, or are routed to, that a stage would cut."""
    found: dict[tuple[str, str], Problem] = {}
    for names in families(recipe.pools):
        for pair in _routed(recipe, names):
            for name in pair:
                view = pools.get(name)
                for stage in recipe.stages if isinstance(view, View) else ():
                    assert isinstance(view, View)
                    if draws_from(recipe, stage, name) and (most := _most(view, recipe.rule(stage, name))):
                        found[name, stage] = _cut(recipe, pair, (name, stage), most)
    return list(found.values())


def _most(view: View, rule: Rule) -> tuple[int, int] | None:
    """Tokens of the longest unit, and the window or context that it would need; None where it fits."""
    longest = view.selection.longest_unit
    if view.filter.by != "document":
        return (longest, longest) if longest > rule.context else None
    front = int(view.leads.max(initial=0)) if view.leads is not None else int(view.layout.bos_stored != NONE)
    if longest <= rule.window and longest + front <= rule.room:
        return None
    return longest, longest + (front if rule.window < longest + front else 0)


def _cut(recipe: Recipe, pair: tuple[str, str], at: tuple[str, str], most: tuple[int, int]) -> Problem:
    (source, target), (name, stage), (longest, needed) = pair, at, most
    room = recipe.rule(stage, name).room
    ways = f"stages: {{{stage}: {{context: {needed}}}}}"
    if name == target:
        shares = f"quotas: {{{target}: 0%}}"
        ways += f", or draw from it in another stage alone: stages: {{{stage}: {{{shares}, …}}}}"
    else:
        less = room - (needed - longest)
        ways += f", or pools: {{{source}: {{max_tokens: {less}}}, {target}: {{min_tokens: {less + 1}}}}}"
    return Problem(
        f"pools.{source}.slicing.oversize",
        f"{ROUTE}, and pool {name} has a unit of {longest:,} tokens in stage {stage}",
        f"at most {room:,} tokens with marks: what is routed stays whole",
        ways,
    )
