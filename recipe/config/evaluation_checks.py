"""What must hold of the rule that scores held-out pools: in itself, and against those of training."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from recipe.config.evaluation import ScoringRule
from recipe.config.partial import given_of, run_checks
from recipe.config.places import place
from recipe.config.problems import Fault
from recipe.config.recipe import Recipe, Rule


def evaluation_faults(recipe: Recipe) -> Iterator[Fault]:
    """Faults of the scoring rule: in itself, and against the rules of training."""
    if recipe.evaluation is None:
        return
    rule = recipe.evaluation.resolved(recipe.longest_context)
    for fault in run_checks([_in_itself, _as_training, _pools], recipe, rule):
        yield fault.below(("evaluation",))


def _in_itself(recipe: Recipe, rule: ScoringRule) -> Iterator[Fault]:
    positions = recipe.model.max_positions if recipe.model is not None else None
    if positions is not None and rule.window > positions:
        fix = f"lower it to {positions}"
        yield Fault(("window",), rule.window, f"1..{positions} (model.max_positions)", fix)
    most, told = rule.window, "the window"
    if recipe.labels == "inputs":  # a row holds one token more than it predicts from
        most, told = rule.window - 1, "the window, less one where labels are inputs"
    if rule.stride > most:
        fix = f"lower the stride to {most}: a larger one would leave tokens unscored"
        yield Fault(("stride",), rule.stride, f"1..{most} ({told})", fix)
    if rule.offset >= most:
        fix = "lower it: it is the length of a document's first window"
        yield Fault(("offset",), rule.offset, f"0..{most - 1} (less than {told})", fix)


def _as_training(recipe: Recipe, rule: ScoringRule) -> Iterator[Fault]:
    """At most one fault a key: the first rule of training that is the same."""
    trained = {(stage, pool): recipe.rule(stage, pool) for stage in recipe.stages for pool in recipe.pools}
    for (stage, pool), of in trained.items():
        if rule.stride in _strides(of):
            given, other = f"{rule.stride}, as pool {pool} in stage {stage}", _another(rule, trained)
            fix = "raise the window" if other is None else f"write another, such as {other}"
            yield Fault(("stride",), given, "a stride that no stage trains with", fix)
            break
    if rule.offset == 0 and not all(of.random_offset for of in trained.values()):
        positive = max(1, rule.stride // 2)
        fix = f"write a positive one, such as {positive}" if positive < rule.window else "raise the window"
        yield Fault(("offset",), "0, where training's windows start too", "1 or more", fix)


def _strides(rule: Rule) -> set[int]:
    """Strides of a rule of training, in every region of a document."""
    return {rule.stride, *(rule.strides or ())}


def _another(rule: ScoringRule, trained: Mapping[Any, Rule]) -> int | None:
    """A stride that no rule of training has; None where each that would do is taken."""
    taken = set().union(*map(_strides, trained.values()))
    lowest = max(1, rule.window * 3 // 8)
    free = (stride for stride in range(lowest, rule.window + 1) if stride not in taken)
    return next(free, None)


def _pools(recipe: Recipe, _: ScoringRule) -> Iterator[Fault]:
    assert recipe.evaluation is not None
    root = recipe.pools_root or ""
    places = {_place(root, pool.path): name for name, pool in recipe.pools.items() if pool.path is not None}
    for area, held in recipe.evaluation.pools.items():
        if given_of(held, ("path",)) and (name := places.get(_place(root, held.path))) is not None:
            given, fix = f"{held.path}, as pools.{name}", "split it off before anything else"
            yield Fault(("pools", area, "path"), given, "a folder that no pool is trained from", fix)


def _place(root: str, path: str) -> str:
    """A folder, however it is written; links are followed when pools are opened."""
    return os.path.normpath(place(root, path).absolute())
