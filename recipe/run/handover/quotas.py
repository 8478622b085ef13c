"""Part 4: shares by stage, what they count, and planned against spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from recipe.config import Recipe
from recipe.mixing.curriculum import Curriculum, StageLayout
from recipe.run.accounts import STAGE_COUNTS
from recipe.run.canonical import Plain
from recipe.run.handover.data import plain_of
from recipe.run.ledger import Row
from recipe.run.statement import prior_of

FORMAT = 1

WORDS = {
    "body": "document text, overlap included",
    "overlap": "body that an earlier piece of the same document held already",
    "fresh": "body without overlap",
    "special": "marks: BOS, EOS, separators",
    "padding": "positions that hold nothing; body + special + padding = context in every sequence",
    "labels": "positions that carry a label: what the loss is taken over",
    "positions": "all of them",
    "before_the_start": "weights from elsewhere, and the tokens they had seen: never added to the run's own",
    "share": "exact, a fraction of what the stage counts",
    "planned": "the share of the stage's stated length, in whole tokens, as if nothing were padded",
    "planned_so_far": "the same of the chunks that are on record",
    "owed": "the share of what was really counted",
    "spent": "what was served, as counted; less than a context from owed in a leg, two over amendments",
}
"""What the columns mean."""


def quota_table(recipe: Recipe, manifest: Plain | None, rows: Iterable[Row]) -> Plain:
    """Quotas by stage and pool.

    Args:
        recipe: in force, settled.
        manifest: the last one; None before the first checkpoint.
        rows: those of the ledger that no rewind discarded, in any order.
    """
    spent = {} if manifest is None else manifest["stages"]
    chunks = _of_chunks(rows)
    stages: Plain = {}
    for layout in Curriculum.from_recipe(recipe).stages:
        stages[layout.name] = {
            "length": layout.length,
            "positions": layout.positions,
            "overshoot": layout.overshoot,
            "chunk": layout.chunk,
            "groups": _shares(recipe.group_shares(layout.name)),
            "legs": _legs(recipe, layout),
            "pools": _pools(recipe, layout, chunks.get(layout.name, {}), spent.get(layout.name, {})),
        }
    return {
        "format": FORMAT,
        "words": WORDS,
        "count": recipe.count,
        "stages": stages,
        "before_the_start": plain_of(prior_of(recipe)),
    }


def _pools(recipe: Recipe, layout: StageLayout, chunks: Plain, spent: Plain) -> Plain:
    planned = dict(zip(recipe.pools, layout.planned(0, layout.length), strict=True))
    shares = _shares(recipe.shares(layout.name))
    return {
        name: {
            "share": shares[name],
            "planned": planned[name],
            "planned_so_far": chunks.get(name, {}).get("planned", 0),
            "owed": chunks.get(name, {}).get("owed", 0),
            **{kind: spent.get(name, {}).get(kind, 0) for kind in STAGE_COUNTS},
        }
        for name in recipe.pools
    }


def _legs(recipe: Recipe, layout: StageLayout) -> list[Plain]:
    """Stretches of constant shares, where a stage has more than one."""
    legs = recipe.legs(layout.name)
    if len(legs) == 1:
        return []
    return [
        {"first_step": place.first_step, "shares": _shares(leg.shares)}
        for leg, place in zip(legs, layout.legs, strict=True)
    ]


def _shares(shares: Mapping[str, Fraction]) -> Plain:
    return {name: str(share) for name, share in shares.items()}


def _of_chunks(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, int]]]:
    """By stage and pool: what the chunk rows planned and owed, summed."""
    sums: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        if row.kind != "chunk":
            continue
        stage = sums.setdefault(str(row.data["stage"]), {})
        for name, pool in row.data["pools"].items():
            kinds = stage.setdefault(name, {"planned": 0, "owed": 0})
            for kind in kinds:
                kinds[kind] += int(pool[kind])
    return sums
