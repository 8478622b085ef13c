"""Runs with courses of every kind: amended, skipped, withdrawn from, grown, rewound, late, branched."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import recipe
from recipe.audit.layout import lay_out, stage_at
from recipe.config import Recipe, recipe_from_plain
from recipe.pools import extend_pool
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.comparing.attach import attach_metrics
from recipe.run.ledger import read_tail
from recipe.run.run import Run
from recipe.run.surviving import surviving
from tests.audit.runs import Plain, plain_recipe, write_pools
from tests.audit.test_replay import random_stage

POOLS = ("web", "code", "maths", "zh")
EXTRA = "extra"
"""A pool that no recipe has at first."""


def wild_recipe(root: Path, chance: random.Random) -> Plain:
    """A recipe over pools of its own, some of them small enough to run dry."""
    names = POOLS[: chance.randrange(2, 5)]
    for seed, name in enumerate([*names, EXTRA]):
        size = chance.choice([8, 30, 80])
        groups = sorted(chance.randrange(size) for _ in range(size)) if chance.random() < 0.3 else None
        write_pools(root, {name: size}, seed=seed, mean=chance.choice([20, 60, 150]), groups=groups)
    stages = {f"s{index}": random_stage(chance, list(names)) for index in range(chance.randrange(1, 4))}
    for stage in list(stages.values())[1:]:
        if chance.random() < 0.5:
            over = chance.randrange(200, stage["tokens"])
            stage["quota_ramp"] = {"over": over, "steps": chance.randrange(1, 9)}
    return plain_recipe(
        root,
        stages,
        pools={name: {} for name in names},
        groups={"both": list(names[:2])} if chance.random() < 0.3 else {},
        max_epochs=chance.choice([1, 2, 200, 200]),
        on_exhausted=chance.choice(["repeat", "repeat", "stop", "redistribute"]),
        count=chance.choice(["body", "fresh", "labels", "positions"]),
        labels=chance.choice(["shifted", "inputs"]),
    )


class Course:
    """Does one thing after another to a run; what is refused leaves it as it was."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.chance = path, chance
        self.done: list[str] = []

    def steps(self) -> list[int]:
        """Of the checkpoints that count."""
        ledger = self.path / "ledger.jsonl"
        rows = surviving(ledger, read_tail(ledger))
        return sorted({row.end_step for row in rows if row.kind == "checkpoint"})

    def ahead(self, run: Run, most: int) -> int:
        return min(run.num_steps, run.step + self.chance.randrange(0, most))

    def go_on(self) -> None:
        with recipe.open_run(self.path) as run:
            for _ in range(self.chance.randrange(1, 4)):
                step = self.ahead(run, 25)
                run.checkpoint(step, uri=f"at {step}", gpu_hours=float(step))

    def rewind(self) -> None:
        with recipe.open_run(self.path, step=self.chance.choice([0, *self.steps()])) as run:
            run.checkpoint(self.ahead(run, 12))

    def from_state(self) -> None:
        with recipe.open_run(self.path) as run:
            state = run.state(self.ahead(run, 9))
        if self.chance.random() < 0.5:
            self.go_on()
        with recipe.open_run(self.path, state=state) as run:
            run.checkpoint(self.ahead(run, 9))

    def late(self) -> None:
        with recipe.open_run(self.path) as run:
            begun = []
            for _ in range(self.chance.randrange(2, 5)):
                begun.append(run.begin_checkpoint(self.ahead(run, 12)))
                if self.chance.random() < 0.6:
                    run.checkpoint(max(run.step, min(run.num_steps, begun[-1].step + 3)))
            self.chance.shuffle(begun)
            for pending in begun:
                pending.commit(f"late {pending.step}")

    def attach(self) -> None:
        if self.steps():
            attach_metrics(self.path, {"code": {"loss": self.chance.random()}})

    def changes(self, known: Recipe, step: int) -> list[str]:
        """Overrides of what lies ahead of a step."""
        chance, words = self.chance, list[str]()
        layouts, names = lay_out(known), list(known.pools)
        for layout in layouts[min(stage_at(layouts, step), len(layouts) - 1) :]:
            if chance.random() < 0.6:
                weights = {name: chance.choice([0, 1, 1, 2, 5, 13]) for name in names} | {names[0]: 1}
                if EXTRA not in names and chance.random() < 0.3:
                    weights[EXTRA] = chance.randrange(0, 4)
                text = ",".join(f"{name}:{weight}" for name, weight in weights.items())
                words.append(f"stages.{layout.name}.weights={{{text}}}")
            if chance.random() < 0.2:
                words.append(f"stages.{layout.name}.tokens={chance.randrange(2000, 14_000)}")
            if chance.random() < 0.1 and layout.first_step > step:
                words.append(f"stages.{layout.name}.context={chance.choice([32, 64, 128])}")
        if any(f"{EXTRA}:" in word for word in words):
            words.append(f"+pools.{EXTRA}={{path: pools/{EXTRA}, block_units: 32}}")
        if chance.random() < 0.2:
            words.append(f"max_epochs={chance.choice([1, 2, 3, 300])}")
        return words

    def amend(self) -> None:
        at = self.chance.choice([None, *self.steps()])
        with recipe.open_run(self.path, step=at) as run:
            words = self.changes(run.recipe, run.step)
        amend_run(self.path, words, approval=Approval(reason="why", approved_by="me"), at=at)

    def amend_while_training(self) -> None:
        with recipe.open_run(self.path) as run:
            step = self.ahead(run, 20)
            run.amend(self.changes(run.recipe, step), reason="seen", step=step)
            if self.chance.random() < 0.8:
                run.checkpoint(max(step, self.ahead(run, 12)))

    def grow(self) -> None:
        at = self.chance.choice([None, *self.steps()])
        with recipe.open_run(self.path, step=at) as run:
            pool = self.chance.choice(list(run.recipe.pools))
            old = run.stream().ground.pools[list(run.recipe.pools).index(pool)].path
        numbers = np.random.default_rng(self.chance.randrange(1000))
        texts = [numbers.integers(0, 200, size) for size in numbers.integers(1, 150, 20)]
        new = self.path.parent / "pools" / f"{pool}_{self.path.name}_{len(self.done)}"
        extend_pool(old, new, texts).close()
        words = [f"pools.{pool}.path=pools/{new.name}"]
        opens: Any = self.chance.choice(["next-epoch", "now"])
        amend_run(self.path, words, approval=Approval(reason="more"), at=at, opens=opens)

    def skip(self) -> None:
        start = self.chance.choice([0, *self.steps()])
        steps = start, start + self.chance.randrange(1, 15)
        skip_run(self.path, steps, reason="a loss spike", returned=self.chance.random() < 0.6)

    def withdraw(self) -> None:
        with recipe.open_run(self.path) as run:
            pool = self.chance.choice(list(run.recipe.pools))
        documents = [self.chance.randrange(8) for _ in range(self.chance.randrange(1, 5))]
        at, ticket = self.chance.choice([None, *self.steps()]), Ticket(reason="take-down", ticket="T1")
        withdraw_run(self.path, documents, ticket=ticket, pool=pool, at=at)

    def do(self, num: int) -> Course:
        """So many things, one after another."""
        acts = [self.go_on] * 3 + [self.amend] * 2
        acts += [self.rewind, self.from_state, self.late, self.attach, self.amend_while_training]
        acts += [self.grow, self.skip, self.withdraw]
        for _ in range(num):
            act = self.chance.choice(acts)
            try:
                act()
                self.done.append(act.__name__)
            except recipe.RecipeError:
                self.done.append(f"({act.__name__})")
            except ValueError as error:
                assert "ended at step" in str(error)
        return self


def wild_run(root: Path, chance: random.Random, num: int) -> Course | None:
    """A run after so many things were done to it; None for a recipe that cannot be run."""
    plain = wild_recipe(root, chance)
    try:
        recipe.start_run(recipe_from_plain(plain, source="test"), root / "run").close()
    except recipe.RecipeError:
        return None
    return Course(root / "run", chance).do(num)


def wild_branch(course: Course, name: str, num: int) -> Course | None:
    """A branch of a run after so many things were done to it; None where what was asked for is refused."""
    chance = course.chance
    with recipe.open_run(course.path) as run:
        words, first = course.changes(run.recipe, run.step), next(iter(run.recipe.pools))
    more: dict[str, Any] = chance.choice([{}, {}, {"data": "fresh"}, {"fresh": (first,)}])
    if chance.random() < 0.3:
        words.append(f"seed={chance.randrange(100)}")
    if chance.random() < 0.2:
        more["renamed"] = ((first, f"{first}_new"),)
    try:
        (path,) = branch_run(course.path, Wish(name=name, overrides=tuple(words), **more))
    except recipe.RecipeError:
        return None
    return Course(path, chance).do(num)
