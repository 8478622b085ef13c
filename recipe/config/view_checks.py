"""What must hold of views: a folder that is there, filters that say something, long documents routed."""

from __future__ import annotations

from collections.abc import Iterator

from recipe.config.drawing import drawing_stages
from recipe.config.files import FILE_KEYS
from recipe.config.model import PoolConfig
from recipe.config.partial import UnsoundError, given_of, run_checks
from recipe.config.problems import Fault, nearest
from recipe.config.recipe import Recipe
from recipe.config.view import FILTERS, family

ROUTE = "route"


def view_faults(recipe: Recipe) -> Iterator[Fault]:
    """Faults of views, and of promises that longer documents are read from another one."""
    for name, pool in recipe.pools.items():
        for fault in run_checks([_of_a_folder, _says_one_folder], name, pool, recipe):
            yield fault.below(("pools", name))
        for fault in run_checks([_holds_something, _counts_of_something], pool):
            yield fault.below(("pools", name))
        for fault in run_checks([_routes], name, pool, recipe):
            yield fault.below(("pools", name, "slicing", "oversize"))
    for name, stage in recipe.stages.items():
        if stage.declared_slicing.oversize == ROUTE:
            fix = "write it for one pool: pools: {NAME: {max_tokens: 4096, slicing: {oversize: route}}}"
            yield Fault(
                ("stages", name, "slicing", "oversize"), ROUTE, "split, truncate or drop in a stage", fix
            )


def _of_a_folder(name: str, pool: PoolConfig, recipe: Recipe) -> Iterator[Fault]:
    of = pool.of
    if of is None:
        return
    others = [other for other, config in recipe.pools.items() if other != name and _is_parent(config)]
    if of == name:
        fix = "write path: FOLDER to filter a folder of its own"
        yield Fault(("of",), of, f"another pool: {', '.join(others) or 'none is there'}", fix)
    elif of not in recipe.pools:
        expected = f"a pool of the recipe: {', '.join(others) or 'none is there'}"
        yield Fault(("of",), of, expected, nearest(of, others))
    elif (parent := recipe.pools[of].of) is not None:
        fix = f"write of: {parent}; a document goes to the first view that holds it"
        yield Fault(("of",), f"{of}, a view itself", "a pool with a path", fix)
    elif recipe.pools[of].path is None and pool.stock is None:
        expected = f"a stock to plan with, as pool {of} has no path"
        yield Fault(("stock",), "no stock", expected, "write stock: 10B, or give that pool a path")


def _is_parent(pool: PoolConfig) -> bool:
    try:
        return pool.of is None
    except UnsoundError:
        return False


def _says_one_folder(name: str, pool: PoolConfig, recipe: Recipe) -> Iterator[Fault]:
    if not given_of(pool, ("of",)):
        return
    for key in given_of(pool, ("path", "eos", "bos", *FILE_KEYS)):
        fix = f"leave {key} out: the folder is that of pool {pool.of}"
        yield Fault((key,), getattr(pool, key), f"of without {key}", fix)


def _holds_something(pool: PoolConfig) -> Iterator[Fault]:
    low, high = pool.min_tokens, pool.max_tokens
    if low is not None and high is not None and high < low:
        fix = f"raise it to {low} or more, or lower min_tokens"
        yield Fault(("max_tokens",), high, f"{low} or more (min_tokens)", fix)


def _counts_of_something(pool: PoolConfig) -> Iterator[Fault]:
    if pool.by is None:
        return
    if not given_of(pool, FILTERS):
        fix = "add min_tokens or max_tokens, or leave it out"
        yield Fault(("by",), pool.by, "by beside where, min_tokens or max_tokens", fix)
    elif pool.by == "needs" and not given_of(pool, ("min_tokens", "max_tokens")):
        fix = "add min_tokens or max_tokens, or write by: document"
        yield Fault(("by",), pool.by, "needs beside min_tokens or max_tokens", fix)


def _routes(name: str, pool: PoolConfig, recipe: Recipe) -> Iterator[Fault]:
    """A pool that promises that its longer documents are read from another view."""
    if pool.slicing is None or pool.slicing.oversize != ROUTE:
        return
    drawn = drawing_stages(recipe, name)
    windows = {stage.name: recipe.rule(stage.name, name).window for stage in drawn}
    most = pool.max_tokens
    if most is None:
        least = min(windows.values(), default=4096)
        expected = "max_tokens: only documents that fit the window are this pool's"
        yield Fault((), ROUTE, expected, _yaml(name, pool, recipe, least))
        return
    for stage, window in windows.items():
        if window < most:
            given = f"{ROUTE} with max_tokens {most} and a window of {window} in stage {stage}"
            yield Fault((), given, f"max_tokens of {window} or less", _yaml(name, pool, recipe, window))
            return
    targets = route_targets(recipe, name)
    if not targets:
        expected = f"another view of the folder with min_tokens: {most + 1}"
        yield Fault((), ROUTE, expected, _yaml(name, pool, recipe, most))
    elif not any(drawing_stages(recipe, one) for one in targets):
        expected = "a stage that draws from it, with a context that holds its longest unit"
        yield Fault(
            (), f"{ROUTE} to {targets[0]}, which no stage draws from", expected, f"give {targets[0]} a share"
        )


def route_targets(recipe: Recipe, name: str) -> list[str]:
    """The views that take what is longer than a pool's ``max_tokens`` and otherwise as it wants it."""
    pool = recipe.pools[name]
    assert pool.max_tokens is not None
    return [
        other
        for other in family(recipe.pools, name)
        if recipe.pools[other].min_tokens == pool.max_tokens + 1
        and recipe.pools[other].max_tokens is None
        and (recipe.pools[other].by or "document") == (pool.by or "document")
        and recipe.pools[other].where in (None, pool.where)
    ]


def _yaml(name: str, pool: PoolConfig, recipe: Recipe, most: int) -> str:
    """The two pools as they may be written."""
    parent = pool.of or name
    by = "" if pool.by in (None, "document") else f", by: {pool.by}"
    where = "" if pool.where is None else ", where: …"
    first = f"of: {parent}" if pool.of else f"path: {pool.path}"
    names = (f"{name}_long{k or ''}" for k in range(len(recipe.pools) + 1))
    long = next(one for one in names if one not in recipe.pools)
    return (
        f"pools: {{{name}: {{{first}{where}, max_tokens: {most}{by}, slicing: {{oversize: route}}}}, "
        f"{long}: {{of: {parent}{where}, min_tokens: {most + 1}{by}}}}}"
    )
