"""Held-out pools read to be scored: every token once, the same rows at every evaluation.

They are read apart from the run's stream: no token of the run's is spent, and no evaluation moves another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.config.drawing import drawing_stages
from recipe.config.evaluation import HeldOutConfig, ScoringRule
from recipe.config.model import Labels
from recipe.config.places import place
from recipe.errors import Problem, RecipeError
from recipe.mixing.opening import close_pools
from recipe.pools import Pool, open_pool
from recipe.pools.contents import shared_documents
from recipe.pools.foreign.form import form_of
from recipe.run.holdings import Holding, Holdings, tokenizers
from recipe.sequences.evaluation import count_windows, scored_windows
from recipe.sequences.page import IGNORED, PADDING_ID

Rows = dict[str, NDArray[Any]]
"""Arrays by name, one line a window; see :func:`scored_rows`."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a held-out pool is read."""

    rule: ScoringRule
    labels: Labels = "shifted"
    """As in the recipe."""

    @property
    def predictions(self) -> int:
        """Predictions that a window makes at most: its positions, less one where labels are inputs."""
        return self.rule.window - (self.labels == "inputs")


def open_held_out(
    recipe: Recipe,
    entries: Mapping[str, HeldOutConfig],
    holdings: Holdings,
    *,
    where: str,
    may_be_trained_on: bool = False,
) -> dict[str, Pool]:
    """Open held-out pools, and check that they may be compared with the pools trained on.

    Args:
        recipe: whose ``pools_root`` relative paths start from, and whose model must have a row for every id.
        entries: where each is, by area; of token files made elsewhere also what they do not say themselves.
        holdings: the pools that are trained on.
        where: dotted key of ``entries``.
        may_be_trained_on: leave it to the caller to find that a pool has the content of another.

    Raises:
        RecipeError: every pool that cannot be opened, has the content of one that is trained on, was made
            with another tokenizer, or holds an id that the model has no row for.
    """
    opened: dict[str, Pool] = {}
    problems: list[Problem] = []
    for area, entry in entries.items():
        found = place(recipe.pools_root or "", entry.path)
        try:
            held = opened[area] = open_entry(entry, found, area)
        except RecipeError as error:
            problems += [replace(p, where=f"{where}.{area}: {p.where}") for p in error.problems]
            continue
        same = {} if may_be_trained_on else holdings
        problems += [
            *_same_content(held, same, f"{where}.{area}"),
            *_tokenizers(held, holdings, f"{where}.{area}"),
        ]
        if recipe.model is not None and recipe.model.vocab_size is not None:
            problems += held.check_ids(recipe.model.vocab_size)
    if problems:
        for held in opened.values():
            held.close()
        raise RecipeError("held-out pools", problems)
    return opened


def open_entry(entry: HeldOutConfig, path: Path, name: str) -> Pool:
    """One held-out pool under a name: the files at ``path`` read as its entry says.

    Raises:
        RecipeError: it cannot be opened.
    """
    return open_pool(path, name, eos=entry.eos, bos=entry.bos, form=form_of(entry))


def held_out_problems(recipe: Recipe, pools: Mapping[str, Pool]) -> tuple[Problem, ...]:
    """What is wrong with the held-out pools that a recipe's ``evaluation:`` names.

    Whole documents that are trained on too are found by the hashes in document tables of this machine;
    stretches of them, and other pools, are for ``recipe audit leakage``.

    Args:
        recipe: the recipe.
        pools: its pools that are there, opened.
    """
    if recipe.evaluation is None:
        return ()
    holdings = {name: Holding.of(pool) for name, pool in pools.items()}
    try:
        opened = open_held_out(recipe, recipe.evaluation.pools, holdings, where="evaluation.pools")
    except RecipeError as error:
        return tuple(error.problems)
    drawn = {name: pool for name, pool in pools.items() if drawing_stages(recipe, name)}
    problems = [found for area, held in opened.items() for found in _shared(area, held, drawn)]
    close_pools(opened.values())
    return tuple(problems)


def _shared(area: str, held: Pool, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """Pools that are trained on and hold documents of a held-out one."""
    for name, pool in pools.items():
        if _has_table(held) and _has_table(pool) and (count := shared_documents(held, pool)):
            yield Problem(
                f"evaluation.pools.{area}",
                f"{count:,} of {held.num_documents:,} documents that pool {name!r} has too",
                "text that the run does not train on",
                f"recipe pools dedup --out DIR {held.path} {pool.path}, and train on DIR/{pool.path.name}",
            )


def _has_table(pool: Pool) -> bool:
    return pool.layout.table is not None and pool.layout.remote is None


def _same_content(held: Pool, holdings: Holdings, where: str) -> Iterator[Problem]:
    for name, pool in holdings.items():
        if pool.fingerprint == held.fingerprint:
            expected, fix = "text that the run does not train on", "split it off before anything else"
            yield Problem(where, f"the content of pool {name!r}", expected, fix)


def _tokenizers(held: Pool, holdings: Holdings, where: str) -> Iterator[Problem]:
    known = tokenizers(holdings)
    if held.card.tokenizer is not None and known and held.card.tokenizer not in known:
        fix = "prepare it with the tokenizer of the pools that are trained on"
        yield Problem(where, f"tokenizer {held.card.tokenizer[:12]}", "the tokenizer of training", fix)


def scored_rows(pool: Pool, scoring: Scoring, *, at_once: int = 8, most: int | None = None) -> Iterator[Rows]:
    """Windows of a pool, document by document in the order in which they are stored.

    Stored token i + 1 of a document, marks included, is predicted from its tokens up to i: **each but
    the first is a label exactly once**, with the longest left context. Erased documents have no windows.

    Args:
        pool: held out.
        scoring: the rule, and what labels are.
        at_once: windows that are handed out together; the last ones are fewer.
        most: windows in all; default: every one.

    Yields:
        ``input_ids``, ``labels`` int64[rows, window], ``position_ids``, ``segment_ids`` int32,
        ``attention_mask`` int8, as the stream's; ``document``, ``start``, ``stop``, ``fresh`` int64[rows]:
        stored tokens ``start..stop`` of it are inputs, and those from ``fresh`` on are scored: they carry a
        label, or where labels are inputs the token after each does.
    """
    rows = islice(_rows(pool, scoring), most)
    while some := list(islice(rows, at_once)):
        yield {name: np.stack([row[name] for row in some]) for name in some[0]}


def count_rows(pool: Pool, scoring: Scoring) -> int:
    """Windows that score a whole pool."""
    stored = np.delete(np.diff(np.asarray(pool.offsets)), pool.erased)
    rule = scoring.rule
    first = rule.offset or scoring.predictions
    return sum(count_windows(max(0, int(tokens) - 1), first, rule.stride) for tokens in stored)


def _rows(pool: Pool, scoring: Scoring) -> Iterator[Rows]:
    rule = scoring.rule
    for document in np.delete(np.arange(pool.num_documents), pool.erased).tolist():
        stored = pool.stored(document)
        predictions = max(0, len(stored) - 1)
        windows = scored_windows(
            predictions, window=scoring.predictions, stride=rule.stride, offset=rule.offset
        )
        for start, stop, fresh in windows.tolist():
            place = {"document": document, "start": start, "stop": stop, "fresh": fresh}
            yield _row(stored, (start, stop, fresh), scoring) | {
                name: np.asarray(number, np.int64) for name, number in place.items()
            }


def _row(stored: NDArray[Any], span: tuple[int, int, int], scoring: Scoring) -> Rows:
    """One window as a row of arrays."""
    (start, stop, fresh), length = span, scoring.rule.window
    ids, labels = np.full(length, PADDING_ID, np.int64), np.full(length, IGNORED, np.int64)
    ahead = int(scoring.labels == "inputs")
    used = stop - start + ahead
    ids[:used] = stored[start : stop + ahead]
    labels[fresh - start + ahead : used] = stored[fresh + 1 : stop + 1]
    column = np.arange(length)
    return {
        "input_ids": ids,
        "labels": labels,
        "position_ids": np.where(column < used, column, 0).astype(np.int32),
        "segment_ids": np.where(column < used, 0, -1).astype(np.int32),
        "attention_mask": (column < used).astype(np.int8),
    }
