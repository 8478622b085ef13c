"""A comparison as tables: the runs, what each read, what was measured, margins, ranking, lineage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from recipe.maths.intervals import FEWEST, Estimate
from recipe.report.figures import amount
from recipe.report.tables import table
from recipe.run.comparing.comparison import Comparison, RunAtStep
from recipe.run.comparing.effects import Cell, Metric
from recipe.run.comparing.lineage_tree import Node
from recipe.run.comparing.throughput import Rest

NO_SPREAD = "no spread known"


def comparison_tables(comparison: Comparison) -> Iterator[RenderableType]:
    """Everything a comparison says, as a person reads it."""
    yield _runs(comparison)
    yield _pools(comparison)
    yield from _metrics(comparison)
    yield from _margins(comparison)
    yield from _ranking(comparison)
    yield lineage_text(comparison.lineage)


def warning_lines(comparison: Comparison) -> Iterator[str]:
    """What speaks against the comparison, and what is not shown."""
    for line in comparison.remarks:
        yield f"UNCONTROLLED: {line}"
    for name, runs in comparison.sealed.items():
        yield f"sealed until a decision: {name} ({', '.join(runs)})"


def _runs(comparison: Comparison) -> Group:
    rows = [_run_cells(run) for run in comparison.runs]
    columns = (
        "run",
        "arm",
        "seed",
        "branched from",
        "manifest",
        "positions",
        "counted",
        "GPU-hours",
        "positions per GPU-hour",
        "counted per GPU-hour",
        "GPU-hours of the rest",
        "time of the rest",
    )
    counts = sorted({run.count for run in comparison.runs})
    return table(
        f"at step {comparison.step:,}",
        columns,
        rows,
        caption=(
            f"counted: {' and '.join(counts)} tokens; GPU-hours as the trainers state them; the rest at the "
            "rate between a run's last two checkpoints that state them"
        ),
    )


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
        "–" if run.gpu_hours is None else f"{run.gpu_hours:,}",
        *_rest_cells(run.rest),
    )


def _rest_cells(rest: Rest | None) -> tuple[str, str, str, str]:
    if rest is None:
        return "–", "–", "–", "–"
    return (
        amount(round(rest.measured.positions_per_gpu_hour)),
        amount(round(rest.measured.counted_per_gpu_hour)),
        figure(rest.gpu_hours),
        "–" if rest.seconds is None else duration(rest.seconds),
    )


def _pools(comparison: Comparison) -> Group:
    first, *others = comparison.runs
    names = list(dict.fromkeys(name for run in comparison.runs for name in run.pools))
    columns = ["pool", first.label]
    for run in others:
        columns += [run.label, "more (+), less (-)"]
    rows = [[name, *_token_cells([run.spent.get(name) for run in comparison.runs])] for name in names]
    for group in dict.fromkeys(group for run in comparison.runs for group in run.groups):
        sums = [run.of_group(group) if group in run.groups else None for run in comparison.runs]
        rows.append([f"(group) {group}", *_token_cells(sums)])
    total = ["all", f"{first.counted:,}"]
    for run in others:
        total += [f"{run.counted:,}", exactly_signed(run.counted - first.counted)]
    return table("tokens read, cumulative", columns, rows, total=total)


def _token_cells(counts: Sequence[int | None]) -> Iterator[str]:
    """What each run read, and how much more than the first."""
    for place, count in enumerate(counts):
        yield "–" if count is None else f"{count:,}"
        if place:
            yield exactly_signed((count or 0) - (counts[0] or 0))


def _metrics(comparison: Comparison) -> Iterator[Group]:
    if not comparison.metrics:
        return
    columns = ["metric", "better"]
    for place, arm in enumerate(comparison.arms):
        columns += [arm.name, "difference"] if place else [arm.name]
    yield table(
        "metrics",
        columns,
        [_metric_cells(metric) for metric in comparison.metrics],
        caption=(
            f"means over an arm's seeds, ± half of the two-sided 95 % interval (Student's t); below {FEWEST} "
            f"seeds: {NO_SPREAD}; differences against {comparison.arms[0].name}, seed by seed where marked ="
        ),
    )


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
    text = _estimate_text(delta, f"{float(delta.mean):+.6g}")
    return f"{'= ' if paired else ''}{text} {word}{', or not' if is_open else ''}"


def _estimate_text(made: Estimate, mean: str) -> str:
    if made.half_width is None:
        return f"{mean} ({made.count} seed{'s' if made.count > 1 else ''}, {NO_SPREAD})"
    return f"{mean} ± {made.half_width:.3g} ({made.count} seeds)"


def _margins(comparison: Comparison) -> Iterator[Group]:
    if not comparison.judgements:
        return
    rows = [
        (
            each.metric,
            each.arm,
            "not finite" if each.worse_by is None else f"{float(each.worse_by):+.6g}",
            NO_SPREAD if each.at_worst is None else f"{each.at_worst:+.6g}",
            f"{float(each.margin):g}",
            each.verdict.upper() if each.verdict == "violated" else each.verdict,
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


def _ranking(comparison: Comparison) -> Iterator[Group]:
    if not comparison.ranking:
        return
    rows = [(str(place), cell.arm, mean_text(cell)) for place, cell in enumerate(comparison.ranking, start=1)]
    yield table(f"ranked by {comparison.rank_by}", ("place", "arm", "mean"), rows)


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


def figure(value: float) -> str:
    """A number to four figures.

    >>> [figure(value) for value in (0.0, 12.34567, 123456.7)]
    ['0', '12.35', '123,457']
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """A stretch of time in the unit that fits.

    >>> [duration(value) for value in (59, 5400, 200_000)]
    ['59 s', '1.5 h', '2.3 days']
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
