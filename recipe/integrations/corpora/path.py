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

SPLIT = "training=98%,validation=2%"
QUOTAS: Mapping[str, Mapping[str, int]] = {
    "base": {"english": 40, "chinese": 15, "tutorials": 20, "code": 15, "maths": 8, "verified_code": 2},
    "long": {"english": 15, "chinese": 15, "tutorials": 30, "code": 25, "maths": 10, "verified_code": 5},
}
"""Percent of a stage's tokens; a group that is not named, and one that is not there, gets none."""
SEQUENCES = {2048: 32, 8192: 8}
"""Sequences of a step, by context."""
STEP = 2048 * 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What is asked for."""

    groups: Sequence[TextGroup]
    """In the order of their priority: of equal texts the first group's stays."""
    work: Path
    tokenizer: str
    eos: str | None = None
    steps: tuple[int, int] = (256, 64)
    """Of the two stages; each step has 65,536 positions."""
    say: Callable[[str], None] = print

    @property
    def recipe(self) -> Path:
        """The recipe's file."""
        return self.work / "recipe.yaml"

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.work / "runs" / "corpora"

    def pool(self, name: str, split: str) -> Path:
        """A group's pool of a split."""
        return self.work / "prepared" / name / split


def follow(trial: Trial) -> Iterator[tuple[str, Measured]]:
    """Do every step, one after another; (its name, what it did). What is done already is found done.

    Raises:
        RecipeError: a step is refused.
    """
    trial.work.mkdir(parents=True, exist_ok=True)
    for group in trial.groups:
        yield f"prepare {group.name}", _do(trial, prepare_words(trial, group))
    _write_recipe(trial)
    for name, words in after_pools(trial).items():
        yield name, _do(trial, words)


def prepare_words(trial: Trial, group: TextGroup) -> list[str]:
    """The verb that makes a group's pools."""
    eos = [] if trial.eos is None else ["--eos", trial.eos]
    return [
        "prepare", str(trial.work / "prepared" / group.name), *map(str, group.files),
        "--tokenizer", trial.tokenizer, *eos, "--tag-key", "licence", "--tag-key", "source",
        "--duplicates", "drop", "--split", SPLIT,
    ]  # fmt: skip


def after_pools(trial: Trial) -> dict[str, list[str]]:
    """The verbs that follow, by the name of their step."""
    return {
        "leakage": ["audit", "leakage", str(trial.recipe)],
        "plan": ["plan", str(trial.recipe)],
        "run": ["run", str(trial.recipe), "--name", trial.run.name, "--runs-dir", str(trial.run.parent)],
        "audit": ["audit", str(trial.run)],
    }


def recipe_of(trial: Trial) -> dict[str, Any]:
    """Two stages, a longer context in the second, quotas for the groups that are there."""
    names = [group.name for group in trial.groups]
    tokenizer = (
        trial.tokenizer if trial.tokenizer == "bytes" else {"path": str(Path(trial.tokenizer).absolute())}
    )
    return {
        "seed": 1,
        "tokenizer": tokenizer,
        "pools": {name: {"path": str(trial.pool(name, "training").absolute())} for name in names},
        "evaluation": {
            "pools": {name: str(trial.pool(name, "validation").absolute()) for name in names},
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


def _write_recipe(trial: Trial) -> None:
    trial.recipe.write_text(yaml.safe_dump(recipe_of(trial), sort_keys=False, allow_unicode=True), "utf-8")


def _do(trial: Trial, words: Sequence[str]) -> Measured:
    done = run_verb(words)
    trial.say(done.command)
    return done
