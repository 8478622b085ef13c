"""A row of a run as text with its parts marked: on a terminal, and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rich.console import Group
from rich.text import Text

from recipe.report.tables import table
from recipe.report.traces import FROM_TOKENS
from recipe.run.tracing.looking import Look, Stretch
from recipe.run.tracing.values import RowPiece

STYLES = {"fresh": "", "overlap": "on grey23", "special": "bold magenta", "padding": "grey50"}
UNLABELLED = "italic yellow"
"""Of positions without a label."""
LEGEND = (
    ("fresh", "fresh, learned here"),
    ("overlap", "overlap: read again as context"),
    ("special", "mark or marker"),
    ("padding", "padding"),
)

_STYLE_SHEET = """
body { font: 15px/1.6 system-ui, sans-serif; color: #1a1a1a;
       margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
pre { font: 14px/1.7 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
      border: 1px solid #ccc; padding: 1rem }
h2 { font-size: 1rem; margin: 1.5rem 0 .3rem } .overlap { background: #d6e4f5 }
.special { color: #a3158a; font-weight: bold } .padding { color: #777 }
.unlabelled { font-style: italic; color: #8a5a00; border-bottom: 1px dotted }
.edge { color: #0a6b3d; font-weight: bold } .key { margin-right: 1.5rem }
"""


def look_lines(look: Look, *, every: bool = False) -> Iterator[Group | Text]:
    """The row for a terminal: what it holds, its text, and without colours a table of its stretches."""
    yield Text(_title(look), style="bold")
    legend = Text()
    for kind, told in LEGEND:
        legend.append(f" {told} ", style=STYLES[kind]).append("  ")
    yield legend.append(" no label ", style=UNLABELLED)
    yield _text(look)
    if any(piece.source.known_from == "tokens" and piece.source.characters for piece in look.pieces):
        yield Text(FROM_TOKENS, style="dim")
    if every:
        yield table(
            "stretches",
            ("kind", "columns", "labels", "segment", "piece", "tokens"),
            (_cells(one) for one in look.stretches),
        )


def _title(look: Look) -> str:
    counts = ", ".join(f"{count:,} {kind}" for kind, count in look.positions.items())
    return (
        f"{look.run}: step {look.step:,}, row {look.row}, stage {look.stage}, context {look.context:,}: "
        f"{counts}; {look.labels:,} labels"
    )


def _text(look: Look) -> Text:
    page = Text()
    last: int | None = None
    for one in look.stretches:
        if one.piece is not None and one.piece != last:
            page.append(f"\n{edge_of(look.pieces[one.piece])}\n", style="bold green")
            last = one.piece
        if one.kind == "padding":
            page.append(f"\n{_padding(one)}", style=STYLES["padding"])
            continue
        style = " ".join(filter(None, [STYLES[one.kind], "" if one.labelled else UNLABELLED]))
        page.append(one.text, style=style)
    return page


def edge_of(piece: RowPiece) -> str:
    """The line in front of a piece: its document, its tokens, and where they stand in the source.

    >>> from recipe.run.tracing.sources import SourcePlace
    >>> edge_of(RowPiece(pool="code", document="a.py", epoch=0, columns=(0, 5), start=3, stop=8, fresh=4,
    ...     status="read", source=SourcePlace(source="a.py", lines=(2, 4), characters=(10, 31))))
    '── code: a.py, tokens 3..8, of them 1 overlap; a.py lines 2–4, characters 10..31 ──'
    """
    told = f"{piece.pool}: {piece.document}, tokens {piece.start:,}..{piece.stop:,}"
    if overlap := min(piece.fresh, piece.stop) - piece.start:
        told += f", of them {overlap:,} overlap"
    where, source = "", piece.source
    if source.file is not None or source.source is not None:
        where = f"; {source.file or source.source}"
        within = source.line if source.member is None else source.member
        where += "" if within is None else f":{within}"
    if source.lines is not None:
        first, last = source.lines
        where += f" line {first}" if first == last else f" lines {first}–{last}"
    if source.characters is not None:
        where += f", characters {source.characters[0]:,}..{source.characters[1]:,}"
    return f"── {told}{where} ──"


def _padding(stretch: Stretch) -> str:
    return f"⟨padding, {stretch.columns[1] - stretch.columns[0]:,} positions⟩"


def _cells(stretch: Stretch) -> tuple[str, ...]:
    first, last = stretch.columns
    return (
        stretch.kind,
        f"{first:,}..{last:,}",
        "yes" if stretch.labelled else "no",
        str(stretch.segment) if stretch.segment >= 0 else "",
        "" if stretch.piece is None else str(stretch.piece),
        "" if stretch.tokens is None else f"{stretch.tokens[0]:,}..{stretch.tokens[1]:,}",
    )


def look_page(looks: list[Look]) -> str:
    """The rows as one page that needs nothing else: no script, no font, no network."""
    body = "\n".join(_section(look) for look in looks)
    keys = "".join(f'<span class="key {kind}">{escape(told)}</span>' for kind, told in LEGEND)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(_title(looks[0]))}</title>"
        f"<style>{_STYLE_SHEET}</style><p>{keys}<span class=unlabelled>no label</span></p>\n{body}\n</html>\n"
    )


def _section(look: Look) -> str:
    parts: list[str] = []
    last: int | None = None
    for one in look.stretches:
        if one.piece is not None and one.piece != last:
            opening = "\n" if parts else ""
            parts.append(f"{opening}<span class=edge>{escape(edge_of(look.pieces[one.piece]))}</span>\n")
            last = one.piece
        named = " ".join([one.kind, *([] if one.labelled or one.kind == "padding" else ["unlabelled"])])
        told = f"\n{_padding(one)}" if one.kind == "padding" else one.text
        title = f"columns {one.columns[0]}..{one.columns[1]}"
        if one.tokens is not None:
            title += f", tokens {one.tokens[0]}..{one.tokens[1]}"
        parts.append(f'<span class="{named}" title="{title}">{escape(told)}</span>')
    return f"<h2>{escape(_title(look))}</h2><pre>{''.join(parts)}</pre>"
