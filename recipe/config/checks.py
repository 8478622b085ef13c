"""What must hold between the values of a recipe: pools against groups, stages against both, stages in a row.

A check is a pure function from values to faults. It reads models of which only the sound part may be there
(`recipe.config.partial`) and ends where it touches a value that is faulty in itself, so every fault that can
be known is found in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from recipe.config.drawing import draws_from
from recipe.config.evaluation_checks import evaluation_faults
from recipe.config.files import file_faults
from recipe.config.free import free_faults
from recipe.config.group import GroupConfig, known_pools
from recipe.config.length_checks import length_faults, stated_length
from recipe.config.model import PoolConfig
from recipe.config.naming import is_key
from recipe.config.objective_checks import objective_faults
from recipe.config.packing_checks import packing_stage_faults
from recipe.config.parallel_checks import PARALLEL_CHECKS
from recipe.config.partial import UnsoundError, given_of, run_checks
from recipe.config.problems import NOTHING, TARGET, Fault, nearest
from recipe.config.recipe import Recipe
from recipe.config.share_checks import share_faults
from recipe.config.specials_checks import specials_faults
from recipe.config.stage import Stage
from recipe.config.stage_checks import STAGE_CHECKS, exactly_one, pool_slicing_faults
from recipe.config.transform_checks import TRANSFORM_CHECKS, transform_stage_faults
from recipe.config.view_checks import view_faults

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def recipe_faults(recipe: Recipe, *, in_order: bool = True) -> list[Fault]:
    """Every fault between values of a recipe, as far as the values are sound.

    Args:
        recipe: as much of it as is sound.
        in_order: whether its stages stand in the order they are run.
    """
    read = recipe if in_order else _without_ramps(recipe)
    return run_checks(_CHECKS, read) + run_checks([_lengths], recipe, in_order)


def _without_ramps(recipe: Recipe) -> Recipe:
    """Stages of which nobody knows what comes before them: from where they go over is not judged."""
    alone = {name: stage.model_copy(update={"quota_ramp": None}) for name, stage in recipe.stages.items()}
    return recipe.model_copy(update={"stages": alone})


def _names(recipe: Recipe) -> Iterator[Fault]:
    for kind in ("pools", "groups", "stages"):
        yield from run_checks([_names_of], recipe, kind)


def _names_of(recipe: Recipe, kind: str) -> Iterator[Fault]:
    names: Iterable[str] = getattr(recipe, kind)
    if not names and kind != "groups":
        yield Fault((kind,), "none", f"at least one of {kind}", f"add one under '{kind}'")
    for name in names:
        # A group may be called as the pattern that its pools fit.
        if not is_key(name.replace("*", "_") if kind == "groups" else name):
            expected = "letters, digits, _ and -, not starting with -; not _target_"
            repaired = re.sub(r"[^\w-]+", "_", name.strip("_") if name == TARGET else name).lstrip("-") or "a"
            yield Fault((kind, name), name, expected, f"rename it, for example to {repaired}")


def _tokenizer(recipe: Recipe) -> Iterator[Fault]:
    if recipe.tokenizer is not None:
        fix = "write {builtin: bytes} or {path: FOLDER}"
        for fault in exactly_one(recipe.tokenizer, ("builtin", "path"), fix):
            yield fault.below(("tokenizer",))


def _pools(recipe: Recipe) -> Iterator[Fault]:
    for name, pool in recipe.pools.items():
        yield from run_checks([_is_somewhere], name, pool)


def _is_somewhere(name: str, pool: PoolConfig) -> Iterator[Fault]:
    if not given_of(pool, ("path", "stock", "of")):
        expected = "a path, or a stock to plan with, or both"
        fix = "write {path: FOLDER}, or {stock: 10B} for a plan without data"
        yield Fault(("pools", name, "path"), "neither path nor stock", expected, fix)


def _group_names(recipe: Recipe) -> Iterator[Fault]:
    for name in recipe.groups:
        if name in recipe.pools:
            yield Fault(("groups", name), name, "a name that no pool has", "rename the group or the pool")


def _renamed(recipe: Recipe) -> Iterator[Fault]:
    holders: dict[str, str] = {}
    for name, pool in recipe.pools.items():
        for fault in run_checks([_is_another_name], name, pool, recipe.pools, holders):
            yield fault.below(("pools", name, "renamed_from"))


def _is_another_name(
    name: str, pool: PoolConfig, pools: Mapping[str, PoolConfig], holders: dict[str, str]
) -> Iterator[Fault]:
    before = pool.renamed_from
    if before is None:
        return
    if not is_key(before):
        fix = "write the name the pool had before, or leave it out"
        yield Fault((), before, "letters, digits, _ and -, not starting with -", fix)
    elif before in pools:
        fix = f"rename the pool {before} too, or leave it out; of a run: recipe branch RUN NAME --rename "
        fix = "leave it out" if before == name else f"{fix}{before}={name}"
        yield Fault((), before, "a name that no pool of the recipe has", fix)
    elif before in holders:
        given, fix = (
            f"{before}, as pools.{holders[before]}",
            "remove one: two pools would be read in one order",
        )
        yield Fault((), given, "a name that one pool had before", fix)
    holders.setdefault(before, name)


def _free_parts(recipe: Recipe) -> Iterator[Fault]:
    for part in ("trainer", "policy"):
        yield from run_checks([_free_part], recipe, part)


def _free_part(recipe: Recipe, part: str) -> Iterator[Fault]:
    value = getattr(recipe, part)
    if value is not None:
        yield from free_faults(value if part == "trainer" else value.params, (part,))


def _policy(recipe: Recipe) -> Iterator[Fault]:
    if recipe.policy is not None and not _DOTTED.fullmatch(recipe.policy.target):
        expected, fix = "a dotted name", "write it like recipe.maths.policies.DynamicLoading"
        yield Fault(("policy", TARGET), recipe.policy.target, expected, fix)


def _groups(recipe: Recipe) -> Iterator[Fault]:
    for name, group in recipe.groups.items():
        for fault in run_checks([_is_group, _shares_of_members, _shares_of_all], group):
            yield fault.below(("groups", name))
        for fault in run_checks([_are_pools], group, recipe):
            yield fault.below(("groups", name))


def _is_group(group: GroupConfig) -> Iterator[Fault]:
    if not group.pools:
        yield Fault(("pools",), "[]", "at least one pool", "name the group's pools, or remove the group")
    known, _ = known_pools(group)
    for twice in sorted({name for name in known if known.count(name) > 1}):
        yield Fault(("pools",), f"{twice} twice", "each pool once", f"remove one {twice}")


def _shares_of_members(group: GroupConfig) -> Iterator[Fault]:
    known, is_whole = known_pools(group)
    if not is_whole:
        raise UnsoundError
    for name in sorted(set(group.within.named or ()) - set(known)):
        expected = f"a pool of the group: {', '.join(known)}"
        fix = nearest(name, known, f"remove {name}, or add it to the group's pools")
        yield Fault(("within", "shares", name), name, expected, fix)


def _shares_of_all(group: GroupConfig) -> Iterator[Fault]:
    named = group.within.named
    known, _ = known_pools(group)
    for name in known if named is not None else ():
        if name not in (named or ()):
            yield Fault(("within", "shares", name), NOTHING, "a share for every pool", f"write {name}: 0%")


def _are_pools(group: GroupConfig, recipe: Recipe) -> Iterator[Fault]:
    pools = list(recipe.pools)
    for member in known_pools(group)[0]:
        if member not in pools:
            expected = f"pools of the recipe: {', '.join(pools)}"
            yield Fault(("pools",), member, expected, nearest(member, pools))


def _stages(recipe: Recipe) -> Iterator[Fault]:
    for name, stage in recipe.stages.items():
        found = run_checks(STAGE_CHECKS, stage) + run_checks([_context_fits, *PARALLEL_CHECKS], stage, recipe)
        found += run_checks([_shares, _objective], stage, recipe)
        yield from (fault.below(("stages", name)) for fault in found)
        yield from run_checks([_pool_slicings], name, recipe)
        yield from run_checks([transform_stage_faults], name, stage, recipe)
        yield from run_checks([packing_stage_faults], name, stage, recipe)


def _context_fits(stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    most = recipe.model.max_positions if recipe.model is not None else None
    if most is not None and stage.context > most:
        fix = f"lower the context, or set model.max_positions={stage.context} if the model has that many"
        yield Fault(("context",), stage.context, f"1..{most} (model.max_positions)", fix)


def _shares(stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    yield from share_faults(stage, recipe.pools, recipe.groups)


def _objective(stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    yield from objective_faults(stage, recipe.pools, recipe.groups)


def _pool_slicings(stage_name: str, recipe: Recipe) -> Iterator[Fault]:
    for name, pool in recipe.pools.items():
        yield from run_checks([_pool_slicing], name, pool, stage_name, recipe)


def _pool_slicing(name: str, pool: PoolConfig, stage_name: str, recipe: Recipe) -> Iterator[Fault]:
    """Faults of a pool that slices in its own way, in a stage that draws from it."""
    if pool.slicing is None or not draws_from(recipe, stage_name, name):
        return
    for fault in pool_slicing_faults(pool.slicing, recipe.stages[stage_name]):
        expected = f"{fault.expected}, in stage {stage_name}"
        yield Fault(("pools", name, "slicing", *fault.place), fault.given, expected, fault.fix)


def _lengths(recipe: Recipe, in_order: bool) -> Iterator[Fault]:
    yield from length_faults(recipe.stages, in_order=in_order)
    if recipe.simulate_budget is not None and in_order:
        length = stated_length(recipe.stages)
        if recipe.simulate_budget < length:
            fix = f"write the full run's length, or shorten this one to at most {recipe.simulate_budget}"
            expected = f"{length} or more (the length of this run)"
            yield Fault(("simulate_budget",), recipe.simulate_budget, expected, fix)


_CHECKS = (
    _names,
    _tokenizer,
    _pools,
    *TRANSFORM_CHECKS,
    view_faults,
    file_faults,
    _renamed,
    _group_names,
    _groups,
    _stages,
    specials_faults,
    _policy,
    _free_parts,
    evaluation_faults,
)
