"""One pool on a page: counts, lengths, what was left out, tags, samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recipe.errors import counted
from recipe.pools.adopting import EXTENDS
from recipe.report.figures import amount, byte_size, ratio
from recipe.report.pools import SHORT, about_table, made_by, said
from recipe.report.tables import table
from recipe.text.pool_samples import visible

_BAR = 40
_LONGEST = 72
"""Characters of a value in a table; what is longer ends with an ellipsis."""


def sheet_tables(sheet: Mapping[str, Any]) -> Iterator[RenderableType]:
    """What `recipe.pools.sheet.sheet_of` says, with ``samples`` where some were drawn."""
    yield _counts(sheet)
    if sheet["about"]:
        yield about_table(sheet["path"], sheet["about"])
    yield _left_out(sheet["left_out"])
    yield _lengths(sheet["histogram"])
    if sheet["largest"]:
        yield _largest(sheet["largest"])
    for key, tag in sheet["tags"].items():
        yield _tag(key, tag, sheet["documents"])
    yield _source(sheet["source"])
    for sample in sheet.get("samples", ()):
        yield from _sample(sample)


def _counts(sheet: Mapping[str, Any]) -> Group:
    marks = ", ".join(
        f"{name} {mark['id']} ({mark['stored']} stored)"
        for name, mark in sheet["marks"].items()
        if mark["id"] is not None
    )
    rows = [
        ("documents", f"{sheet['documents']:,}"),
        ("units", f"{sheet['units']:,}"),
        *_group_rows(sheet["groups"]),
        ("body tokens" if sheet["counted"] == "exact" else "body tokens, about", f"{sheet['tokens']:,}"),
        ("special tokens", f"{sheet['special']:,}"),
        ("longest document", f"{sheet['longest']:,}"),
        *((what, f"{count:,}") for what, count in sheet["boundaries"].items()),
        ("tokenizer", made_by(sheet)),
        ("ids", "–" if sheet["vocab_size"] is None else f"{sheet['vocab_size']:,}, as {sheet['dtype']}"),
        ("largest id", "–" if sheet["max_id"] is None else f"{sheet['max_id']:,}"),
        ("marks", marks or "none"),
        ("parts", f"{sheet['parts']:,}"),
        ("on disk", "–" if sheet["bytes"] is None else byte_size(sheet["bytes"])),
        ("shuffled", _shuffled(sheet)),
        ("fingerprint", sheet["fingerprint"][: 2 * SHORT]),
    ]
    return table(f"pool {sheet['path']}", ("what", "how many"), rows)


def _shuffled(sheet: Mapping[str, Any]) -> str:
    """Whether documents lie in a seeded order; those of an extended pool do in each extension."""
    if sheet["shuffled"]:
        return f"yes, seed {sheet['seed']}"
    is_extended = bool(sheet["source"].get(EXTENDS))
    return "each extension by itself" if is_extended else "no, or not known"


def _group_rows(groups: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if groups is None:
        return []
    return [
        ("groups of several documents", f"{groups['of_several']:,}"),
        ("documents in them", f"{groups['documents']:,}"),
        ("most documents of a group", f"{groups['most_documents']:,}"),
    ]


def _left_out(left: Mapping[str, Any]) -> Group:
    rows = [("documents", f"{left['documents']:,}")]
    if left["elsewhere"]:
        rows.append(("documents of the other splits", f"{left['elsewhere']:,}"))
    whose = "left out of all splits" if left["of_all_splits"] else "left out"
    rows += [(f"{whose}: {why.replace('_', ' ')}", f"{n:,}") for why, n in left["reasons"].items()]
    if left["of_all_splits"]:
        rows += [
            (f"of them of this pool: {why.replace('_', ' ')}", f"{n:,}") for why, n in left["own"].items()
        ]
    if left["read"] is None:
        return table("records", ("what", "how many"), rows, caption="how many were read is not on record")
    total = ("read", f"{left['read']:,}")
    told = "adds up" if left["adds_up"] else "does NOT add up: recipe pools verify"
    return table("records", ("what", "how many"), rows, total=total, caption=told)


def _lengths(histogram: Sequence[Mapping[str, int]]) -> Group:
    most = max((row["documents"] for row in histogram), default=0)
    first = next((place for place, row in enumerate(histogram) if row["documents"]), 0)
    total = sum(row["tokens"] for row in histogram)
    rows = [
        (
            f"{row['from']:,}" if row["from"] == row["to"] else f"{row['from']:,} – {row['to']:,}",
            f"{row['documents']:,}",
            bar(row["documents"], most),
            amount(row["tokens"]),
            ratio(row["tokens"], total),
        )
        for row in histogram[first:]
    ]
    made = table("lengths, in tokens", ("tokens", "documents", "", "tokens in all", "share"), rows)
    bars = made.renderables[1]
    assert isinstance(bars, Table), bars
    bars.columns[2].justify = "left"
    return made


def bar(count: int, most: int, width: int = _BAR) -> str:
    """A bar whose length is the count's part of the most, with eighths of a character.

    >>> bar(8, 8, 4), bar(1, 8, 4), bar(1, 1000, 4), bar(0, 8, 4)
    ('████', '▌   ', '▏   ', '    ')
    """
    eighths = count * width * 8 // most if most else 0
    eighths = max(eighths, 1) if count else 0
    return ("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()).ljust(width)


def _largest(rows: Sequence[Mapping[str, Any]]) -> Group:
    cells = [
        (
            _cell(row["id"]),
            f"{row['tokens']:,}",
            "" if row["group"] is None else _cell(row["group"]),
            row["part"],
        )
        for row in rows
    ]
    return table("largest documents", ("id", "tokens", "group", "part"), cells)


def _tag(key: str, tag: Mapping[str, Any], documents: int) -> Group:
    rows = [
        (
            _cell(one["value"]),
            f"{one['documents']:,}",
            f"{one['tokens']:,}",
            ratio(one["tokens"], tag["tokens"]),
        )
        for one in tag["top"]
    ]
    if missing := documents - tag["documents"]:
        rows.append(("(without this tag)", f"{missing:,}", "", ""))
    many = "more values than are counted" if tag["values"] is None else counted(tag["values"], "value")
    more = tag["values"] is None or tag["values"] > len(tag["top"])
    caption = f"{many}; each other one has at most {counted(tag['below'], 'document')}" if more else many
    return table(f"tag {_cell(key)}", ("value", "documents", "tokens", "share"), rows, caption=caption)


def _source(source: Mapping[str, Any]) -> Group:
    rows = [(_words(key), _cell(_told(value))) for key, value in _flat(source)]
    return table("made from", ("what", "value"), rows or [("", "not stated")])


_TOLD_ABOVE = ("read.empty", "read.duplicate", "read.other_split")
"""Counts of the whole reading that the table of records has, under the same names."""
_WORDS = {
    "raw": "form of raw token files",
    "prepared": "mark of the preparation",
    "files": "files read",
    "read.read": "records read",
    "read.kept": "documents kept",
    "read.repaired": "documents repaired",
    "read.blank_lines": "blank lines passed over",
    "read.quarantined": "left out: bad records",
}


def _words(key: str) -> str:
    """What a key of a card's source says.

    >>> _words("read.kept"), _words("read.too_long"), _words("split.salt")
    ('documents kept', 'left out: too long', 'split: salt')
    """
    key = key.replace("read.quarantined.", "read.")
    if key in _WORDS:
        return _WORDS[key]
    first, _, rest = key.partition(".")
    head = "left out" if first == "read" else first
    return ": ".join(filter(None, (head, rest))).replace("_", " ").replace(".", ", ")


def _flat(source: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in source.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            for place, one in enumerate(value):
                yield from _flat(one, f"{prefix}{key}.{place}.")
        elif value not in ({}, [], None) and f"{prefix}{key}" not in _TOLD_ABOVE:
            yield f"{prefix}{key}", value


def _told(value: Any) -> str:
    return f"{value:,}" if type(value) is int else said(value)


def _sample(sample: Mapping[str, Any]) -> Iterator[Text]:
    tags = ", ".join(f"{key}: {said(value)}" for key, value in sample["tags"].items())
    head = f"── document {_cell(sample['id'])}, {counted(sample['tokens'], 'token')}"
    head += f"{f'; {tags}' if tags else ''} ──"
    yield Text(visible(head), style="bold green")
    more = sample["tokens"] - sample["shown"]
    text = " ".join(map(str, sample["ids"])) if sample["text"] is None else visible(sample["text"])
    yield Text(text + (f" … {more:,} tokens more" if more else ""))
    yield Text("")


def _cell(value: Any) -> str:
    """A text of somebody else's on one line."""
    text = visible(" ".join(str(value).split()))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
