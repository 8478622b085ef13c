"""Part 3: how documents become sequences, by stage and pool; everything resolved to a number or a word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from recipe.config import Recipe
from recipe.config.transform import FimConfig
from recipe.mixing.curriculum import Curriculum
from recipe.pools import Pool
from recipe.run.canonical import Plain

FORMAT = 1

WORDS = {
    "context": "positions of a sequence; every row of a batch has as many",
    "batch": "sequences of one optimizer step, from a step on",
    "window": "document tokens that are cut at once",
    "stride": "tokens between two window starts; window - stride tokens are read again as overlap",
    "strides": "strides in head, middle and tail of a document, where they differ: its first two windows, "
    "what lies between, its last two (at most half of it each)",
    "random_offset": "whether windows of a document longer than one start at a keyed draw modulo the stride; "
    "the tokens before are a piece",
    "density": "shares of the pieces that keyed draws keep in head, middle and tail",
    "duplicates": "windows of which at least this part stands earlier in the same document or group, as the "
    "pool's repeats.npy says, are left out, but a document's first and last and those that begin a section",
    "specials": "window: BOS and EOS stand round every window; round the document where it is left out",
    "align": "where documents are cut: a cut moves back to such a place by at most align_within tokens, a "
    "window's start forward to one inside its overlap; anywhere where it is left out",
    "tail": "what becomes of a document's end: keep, backfill (with overlap), drop, pad (a row of its own)",
    "fim": "fill in the middle, of a pool that has it: which part of its pieces without overlap, and the "
    "ids of the three markers, which are special. Choice and cut points are keyed draws",
    "overlap_labels": "whether tokens that are read again are predicted again",
    "method": "how pieces fill rows: best_fit, concat (documents joined, then cut), none (one a row)",
    "attention": "piece: a piece sees itself alone, also where several share a row; group: pieces of one "
    "group's documents stand side by side and see those before them; sequence: the whole row",
    "positions": "restart: from 0 in each piece; continue: through the row",
    "cross_labels": "whether a document's last position predicts the first token of the next in its row",
    "document_multiple": "every piece takes a multiple of so many positions; what it lacks is padding, over "
    "which positions run on; 1 where it is left out",
    "eos_keep": "of the end marks stored with documents, the part that takes a position, by keyed draws; the "
    "label before one that is left out stays; all where it is left out",
    "shuffle_fit": "whether pieces of about the same length are packed in reading order",
    "deal": "balanced: rows of a batch change places, so that the sums of squared lengths of micro-batches "
    "even out; as they are scheduled where it is left out",
    "behind": "pools of the same folder that come before this one in the stage, by the names that key their "
    "orders: documents that one of them holds are left out and counted as elsewhere",
    "labels": "shifted: labels[i] is the token after input_ids[i]; inputs: labels[i] is input_ids[i]",
    "bos, eos": "ids of the marks of a pool, stored with all, some or none of its documents: special, not "
    "body. EOS has a position where there is room, else it is only the last label",
    "-100": "in labels: none here. Padding, a piece's overlap and the mark that ends a document have none",
    "segment_ids": "number of the piece in its row, or of the pieces that see each other, -1 is padding; "
    "attention stays inside a segment",
}
"""What the words of the rules mean."""


def sequence_rules(recipe: Recipe, pools: Mapping[str, Pool]) -> Plain:
    """The rules of a settled recipe."""
    curriculum = Curriculum.from_recipe(recipe)
    stages: Plain = {}
    for index, layout in enumerate(curriculum.stages):
        stages[layout.name] = {
            "first_step": layout.first_step,
            "num_steps": layout.num_steps,
            "first_position": layout.first_position,
            "positions": layout.positions,
            "context": layout.context,
            "batch": [
                {"from_step": stretch.first_step, "sequences": stretch.batch}
                for stretch in curriculum.stretches
                if stretch.stage == index
            ],
            "pools": {name: _rule(recipe, layout.name, pool) for name, pool in pools.items()},
        }
    rules = {"format": FORMAT, "words": WORDS, "labels": recipe.labels, "stages": stages}
    return rules if recipe.deal == "order" else {**rules, "deal": recipe.deal}


def _rule(recipe: Recipe, stage: str, pool: Pool) -> Plain:
    card = pool.card
    marks = {"bos": card.bos, "eos": card.eos, "bos_stored": card.bos_stored, "eos_stored": card.eos_stored}
    rule = recipe.rule(stage, pool.name)
    given = {field.name: getattr(rule, field.name) for field in fields(rule) if field.name != "context"}
    defaults = {field.name: field.default for field in fields(rule)}
    return {**{key: _plain(value) for key, value in given.items() if value != defaults[key]}, **marks}


def _plain(value: Any) -> Any:
    if isinstance(value, FimConfig):
        return value.model_dump(mode="json")
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Fraction) else value
