"""What rules do to the pools' texts: tables for a terminal, and a page with bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from rich.console import Group

from recipe.errors import counted
from recipe.report.figures import amount, ratio
from recipe.report.tables import table

Plain = Mapping[str, Any]
EIGHTHS = tuple(f"≤{eighth}/8" for eighth in range(1, 9))
_BAR, _ROW, _LEFT = 260, 22, 150


def diagnosis_tables(plain: Plain) -> Iterator[Group]:
    """Tables of the plain form, by stage: readings, cuts, rows, and each epoch of every pool."""
    for stage, pools in plain.items():
        yield _read(stage, pools)
        yield _cut(stage, pools)
        yield _rows(stage, pools)
        yield _epochs(stage, pools)


def _read(stage: str, pools: Plain) -> Group:
    return table(
        f"stage {stage}: how often tokens are read in one epoch",
        ("pool", "overlap", "mean", "once", "twice", "more often", "never"),
        (
            (
                name,
                ratio(of["overlap"], of["body"]),
                f"{of['mean_readings']:.4g}",
                *(amount(tokens) for tokens in _times(of["readings"])),
            )
            for name, of in pools.items()
        ),
        caption="overlap: of the document positions; tokens of the blocks looked at",
    )


def _times(readings: Plain) -> tuple[int, int, int, int]:
    more = sum(tokens for times, tokens in readings.items() if int(times) > 2)
    return readings.get("1", 0), readings.get("2", 0), more, readings.get("0", 0)


def _cut(stage: str, pools: Plain) -> Group:
    known: Plain = next((of["places"] for of in pools.values() if of["places"] is not None), {})
    return table(
        f"stage {stage}: where documents are cut",
        ("pool", "cuts", *known),
        (
            (
                name,
                f"{of['cuts']:,}",
                *(["–"] * len(known) if of["places"] is None else _shares(of["places"])),
            )
            for name, of in pools.items()
        ),
        caption="a place counts as the coarsest kind that it is; – : nobody said what the tokens spell",
    )


def _shares(counts: Plain) -> list[str]:
    whole = sum(counts.values())
    return [ratio(count, whole) if whole else "" for count in counts.values()]


def _rows(stage: str, pools: Plain) -> Group:
    return table(
        f"stage {stage}: rows",
        (
            "pool",
            "whole windows",
            "full rows",
            "documents in a row",
            "neighbours",
            "again next epoch",
        ),
        (
            (
                name,
                ratio(of["lengths"][-1], sum(of["lengths"])),
                ratio(of["filling"][-1], sum(of["filling"])),
                f"{of['documents_per_row']:.2f}",
                f"{of['neighbours']:,}",
                ratio(of["neighbours_again"], of["neighbours"]) if of["neighbours"] else "",
            )
            for name, of in pools.items()
        ),
        caption="whole, full: more than seven eighths; neighbours: documents side by side in a row",
    )


def _epochs(stage: str, pools: Plain) -> Group:
    rows = []
    for name, of in pools.items():
        for number, epoch in enumerate(of["epochs"]):
            dropped = {key[8:]: tokens for key, tokens in epoch.items() if key.startswith("dropped_")}
            rows.append(
                (
                    name if number == 0 else "",
                    str(number),
                    f"{epoch['sequences']:,}",
                    amount(epoch["body"] - epoch["overlap"]),
                    amount(epoch["overlap"]),
                    amount(epoch["special"]),
                    amount(epoch["padding"]),
                    ", ".join(f"{reason} {amount(tokens)}" for reason, tokens in dropped.items()) or "0",
                )
            )
    columns = ("pool", "epoch", "sequences", "fresh", "overlap", "special", "padding", "dropped")
    return table(f"stage {stage}: what each reading of a pool gives", columns, rows)


def diagnosis_page(title: str, plain: Plain) -> str:
    """The same as figures, on one page that needs nothing else."""
    parts = []
    for stage, pools in plain.items():
        parts.append(f"<h2>stage {escape(stage)}</h2>")
        for name, of in pools.items():
            told = (
                f"{counted(of['documents'], 'document')} looked at, "
                f"overlap {ratio(of['overlap'], of['body'])}, "
                f"tokens read {of['mean_readings']:.4g} times, {of['cuts']:,} cuts"
            )
            figures = [
                _bars("times a token is read", {f"{n} ×": t for n, t in of["readings"].items()}),
                _bars("pieces, by length in windows", dict(zip(EIGHTHS, of["lengths"], strict=True))),
                _bars("rows, by filling", dict(zip(EIGHTHS, of["filling"], strict=True))),
                *([] if of["places"] is None else [_bars("where documents are cut", of["places"])]),
            ]
            parts.append(f"<h3>{escape(name)}</h3><p>{told}</p><div>{''.join(figures)}</div>")
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}"
        "div{display:flex;flex-wrap:wrap;gap:1.5rem}h3{margin-bottom:0}p{margin-top:.2rem;color:#555}"
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<style>{style}</style><h1>{escape(title)}</h1>\n{''.join(parts)}\n</html>\n"
    )


def _bars(title: str, counts: Mapping[str, int]) -> str:
    """Horizontal bars, one a count, with its share of all."""
    whole, height = sum(counts.values()), _ROW * (len(counts) + 1) + 8
    lines: Sequence[str] = [
        _bar(place, label, count, whole) for place, (label, count) in enumerate(counts.items(), start=1)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_LEFT + _BAR + 80}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<text x="0" y="14" font-weight="bold">{escape(title)}</text>{"".join(lines)}</svg>'
    )


def _bar(place: int, label: str, count: int, whole: int) -> str:
    y, width = _ROW * place + 6, _BAR * count / whole if whole else 0
    return (
        f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
        f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_ROW - 6}" fill="#1f6f8b"/>'
        f'<text x="{_LEFT + width + 6:.1f}" y="{y + 12}">{ratio(count, whole) if whole else "0"}</text>'
    )
