"""Tables of tokenizers compared, and of pools counted again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table


def comparison_tables(plain: Mapping[str, Any]) -> Iterator[Table]:
    """What `recipe.text.comparing.Comparison` says."""
    names = labels(plain["tokenizers"])
    yield _about(plain["tokenizers"], names)
    yield _texts(plain, names)
    yield _digits(plain["digits"], names)
    if plain["pools"]:
        yield _pools(plain["pools"], names)


def labels(tokenizers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names, or where two are alike what they were loaded from."""
    names = [str(one["name"]) for one in tokenizers]
    return [
        name if names.count(name) == 1 else str(one["spec"])
        for name, one in zip(names, tokenizers, strict=True)
    ]


def recount_table(counted: Mapping[str, Any], name: str, made_by: str) -> Table:
    """One pool under another tokenizer."""
    [one] = counted["recounts"]
    table = Table(title=f"pool {counted['pool']}, counted again", show_header=False)
    table.add_column("what")
    table.add_column("how many", justify="right")
    table.add_row(f"tokens, {made_by}", f"{counted['stock']:,}")
    table.add_row(f"tokens, {name}", tokens_of(one))
    if counted["stock"]:
        table.add_row("of one for another", f"{one['tokens'] / counted['stock']:.4f}")
    table.add_row("bytes of text a token", _rate(one["bytes"], one["tokens"]))
    table.add_row("documents", f"{counted['documents']:,}")
    table.caption = _how(counted)
    return table


def tokens_of(one: Mapping[str, Any]) -> str:
    """A count, with its interval where it is an estimate."""
    if one["low"] == one["high"]:
        return f"{one['tokens']:,}"
    return f"{one['tokens']:,} ({one['low']:,}..{one['high']:,})"


def _how(counted: Mapping[str, Any]) -> str:
    if counted["draws"] is None:
        return "every document was counted; end marks are not"
    drawn = f"{counted['draws']:,} draws ({counted['looked_at']:,} documents)"
    return f"estimated from {drawn}, with the 95 % interval; --exact counts every document"


def _about(tokenizers: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    table = Table(title="tokenizers")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    rows: list[tuple[str, list[str]]] = [
        ("kind", [one["kind"] for one in tokenizers]),
        ("rows of the input and output tables", [f"{one['rows']:,}" for one in tokenizers]),
        ("bits of an id", ["16" if one["rows"] <= 1 << 16 else "32" for one in tokenizers]),
        ("end of a document", [str(one["eos"]) for one in tokenizers]),
        ("normaliser", [one["normaliser"] for one in tokenizers]),
        ("characters it changes, alone", [f"{one['characters_changed']:,}" for one in tokenizers]),
        ("texts that come back", [f"{one['round_trip']['exact']:,}" for one in tokenizers]),
        ("… as their normalisation alone", [f"{one['round_trip']['normalised']:,}" for one in tokenizers]),
        ("… as something else", [f"{one['round_trip']['lost']:,}" for one in tokenizers]),
        ("the same ids as", [_twin(one, names) for one in tokenizers]),
        ("fingerprint", [one["fingerprint"][:16] for one in tokenizers]),
    ]
    for what, cells in rows:
        table.add_row(what, *cells)
    lost = [text for one in tokenizers for text in one["round_trip"]["first_lost"]]
    if lost:
        table.caption = f"what does not come back begins, for example, {lost[0]!r}"
    return table


def _twin(one: Mapping[str, Any], names: Sequence[str]) -> str:
    return "-" if one["same_ids_as"] is None else names[one["same_ids_as"]]


def _texts(plain: Mapping[str, Any], names: Sequence[str]) -> Table:
    table = Table(title="tokens, and bytes a token")
    table.add_column("text")
    table.add_column("bytes", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for one in plain["texts"]:
        cells = [f"{count:,}  {_rate(one['bytes'], count)}" for count in one["tokens"]]
        table.add_row(_shown(one["text"]), f"{one['bytes']:,}", *cells)
    for one in plain["files"]:
        cells = [f"{count:,}  {_rate(one['bytes'], count)}" for count in one["tokens"]]
        table.add_row(f"{one['file']} ({one['documents']:,} documents)", f"{one['bytes']:,}", *cells)
    return table


def _digits(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    table = Table(title="digits")
    table.add_column("text")
    for name in names:
        table.add_column(name)
    for one in rows:
        table.add_row(one["text"].replace(" ", "▁"), *one["pieces"])
    return table


def _pools(pools: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    table = Table(title="tokens of pools, and bytes a token")
    table.add_column("pool")
    table.add_column("as it is", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for one in pools:
        cells = [f"{tokens_of(count)}  {_rate(count['bytes'], count['tokens'])}" for count in one["recounts"]]
        table.add_row(one["pool"], f"{one['stock']:,}", *cells)
    sampled = [one for one in pools if one["draws"] is not None]
    table.caption = _how(sampled[0] if sampled else pools[0])
    return table


def _shown(text: str) -> str:
    line = text.replace("\n", "⏎")
    return line if len(line) <= 40 else f"{line[:39]}…"


def _rate(size: int, tokens: int) -> str:
    return f"{size / tokens:.2f}" if tokens else "-"
