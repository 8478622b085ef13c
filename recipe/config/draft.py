"""Recipes written for a person to go on with: commented YAML text that loads as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from textwrap import wrap

from recipe.config.blend import Blend
from recipe.config.building import recipe_from_plain
from recipe.config.strict_yaml import parse_yaml
from recipe.maths.amounts import exact_amount, format_amount
from recipe.maths.rounding import largest_remainder
from recipe.maths.shares import from_weights, percent_text, weight_text

_PLAIN = re.compile(r"(?!- )[\w./+~-][\w./+@~ -]*(?<! )")
_CONVERTED = re.compile(r"(?:true|false|null|~|[-+]?\d+|-.*)", re.IGNORECASE)
_FINEST_PERCENT = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftPool:
    """A pool as a draft states it."""

    path: str
    stock: int | None = None
    """Body tokens, if they are known; shown as a comment."""
    eos: int | None = None
    """End mark to recognise, for files that do not say it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """What goes into a recipe that is written for a person."""

    title: str
    pools: Mapping[str, DraftPool]
    shares: Sequence[str]
    """Lines of the stage that state the shares."""
    tokens: int
    context: int
    sequences: int
    length_note: str
    vocab_size: int | None = None
    groups: Sequence[str] = ()
    notes: Sequence[str] = field(default=())
    """Said at the top, as comments."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Why a path is not among the pools; said as comments behind them."""
    held_out: Mapping[str, str] = field(default_factory=dict)
    """Paths by area that could be measured on; said as a comment that can be made a line."""


def draft_text(draft: Draft) -> str:
    """YAML text of the draft; it loads as it is."""
    vocab = f", vocab_size: {draft.vocab_size}" if draft.vocab_size else ""
    notes = [line for note in draft.notes for line in wrap(f"- {note}", 98, subsequent_indent="  ")]
    lines = [f"# {draft.title}", *(f"# {line}" for line in notes), ""]
    lines += [
        _line("seed: 1234", "the same seed gives the same stream everywhere"),
        f"model: {{max_positions: {draft.context}{vocab}}}",
        "",
        _line("pools:", "a name, and where its tokens are"),
        *(_pool_line(name, pool) for name, pool in draft.pools.items()),
        *(f"  # left out: {path}: {why}" for path, why in draft.left_out.items()),
        *_held_out_lines(draft.held_out),
        "",
        *draft.groups,
        _line("max_epochs: 4", "readings of a pool that are allowed; more is refused"),
        "",
        _line("stages:", "run in this order; a second stage may say like: main"),
        "  main:",
        _line(f"    tokens: {exact_amount(draft.tokens)}", draft.length_note),
        _line(f"    context: {draft.context}", "positions of a sequence"),
        _line(f"    batch: {{sequences: {draft.sequences}}}", "of one optimizer step"),
        _line(f"    slicing: {{stride: {draft.context}}}", "less than the context: windows overlap"),
        _line("    packing: best_fit", "pieces that share a row do not see each other"),
        *(f"    {line}" for line in draft.shares),
    ]
    text = "\n".join(lines) + "\n"
    recipe_from_plain(parse_yaml(text, "draft"), source="draft")
    return text


def _line(code: str, comment: str) -> str:
    return f"{code:<31} # {comment}"


def _pool_line(name: str, pool: DraftPool) -> str:
    eos = f", eos: {pool.eos}" if pool.eos is not None else ""
    line = f"  {scalar(name, is_key=True)}: {{path: {scalar(pool.path)}{eos}}}"
    return line if pool.stock is None else _line(line, f"{format_amount(pool.stock)} tokens")


def _held_out_lines(paths: Mapping[str, str]) -> list[str]:
    if not paths:
        return []
    held = ", ".join(
        f"{scalar(area, is_key=True)}: {json.dumps(path, ensure_ascii=False)}" for area, path in paths.items()
    )
    return [
        "",
        "# Measured and never trained on, if you like: take the mark from the next line.",
        f"# evaluation: {{pools: {{{held}}}}}",
    ]


def scalar(text: str, *, is_key: bool = False) -> str:
    """Text as a YAML scalar: in quotes where it would be read as something else.

    >>> [scalar(text) for text in ("pools/web", "12", "a: b", "no")]
    ['pools/web', '"12"', '"a: b"', 'no']
    """
    plain = _PLAIN.fullmatch(text) and (is_key or not _CONVERTED.fullmatch(text)) and text not in ("-", "~")
    return text if plain else json.dumps(text, ensure_ascii=False)


def natural_quotas(stock: Mapping[str, int]) -> list[str]:
    """Lines of quotas in proportion to the stocks; the largest pool takes the rest.

    As many decimals as the smallest pool needs to have a share, at most six.

    >>> natural_quotas({"web": 900, "code": 99, "maths": 1})
    ['quotas: {web: rest, code: 9.9%, maths: 0.1%}    # in proportion to stock']
    """
    largest = max(stock, key=lambda name: stock[name])
    total = sum(stock.values())
    for decimals in range(_FINEST_PERCENT + 1):
        whole = 100 * 10**decimals
        parts = dict(zip(stock, largest_remainder(list(stock.values()), total, whole), strict=True))
        if all(parts[name] for name in stock if stock[name]):
            break
    shares = {
        name: "rest" if name == largest else percent_text(Fraction(parts[name], whole)) for name in stock
    }
    return [f"quotas: {_flow(shares)}    # in proportion to stock"]


def blend_shares(blend: Blend) -> tuple[list[str], list[str]]:
    """Lines of a stage, and lines of groups, that state a blend's shares exactly."""
    if blend.weights is None:
        if len(blend.prefixes) == 1:
            return [f"quotas: {_flow(dict.fromkeys(blend.prefixes, '100%'))}"], []
        group = "everything" if "everything" not in blend.prefixes else "all_of_the_blend"
        members = ", ".join(scalar(name) for name in blend.prefixes)
        return [f"quotas: {{{group}: 100%}}"], [
            "groups:                         # a quota for several pools, divided in proportion to stock",
            f"  {group}: {{pools: [{members}], within: natural}}",
            "",
        ]
    shares = from_weights(blend.weights)
    try:
        return [f"quotas: {_flow({name: percent_text(share) for name, share in shares.items()})}"], []
    except ValueError:
        weights = {name: weight_text(weight) for name, weight in blend.weights.items()}
        return [f"weights: {_flow(weights)}    # as in the blend: no finite percents"], []


def _flow(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{scalar(name, is_key=True)}: {value}" for name, value in values.items()) + "}"


def blend_notes(blend: Blend, split: Sequence[Fraction] | None, eos: int | None = None) -> list[str]:
    """What a recipe made from a blend means differently, one line each."""
    notes = []
    if blend.weights is None:
        notes.append(
            "The blend had no weights, which takes every data set whole; here: in proportion to stock."
        )
    else:
        total = sum(blend.weights.values(), Fraction(0))
        notes.append(
            "Samples became tokens: a Megatron weight is a share of samples of equal length, so it is the "
            "same share of tokens; here it is kept to the token, padding not counted."
        )
        notes.append(
            f"Normalised exactly: the weights summed to {weight_text(total)}; no floating point is left."
        )
    for name in blend.repeated:
        notes.append(f"Pool {name} was named more than once: its weights were added.")
    if split is not None:
        train = float(100 * split[0] / sum(split, Fraction(0)))
        notes.append(
            f"The split was not done: Megatron trained on the first {train:g} % of documents; "
            "here pools are used whole. Prepare validation documents as pools of their own."
        )
    else:
        notes.append(
            "Splits are not done: Megatron's --split keeps documents out of training; here none are."
        )
    for name in blend.other_splits:
        notes.append(f"The blend of {name} is left out: a recipe is about training.")
    notes.append(
        "Epochs: Megatron reads a data set again as often as its weight needs; here more than max_epochs is "
        "refused before the first step."
    )
    notes.append(
        "Documents are isolated here: no attention, positions or labels across. Megatron's default is "
        "packing: {method: concat, attention: sequence, positions: continue, "
        "cross_labels: true}."
    )
    notes.append(
        f"EOD: the id {eos} that ends a document is recognised as its mark, not doubled, not counted as body."
        if eos is not None
        else "EOD: no id was given, so the one that ends each document counts as text; give --eod ID."
    )
    notes.append(
        "The order differs: every pool keeps its own place, so a later change of shares loses nothing."
    )
    return notes
