"""Whether a pool is what it was written as: its files, its card, what stands beside them, its counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from recipe.pools.adopting import EXTENDS
from recipe.pools.agreement import document_findings
from recipe.pools.beside import BESIDE, RECORD_NAME, REMADE, check_beside
from recipe.pools.card import CARD_NAME, card_text, json_object
from recipe.pools.finding import Finding
from recipe.pools.pool import Pool
from recipe.pools.sheet import left_out, misstated

SAMPLE = Fraction(1, 100)
"""Share of the blocks of token files that are hashed, unless somebody says otherwise."""
NO_HASHES = "files made elsewhere carry no hashes: sizes, indices and boundaries were compared"
"""Of a pool whose contents nobody can hold against anything."""


def check_soundness(
    pool: Pool,
    *,
    full: bool,
    sample: Fraction | float | int = SAMPLE,
    seed: int = 0,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Finding], list[str]]:
    """What is wrong with a pool, and what cannot be said of it.

    Args:
        pool: any.
        full: read every byte, and hold the files of an own pool against each other, document by document.
        sample: else blocks to hash, or the share of them.
        seed: of the sample.
        tell: called with documents done and their number.

    Raises:
        RecipeError: a file that cannot be opened.
    """
    found = pool.verify(full=full, sample=sample, seed=seed)
    if pool.layout.table is None:
        return found, [NO_HASHES, *pool.layout.notes]
    found += _counts(pool)
    beside, notes = _beside(pool)
    found += [*beside, *_card(pool), *(_settings(pool) if not beside else ())]
    if full and not found:
        found += document_findings(pool, tell)
    return found, notes


def _beside(pool: Pool) -> tuple[list[Finding], list[str]]:
    """As `check_beside`; of a pool in a store, what lies there now, copied here for as long as it takes."""
    folder = pool.layout.folder
    if pool.layout.remote is None:
        return check_beside(pool.path)
    copies = [Path(str(folder), name) for name in (RECORD_NAME, *BESIDE)]
    for copy in copies:  # it may be of before something changed there
        copy.unlink(missing_ok=True)
    found, notes = check_beside(folder)
    for copy in copies[1:]:
        copy.unlink(missing_ok=True)
    here, there = str(folder), str(pool.path)
    return [replace(one, where=one.where.replace(here, there)) for one in found], [
        note.replace(here, there) for note in notes
    ]


def _card(pool: Pool) -> list[Finding]:
    """The card's bytes are those that its contents are written as."""
    path = pool.path / CARD_NAME
    if (pool.layout.folder / CARD_NAME).read_bytes() == card_text(pool.card):
        return []
    return [Finding("contents", str(path), "the bytes it was written with", "other bytes that say the same")]


def _counts(pool: Pool) -> list[Finding]:
    """Records that were read are documents, or were left out for a reason; for which, the card says twice."""
    left, path = left_out(pool.card), str(pool.path / CARD_NAME)
    if left["adds_up"] is not False:
        return []
    if otherwise := misstated(pool.card, left["reasons"]):
        return [
            Finding(
                "counts", path, f"{wanted} left out as {reason}, as its source says", f"dropped: {stated:,}"
            )
            for reason, (stated, wanted) in otherwise.items()
        ]
    given = f"{left['documents']:,} documents and {sum(left['reasons'].values()):,} left out"
    return [Finding("counts", path, f"{left['read']:,} records read", given)]


def _settings(pool: Pool) -> list[Finding]:
    """What a card says of its making is what ``prepare.json`` says, where that is there."""
    settings, card = json_object(pool.layout.folder / RECORD_NAME).get("settings"), pool.card
    if not isinstance(settings, Mapping):
        return []
    stated = {"seed": card.seed, "tokenizer": card.tokenizer, "shuffled": card.shuffled}
    wanted = {name: settings[name] for name in ("seed", "tokenizer") if name in settings}
    wanted["shuffled"] = EXTENDS not in settings
    where, is_remade = str(pool.path / CARD_NAME), REMADE in card.source
    return [
        Finding("settings", where, f"{name}: {value}, as {RECORD_NAME} says", str(stated[name]))
        for name, value in wanted.items()
        # a card that was lost may be made anew by somebody who does not know all of it
        if stated[name] != value and not (is_remade and not stated[name])
    ]
