"""One look for every table: left names, right numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    total: Sequence[str] = (),
) -> Group:
    """A titled table of names and numbers: the first column is text; ``total`` is a last row set apart.

    Every cell is shown as it is: a pool may be called ``[b]``.
    """
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        made.add_column(column, justify="right" if place else "left", no_wrap=True, overflow="fold")
    cells = list(rows)
    for place, row in enumerate(cells):
        made.add_row(*map(Text, row), end_section=bool(total) and place == len(cells) - 1)
    if total:
        made.add_row(*map(Text, total))
    lines: list[Text | Table] = [Text(title, style="bold"), made]
    if caption:
        lines[1:] = [made, Text(caption, style="dim"), Text()]
    return Group(*lines)
