"""What ``recipe prepare`` says of the pools that it made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rich.console import Group

from recipe.pools.adopting import EXTENDS
from recipe.pools.beside import QUARANTINE_NAME
from recipe.pools.pool import Pool
from recipe.pools.reasons import DUPLICATE, EMPTY, OTHER_SPLIT
from recipe.pools.sheet import repeated_tokens
from recipe.pools.splits import SPLIT
from recipe.pools.table import row_groups
from recipe.report.tables import table


def summary(pool: Pool) -> dict[str, Any]:
    """A prepared pool as plain values."""
    card = pool.card
    return {
        "path": str(pool.path),
        "documents": card.num_documents,
        **({} if (before := extended_documents(pool)) is None else {"documents_extended": before}),
        "units": card.num_units,
        "tokens": card.body_tokens,
        "special": card.special_tokens,
        "longest": card.max_document_tokens,
        "parts": pool.num_parts,
        **({} if pool.sections is None else {"sections": len(pool.sections)}),
        **({} if pool.repeats is None else {"repeated": repeated_tokens(pool.repeats)}),
        "tokenizer": {
            "name": card.tokenizer_name,
            "fingerprint": card.tokenizer,
            "vocab_size": card.vocab_size,
        },
        "read": card.source["read"],
        "left_out": dict(card.dropped),
        "fingerprint": pool.fingerprint,
    }


def pool_table(pool: Pool) -> Group:
    """A prepared pool, for people."""
    card, read = pool.card, pool.card.source["read"]
    rows = [] if SPLIT in card.source else [("records read", read["read"])]
    left_out = card.dropped
    if (before := extended_documents(pool)) is not None:
        rows.append(("documents of the extended pool", before))
        left_out = left_out if SPLIT in card.source else _left_out(read)
    rows.append(("documents", card.num_documents))
    if card.num_units != card.num_documents:
        rows.append(("units (groups stay together)", card.num_units))
    rows.append(("body tokens", card.body_tokens))
    if pool.sections is not None:
        rows.append(("sections that begin inside documents", len(pool.sections)))
    if pool.needs is not None:
        rows.append(("needs of sections", len(pool.needs)))
    if pool.repeats is not None:
        rows.append(("tokens that repeat others of their document or group", repeated_tokens(pool.repeats)))
    rows.append(("end marks" if pool.leads is None else "marks and markers", card.special_tokens))
    rows.append(("longest document", card.max_document_tokens))
    if read["repaired"] and SPLIT not in card.source:
        rows.append(("kept with U+FFFD", read["repaired"]))
    whose = "left out of this pool" if SPLIT in card.source else "left out"
    rows += [(f"{whose}: {reason.replace('_', ' ')}", count) for reason, count in left_out.items()]
    caption = "" if SPLIT in card.source else _quarantine(pool.path, read)
    counts = [(what, f"{count:,}") for what, count in rows]
    return table(f"pool {pool.path}", ("what", "how many"), counts, caption=caption)


def extended_documents(pool: Pool) -> int | None:
    """Documents of the pool that this one extends; None: it extends none."""
    chain = pool.card.source.get(EXTENDS)
    if not chain:
        return None
    return sum(part.documents for part in pool.card.written_parts[: chain[-1]["parts"]])


def _left_out(read: Mapping[str, Any]) -> dict[str, int]:
    """Records of one reading that are no documents, by reason."""
    found = {EMPTY: read[EMPTY], **read["quarantined"]}
    found |= {reason: read.get(reason) or 0 for reason in (DUPLICATE, OTHER_SPLIT)}
    return {reason: count for reason, count in found.items() if count}


def _quarantine(folder: Path, read: Mapping[str, Any]) -> str:
    return f"records left out are in {folder / QUARANTINE_NAME}" if read["quarantined"] else ""


def splits_table(out: Path, pools: Mapping[str, Pool]) -> Group:
    """Where what was read in one go went: the numbers add up."""
    read = next(iter(pools.values())).card.source["read"]
    kept = next(iter(pools.values())).card.source[SPLIT]["documents"]
    rows = [("records read", read["read"]), *((f"documents of {name}", kept[name]) for name in pools)]
    rows += [(f"left out: {reason.replace('_', ' ')}", count) for reason, count in _left_out(read).items()]
    counts = [(what, f"{count:,}") for what, count in rows]
    return table(f"splits {out}", ("what", "how many"), counts, caption=_quarantine(out, read))


def has_any(pools: Collection[Pool], *columns: str) -> bool:
    """Whether any document has a value in one of the columns of the document tables; no documents: True."""
    groups = (table for pool in pools for table in row_groups(pool.layout.table_file(), columns))
    if not any(pool.num_documents for pool in pools):
        return True
    return any(table[name].null_count < len(table) for table in groups for name in columns)
