"""Tables of tokenizers compared, and of pools counted again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group

from recipe.errors import counted
from recipe.report.tables import table


def comparison_tables(plain: Mapping[str, Any]) -> Iterator[Group]:
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


def recount_table(counted: Mapping[str, Any], name: str, made_by: str) -> Group:
    """One pool under another tokenizer."""
    [one] = counted["recounts"]
    rows = [(f"tokens, {made_by}", f"{counted['stock']:,}"), (f"tokens, {name}", tokens_of(one))]
    if counted["stock"]:
        rows.append(("of one for another", f"{one['tokens'] / counted['stock']:.4f}"))
    rows.append(("bytes of text a token", _rate(one["bytes"], one["tokens"])))
    rows.append(("documents", f"{counted['documents']:,}"))
    title = f"pool {counted['pool']}, counted again"
    return table(title, ("what", "how many"), rows, caption=_how(counted))


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


def _about(tokenizers: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Group:
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
    lost = [text for one in tokenizers for text in one["round_trip"]["first_lost"]]
    caption = f"what does not come back begins, for example, {lost[0]!r}" if lost else ""
    return table("tokenizers", ("", *names), [(what, *cells) for what, cells in rows], caption=caption)


def _twin(one: Mapping[str, Any], names: Sequence[str]) -> str:
    return "-" if one["same_ids_as"] is None else names[one["same_ids_as"]]


def _texts(plain: Mapping[str, Any], names: Sequence[str]) -> Group:
    read = [(_shown(one["text"]), one) for one in plain["texts"]]
    read += [(f"{one['file']} ({counted(one['documents'], 'document')})", one) for one in plain["files"]]
    rows = [
        (shown, f"{one['bytes']:,}", *(f"{count:,}  {_rate(one['bytes'], count)}" for count in one["tokens"]))
        for shown, one in read
    ]
    return table("tokens, and bytes a token", ("text", "bytes", *names), rows)


def _digits(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Group:
    pieces = [(one["text"].replace(" ", "▁"), *one["pieces"]) for one in rows]
    return table("digits", ("text", *names), pieces)


def _pools(pools: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Group:
    rows = [
        (
            one["pool"],
            f"{one['stock']:,}",
            *(f"{tokens_of(count)}  {_rate(count['bytes'], count['tokens'])}" for count in one["recounts"]),
        )
        for one in pools
    ]
    sampled = [one for one in pools if one["draws"] is not None]
    columns = ("pool", "as it is", *names)
    return table(
        "tokens of pools, and bytes a token", columns, rows, caption=_how(sampled[0] if sampled else pools[0])
    )


def _shown(text: str) -> str:
    line = text.replace("\n", "⏎")
    return line if len(line) <= 40 else f"{line[:39]}…"


def _rate(size: int, tokens: int) -> str:
    return f"{size / tokens:.2f}" if tokens else "-"
