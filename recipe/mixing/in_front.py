"""What stands in front of documents, or is brought there: whether a recipe's rules leave it its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recipe.config import Recipe, Rule
from recipe.config.drawing import drawing_stages
from recipe.errors import Problem
from recipe.pools import Pool


def front_problems(recipe: Recipe, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """Pools whose markers or needs do not go with how some stage reads them."""
    for name, pool in pools.items():
        if pool.leads is None and pool.needs is None:
            continue
        longest = 0 if pool.leads is None else int(pool.leads.max(initial=0))
        for stage in drawing_stages(recipe, name):
            yield from _of_stage(pool, stage.name, recipe.rule(stage.name, name), longest)


def _of_stage(pool: Pool, stage: str, rule: Rule, longest: int) -> Iterator[Problem]:
    if longest >= rule.room:
        yield Problem(
            f"stages.{stage}.context",
            str(rule.context),
            f"{longest + rule.context - rule.room + 1} or more: documents of pool {pool.name} have up to "
            f"{longest} special tokens in front",
            "raise the context, or prepare the pool with a shorter --marker",
        )
    if pool.leads is not None and rule.specials == "window":
        yield Problem(
            f"pools.{pool.name}.slicing.specials",
            "window",
            f"document, in stage {stage}: markers stand in front of documents, and BOS among them",
            "use specials: document, or prepare the pool without --marker",
        )
    if pool.needs is not None and rule.method == "concat":
        yield Problem(
            f"stages.{stage}.packing.method",
            "concat",
            f"best_fit or none: sections of pool {pool.name} need others, which are brought in front of them",
            "use packing best_fit, or prepare the pool without needs",
        )
