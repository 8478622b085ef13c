"""Comparing runs at equal steps: what each read, what was measured, and whether that can be compared.

Nothing is locked or written, and no pool is opened: runs are compared by their records alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from recipe.config import recipe_from_plain
from recipe.errors import Problem, RecipeError
from recipe.run.canonical import Plain
from recipe.run.comparing.arms import Arm, arms_of, identity_of, seeds_of
from recipe.run.comparing.comparable import Contestant, remarks
from recipe.run.comparing.comparison import Comparison, Question, RunAtStep
from recipe.run.comparing.effects import Cell, Metric, effects, find_metrics, none_of, ranked
from recipe.run.comparing.history import History, common_steps, decisions_about, read_history
from recipe.run.comparing.lineage_tree import lineage_tree
from recipe.run.comparing.margins import judge, read_margins
from recipe.run.comparing.measured import (
    Direction,
    amounts_differ,
    is_sealed,
    metrics_at,
    without_amounts,
    without_sealed,
)
from recipe.run.comparing.throughput import rest_at
from recipe.run.manifest import manifest_path

_SHOWN = 12


def compare_runs(
    paths: Sequence[str | Path],
    step: int | None = None,
    *,
    no_worse_than: Mapping[str, object] | None = None,
    better: Mapping[str, Direction] | None = None,
    rank_by: str | None = None,
) -> Comparison:
    """Hold runs against the first of them, at a step at which all have a checkpoint.

    Runs that differ only in seeds are one arm. Final sets (``final/NAME``) are left out.

    Args:
        paths: folders of runs.
        step: default: the last step at which all have a checkpoint.
        no_worse_than: margins by metric (``SET.NAME``, or ``NAME`` for every set): a number in its units.
        better: ``lower`` or ``higher`` by metric, where its name does not tell.
        rank_by: the metric that arms are ranked by, such as ``sft/short.accuracy``.

    Raises:
        RecipeError: no run, no common step, a damaged record, a metric that is not there.
    """
    question = Question(step=step, no_worse_than=no_worse_than or {}, better=better or {}, rank_by=rank_by)
    return compared(read_histories(paths), question)


def read_histories(paths: Sequence[str | Path]) -> list[History]:
    """The records of runs, each run once.

    Raises:
        RecipeError: no path, no run, a damaged record, or a run given twice.
    """
    if not paths:
        raise RecipeError.single(
            "nothing to compare", "RUN", given="no run", expected="runs", fix="name two runs or more"
        )
    histories = [read_history(path) for path in paths]
    seen: dict[str, History] = {}
    problems = []
    for history in histories:
        if history.id in seen:
            given = f"the same run as {seen[history.id].folder.path}"
            fix = "name each run once; a copied folder is the same run"
            problems.append(Problem(str(history.folder.path), given, "another run", fix))
        seen.setdefault(history.id, history)
    if problems:
        raise RecipeError("runs given twice", problems)
    return histories


def compared(histories: Sequence[History], question: Question, *, final: bool = False) -> Comparison:
    """The comparison of some runs; ``final``: with the sets that are sealed otherwise."""
    margins = read_margins(question.no_worse_than)
    step, steps = _step(histories, question.step)
    contestants = [
        _contestant(label, history, step)
        for label, history in zip(_labels(histories), histories, strict=True)
    ]
    measured = [metrics_at(history, step) for history in histories]
    shown = [told if final else without_sealed(told) for told in measured]
    arms = arms_of(
        [
            (each.label, identity_of(each.history, each.recipe, step), seeds_of(each.recipe))
            for each in contestants
        ]
    )
    metrics = effects(arms, [without_amounts(told) for told in shown], question.better)
    sealed = _sealed(contestants, measured)
    return Comparison(
        step=step,
        common_steps=tuple(steps),
        runs=tuple(
            _run(each, _arm_of(arms, place), told)
            for place, (each, told) in enumerate(zip(contestants, shown, strict=True))
        ),
        arms=tuple(arms),
        metrics=tuple(metrics),
        judgements=tuple(judge(margins, metrics)),
        rank_by=question.rank_by,
        ranking=_ranking(question.rank_by, metrics),
        lineage=lineage_tree([(each.history, each.point) for each in contestants]),
        sealed={} if final else sealed,
        opened=tuple(sealed) if final else (),
        decided=bool(decisions_about(histories)),
        remarks=(*remarks(contestants, arms, step), *amounts_differ(_labels(histories), shown)),
    )


def _step(histories: Sequence[History], wanted: int | None) -> tuple[int, list[int]]:
    """The step to compare at, and all that there are.

    Raises:
        RecipeError: there is none, or not the one that is wanted.
    """
    steps = common_steps(list(histories))
    if wanted in steps or (wanted is None and steps):
        return (steps[-1] if wanted is None else wanted), steps
    if not steps:
        problems = [
            Problem(
                str(history.folder.path),
                f"checkpoints at {_listed(sorted({point.step for point in history.points}))}",
                "a step at which every run has a checkpoint",
                "write checkpoints at the same steps in every run that shall be compared",
            )
            for history in histories
        ]
        raise RecipeError("no step at which all runs have a checkpoint", problems)
    raise RecipeError.single(
        "not every run has a checkpoint there",
        "--step",
        given=wanted,
        expected=f"one of the common steps: {_listed(steps)}",
        fix="give one of these, or leave it out for the last",
    )


def _listed(steps: Sequence[int]) -> str:
    text = ", ".join(f"{step:,}" for step in steps[-_SHOWN:])
    return f"…, {text}" if len(steps) > _SHOWN else text or "no step"


def _labels(histories: Sequence[History]) -> list[str]:
    names = [history.name for history in histories]
    return [
        name if names.count(name) == 1 else str(history.folder.path)
        for name, history in zip(names, histories, strict=True)
    ]


def _contestant(label: str, history: History, step: int) -> Contestant:
    point = history.at(step)[-1]
    manifest = history.manifest(point)
    source = str(manifest_path(history.folder.path, point.manifest))
    recipe = recipe_from_plain(manifest["recipe"]["resolved"], source=source)
    return Contestant(label=label, history=history, point=point, manifest=manifest, recipe=recipe)


def _run(each: Contestant, arm: Arm, metrics: dict[str, Plain]) -> RunAtStep:
    history, manifest = each.history, each.manifest
    parent = history.parent
    hours = [at.gpu_hours for at in history.at(each.point.step) if at.gpu_hours is not None]
    return RunAtStep(
        label=each.label,
        name=history.name,
        id=history.id,
        path=str(history.folder.path),
        arm=arm.name,
        seeds=seeds_of(each.recipe),
        manifest=each.point.manifest,
        manifest_hash=each.point.manifest_hash,
        version=each.point.version,
        fingerprint=str(manifest["recipe"]["fingerprint"]),
        parent=parent
        and {key: parent.get(key) for key in ("run", "id", "manifest", "step", "data", "named")},
        count=each.recipe.count,
        positions=each.point.positions,
        gpu_hours=hours[-1] if hours else None,
        prior=manifest.get("prior"),
        pools={
            name: {**pool["tokens"], "sequences": pool["sequences"]}
            for name, pool in manifest["pools"].items()
        },
        groups={name: tuple(group.pools) for name, group in each.recipe.groups.items()},
        metrics=metrics,
        rest=rest_at(history, each.point.step),
    )


def _arm_of(arms: Sequence[Arm], run: int) -> Arm:
    return next(arm for arm in arms if run in arm.runs)


def _sealed(
    contestants: Sequence[Contestant], measured: Sequence[Mapping[str, Plain]]
) -> dict[str, tuple[str, ...]]:
    """Final sets by name, with the runs that have them."""
    found: dict[str, list[str]] = {}
    for each, told in zip(contestants, measured, strict=True):
        for name in filter(is_sealed, told):
            found.setdefault(name, []).append(each.label)
    return {name: tuple(runs) for name, runs in sorted(found.items())}


def _ranking(name: str | None, metrics: Sequence[Metric]) -> tuple[Cell, ...]:
    if name is None:
        return ()
    found = find_metrics(name, metrics)
    if len(found) == 1:
        return tuple(ranked(found[0]))
    if not found:
        raise RecipeError("no metric to rank by", [none_of("--rank-by", name, metrics)])
    raise RecipeError.single(
        "several metrics to rank by",
        "--rank-by",
        given=name,
        expected=f"one of {', '.join(metric.name for metric in found)}",
        fix="name one of these as SET.NAME",
    )
