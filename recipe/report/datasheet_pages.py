"""A datasheet for people: tables on a terminal, Markdown, or a page; in English or with Chinese labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from textwrap import wrap
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from recipe.pools.about import CRAWLED, SYNTHETIC
from recipe.report.datasheet import NOT_SYNTHETIC, OTHERS, READ, WITHOUT
from recipe.report.datasheet_words import words
from recipe.report.figures import ratio, readings
from recipe.report.pools import NOT_STATED, SHORT, said
from recipe.report.tables import table
from recipe.text.pool_samples import visible

_WIDTH = 110
_STYLE = """
body { font: 15px/1.6 system-ui, sans-serif; color: #1a1a1a;
       margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
td, th { padding: .2rem .8rem; border-bottom: 1px solid #ddd; text-align: left }
td + td, th + th { text-align: right }
tr.total td { font-weight: bold; border-top: 2px solid #888 }
h2 { font-size: 1.1rem; margin: 2rem 0 .3rem }
"""

Words = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, what it says, and a table of texts."""

    title: str
    text: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    total: tuple[str, ...] = ()


def sections(facts: Mapping[str, Any], lang: str = "en") -> Iterator[Section]:
    """What `recipe.report.datasheet.datasheet_of` found, section by section."""
    w = words(lang)
    yield _run(facts, w)
    yield _by(facts, "kind", w)
    yield _pools(facts, w)
    yield _about(facts, w)
    for key in ("licence", "languages", "collected", "generator", "provider"):
        if any(row["value"] != NOT_STATED for row in facts["by"][key]):
            yield _by(facts, key, w)
    yield from _tags(facts, w)
    yield _left_out(facts, w)
    yield _lineage(facts, w)
    yield _not_stated(facts, w)


def _run(facts: Mapping[str, Any], w: Words) -> Section:
    run, total, prior = facts["run"], facts["total"], facts["prior"]
    rows = [
        (w("step"), f"{run['step']:,}{'' if run['complete'] else w(' (not complete)')}"),
        (w("positions"), f"{run['positions']:,}"),
        (w("tokens of documents served"), f"{total['body']:,}"),
        (w("of them fresh"), f"{total['fresh']:,}"),
        (w("tokens spent"), f"{total['spent']:,} ({w('counted')}: {w(run['count'])})"),
        (w("pools"), f"{len(facts['pools']):,}"),
        (w("tokenizer"), ", ".join(one[:SHORT] for one in run["tokenizers"]) or w(NOT_STATED)),
        (w("created"), run["created"]),
        (w("record"), run["head"][: 2 * SHORT]),
    ]
    if prior is not None:
        rows.append((w("weights it started from"), f"{prior['weights']}: {prior['prior_tokens'] or '?'}"))
    text = (w("intro"), *([w("prior")] if prior is not None else []))
    return Section(
        title=f"{w('Datasheet of run')} {run['name']}", text=text, columns=("", ""), rows=tuple(rows)
    )


def _by(facts: Mapping[str, Any], key: str, w: Words) -> Section:
    """Tokens by what cards, or documents, say of one thing."""
    rows, total = facts["by"][key], facts["total"]
    is_shared = any(row["shared"] for row in rows)
    cells = [
        (
            w(row["value"]) if key == "kind" else _value(row["value"], w),
            ", ".join(row["pools"]),
            f"{row['spent']:,}",
            ratio(row["spent"], total["spent"]),
            f"{row['fresh']:,}",
            *([f"{row['shared']:,}"] if is_shared else []),
        )
        for row in rows
    ]
    shared = sum(row["shared"] for row in rows)
    last = (
        "all",
        "",
        f"{total['spent']:,}",
        "",
        f"{total['fresh']:,}",
        *([f"{shared:,}"] if is_shared else []),
    )
    columns = [key, "pools", "tokens spent", "share", "fresh", *([_how(facts)] if is_shared else [])]
    text = [w("kinds")] if key == "kind" else [w(_how_text(facts))] if is_shared else []
    return Section(
        title=w(f"by {key}"),
        text=tuple(text),
        columns=tuple(map(w, columns)),
        rows=tuple(cells),
        total=(w(last[0]), *last[1:]),
    )


def _value(value: str, w: Words) -> str:
    """A value as it is; only what stands for none is in the page's language."""
    return w(value) if value in (NOT_STATED, NOT_SYNTHETIC, WITHOUT, OTHERS) else value


def _how(facts: Mapping[str, Any]) -> str:
    return "read-proportional" if facts["shared_out"] == READ else "stock-proportional"


def _how_text(facts: Mapping[str, Any]) -> str:
    return f"about {_how(facts)}"


def _pools(facts: Mapping[str, Any], w: Words) -> Section:
    total = facts["total"]
    rows = tuple(
        (
            name,
            f"{one['documents']:,}",
            f"{one['stock']:,}",
            f"{one['spent']:,}",
            ratio(one["spent"], total["spent"]),
            f"{one['fresh']:,}",
            readings(one["readings"]),
            f"{one['withdrawn']:,}",
            one["fingerprint"][:SHORT],
        )
        for name, one in facts["pools"].items()
    )
    columns = (
        "pool", "documents", "tokens it holds", "tokens spent", "share", "fresh", "readings", "withdrawn",
        "fingerprint",
    )  # fmt: skip
    last = (w("all"), "", "", f"{total['spent']:,}", "", f"{total['fresh']:,}", "", "", "")
    notes = tuple(f"{name}: {w(one['note'])}" for name, one in facts["pools"].items() if one["note"])
    return Section(title=w("Pools"), text=notes, columns=tuple(map(w, columns)), rows=rows, total=last)


def _about(facts: Mapping[str, Any], w: Words) -> Section:
    keys = [key for key in _ABOUT if any(key in one["about"] for one in facts["pools"].values())]
    rows = tuple(
        (name, *(_stated(one["about"], key, w) for key in keys)) for name, one in facts["pools"].items()
    )
    columns = (w("pool"), *map(w, keys))
    beside = [name for name, one in facts["pools"].items() if one["stated_in"] == "beside"]
    text = (w("stated"), *([f"{w('beside')}: {', '.join(beside)}"] if beside else []))
    return Section(title=w("What cards say"), text=text, columns=columns, rows=rows)


def _stated(about: Mapping[str, Any], key: str, w: Words) -> str:
    """What a card says of one thing; a dash where the pool's kind leaves nothing to say."""
    if key in about:
        return w(said(about[key])) if key == "kind" else said(about[key])
    belongs = {"generator": SYNTHETIC, "crawler": CRAWLED}.get(key)
    return "–" if belongs is not None and about.get("kind") not in (None, belongs) else w(NOT_STATED)


_ABOUT = (
    "kind", "licence", "languages", "collected", "generator", "crawler", "provider", "description", "url",
    "contact",
)  # fmt: skip


def _tags(facts: Mapping[str, Any], w: Words) -> Iterator[Section]:
    for name, one in facts["pools"].items():
        for key, values in one["tags"].items():
            counts = ("documents", "tokens", "spent", "fresh")
            rows = tuple((_value(row["value"], w), *(f"{row[k]:,}" for k in counts)) for row in values)
            held = "tokens read at least once" if facts["shared_out"] == READ else "tokens it holds"
            columns = (key, *map(w, ("documents", held, "tokens spent", "fresh")))
            title = f"{w('tag')} {key}, {w('pool')} {name}: {w(_how(facts))}"
            yield Section(title=title, text=(w(_how_text(facts)),), columns=columns, rows=rows)


def _left_out(facts: Mapping[str, Any], w: Words) -> Section:
    rows = [(w("in training"), w(why), f"{count:,} {w('tokens')}") for why, count in facts["dropped"].items()]
    withdrawn = sum(one["withdrawn"] for one in facts["pools"].values())
    if withdrawn:
        rows.append((w("in training"), w("withdrawn"), f"{withdrawn:,} {w('documents')}"))
    unknown = []
    for name, one in facts["pools"].items():
        left = one["left_out"] or {"reasons": {}, "read": None}
        unknown += [name] if left["read"] is None else []
        for why, count in left["reasons"].items():
            words_of = w(why.replace("_", " "))
            rows.append((f"{w('in preparing')} {name}", words_of, f"{count:,} {w('records')}"))
    text = (f"{w('not on record')}: {', '.join(unknown)}",) if unknown else () if rows else (w("nothing"),)
    return Section(
        title=w("Left out"), text=text, columns=(w("when"), w("why"), w("how many")), rows=tuple(rows)
    )


def _lineage(facts: Mapping[str, Any], w: Words) -> Section:
    rows = tuple(
        (
            one["run"],
            f"{one['steps'][0]:,}..{one['steps'][1]:,}",
            f"{one['spent']:,}",
            w("yes") if one["counted"] else w("no: other tokens"),
        )
        for one in reversed(facts["lineage"])
    )
    columns = tuple(map(w, ("run", "steps", "tokens spent", "in the sums above")))
    return Section(title=w("Lineage"), text=(w("lineage"),), columns=columns, rows=rows)


def _not_stated(facts: Mapping[str, Any], w: Words) -> Section:
    rows = tuple((name, ", ".join(map(w, missing))) for name, missing in facts["not_stated"].items())
    cards = {facts["pools"][name]["has_card"] is not False for name in facts["not_stated"]}
    ways = ((True, w("describe")), (False, w("describe beside")))
    text = tuple(way for kind, way in ways if kind in cards) if rows else (w("complete"),)
    return Section(title=w("Not stated"), text=text, columns=(w("pool"), w("keys")), rows=rows)


def _visible(section: Section) -> Section:
    """The section with every character of somebody else's named that would move a cursor or reorder text."""
    rows = tuple(tuple(map(visible, row)) for row in section.rows)
    columns, text = tuple(map(visible, section.columns)), tuple(map(visible, section.text))
    return replace(section, title=visible(section.title), text=text, columns=columns, rows=rows)


def datasheet_tables(facts: Mapping[str, Any], lang: str = "en") -> Iterator[RenderableType]:
    """For a terminal."""
    for section in map(_visible, sections(facts, lang)):
        caption = "\n".join(line for text in section.text for line in wrap(text, _WIDTH) or [""])
        if section.rows:
            yield table(section.title, section.columns, section.rows, total=section.total, caption=caption)
        else:
            yield Text(section.title, style="bold")
            yield Text(f"{caption}\n", style="dim")


def markdown(facts: Mapping[str, Any], lang: str = "en") -> str:
    """As Markdown, every text of somebody else's as it is."""
    lines: list[str] = []
    for place, section in enumerate(map(_visible, sections(facts, lang))):
        lines += [f"{'##' if place else '#'} {_plain(section.title)}", ""]
        lines += [line for text in section.text for line in (_plain(text), "")]
        if section.rows:
            lines.append(_row(section.columns))
            lines.append("|" + "|".join(["---", *["---:"] * (len(section.columns) - 1)]) + "|")
            lines += [_row(row) for row in section.rows]
            lines += [_row(section.total)] if section.total else []
            lines.append("")
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """A text that Markdown shows as it is.

    >>> _plain("a|b <i> *c* [d](e)")
    'a\\\\|b &lt;i&gt; \\\\*c\\\\* \\\\[d\\\\](e)'
    """
    flat = escape(" ".join(text.split()), quote=False)
    return "".join(f"\\{sign}" if sign in "\\`*_[]|#~" else sign for sign in flat)


def page(facts: Mapping[str, Any], lang: str = "en") -> str:
    """As a page that needs nothing else."""
    parts = []
    for place, section in enumerate(map(_visible, sections(facts, lang))):
        level = "h2" if place else "h1"
        parts.append(f"<{level}>{escape(section.title)}</{level}>")
        parts += [f"<p>{escape(text)}</p>" for text in section.text]
        if section.rows:
            parts.append(_html_table(section))
    title = f"{facts['run']['name']}"
    return (
        f'<!doctype html>\n<html lang="{"zh" if lang == "zh" else "en"}"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _html_table(section: Section) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in section.columns)
    rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in section.rows]
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    if section.total:
        body += (
            '<tr class="total">' + "".join(f"<td>{escape(cell)}</td>" for cell in section.total) + "</tr>\n"
        )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
