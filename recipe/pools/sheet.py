"""One pool looked at closely: lengths, groups, tags, what was left out; in pieces, of pools of any size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.adopting import EXTENDS
from recipe.pools.card import Card
from recipe.pools.copied import left_out_since
from recipe.pools.lengths import body_lengths, length_bits
from recipe.pools.listing import listed
from recipe.pools.pool import Pool
from recipe.pools.reasons import DUPLICATE, EMPTY, OTHER_SPLIT
from recipe.pools.splits import SPLIT
from recipe.pools.tag_counts import tag_counts
from recipe.pools.views import held_documents

_PIECE = 1 << 20
LARGEST, VALUES = 5, 8
_REASONS = (EMPTY, DUPLICATE, OTHER_SPLIT)
"""Of what `prepare` counts beside the records in its quarantine."""


def sheet_of(pool: Pool, *, largest: int = LARGEST, values: int = VALUES) -> dict[str, Any]:
    """What is in a pool, as plain values.

    Args:
        pool: any.
        largest: documents that are named, those with most tokens.
        values: of each tag, the most frequent.
    """
    card = pool.card
    documents, tokens, longest = _lengths(pool, largest)
    return {
        **listed(pool).to_plain(),
        "about": dict(card.about or {}),
        "longest": card.max_document_tokens,
        "max_id": None if card.max_id is None else card.max_id.id,
        "marks": {"bos": _mark(card.bos, card.bos_stored), "eos": _mark(card.eos, card.eos_stored)},
        "ids_are": card.ids,
        "extent_units": card.extent_units,
        "histogram": [
            {"from": 2**k // 2, "to": max(2**k - 1, 0), "documents": d, "tokens": t}
            for k, (d, t) in enumerate(zip(documents.tolist(), tokens.tolist(), strict=True))
        ],
        "groups": _groups(pool),
        "boundaries": _boundaries(pool),
        "left_out": left_out(card),
        "largest": _named(pool, longest),
        "tags": {key: asdict(tag) for key, tag in tag_counts(pool, values).items()},
        "source": dict(card.source),
        "seed": card.seed,
    }


def left_out(card: Card) -> dict[str, Any]:
    """Records read, and what became of them; ``adds_up`` is None where no reading is on record.

    Of a pool that extends others, theirs too; of one of a split, those of the whole reading, the documents of
    the other splits among them: ``reasons`` are then of all splits, ``own`` those that would be in this one.
    """
    readings = [card.source, *(entry["source"] for entry in card.source.get(EXTENDS, ()))]
    plain: dict[str, Any] = {"documents": card.num_documents, "elsewhere": 0, "reasons": dict(card.dropped)}
    plain |= {"own": dict(card.dropped), "of_all_splits": any(SPLIT in one for one in readings)}
    if not all(isinstance(one.get("read"), Mapping) for one in readings):
        return {**plain, "read": None, "adds_up": None}
    reasons: Counter[str] = Counter()
    elsewhere = kept = 0
    for one in readings:
        tally = one["read"]
        reasons.update({reason: tally.get(reason) or 0 for reason in _REASONS})
        reasons.update(tally["quarantined"])
        kept += tally["kept"]
        if SPLIT in one:
            others = {k: n for k, n in one[SPLIT]["documents"].items() if k != one[SPLIT]["name"]}
            elsewhere += sum(others.values())
    read = sum(one["read"]["read"] for one in readings)
    since = left_out_since(card)  # what a copy of the pool left out was a document when it was read
    reasons.update(since)
    told = {reason: count for reason, count in reasons.items() if count}
    adds_up = read == kept - sum(since.values()) + sum(told.values())
    adds_up = adds_up and kept == card.num_documents + elsewhere + sum(since.values())
    adds_up = adds_up and not misstated(card, told)
    return {**plain, "elsewhere": elsewhere, "reasons": told, "read": read, "adds_up": adds_up}


def misstated(card: Card, reasons: Mapping[str, int]) -> dict[str, tuple[int, str]]:
    """By reason what a card states as dropped, and what it can be, where that is not what its readings give.

    Of a split the readings have what was left out of all its pools, the card of each its own.
    """
    readings = [card.source, *(entry["source"] for entry in card.source.get(EXTENDS, ()))]
    is_part = any(SPLIT in one for one in readings)
    found = dict[str, tuple[int, str]]()
    for reason in sorted({*card.dropped, *reasons}):
        stated, read = card.dropped.get(reason) or 0, reasons.get(reason, 0)
        if stated > read or (stated < read and not is_part):
            found[reason] = (stated, f"at most {read:,}" if is_part else f"{read:,}")
    return found


def _lengths(pool: Pool, largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Documents and tokens by bits of the length, and the longest documents, longest first."""
    documents, tokens = np.zeros(65, np.int64), np.zeros(65, np.int64)
    best = np.zeros((0, 2), np.int64)
    for numbers in held_documents(pool):
        lengths = body_lengths(pool, numbers)
        bits = length_bits(lengths)
        documents += np.bincount(bits, minlength=65)
        tokens += np.bincount(bits, lengths, 65).astype(np.int64)  # exact: a piece's sum is below 2**53
        here = np.argsort(-lengths, kind="stable")[:largest]
        both = np.concatenate([best, np.column_stack([numbers[here], lengths[here]])])
        best = both[np.argsort(-both[:, 1], kind="stable")[:largest]]
    used = int(np.flatnonzero(documents)[-1]) + 1 if documents.any() else 0
    return documents[:used], tokens[:used], best[:, 0]


def _named(pool: Pool, numbers: NDArray[np.int64]) -> list[dict[str, Any]]:
    return [
        {"id": row.id, "tokens": row.tokens, "group": row.group, "part": row.part, "source": row.source}
        for row in pool.rows(numbers)
    ]


def _groups(pool: Pool) -> dict[str, Any] | None:
    """Units of several documents; None where every document is a unit."""
    if pool.units is None:
        return None
    of_several = documents = most = 0
    for sizes in _unit_sizes(pool.units, pool.members):
        several = sizes[sizes > 1]
        of_several, documents = of_several + len(several), documents + int(several.sum())
        most = max(most, int(sizes.max()))
    return {
        "units": pool.num_units,
        "of_several": of_several,
        "documents": documents,
        "most_documents": most,
    }


def _unit_sizes(units: NDArray[np.int64], members: NDArray[np.int64] | None) -> Iterator[NDArray[np.int64]]:
    """Documents of each unit, or of those that are members, some at a time."""
    count = len(units) - 1 if members is None else len(members)
    for start in range(0, count, _PIECE):
        stop = min(start + _PIECE, count)
        some = np.arange(start, stop) if members is None else members[start:stop]
        yield units[some + 1] - units[some]


def _boundaries(pool: Pool) -> dict[str, int]:
    """What else is known of a pool's texts, counted; over its whole folder where it is a view."""
    found = {}
    if pool.card.withdrawn is not None:
        found["documents withdrawn, their tokens erased"] = len(pool.erased)
    if pool.sections is not None:
        found["sections that begin inside documents"] = len(pool.sections)
    if pool.needs is not None:
        found["needs of sections"] = len(pool.needs)
    if pool.repeats is not None:
        found["tokens that repeat others of their document or group"] = repeated_tokens(pool.repeats)
    if pool.leads is not None:
        found["documents with special tokens in front"] = int(np.count_nonzero(pool.leads))
    return found


def repeated_tokens(spans: NDArray[np.int64]) -> int:
    """Tokens in spans, int64[n, 2], that repeat others of their document or group."""
    return int(spans[:, 1].sum() - spans[:, 0].sum())


def _mark(mark: int | None, stored: str) -> dict[str, Any]:
    return {"id": mark, "stored": stored}
