"""Part 4: shares by stage, what they count, and planned against spent."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import dropwhile

from recipe.config import Recipe
from recipe.mixing.snapshot import Snapshot
from recipe.run.accounts import STAGE_COUNTS, Accounts
from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder
from recipe.run.handover.data import plain_of
from recipe.run.handover.shares_in_force import InForce, legs_in_force, versions_in_force
from recipe.run.head import closing_of
from recipe.run.ledger import read_tail
from recipe.run.manifest import read_manifest
from recipe.run.row import CLOSING_KINDS, Row, is_aside
from recipe.run.statement import prior_of
from recipe.run.surviving import surviving

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
    "legs": "steps from the first up to, not with, the last; the recipe version and shares in force there",
    "share": "in force at the stage's end, exact, a fraction of what the stage counts; before: legs",
    "planned": "what the legs come to in the stated length, in whole tokens, as if nothing were padded",
    "planned_so_far": "the same of the steps that were served",
    "owed": "the shares in force, of what was really counted in the steps that were served",
    "spent": "what was served, as counted; less than a context from owed in a leg, two over amendments",
    "in_parent": "steps before the branch, and what they gave; they are in no other number of the stage",
}
"""What the columns mean."""
_WEIGHTED = {
    "loss_weights": "what a label of a pool counts in the loss, exact: its share of the objective over its "
    "share in force. A step's loss is the sum of weight * loss over its labels / the number of its labels"
}
"""A word more, of a run with an objective."""
_COLUMNS = {"planned_so_far": "planned", "owed": "owed", **{kind: kind for kind in STAGE_COUNTS}}
"""Columns of what was served, and what chunk rows call them."""


def quota_table(folder: RunFolder, recipe: Recipe, manifest: Plain | None) -> Plain:
    """Quotas by stage and pool: what the record states, up to its last manifest.

    Args:
        folder: of the run.
        recipe: in force, settled.
        manifest: the last one; None before the first checkpoint.
    """
    rows = _counting(folder)
    versions = versions_in_force(folder, rows)
    served = _served(rows, versions[-1], manifest)
    before = versions[0].step
    parent = read_manifest(folder.parent, rows[-1].data["parent"]["hash"]) if before else None
    stages: Plain = {}
    for index, layout in enumerate(versions[-1].curriculum.stages):
        legs = legs_in_force(versions, index)
        stages[layout.name] = {
            "length": layout.length,
            "positions": layout.positions,
            "overshoot": layout.overshoot,
            "chunk": layout.chunk,
            "groups": _shares(recipe.group_shares(layout.name)),
            "legs": legs,
            "pools": _pools(recipe, layout.name, legs, served.get(layout.name, {})),
        }
        if parent is not None and layout.first_step < before:
            stages[layout.name]["in_parent"] = {
                "steps": [layout.first_step, min(before, layout.stop_step)],
                "run": parent["run"],
                "pools": parent["stages"].get(layout.name, {}),
            }
    return {
        "format": FORMAT,
        "words": WORDS | (_WEIGHTED if any(version.recipe.is_weighted for version in versions) else {}),
        "count": recipe.count,
        "stages": stages,
        "before_the_start": plain_of(prior_of(recipe)),
    }


def _counting(folder: RunFolder) -> list[Row]:
    """Rows up to the last checkpoint that no rewind discarded, last first."""
    rows = surviving(folder.ledger, read_tail(folder.ledger))
    return list(dropwhile(lambda row: row.kind not in ("checkpoint", "created") or is_aside(row), rows))


def _pools(recipe: Recipe, stage: str, legs: list[Plain], served: Plain) -> Plain:
    shares = _shares(recipe.shares(stage))
    return {
        name: {
            "share": shares[name],
            "planned": sum(leg["planned"].get(name, 0) for leg in legs),
            **{column: served.get(name, {}).get(kind, 0) for column, kind in _COLUMNS.items()},
        }
        for name in recipe.pools
    }


def _shares(shares: Mapping[str, Fraction]) -> Plain:
    return {name: str(share) for name, share in shares.items()}


def _served(rows: list[Row], last: InForce, manifest: Plain | None) -> dict[str, dict[str, dict[str, int]]]:
    """By stage and pool: what chunks planned, owed and gave, with the one that is open at the manifest."""
    chunks = [row.data for row in rows if row.kind == "chunk"] + _open_chunk(rows, last, manifest)
    sums: dict[str, dict[str, dict[str, int]]] = {}
    for chunk in chunks:
        stage = sums.setdefault(str(chunk["stage"]), {})
        for name, pool in chunk["pools"].items():
            kinds = stage.setdefault(name, dict.fromkeys(_COLUMNS.values(), 0))
            for kind in kinds:
                kinds[kind] += int(pool[kind])
    return sums


def _open_chunk(rows: list[Row], last: InForce, manifest: Plain | None) -> list[Plain]:
    """The chunk that the last manifest lies in, as a row would have it that closed it there."""
    if manifest is None:
        return []
    closing = next(row for row in rows if row.kind in CLOSING_KINDS or row.kind == "created")
    start = closing_of(closing, list(last.recipe.stages))
    end = Snapshot.from_plain(manifest["snapshot"])
    if end.step <= start.snapshot.step:
        return []
    accounts = Accounts(last.recipe)
    stage, _, planned_from = accounts.place(start)
    length = accounts.curriculum.stages[stage].length
    planned_to = min(max(planned_from, end.stage_positions), length)
    return [accounts.chunk_row(start, end, planned_to, last.version)]
