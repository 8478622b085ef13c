"""What speaks against comparing runs: no common ancestor, other checkpoints, differences nobody named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.config import Recipe
from recipe.run.branching.controlled import Side, compare_sides
from recipe.run.canonical import Plain
from recipe.run.comparing.arms import Arm, without_seeds
from recipe.run.comparing.history import History, Point
from recipe.run.comparing.lineage_tree import ancestry

STRANGERS = "no common ancestor: they share no checkpoint"
"""What is said of runs that never were one."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A run at the compared step."""

    label: str
    """The run's name; its path where several have that name."""
    history: History
    point: Point
    """The last checkpoint there."""
    manifest: Plain
    recipe: Recipe
    """In force there."""


@dataclass(frozen=True)
class _Exit:
    """Where a run's line leaves an ancestor; ``step`` and ``manifest`` are None for the ancestor itself."""

    step: int | None
    manifest: str | None
    named: tuple[str, ...]
    data: tuple[str, ...]


def remarks(contestants: Sequence[Contestant], arms: Sequence[Arm], step: int) -> list[str]:
    """Everything that a reader of the comparison must know, loudest first; empty for a controlled one."""
    told = [
        f"{each.label} is an uncontrolled branch: {'; '.join(_against(each.history.parent))}"
        for each in contestants
        if each.history.parent is not None and not each.history.parent.get("controlled")
    ]
    for place, other in enumerate(contestants[1:], start=1):
        first = contestants[_counterpart(place, arms)]
        told += [f"{other.label} against {first.label}: {line}" for line in _against_each_other(first, other)]
    for each in contestants:
        told += _turned(each, step, _shared_row(each, contestants))
    for arm in arms:
        if len(set(arm.seeds)) < len(arm.seeds):
            names = ", ".join(contestants[run].label for run in arm.runs)
            told.append(f"{names}: some have the same seed, and repeat nothing by chance")
    return list(dict.fromkeys(told))


def _counterpart(run: int, arms: Sequence[Arm]) -> int:
    """The run that another one is held against: of the first arm, with the same seeds where there is one."""
    seeds = next(arm.seeds[arm.runs.index(run)] for arm in arms if run in arm.runs)
    base = arms[0]
    same = [each for each, own in zip(base.runs, base.seeds, strict=True) if own == seeds and each != run]
    return same[0] if same else 0


def _against(parent: Plain | None) -> list[str]:
    parent = parent or {}
    return [str(line) for line in parent.get("against") or parent.get("differs") or ["not said why"]]


def _against_each_other(first: Contestant, other: Contestant) -> Iterator[str]:
    mine, theirs = _exits(first.history), _exits(other.history)
    common = next((run for run in mine if run in theirs), None)
    if common is None:
        yield STRANGERS
        a, b = _Exit(None, None, (), ()), _Exit(None, None, (), ())
    else:
        a, b = mine[common], theirs[common]
        yield from _parted(first, other, common, (a, b))
    step = min((at.step for at in (a, b) if at.step is not None), default=0)
    origin = [at.manifest or b.manifest or a.manifest for at in (a, b)]
    control = compare_sides(
        _side(first, step, origin[0]), _side(other, step, origin[1]), (*a.named, *b.named)
    )
    yield from control.against
    if a.data != b.data:
        yield f"data: {', then '.join(a.data) or 'read on'} → {', then '.join(b.data) or 'read on'}"
    for what, x, y in (
        ("positions consumed", first.point.positions, other.point.positions),
        ("counted kind", first.recipe.count, other.recipe.count),
    ):
        if x != y:
            yield f"{what}: {_text(x)} → {_text(y)}"


def _parted(first: Contestant, other: Contestant, common: str, exits: tuple[_Exit, _Exit]) -> Iterator[str]:
    """A branch and the ancestor it left: whether that one still has the checkpoint."""
    for ancestor, branch, at in ((first, other, exits[1]), (other, first, exits[0])):
        if ancestor.history.id != common or at.manifest is None:
            continue
        kept = {point.manifest_hash for point in ancestor.history.points}
        if at.manifest not in kept:
            yield f"{ancestor.label} was rewound past step {at.step}, where {branch.label} left its line"


def _exits(history: History) -> dict[str, _Exit]:
    """By the id of the run itself and of each ancestor: where the run's line left it, nearest first."""
    exits = {history.id: _Exit(None, None, (), ())}
    named: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    for child, _ in [*ancestry(history)]:
        parent = child.parent or {}
        named = (*(str(key) for key in parent.get("named", ())), *named)
        if parent.get("data") == "fresh" or parent.get("fresh"):
            data = (f"{', '.join(parent.get('fresh', ['all pools']))} fresh", *data)
        exits[str(parent["id"])] = _Exit(int(parent["step"]), str(parent["hash"]), named, data)
    return exits


def _side(each: Contestant, step: int, origin: str | None) -> Side:
    pools = each.manifest["pools"]
    return Side(
        recipe=without_seeds(each.recipe),
        pools={name: str(pool["fingerprint"]) for name, pool in pools.items()},
        tokenizers={name: pool["tokenizer"] for name, pool in pools.items()},
        step=step,
        origin=origin,
    )


def _turned(each: Contestant, step: int, shared: int) -> Iterator[str]:
    words = {"amend": "was amended", "data": "went on with new data", "skip": "skipped steps"}
    for turn in each.history.turns:
        if turn.step <= step and turn.row > shared:
            yield f"{each.label} {words.get(turn.kind, 'had documents withdrawn')} at step {turn.step:,}"


def _shared_row(each: Contestant, contestants: Sequence[Contestant]) -> int:
    """The row of a run's checkpoint that the first line of the others left it at; 0 where none did."""
    lines = [_exits(other.history) for other in contestants if other is not each]
    left = {line[each.history.id].manifest for line in lines if each.history.id in line}
    return min((point.row for point in each.history.points if point.manifest_hash in left), default=0)


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
