"""A datasheet for people: its sections as tables on a terminal, as Markdown, or as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from textwrap import wrap
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from recipe.report.datasheet_sections import Section, sections
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


def _visible(section: Section) -> Section:
    """The section with every character of somebody else's named that would move a cursor or reorder text."""
    rows = tuple(tuple(map(visible, row)) for row in section.rows)
    columns, text = tuple(map(visible, section.columns)), tuple(map(visible, section.text))
    return replace(section, title=visible(section.title), text=text, columns=columns, rows=rows)
