"""A comparison as tables: the runs, what each read, what was measured, margins, ranking, lineage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from recipe.errors import counted
from recipe.maths.intervals import FEWEST, Estimate
from recipe.report.hours import hours_table
from recipe.report.tables import table
from recipe.run.comparing.arms import Arm
from recipe.run.comparing.comparable import STRANGERS
from recipe.run.comparing.comparison import Comparison, RunAtStep
from recipe.run.comparing.effects import Cell, Metric
from recipe.run.comparing.lineage_tree import Node
from recipe.run.comparing.margins import Judgement

NO_SPREAD = "no spread known"
MOST_RUNS = 4
"""Runs that have a column each; of more, each arm has one."""
_RUN_COLUMNS: tuple[str, ...] = (
    "run",
    "arm",
    "seed",
    "branched from",
    "manifest",
    "positions",
    "counted",
)
MOST_REMARKS = 6
"""Lines about one run, or one against another, that are shown; all are in the JSON answer."""


def comparison_tables(comparison: Comparison) -> Iterator[RenderableType]:
    """Everything a comparison says, as a person reads it."""
    yield _runs(comparison)
    yield from hours_table(comparison)
    yield _pools(comparison)
    yield from _metrics(comparison)
    yield from _margins(comparison)
    yield from _ranking(comparison)
    yield lineage_text(comparison.lineage)


def warning_lines(comparison: Comparison) -> Iterator[str]:
    """What speaks against the comparison, a few lines of each kind, and what is not shown."""
    about: dict[str, list[str]] = {}
    for line in comparison.remarks:
        about.setdefault(line.partition(": ")[0], []).append(line)
    for subject, lines in about.items():
        yield from (f"UNCONTROLLED: {line}" for line in _few(subject, lines))
    said = "decided; --open-final opens" if comparison.decided else "sealed until a decision"
    for name, runs in comparison.sealed.items():
        yield f"{said}: {name} ({', '.join(runs)})"


def _few(subject: str, lines: Sequence[str]) -> Iterator[str]:
    """Lines about one subject: one of runs that share no start, of others the first few and how many more."""
    apart = next((line for line in lines if line.endswith(STRANGERS)), None)
    if apart is not None:
        yield f"{apart}; other differences: {len(lines) - 1} (--json lists them)"
        return
    most = len(lines) if len(lines) <= MOST_REMARKS + 1 else MOST_REMARKS
    yield from lines[:most]
    if len(lines) > most:
        yield f"{subject}: differences more: {len(lines) - most} (--json lists them)"


def _runs(comparison: Comparison) -> Group:
    counts = sorted({run.count for run in comparison.runs})
    rows = [_run_cells(run) for run in comparison.runs]
    caption = f"counted: {' and '.join(counts)} tokens"
    return table(f"at step {comparison.step:,}", _RUN_COLUMNS, rows, caption=caption)


def _run_cells(run: RunAtStep) -> tuple[str, ...]:
    seeds = dict(run.seeds)
    others = [f"{key} {value}" for key, value in seeds.items() if key != "seed"]
    parent = run.parent
    return (
        run.label,
        run.arm,
        ", ".join([str(seeds["seed"]), *others]),
        f"{parent['run']}@{parent['manifest']}, step {parent['step']:,}" if parent else "–",
        str(run.manifest),
        f"{run.positions:,}",
        f"{run.counted:,}",
    )


def _pools(comparison: Comparison) -> Group:
    """What each run read; of many runs, what those of each arm did."""
    runs = comparison.runs
    by_arm = len(runs) > MOST_RUNS and len(comparison.arms) < len(runs)
    columns = {arm.name: arm.runs for arm in comparison.arms}
    if not by_arm:
        columns = {run.label: (place,) for place, run in enumerate(runs)}

    base = _bases(comparison.arms) if by_arm else dict.fromkeys(range(len(runs)), 0)

    def cells(counts: Sequence[int | None]) -> Iterator[str]:
        for place, members in enumerate(columns.values()):
            here = [counts[run] for run in members]
            yield _span([f"{count:,}" for count in _sorted(here)])
            if place:
                more = sorted((counts[run] or 0) - (counts[base[run]] or 0) for run in members)
                yield _span([exactly_signed(count) for count in more])

    first, *others = columns
    titles = ["pool", first, *(title for name in others for title in (name, "more (+), less (-)"))]
    names = list(dict.fromkeys(name for run in runs for name in run.pools))
    rows = [[name, *cells([run.spent.get(name) for run in runs])] for name in names]
    for group in dict.fromkeys(group for run in runs for group in run.groups):
        sums = [run.of_group(group) if group in run.groups else None for run in runs]
        rows.append([f"(group) {group}", *cells(sums)])
    total = ["all", *cells([run.counted for run in runs])]
    caption = (
        f"a column an arm, least..most over its seeds; against the same seed of {first}" if by_arm else ""
    )
    return table("tokens read, cumulative", titles, rows, total=total, caption=caption)


def _bases(arms: Sequence[Arm]) -> dict[int, int]:
    """What each run is held against: the run of the first arm with its seeds, or else the first of all."""
    of_seeds = dict(zip(arms[0].seeds[::-1], arms[0].runs[::-1], strict=True))
    return {
        run: of_seeds.get(seeds, arms[0].runs[0])
        for arm in arms
        for run, seeds in zip(arm.runs, arm.seeds, strict=True)
    }


def _sorted(counts: Sequence[int | None]) -> list[int]:
    return sorted(count for count in counts if count is not None)


def _span(texts: Sequence[str]) -> str:
    """Sorted numbers as one text: one of them where all are alike, else the least and the most.

    >>> _span([]), _span(["7", "7"]), _span(["7", "8", "9"])
    ('–', '7', '7..9')
    """
    if not texts:
        return "–"
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]}..{texts[-1]}"


def _metrics(comparison: Comparison) -> Iterator[Group]:
    if not comparison.metrics:
        return
    columns = ["metric", "better"]
    for place, arm in enumerate(comparison.arms):
        columns += [arm.name, "difference"] if place else [arm.name]
    caption = "; ".join(["means over an arm's seeds", *_interval_texts(comparison.metrics)])
    if len(comparison.arms) > 1:
        caption += f"; differences against {comparison.arms[0].name}, seed by seed where marked ="
    yield table("metrics", columns, [_metric_cells(metric) for metric in comparison.metrics], caption=caption)


def _interval_texts(metrics: Sequence[Metric]) -> Iterator[str]:
    """What stands behind a mean: an interval, or, said once, that no spread is known."""
    made = [cell.estimate for metric in metrics for cell in metric.cells if cell.estimate is not None]
    if any(each.half_width is not None for each in made):
        yield "± half of the two-sided 95 % interval (Student's t)"
    if any(each.half_width is None for each in made):
        yield f"below {FEWEST} seeds: {NO_SPREAD}"


def _metric_cells(metric: Metric) -> list[str]:
    cells = [metric.name, metric.better]
    for place, cell in enumerate(metric.cells):
        cells.append(mean_text(cell))
        if place:
            cells.append("–" if cell.delta is None else _delta_text(metric, cell.delta, paired=cell.paired))
    return cells


def mean_text(cell: Cell) -> str:
    """A mean with its interval and the number of values behind it."""
    if not cell.values:
        return "–"
    if cell.estimate is None:
        return ", ".join(str(value) for value in cell.values.values())
    return _estimate_text(cell.estimate, f"{float(cell.estimate.mean):.6g}")


def _delta_text(metric: Metric, delta: Estimate, *, paired: bool) -> str:
    """A difference, whether it is for the better, and whether its interval leaves that open."""
    worse = metric.worse_by(delta)
    word = "worse" if worse > 0 else "better" if worse < 0 else "equal"
    is_open = worse and delta.half_width is not None and delta.half_width >= abs(worse)
    if not worse and not delta.half_width:
        return "equal"
    text = _estimate_text(delta, f"{float(delta.mean):+.6g}")
    return f"{'= ' if paired else ''}{text} {word}{', or not' if is_open else ''}"


def _estimate_text(made: Estimate, mean: str) -> str:
    if made.half_width is None:
        return f"{mean} ({counted(made.count, 'seed')})"
    return f"{mean} ± {made.half_width:.3g} ({made.count} seeds)"


def _margins(comparison: Comparison) -> Iterator[Group]:
    if not comparison.judgements:
        return
    rows = [
        (
            each.metric,
            each.arm,
            "not finite" if each.worse_by is None else f"{float(each.worse_by):+.6g}",
            "–" if each.at_worst is None else f"{each.at_worst:+.6g}",
            f"{float(each.margin):g}",
            _verdict(each),
        )
        for each in comparison.judgements
    ]
    columns = ("metric", "arm", "worse by", "at worst", "margin", "verdict")
    yield table(
        f"no worse than {comparison.arms[0].name} by more than a margin",
        columns,
        rows,
        caption="not shown: the mean is within the margin, the worse end of its interval is not",
    )


def _verdict(judged: Judgement) -> str:
    if judged.verdict == "holds on the mean":
        return f"{judged.verdict} ({NO_SPREAD})"
    return judged.verdict.upper() if judged.verdict == "violated" else judged.verdict


def _ranking(comparison: Comparison) -> Iterator[Group]:
    if not comparison.ranking:
        return
    rows = [(str(place), cell.arm, mean_text(cell)) for place, cell in enumerate(comparison.ranking, start=1)]
    made = [cell.estimate for cell in comparison.ranking if cell.estimate is not None]
    caption = f"below {FEWEST} seeds: {NO_SPREAD}" if any(each.half_width is None for each in made) else ""
    yield table(f"ranked by {comparison.rank_by}", ("place", "arm", "mean"), rows, caption=caption)


def lineage_text(nodes: tuple[Node, ...]) -> Group:
    """The runs and their ancestors as a tree, with the counted tokens of every stretch."""
    trees: dict[str, Tree] = {}
    roots: list[Tree] = []
    for node in nodes:
        label = Text(_node_text(node), style="bold" if node.compared else "")
        above = trees.get(node.parent or "")
        trees[node.id] = Tree(label) if above is None else above.add(label)
        if above is None:
            roots.append(trees[node.id])
    return Group(Text("lineage: what each read itself, and in total", style="bold"), *roots)


def _node_text(node: Node) -> str:
    total = f"{sum(node.total.values()):,} in total"
    if node.own is None:
        return f"{node.name}: to step {node.last:,}, {total} (its folder is not there, or it was rewound)"
    return f"{node.name}: steps {node.first:,}..{node.last:,}, {sum(node.own.values()):,} itself, {total}"


def exactly_signed(count: int) -> str:
    """A difference with all its digits.

    >>> [exactly_signed(n) for n in (0, 12_345_678, -1)]
    ['0', '+12,345,678', '-1']
    """
    return f"{count:+,}" if count else "0"
