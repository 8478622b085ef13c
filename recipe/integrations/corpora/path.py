"""The whole path: pools of each group, a recipe over them, its plan, its run, its audit, its leakage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recipe.errors import RecipeError
from recipe.integrations.corpora.folders import TextGroup
from recipe.integrations.corpora.measured import Measured, run_verb

QUOTAS: Mapping[str, Mapping[str, int]] = {
    "base": {"english": 40, "chinese": 15, "tutorials": 20, "code": 15, "maths": 8, "verified_code": 2},
    "long": {"english": 15, "chinese": 15, "tutorials": 30, "code": 25, "maths": 10, "verified_code": 5},
}
"""Percent of a stage's tokens; a group that is not named, and one that is not there, gets none."""
STEP = 2048 * 32
"""Positions of a step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What is asked for."""

    groups: Sequence[TextGroup]
    """By priority: of equal texts the first group's stays."""
    work: Path
    tokenizer: str
    eos: str | None = None
    held_percent: int = 2
    """Documents of each group that are held out."""
    steps: tuple[int, int] = (256, 64)
    """Of the two stages; each step has 65,536 positions."""
    say: Callable[[str], None] = print

    @property
    def prepared(self) -> dict[str, Path]:
        """Pools as they are prepared, by priority: held-out ones, then those that are trained on."""
        made = self.work / "prepared"
        apart = {group.name: made / group.name for group in self.groups if group.is_held_out}
        held = {f"{name}-held": made / name / f"{name}-held" for name in self.trained}
        return {**apart, **held, **{name: made / name / name for name in self.trained}}

    @property
    def trained(self) -> list[str]:
        """Names of the pools that are trained on."""
        return [group.name for group in self.groups if not group.is_held_out]


def follow(trial: Trial) -> Iterator[tuple[str, Measured]]:
    """Do every step, one after another; (its name, what it did). What is done already is found done.

    Raises:
        RecipeError: a step is refused.
    """
    trial.work.mkdir(parents=True, exist_ok=True)
    prepared, unique = trial.prepared, {name: trial.work / "pools" / name for name in trial.prepared}
    _write(trial.work / "before.yaml", recipe_of(trial, prepared))
    _write(trial.work / "recipe.yaml", recipe_of(trial, unique))
    for group in trial.groups:
        yield f"prepare {group.name}", _do(trial, prepare_words(trial, group))
    for name, words in after_pools(trial).items():
        yield name, _do(trial, words)


def prepare_words(trial: Trial, group: TextGroup) -> list[str]:
    """The verb that makes a group's pools: one, or one that is trained on and one that is held out."""
    name, eos = group.name, [] if trial.eos is None else ["--eos", trial.eos]
    held = trial.held_percent
    split = [] if group.is_held_out else ["--split", f"{name}={100 - held}%,{name}-held={held}%"]
    return [
        "prepare", str(trial.work / "prepared" / name), *map(str, group.files),
        "--tokenizer", trial.tokenizer, *eos, "--tag-key", "licence", "--tag-key", "source",
        "--duplicates", "drop", *split,
    ]  # fmt: skip


def after_pools(trial: Trial) -> dict[str, list[str]]:
    """The verbs that follow, by the name of their step."""
    prepared, work = [str(path) for path in trial.prepared.values()], trial.work
    recipe, run = str(work / "recipe.yaml"), work / "runs" / "corpora"
    return {
        "overlap": ["pools", "overlap", *prepared],
        "leakage before": ["audit", "leakage", str(work / "before.yaml")],
        "dedup": ["pools", "dedup", "--out", str(work / "pools"), *prepared],
        "leakage": ["audit", "leakage", recipe],
        "plan": ["plan", recipe],
        "run": ["run", recipe, "--name", run.name, "--runs-dir", str(run.parent)],
        "audit": ["audit", str(run)],
        "report": ["report", str(run)],
    }


def recipe_of(trial: Trial, pools: Mapping[str, Path]) -> dict[str, Any]:
    """Two stages, a longer context in the second, quotas for the groups that are there."""
    names = trial.trained
    bytes_or_path = trial.tokenizer if trial.tokenizer == "bytes" else str(Path(trial.tokenizer).absolute())
    return {
        "seed": 1,
        "tokenizer": bytes_or_path,
        "pools": {name: {"path": str(pools[name])} for name in names},
        "evaluation": {
            "pools": {name: str(path) for name, path in pools.items() if name not in names},
            "window": 2048, "stride": 640, "offset": 320,
        },
        "every_stage": {"chunk": "4Mi", "batch": {"tokens": STEP}},
        "stages": {
            "base": {"steps": trial.steps[0], "context": 2048, "quotas": quotas(names, QUOTAS["base"])},
            "long": {
                "steps": trial.steps[1], "context": 8192, "slicing": {"stride": 6144},
                "quotas": quotas(names, QUOTAS["long"]),
            },
        },
        "sink": {"format": "parquet"},
    }  # fmt: skip


def quotas(names: Sequence[str], wanted: Mapping[str, int]) -> dict[str, str]:
    """Shares of the groups that are there; the largest takes what the others leave.

    Raises:
        RecipeError: none of them has a share.

    >>> quotas(["maths", "english"], {"english": 60, "chinese": 30, "maths": 10})
    {'maths': '10%', 'english': 'rest'}
    """
    largest = max(names, key=lambda name: wanted.get(name, 0))
    if not wanted.get(largest):
        raise RecipeError.single(
            "corpora", "groups", given=", ".join(names), expected=f"one of {', '.join(wanted)}",
            fix="name a group so, or write a recipe of your own over the pools",
        )  # fmt: skip
    return {name: "rest" if name == largest else f"{wanted.get(name, 0)}%" for name in names}


def _write(path: Path, recipe: Mapping[str, Any]) -> None:
    path.write_text(yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True), "utf-8")


def _do(trial: Trial, words: Sequence[str]) -> Measured:
    done = run_verb(words)
    trial.say(done.command)
    return done
