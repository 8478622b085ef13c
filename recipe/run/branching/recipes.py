"""The recipe of a branch: the one in force at its parent's checkpoint, with what was asked for."""

from __future__ import annotations

from collections.abc import Mapping

from recipe.config import Recipe, parse_yaml, recipe_to_plain
from recipe.config.amending import amended
from recipe.config.model import StartConfig
from recipe.config.stage import LENGTHS, SHARES
from recipe.errors import Problem, RecipeError
from recipe.mixing.curriculum import Curriculum
from recipe.run.branching.beginning import renamed
from recipe.run.branching.origin import Origin
from recipe.run.branching.wishes import Wish, override_value
from recipe.run.holdings import tokenizers

_OWN = (*LENGTHS, "chunk", "quota_ramp")
"""Keys of a stage that an end stage does not take over from the one before it."""
END_STAGE = "end"
"""What the stage of ``end_stage`` is called where it says no name."""


def parent_recipe(origin: Origin, wish: Wish) -> Recipe:
    """The recipe in force at the checkpoint, its pools called as in the branch.

    Raises:
        RecipeError: a pool that is renamed is none, or its new name is taken.
    """
    recipe, names = origin.state.recipe, dict(wish.renamed)
    known = ", ".join(recipe.pools)
    problems = [
        Problem("--rename", f"{old}={new}", f"a pool of the run: {known}", "correct the name")
        for old, new in names.items()
        if old not in recipe.pools
    ]
    problems += [
        Problem("--rename", f"{old}={new}", "a name that no pool has", "choose another name")
        for old, new in names.items()
        if new in recipe.pools or list(names.values()).count(new) > 1
    ]
    if problems:
        raise RecipeError("recipe branch", problems)
    return renamed(recipe, names)


def branch_recipe(origin: Origin, wish: Wish, old: Recipe) -> Recipe:
    """The branch's recipe before its pools are looked at.

    Args:
        origin: where it starts.
        wish: what was asked for.
        old: its parent's recipe, as :func:`parent_recipe` gives it.

    Raises:
        RecipeError: with every problem; or nothing was consumed at the checkpoint.
    """
    step, layouts = origin.step, Curriculum.from_recipe(old).stages
    if not step:
        raise RecipeError.single(
            f"{origin.folder.path}: nothing to branch from",
            "RUN@MANIFEST",
            given=f"manifest {origin.number} at step 0",
            expected="a checkpoint after the first step",
            fix="start another run instead: recipe run RECIPE key=value --name NAME",
        )
    stage = layouts[origin.state.snapshot.stage].name
    overrides = [*wish.overrides, *(_ending(origin, wish, old) if wish.end_stage is not None else ())]
    return amended(old, overrides, stage=stage, from_pool=wish.from_pool)


def _ending(origin: Origin, wish: Wish, old: Recipe) -> list[str]:
    """Overrides that end the stage in progress here and put another last one in place of the rest.

    The last one is like the stage that it ends, but for its length and the keys that are given: whole. Where
    that stage is finished here, it is like the one that would have come next.
    """
    at, layouts = origin.state.snapshot, Curriculum.from_recipe(old).stages
    spec = wish.end_stage
    given = parse_yaml(spec, "--end-stage") if isinstance(spec, str) else spec
    if not isinstance(given, Mapping):
        fix = "write it like '{tokens: 50B, context: 4096, quotas: {english: rest, code: 30%}}'"
        raise RecipeError.single("recipe branch", "--end-stage", given=spec, expected="a mapping", fix=fix)
    values = dict(given)
    name, now = str(values.pop("name", END_STAGE)), layouts[at.stage]
    if name in old.stages:
        fix = f"give it another: --end-stage '{{name: {name}_2, …}}'"
        expected = f"a name that no stage has: {', '.join(old.stages)}"
        raise RecipeError.single("recipe branch", "--end-stage", given=name, expected=expected, fix=fix)
    overrides = [f"~stages.{later.name}" for later in layouts[at.stage + 1 :]]
    if at.step < now.stop_step:
        overrides += _ended(old, now.name, origin.planned_to)
    else:
        now = layouts[at.stage + 1] if at.stage + 1 < len(layouts) else now
    like = {key: value for key, value in recipe_to_plain(old)["stages"][now.name].items() if key not in _OWN}
    if any(form in values for form in SHARES):
        like = {key: value for key, value in like.items() if key not in SHARES}
    return [*overrides, f"+stages.{name}={override_value({**like, **values})}"]


def _ended(old: Recipe, stage: str, positions: int) -> list[str]:
    """Overrides that give a stage another length; token quotas become weights, which are as exact."""
    amounts = old.stages[stage].quotas_tokens
    if amounts is None:
        return [f"stages.{stage}.tokens={positions}"]
    weights = override_value({name: str(tokens) for name, tokens in amounts.items()})
    return [f"stages.{stage}.tokens={positions}", f"stages.{stage}.weights={weights}"]


def start_from(origin: Origin, old: Recipe) -> StartConfig:
    """What the parent spent in tokens of another tokenizer, as tokens before the start."""
    states = zip(origin.state.recipe.pools, origin.state.snapshot.pools, strict=True)
    prior = {name: state.spent for name, state in states if state.spent}
    if old.start is not None and old.start.prior_tokens:
        prior[f"before {origin.state.run}"] = old.start.prior_tokens
    return StartConfig(
        weights=origin.uri or f"{origin.state.run}@{origin.number}",
        revision=str(origin.manifest["hash"]),
        tokenizer=", ".join(sorted(tokenizers(origin.state.holdings))) or None,
        prior=prior,
    )
