"""Tables of pools: lists of them, and what their cards say of where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from recipe.report.figures import amount, byte_size, signed
from recipe.report.tables import table
from recipe.text.pool_samples import visible

NOT_STATED = "not stated"
SHORT = 12
"""Digits of a fingerprint that are shown."""


def list_tables(pools: Sequence[Mapping[str, Any]], title: str) -> Iterator[RenderableType]:
    """Pools as `recipe.pools.listing` gives them; of a recipe, their targets too."""
    whole = [pool for pool in pools if pool["problem"] is None and pool["documents"] is not None]
    if whole:
        yield _whole(whole, title)
    targets = [pool for pool in pools if pool.get("target") is not None]
    if targets:
        yield _targets(targets)
    if faulty := [pool for pool in pools if pool["problem"] is not None]:
        yield Text("not whole", style="bold")
        yield from (Text(visible(f" {pool['path'] or pool['name']}: {pool['problem']}")) for pool in faulty)


def _whole(pools: Sequence[Mapping[str, Any]], title: str) -> Group:
    is_erased = any(pool["erased"] for pool in pools)
    rows = [
        (
            visible(pool["name"]),
            f"{pool['documents']:,}",
            *([f"{pool['erased']:,}"] if is_erased else []),
            f"{pool['units']:,}",
            ("" if pool["counted"] == "exact" else "about ") + amount(pool["tokens"]),
            made_by(pool),
            "–" if pool["vocab_size"] is None else f"{pool['vocab_size']:,}",
            pool["dtype"],
            f"{pool['parts']:,}",
            "–" if pool["bytes"] is None else byte_size(pool["bytes"]),
            "yes" if pool["shuffled"] else "not known" if not pool["own"] else "no",
            pool["kind"] or "–",
            pool["fingerprint"][:SHORT],
        )
        for pool in pools
    ]
    sums = (sum(pool["documents"] for pool in pools), sum(pool["tokens"] for pool in pools))
    size = sum({pool["path"]: pool["bytes"] or 0 for pool in pools}.values())  # views share a folder
    erased = [f"{sum(pool['erased'] for pool in pools):,}"] if is_erased else []
    total = (
        "all", f"{sums[0]:,}", *erased, "", amount(sums[1]), "", "", "", "", byte_size(size), "", "", ""
    )  # fmt: skip
    columns = (
        "pool", "documents", *(["of them erased"] if is_erased else []), "units",
        "body tokens", "tokenizer", "ids", "type", "parts", "on disk", "shuffled",
        "kind", "fingerprint",
    )  # fmt: skip
    caption = f"{len({made_by(pool) for pool in pools})} tokenizers: pools of different ones never mix"
    mixed = len({pool["tokenizer_fingerprint"] for pool in pools if pool["tokenizer_fingerprint"]}) > 1
    return table(title, columns, rows, total=total, caption=caption if mixed else "")


def made_by(pool: Mapping[str, Any]) -> str:
    """A pool's tokenizer: its name and the beginning of its fingerprint."""
    if pool["tokenizer_fingerprint"] is None:
        return pool["tokenizer"] or NOT_STATED
    return f"{pool['tokenizer'] or ''} {pool['tokenizer_fingerprint'][:8]}".strip()


def _targets(pools: Sequence[Mapping[str, Any]]) -> Group:
    rows = [
        (
            pool["name"],
            amount(pool["target"]),
            "–" if pool["tokens"] is None else amount(pool["tokens"]),
            "–" if pool["gap"] is None else signed(pool["gap"]),
        )
        for pool in pools
    ]
    caption = "gap: measured less target, in body tokens; a target is the recipe's stock of a pool"
    return table("targets", ("pool", "target", "measured", "gap"), rows, caption=caption)


def about_table(name: str, about: Mapping[str, Any]) -> Group:
    """What a pool's card says for a public summary of training data."""
    if not about:
        fix = f"say it: recipe pools describe {name} kind=… licence=…"
        return table(f"pool {name}: {NOT_STATED}", ("about", ""), [("all", NOT_STATED)], caption=fix)
    return table(f"pool {name}: about", ("about", ""), [(key, said(value)) for key, value in about.items()])


def said(value: Any) -> str:
    """A value of the card's ``about`` in a line.

    >>> said(["en", "zh"]), said({"from": "2023", "to": "2024-05"}), said({"to": "2024"})
    ('en, zh', '2023..2024-05', '..2024')
    """
    if isinstance(value, Mapping):
        first, last = value.get("from", ""), value.get("to", "")
        return first if first == last else f"{first}..{last}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return " ".join(str(value).split())
