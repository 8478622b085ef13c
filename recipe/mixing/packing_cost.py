"""What a stage's packing costs, beside the other packing method: padding, and documents cut."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from recipe.config import Recipe, Rule
from recipe.mixing.estimate import EpochYield
from recipe.mixing.needs import Yields
from recipe.mixing.planned import PackingCost, StagePlan


def packing_costs(
    recipe: Recipe, stage_name: str, yields: Yields, stage: StagePlan
) -> dict[str, PackingCost]:
    """Padding and cut documents of the stage's packing and of the other method, weighted by what is read."""
    read: dict[str, list[tuple[Fraction, EpochYield]]] = {}
    costs: dict[str, PackingCost] = {}
    for name, (own, other) in yields.items():
        if other is None:
            continue
        rule, times = recipe.rule(stage_name, name), stage.pools[name].epochs
        for used, epoch in zip(_methods(rule), (own, other), strict=True):
            read.setdefault(used, []).append((times, epoch))
    for method, epochs in read.items():
        positions = sum(times * epoch.sequences * stage.layout.context for times, epoch in epochs)
        padding = sum((times * epoch.padding for times, epoch in epochs), Fraction(0))
        cut = sum((times * epoch.cut_documents for times, epoch in epochs), Fraction(0))
        costs[method] = PackingCost(padding / positions if positions else Fraction(0), cut)
    return costs


def _methods(rule: Rule) -> tuple[str, str]:
    """What a rule and the other one are called."""
    if rule.document_multiple > 1:
        return f"{rule.method}, document_multiple {rule.document_multiple}", f"{rule.method} without it"
    return rule.method, "best_fit" if rule.method == "concat" else "concat"


def other_packing(rule: Rule) -> Rule:
    """The rule with the other packing method: concat takes whole documents, without a window of its own.

    Of a rule that pads documents to a multiple, the same without that: what the multiple costs.
    """
    if rule.document_multiple > 1:
        return replace(rule, document_multiple=1)
    if rule.method == "concat":
        return replace(rule, method="best_fit")
    return replace(
        rule,
        method="concat",
        window=rule.context,
        tail="keep",
        oversize="split",
        align="none",
        align_within=0,
    )
