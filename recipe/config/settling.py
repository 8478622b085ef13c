"""A recipe settled: what depended on the pools becomes numbers, as runs store it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from recipe.config.group import GroupConfig, Within
from recipe.config.model import Packing, PoolConfig
from recipe.config.objective_checks import objective_faults
from recipe.config.partial import run_checks
from recipe.config.recipe import Recipe
from recipe.config.spans import default_chunk
from recipe.config.stage import Stage
from recipe.errors import Problem, RecipeError
from recipe.maths.shares import even, natural, temperature, to_grain, unimax

BLOCK_TOKENS = 64 * 2**20
FEWEST_BLOCK_UNITS, MOST_BLOCK_UNITS = 64, 32_768


def settle(recipe: Recipe, stock: Mapping[str, int], units: Mapping[str, int]) -> Recipe:
    """The recipe with every share, block size and chunk as a number.

    Shares inside a group are rounded to whole 10**-9 by largest remainder; explicit ones stay as they are.
    Settling a settled recipe changes nothing.

    Args:
        recipe: as loaded.
        stock: body tokens of each pool; a pool that is left out counts with the stock it declares.
        units: units of each pool's order; block sizes of pools left out stay open.

    Raises:
        RecipeError: a group's pools are empty, or have no stock to go by; or the loss counts a pool that is
            not sampled.
    """
    known = {name: pool.stock for name, pool in recipe.pools.items() if pool.stock is not None} | dict(stock)
    problems: list[Problem] = []
    groups = {name: _settled_group(recipe, name, known, problems) for name in recipe.groups}
    if problems:
        raise RecipeError(recipe.name, problems)
    pools = {
        name: _settled_pool(pool, known.get(name), units.get(name)) for name, pool in recipe.pools.items()
    }
    stages = {
        name: stage.model_copy(
            update={
                "chunk": stage.chunk or default_chunk(recipe.spans[name], stage.context),
                "packing": _settled_packing(recipe, stage),
            }
        )
        for name, stage in recipe.stages.items()
    }
    for name, stage in stages.items():
        faults = run_checks([objective_faults], stage, recipe.pools, groups)
        problems += [fault.below(("stages", name)).problem() for fault in faults]
    if problems:
        raise RecipeError(recipe.name, problems)
    return recipe.model_copy(update={"groups": groups, "pools": pools, "stages": stages})


def block_units(stock: int, units: int) -> int:
    """Units of a block of about 64 Mi tokens: the largest power of two that fits, in 64..32768.

    >>> [block_units(600 * 10**6, 10**6), block_units(10**6, 1), block_units(10**6, 10**6)]
    [32768, 64, 32768]
    """
    size = FEWEST_BLOCK_UNITS
    while size < MOST_BLOCK_UNITS and 2 * size * stock <= BLOCK_TOKENS * units:
        size *= 2
    return size


def _settled_packing(recipe: Recipe, stage: Stage) -> Packing:
    number = stage.packing.multiple(recipe.parallel)
    if number == stage.packing.document_multiple:
        return stage.packing
    return stage.packing.model_copy(update={"document_multiple": number})


def _settled_pool(pool: PoolConfig, stock: int | None, units: int | None) -> PoolConfig:
    if pool.block_units is not None or stock is None or units is None:
        return pool
    return pool.model_copy(update={"block_units": block_units(stock, units)})


def _settled_group(
    recipe: Recipe, name: str, known: Mapping[str, int], problems: list[Problem]
) -> GroupConfig:
    group = recipe.groups[name]
    if group.within.shares is not None:
        return group
    unknown = [pool for pool in group.pools if pool not in known]
    if unknown and group.within.kind != "even":
        fix = f"give pools.{unknown[0]} a path or a stock, or the group explicit shares"
        expected = f"a stock for every pool of {name}: {group.within.kind} shares go by it"
        problems.append(Problem(f"groups.{name}.within", f"no stock for {', '.join(unknown)}", expected, fix))
        return group
    stock = {pool: known.get(pool, 0) for pool in group.pools}
    if group.within.kind != "even" and not any(stock.values()):
        fix = "remove the group, or use within: even"
        problems.append(
            Problem(f"groups.{name}.within", "pools without tokens", "tokens in at least one pool", fix)
        )
        return group
    shares = to_grain(_shares(recipe, name, stock))
    return group.model_copy(update={"within": Within("shares", percents=tuple(shares.items()))})


def _shares(recipe: Recipe, name: str, stock: Mapping[str, int]) -> dict[str, Fraction]:
    within = recipe.groups[name].within
    if within.kind == "even":
        return even(stock)
    if within.kind == "temperature":
        assert within.exponent is not None
        return temperature(stock, within.exponent)
    if within.kind == "unimax":
        allowed = {pool: recipe.epochs_allowed(pool) for pool in stock}
        return unimax(stock, max(1, group_budget(recipe, name)), allowed)
    return natural(stock)


def group_budget(recipe: Recipe, name: str) -> int:
    """Tokens that the whole run asks of a group by its own name, as if nothing were padded."""
    spans, stages = recipe.spans, list(recipe.stages.values())
    budget = Fraction(0)
    for before, stage in zip([None, *stages], stages, strict=False):
        if name not in stage.parts:
            continue
        budget += stage.parts[name] * spans[stage.name].stated
        if stage.quota_ramp is not None and before is not None:
            change = stage.parts[name] - _stated_part(recipe, before, name)
            budget -= change * stage.quota_ramp.over / 2
    return round(budget)


def _stated_part(recipe: Recipe, stage: Stage, group: str) -> Fraction:
    """A group's part of a stage, which may name its pools apart."""
    parts = stage.parts
    return parts.get(group) or sum(
        (parts.get(pool, Fraction(0)) for pool in recipe.groups[group].pools), Fraction(0)
    )
