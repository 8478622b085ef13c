"""Mixtures of a screen in the order of a metric, at one step of all of them; and the best, on a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.maths.shares import parse_weight
from recipe.run.branching.branch import Branch, plan_branches
from recipe.run.branching.origin import Origin
from recipe.run.branching.wishes import Wish
from recipe.run.comparing.history import History, read_history
from recipe.run.comparing.measured import Direction, better, exact, is_sealed, metrics_at, without_sealed
from recipe.run.screening.screen import override_of, read_screen

_Told = Mapping[int, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """A mixture and what was measured of it."""

    rank: int
    """From 1; equal values have one rank."""
    name: str
    run: str
    value: int | float | str
    shares: Mapping[str, str]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "rank": self.rank,
            "name": self.name,
            "run": self.run,
            "value": self.value,
            "shares": dict(self.shares),
        }


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The mixtures of a screen, best first."""

    screen: Path
    screen_hash: str
    stage: str
    metric: str
    direction: Direction
    step: int
    ranked: tuple[Ranked, ...]
    lacking: tuple[str, ...]
    """Mixtures without a finite value there; they have no rank."""

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "screen": str(self.screen),
            "screen_hash": self.screen_hash,
            "stage": self.stage,
            "metric": self.metric,
            "direction": self.direction,
            "step": self.step,
            "ranked": [each.to_plain() for each in self.ranked],
            "lacking": list(self.lacking),
        }


def rank_screen(
    path: Path, metric: str, *, direction: Direction | None = None, step: int | None = None
) -> Ranking:
    """Rank the mixtures of a screen.

    Args:
        path: the screen's folder.
        metric: ``SET.NAME``, as given at checkpoints or attached later; or ``NAME``, where one set has it.
        direction: which way it is better; default: by its name (a loss is better when lower).
        step: of all runs; default: the last one at which every run that has the metric has it.

    Raises:
        RecipeError: no screen, a sealed set, no such metric, or no step that the runs share.
    """
    _refuse_sealed(metric)
    record = read_screen(path)
    shares = {mixture["name"]: mixture["shares"] for mixture in record["mixtures"]}
    histories = {mixture: read_history(path / mixture) for mixture in shares}
    told = {mixture: _told(history) for mixture, history in histories.items()}
    measured, name = _meant(path, metric, told.values())
    metric = f"{measured}.{name}"
    values = {mixture: _values(steps, measured, name) for mixture, steps in told.items()}
    at = step if step is not None else _common_step(path, metric, values)
    found = {mixture: exact(known[at]) for mixture, known in values.items() if at in known}
    finite = {mixture: value for mixture, value in found.items() if value is not None}
    if not finite:
        raise _unmeasured(path, metric, f"at step {at}", values)
    way: Direction = direction or better(name)
    order = sorted(finite, key=lambda mixture: (_sign(way) * finite[mixture], mixture))
    ranked = [
        Ranked(
            rank=1 + sum(_sign(way) * other < _sign(way) * finite[mixture] for other in finite.values()),
            name=mixture,
            run=str(path / mixture),
            value=values[mixture][at],
            shares=shares[mixture],
        )
        for mixture in order
    ]
    return Ranking(
        screen=path,
        screen_hash=str(record["hash"]),
        stage=str(record["stage"]),
        metric=metric,
        direction=way,
        step=at,
        ranked=tuple(ranked),
        lacking=tuple(mixture for mixture in shares if mixture not in finite),
    )


def _sign(direction: Direction) -> int:
    return 1 if direction == "lower" else -1


def _refuse_sealed(metric: str) -> None:
    if is_sealed(metric):
        raise RecipeError.single(
            "recipe screen",
            "--metric",
            given=metric,
            expected="a set that is not sealed: final tests are opened once, after a decision",
            fix="rank by a validation set, and open the final one with `recipe compare --open-final`",
        )


def _told(history: History) -> _Told:
    """What was measured of a run by step, sealed sets left out."""
    return {step: without_sealed(metrics_at(history, step)) for step in {at.step for at in history.points}}


def _meant(path: Path, metric: str, told: Iterable[_Told]) -> tuple[str, str]:
    """Set and name of a ``SET.NAME``, or of a ``NAME`` that one set has."""
    known = sorted(
        {
            (measured, name)
            for steps in told
            for metrics in steps.values()
            for measured, values in metrics.items()
            for name in values
        }
    )
    whole = [(measured, name) for measured, name in known if f"{measured}.{name}" == metric]
    found = whole or [(measured, name) for measured, name in known if name == metric]
    if len(found) == 1:
        return found[0]
    names = [f"{measured}.{name}" for measured, name in found or known]
    raise RecipeError.single(
        f"{path}: {'several metrics' if found else 'nothing'} to rank by",
        "--metric",
        given=metric,
        expected=f"one of {', '.join(names)}" if names else "a metric of a run: none has any yet",
        fix="write it like --metric validation.loss"
        if names
        else "run the mixtures and give the metric at their checkpoints, or attach it",
    )


def _values(told: _Told, measured: str, name: str) -> dict[int, int | float | str]:
    """A metric of a run by step."""
    sets = {step: told[step].get(measured, {}) for step in sorted(told)}
    return {step: values[name] for step, values in sets.items() if name in values}


def _common_step(path: Path, metric: str, values: Mapping[str, Mapping[int, Any]]) -> int:
    steps = [set(known) for known in values.values() if known]
    common = set.intersection(*steps) if steps else set()
    if not common:
        raise _unmeasured(path, metric, "at a step that its runs share", values)
    return max(common)


def _unmeasured(path: Path, metric: str, where: str, values: Mapping[str, Mapping[int, Any]]) -> RecipeError:
    known = {name: max(steps) for name, steps in values.items() if steps}
    shown = ", ".join(f"{name} at step {step:,}" for name, step in list(known.items())[:6]) or "none has it"
    return RecipeError.single(
        f"{path}: nothing to rank",
        "--metric",
        given=f"{metric}: {shown}",
        expected=f"a finite value {where}",
        fix="run the mixtures to one step and give the metric at the checkpoint there, or attach it",
    )


def plan_confirmation(
    ranking: Ranking,
    target: Origin,
    top: int,
    *,
    stage: str | None = None,
    roots: tuple[Path | None, Path | None] = (None, None),
) -> list[Branch]:
    """Branches of a target's checkpoint with the best mixtures of a screen; nothing is written yet.

    Args:
        ranking: of the screen.
        target: the checkpoint of the target model.
        top: how many.
        stage: of the target; default: the one that the screen varied.
        roots: where the branches go (default: beside the target), and where the pools are.

    Raises:
        RecipeError: as :func:`recipe.run.branching.branch.plan_branches`.
    """
    best = ranking.ranked[:top]
    at = stage or ranking.stage
    if at not in target.state.recipe.stages:
        raise RecipeError.single(
            "recipe screen",
            "--stage",
            given=at,
            expected=f"a stage of the target: {', '.join(target.state.recipe.stages)}",
            fix="say in which stage of the target the mixture goes",
        )
    wishes = [_wish(ranking, each, at) for each in best]
    return plan_branches(target, wishes, *roots)


def _wish(ranking: Ranking, ranked: Ranked, stage: str) -> Wish:
    shares = {name: parse_weight(text) for name, text in ranked.shares.items()}
    return Wish(
        name=f"confirm-{ranked.name}",
        overrides=(override_of(stage, shares),),
        reason=(
            f"mixture {ranked.name} of screen {ranking.screen.name} ({ranking.screen_hash[:16]}): "
            f"rank {ranked.rank} of {len(ranking.ranked)} by {ranking.metric}: "
            f"{ranked.value} at step {ranking.step}"
        ),
    )
