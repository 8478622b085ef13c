"""Screens: small proxies, or branches, of many mixtures; ranked by a metric, the best confirmed on a target.

A screen is a folder that appears at once: ``screen.yaml`` says what was drawn and how, and every mixture
has a run folder in it, which is run like any other. What small proxies say about mixtures is a hint: the
best of them are confirmed by branches from a checkpoint of the target model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from recipe.config import Recipe, fingerprint
from recipe.errors import RecipeError
from recipe.maths.shares import parse_weight, weight_text
from recipe.mixing.opening import close_pools, settle_with
from recipe.mixing.outlook import Outlook, YieldCache, outlook
from recipe.mixing.plan import make_plan
from recipe.mixing.snapshot import start_of
from recipe.mixing.trial import policy_problems
from recipe.run import row, writes
from recipe.run.birth import Birth, first_files
from recipe.run.branching.branch import plan_branches
from recipe.run.branching.origin import Origin
from recipe.run.branching.wishes import Wish, override_value
from recipe.run.canonical import Plain
from recipe.run.folder import FOLDERS, RecipeVersion, RunFolder, check_name
from recipe.run.holdings import Holding, declared_paths
from recipe.run.manifest import sealed, unseal
from recipe.run.screening.mixtures import How, Mixture, mixtures, stated, with_mixture
from recipe.run.start import refuse_taken, taken

FORMAT = 1
NAME = "screen.yaml"
"""What the file is called that makes a folder a screen."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    """A screen worked out: what it says of itself, and the files of every run."""

    path: Path
    record: Plain
    mixtures: tuple[Mixture, ...]
    outlooks: Mapping[str, Outlook]
    """By mixture."""
    files: Mapping[str, bytes]
    """By path in the folder, without the screen's own."""

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe screen --json``."""
        ends = {name: ahead.to_plain()["pools"] for name, ahead in self.outlooks.items()}
        return {"screen": str(self.path), **self.record, "pools": ends}


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a screen varies."""

    how: How
    stage: str | None = None
    """Default: the only one."""
    over: tuple[str, ...] = ()
    """Names whose shares vary; default: all that the stage states."""


def plan_screen(recipe: Recipe, ask: Ask, out: Path, allow_targets: Sequence[str] = ()) -> Screen:
    """Runs of a recipe, one for every mixture; nothing is written yet.

    Raises:
        RecipeError: what cannot be drawn or run, with the problems of all mixtures at once.
    """
    check_name(RunFolder(out).name, "--out")
    refuse_taken(RunFolder(out))
    declared_paths(recipe)
    stage = _stage(recipe, ask.stage)
    drawn = mixtures(recipe.stages[stage], ask.how, ask.over)
    plan = make_plan(recipe, compare_packing=False, allow_targets=allow_targets)
    pools = {name: plan.opened[name] for name in recipe.pools}
    outlooks: dict[str, Outlook] = {}
    files: dict[str, bytes] = {}
    problems, yields = policy_problems(plan.recipe, allow_targets), YieldCache()
    try:
        holdings = {name: Holding.of(pool) for name, pool in pools.items()}
        begins = start_of(len(pools))
        for mixture in drawn:
            declared = with_mixture(recipe, stage, mixture)
            settled = settle_with(declared, pools)
            ahead = outlook(settled, pools, begins, yields)
            problems += [replace(p, where=f"{mixture.name}: {p.where}") for p in ahead.problems]
            version = RecipeVersion(
                version=1,
                step=0,
                reason=f"mixture {mixture.name} of screen {RunFolder(out).name}",
                approved_by=None,
                recipe=settled,
                declared=declared,
            )
            birth = Birth(name=mixture.name, version=version, holdings=holdings, snapshot=begins)
            files |= {f"{mixture.name}/{name}": data for name, data in first_files(birth).items()}
            outlooks[mixture.name] = ahead
    finally:
        close_pools(pools.values())
    if problems:
        raise RecipeError(f"{out}: mixtures that cannot be run", problems)
    origin: Plain = {"kind": "runs", "recipe": recipe.name, "recipe_fingerprint": fingerprint(recipe)}
    if recipe.simulate_budget is not None:
        origin["simulate_budget"] = recipe.simulate_budget
        origin["simulated_fraction"] = str(recipe.simulated_fraction)
    record = _record(origin, ask, stage, drawn)
    return Screen(path=out, record=record, mixtures=tuple(drawn), outlooks=outlooks, files=files)


def plan_screen_of_branches(origin: Origin, ask: Ask, out: Path, pools_root: Path | None = None) -> Screen:
    """Branches of a run, one for every mixture; nothing is written yet.

    Raises:
        RecipeError: as :func:`plan_screen` and :func:`recipe.run.branching.branch.plan_branches`.
    """
    check_name(RunFolder(out).name, "--out")
    refuse_taken(RunFolder(out))
    recipe = origin.state.recipe
    stage = _stage(recipe, ask.stage)
    drawn = mixtures(recipe.stages[stage], ask.how, ask.over)
    wishes = [
        Wish(
            name=mixture.name,
            overrides=(override_of(stage, mixture.shares),),
            reason=f"mixture {mixture.name} of screen {RunFolder(out).name}",
        )
        for mixture in drawn
    ]
    branches = plan_branches(origin, wishes, out, pools_root)
    files: dict[str, bytes] = {}
    for branch in branches:
        own = {**first_files(branch.birth), "parent.yaml": branch.parent_copy}
        files |= {f"{branch.wish.name}/{name}": data for name, data in own.items()}
    parent: Plain = {
        "run": origin.state.run,
        "id": origin.identity["id"],
        "manifest": origin.number,
        "hash": origin.manifest["hash"],
        "step": origin.step,
    }
    record = _record({"kind": "branches", "parent": parent}, ask, stage, drawn)
    outlooks = {branch.wish.name: branch.outlook for branch in branches}
    return Screen(path=out, record=record, mixtures=tuple(drawn), outlooks=outlooks, files=files)


def create_screen(screen: Screen) -> None:
    """The folder of a screen with all its runs appears at once, or not at all.

    Raises:
        RecipeError: something is there, or the system refuses.
    """
    folders = tuple(f"{mixture.name}/{name}" for mixture in screen.mixtures for name in FOLDERS)
    writes.make_folder(screen.path.parent)
    if not writes.create_folder(screen.path, {NAME: sealed(screen.record), **screen.files}, folders):
        raise taken(RunFolder(screen.path))


def read_screen(path: Path) -> Plain:
    """What the file of a screen says; it holds ``hash``.

    Raises:
        RecipeError: no screen, or a damaged one.
    """
    file = path / NAME
    try:
        record = unseal(file, file.read_bytes())
    except OSError as error:
        fix = "give the folder that `recipe screen RECIPE … --out DIR` made"
        raise RecipeError.single(
            f"{path}: no screen", str(file), given=error.strerror, expected="a screen's folder", fix=fix
        ) from error
    if record.get("format") != FORMAT:
        raise RecipeError.single(
            f"{path}: no screen",
            str(file),
            given=f"format {record.get('format')}",
            expected=f"format {FORMAT}",
            fix="read it with the version that wrote it",
        )
    try:
        for mixture in record["mixtures"]:
            check_name(str(mixture["name"]), f"{file}: mixtures")
            drawn = sum(parse_weight(share) for share in mixture["shares"].values())
            if drawn != 1:
                raise ValueError(f"shares of {mixture['name']} that sum to {drawn}")
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise RecipeError.single(
            f"{path}: no screen",
            f"{file}: mixtures",
            given=str(error),
            expected="names and shares as they were written",
            fix="take the file from a copy",
        ) from error
    return record


def override_of(stage: str, shares: Mapping[str, Fraction]) -> str:
    """Shares of a stage as an override.

    >>> override_of("base", {"a": Fraction(1, 4), "b": Fraction(3, 4)})
    "stages.base.quotas={a:'25%',b:'75%'}"
    """
    form, texts = stated(shares)
    return f"stages.{stage}.{form}={override_value(texts)}"


def _stage(recipe: Recipe, name: str | None) -> str:
    names = list(recipe.stages)
    if name is None and len(names) == 1:
        return names[0]
    if name not in recipe.stages:
        raise RecipeError.single(
            "recipe screen",
            "--stage",
            given=name or "none",
            expected=f"the stage whose shares vary: {', '.join(names)}",
            fix=f"write --stage {names[-1]}",
        )
    return name


def _record(origin: Plain, ask: Ask, stage: str, drawn: Sequence[Mixture]) -> Plain:
    return {
        "format": FORMAT,
        "created": row.now(),
        **origin,
        "stage": stage,
        "over": list(ask.over),
        "how": ask.how.to_plain(),
        "mixtures": [
            {
                "name": mixture.name,
                "shares": {name: weight_text(share) for name, share in mixture.shares.items()},
            }
            for mixture in drawn
        ],
    }
