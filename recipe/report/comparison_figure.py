"""A comparison as a figure: what each arm gains and loses in every area, with intervals, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from recipe.run.comparing.comparison import Comparison
from recipe.run.comparing.effects import Cell, Metric

WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 760, 190, 40, 34, 74, 54
COLOURS = ("#1f6f8b", "#c05621", "#5b4b8a", "#3f7d20", "#8b1f4f")
_TICKS = 4


def comparison_svg(comparison: Comparison) -> str:
    """Differences to the first arm, a row a metric, a mark an arm; intervals where a spread is known.

    Pools' own training losses are left out: other mixtures read other text there. Better is to the left where
    a metric is better when lower, as the row says.

    Args:
        comparison: of two or more arms.

    Returns:
        A whole SVG document, the same for the same comparison.
    """
    rows = [metric for metric in comparison.metrics if not metric.set.startswith("pool:") and _arms(metric)]
    reach = max((_reach(cell) for metric in rows for cell in _arms(metric)), default=0.0) or 1.0
    height = TOP + ROW * max(len(rows), 1) + BOTTOM
    first = comparison.arms[0].name if comparison.arms else ""
    names = [arm.name for arm in comparison.arms[1:]]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(LEFT, 24, f"difference to {first} at step {comparison.step:,}", size=15),
        *_legend(names),
        *_axis(reach, height),
    ]
    for place, metric in enumerate(rows):
        lines += _row(metric, TOP + ROW * place + ROW / 2, names, reach)
    return "\n".join([*lines, "</svg>", ""])


def _arms(metric: Metric) -> list[Cell]:
    return [cell for cell in metric.cells[1:] if cell.delta is not None]


def _reach(cell: Cell) -> float:
    assert cell.delta is not None
    return abs(float(cell.delta.mean)) + (cell.delta.half_width or 0.0)


def _x(value: float, reach: float) -> float:
    half = (WIDTH - LEFT - RIGHT) / 2
    return LEFT + half + half * value / (1.05 * reach)


def _legend(names: Sequence[str]) -> Iterator[str]:
    x = LEFT
    for name, colour in zip(names, COLOURS * len(names), strict=False):
        yield f'<circle cx="{x + 5}" cy="44" r="5" fill="{colour}"/>'
        yield _text(x + 16, 49, name)
        x += 40 + 8 * len(name)


def _axis(reach: float, height: int) -> Iterator[str]:
    bottom = height - BOTTOM
    for tick in range(-_TICKS, _TICKS + 1):
        value = reach * tick / _TICKS
        x, strong = _x(value, reach), tick == 0
        yield (
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" '
            f'stroke="{"#444" if strong else "#e2e2e2"}"/>'
        )
        if tick % 2 == 0:
            yield _text(x, bottom + 18, f"{value:+.3g}" if tick else "0", anchor="middle")


def _row(metric: Metric, y: float, names: Sequence[str], reach: float) -> Iterator[str]:
    way = "lower is better" if metric.better == "lower" else "higher is better"
    yield _text(LEFT - 12, y + 1, metric.name, anchor="end")
    yield _text(LEFT - 12, y + 13, way, anchor="end", size=10, colour="#777")
    for cell in _arms(metric):
        assert cell.delta is not None
        place = names.index(cell.arm)
        colour, mean, half = COLOURS[place % len(COLOURS)], float(cell.delta.mean), cell.delta.half_width
        at = y + 7 * (place - (len(names) - 1) / 2)
        if half is not None:
            ends = (_x(mean - half, reach), _x(mean + half, reach))
            yield (
                f'<line x1="{ends[0]:.1f}" y1="{at:.1f}" x2="{ends[1]:.1f}" y2="{at:.1f}" '
                f'stroke="{colour}" stroke-width="2"/>'
            )
        fill = colour if half is not None else "white"
        told = f"{cell.arm}, {metric.name}: {mean:+.4g}" + ("" if half is None else f" ± {half:.2g}")
        yield (
            f'<circle cx="{_x(mean, reach):.1f}" cy="{at:.1f}" r="4.5" fill="{fill}" stroke="{colour}" '
            f'stroke-width="2"><title>{escape(told)}</title></circle>'
        )


def _text(  # noqa: PLR0913 - what a text in SVG has
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, colour: str = "#222"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
