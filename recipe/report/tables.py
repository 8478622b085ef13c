"""One look for every table: left names, right numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    total: Sequence[str] = (),
) -> Table:
    """A table of names and numbers: the first column is text; ``total`` is a last row set apart."""
    made = Table(
        title=title,
        caption=caption,
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        pad_edge=False,
    )
    made.title_style = "bold"
    for place, column in enumerate(columns):
        made.add_column(column, justify="right" if place else "left", no_wrap=True, overflow="fold")
    cells = list(rows)
    for place, row in enumerate(cells):
        made.add_row(*row, end_section=bool(total) and place == len(cells) - 1)
    if total:
        made.add_row(*total)
    return made
