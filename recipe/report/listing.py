"""Thousands of rows as plain aligned text: a table of :mod:`recipe.report.tables` takes seconds for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len


def listing(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a header and rows: the first and the last column to the left, those between to the right.

    >>> list(listing(("manifest", "step", ""), [("1", "10", "late"), ("2", "4,000", "")]))
    ['manifest   step', '1            10  late', '2         4,000']
    """
    cells = [columns, *rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        parts = []
        for place, (text, width) in enumerate(zip(row, widths, strict=True)):
            gap = " " * (width - cell_len(text))
            parts.append(text + gap if place in (0, len(widths) - 1) else gap + text)
        yield "  ".join(parts).rstrip()
