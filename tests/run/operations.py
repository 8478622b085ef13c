"""Every operation that writes to runs, each on runs that it finds, so that all can be cut at every write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import recipe
from recipe.config import Recipe, recipe_from_plain
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.comparing.adopt import adopt_run
from recipe.run.comparing.compare import compared, read_histories
from recipe.run.comparing.comparison import Question
from recipe.run.comparing.decisions import Word, decide, open_final
from recipe.run.ledger import read_tail
from recipe.run.row import Row
from recipe.run.surviving import surviving
from tests.run.conftest import write

WHY = Approval(reason="evaluation", approved_by="Ada")
WORD = Word(by="Li", reason="code loss")
UP = ["stages.s.quotas.a=40%"]
BY = ("--reason", WHY.reason, "--approved-by", "Ada")


@dataclass(frozen=True)
class World:
    """Some pools and a folder of runs."""

    pools: Path
    runs: Path

    @property
    def run(self) -> Path:
        """The run that operations are about."""
        return self.runs / "run"

    def recipe(self, **more: Any) -> Recipe:
        """One stage of 12 steps."""
        stage = {"steps": 12, "context": 16, "batch": {"sequences": 2}, "chunk": 100}
        plain = {
            "seed": 2,
            "pools_root": str(self.pools),
            "pools": {"a": {"path": "a"}, "b": {"path": "b"}},
            "stages": {"s": {**stage, "quotas": {"a": "60%", "b": "40%"}}},
            **more,
        }
        return recipe_from_plain(plain, source="test")


Work = Callable[[World], None]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Something that writes."""

    base: Work
    """What was there before."""
    do: Work
    is_done: Callable[[World], bool]
    """Whether it counts."""
    words: tuple[str, ...] = ()
    """The same on the command line, ``{runs}`` and ``{pools}`` filled in."""
    run: str = "run"
    """The run that it is about."""
    since: int = 0
    """The step from which its batches are compared."""
    via: int | None = None
    """A further step at which it may stand in between: a rewind counts by itself."""
    findings: tuple[str, ...] = ()
    """What the audit may find in between, beside what is unfinished."""

    def command(self, world: World) -> list[str]:
        """Its words."""
        return [word.format(runs=world.runs, pools=world.pools) for word in self.words]


def make_pools(root: Path) -> Path:
    """Pools a and b, and under ``new`` the same, a with other documents."""
    for seed, (name, documents) in enumerate({"a": 90, "b": 60}.items()):
        write(root / name, seed=seed, documents=documents)
        write(root / "new" / name, seed=seed + (7 if name == "a" else 0), documents=documents)
    (root / "ids").write_text("3\n70\n80\n")
    return root


def rows_of(path: Path, kind: str) -> list[Row]:
    """The rows of a kind that count, last first."""
    ledger = path / "ledger.jsonl"
    return [row for row in surviving(ledger, read_tail(ledger)) if row.kind == kind]


def has(kind: str, number: int = 1, run: str = "run") -> Callable[[World], bool]:
    """Whether a run has rows of a kind that count."""
    return lambda world: len(rows_of(world.runs / run, kind)) >= number


def has_step(step: int) -> Callable[[World], bool]:
    return lambda world: any(row.end_step == step for row in rows_of(world.run, "checkpoint"))


def is_born(name: str) -> Callable[[World], bool]:
    return lambda world: (world.runs / name).exists()


def nothing(world: World) -> None:
    world.runs.mkdir(exist_ok=True)


def start(world: World) -> None:
    recipe.start_run(world.recipe(), world.run).close()


def two_checkpoints(world: World) -> None:
    """At steps 3 and 6."""
    with recipe.start_run(world.recipe(), world.run) as run:
        run.checkpoint(3, uri="w3", gpu_hours=1)
        run.checkpoint(6, uri="w6", gpu_hours=2, metrics={"code": {"loss": 2.5}})


def with_policy(world: World) -> None:
    target = "recipe.maths.policies.OnlineMixing"
    wanted = world.recipe(policy={"_target_": target, "every": 128})
    with recipe.start_run(wanted, world.run) as run:
        run.checkpoint(3)


def with_branch(world: World) -> None:
    """The run, its branch B from step 6 on, both with a checkpoint at 9, B's better; and a final set."""
    two_checkpoints(world)
    wish = Wish(name="B", overrides=tuple(UP), from_pool="b")
    branch_run(world.run, wish)
    for name, loss in (("run", 2.5), ("B", 2.0)):
        with recipe.open_run(world.runs / name) as run:
            run.checkpoint(9, uri=f"{name}/9", metrics={"code": {"loss": loss}})
        recipe.attach_metrics(world.runs / name, {"final/code": {"loss": loss}})


def with_decision(world: World) -> None:
    with_branch(world)
    decided(world)


def checkpoint(world: World) -> None:
    with recipe.open_run(world.run) as run:
        run.checkpoint(9, uri="w9", metrics={"code": {"loss": 2.0}})


def rewound(world: World) -> None:
    with recipe.open_run(world.run, step=3) as run:
        run.checkpoint(5)


def committed(world: World) -> None:
    with recipe.open_run(world.run) as run:
        run.begin_checkpoint(9).commit("w9", digest="d")


def committed_late(world: World) -> None:
    with recipe.open_run(world.run) as run:
        early, late = run.begin_checkpoint(7), run.begin_checkpoint(9)
        if not has_step(9)(world):
            late.commit("w9")
        early.commit("w7")


def forgotten(world: World) -> None:
    with recipe.open_run(world.run) as run:
        run.forget(1)


def amended(world: World, at: int | None = None) -> None:
    amend_run(world.run, UP, from_pool="b", approval=WHY, at=at)


def amended_here(world: World) -> None:
    with recipe.open_run(world.run) as run:
        run.amend(UP, from_pool="b", reason="live")


def amended_later(world: World) -> None:
    with recipe.open_run(world.run) as run:
        run.amend(UP, from_pool="b", reason="live", step=8)
        run.checkpoint(10)


def consulted(world: World) -> None:
    with recipe.open_run(world.run) as run:
        run.consult(4, {"a": 2.0, "b": 3.0})
        run.checkpoint(5)


def skipped(world: World, *, returned: bool) -> None:
    skip_run(world.run, (3, 5), reason="spike", returned=returned)


def withdrawn(world: World) -> None:
    withdraw_run(world.run, [3, 70, 80], pool="a", ticket=Ticket(reason="take-down"))


def accepted(world: World) -> None:
    with recipe.open_run(world.run, accept_data_change=True, pools_root=world.pools / "new") as run:
        run.checkpoint(8)


def branched(world: World) -> None:
    branch_run(world.run, Wish(name="A", overrides=tuple(UP), from_pool="b"))


def branched_twice(world: World) -> None:
    wishes = [Wish(name=name, overrides=(f"seed={seed}",)) for seed, name in enumerate("AC", 5)]
    branch_run(world.run, [wish for wish in wishes if not is_born(wish.name)(world)])


def attached(world: World) -> None:
    recipe.attach_metrics(world.run, {"sft/short": {"loss": 1.5}}, step=3)


def decided(world: World) -> None:
    decide(compared(read_histories(pair(world)), Question()), "B", WORD)


def opened(world: World) -> None:
    open_final(read_histories(pair(world)), Question(), WORD)


def adopted(world: World, how: Any) -> None:
    adopt_run(world.runs / "B", how, word=WORD)


def pair(world: World) -> list[Path]:
    return [world.run, world.runs / "B"]


OPERATIONS: dict[str, Operation] = {
    "start": Operation(base=nothing, do=start, is_done=is_born("run")),
    "checkpoint": Operation(base=two_checkpoints, do=checkpoint, is_done=has_step(9)),
    "rewind": Operation(base=two_checkpoints, do=rewound, is_done=has_step(5), via=3),
    "commit": Operation(base=two_checkpoints, do=committed, is_done=has_step(9)),
    "commit late": Operation(base=two_checkpoints, do=committed_late, is_done=has_step(9)),
    "forget": Operation(base=two_checkpoints, do=forgotten, is_done=has("forgotten")),
    "amend": Operation(
        base=two_checkpoints,
        do=amended,
        is_done=has("amend"),
        words=("amend", "{runs}/run", *UP, "--from", "b", *BY, "--yes"),
    ),
    "amend at an older checkpoint": Operation(
        base=two_checkpoints,
        do=partial(amended, at=3),
        via=3,
        is_done=has("amend"),
        words=("amend", "{runs}/run", *UP, "--from", "b", "--at", "3", *BY, "--yes"),
    ),
    "amend while training, at the checkpoint": Operation(
        base=two_checkpoints, do=amended_here, is_done=has("amend")
    ),
    "amend while training, after it": Operation(
        base=two_checkpoints, do=amended_later, is_done=has_step(10)
    ),
    "consult": Operation(base=with_policy, do=consulted, is_done=has_step(5)),
    "skip": Operation(
        base=two_checkpoints,
        do=partial(skipped, returned=False),
        via=3,
        is_done=has("skip"),
        words=("skip", "{runs}/run", "--steps", "3..5", "--reason", "spike", "--yes"),
    ),
    "skip and return": Operation(
        base=two_checkpoints, do=partial(skipped, returned=True), is_done=has("skip"), via=3
    ),
    "withdraw": Operation(
        base=two_checkpoints,
        do=withdrawn,
        is_done=has("withdraw"),
        words=(
            "withdraw", "{runs}/run", "--documents", "{pools}/ids", "--pool", "a",
            "--reason", "take-down", "--yes",
        ),
    ),
    "accept new data": Operation(
        base=two_checkpoints, do=accepted, is_done=has_step(8), since=6, findings=("pools",)
    ),
    "branch": Operation(
        base=two_checkpoints,
        do=branched,
        is_done=is_born("A"),
        run="A",
        since=6,
        words=("branch", "{runs}/run", "A", *UP, "--from", "b", "--yes"),
    ),
    "two branches": Operation(
        base=two_checkpoints,
        do=branched_twice,
        is_done=lambda world: is_born("A")(world) and is_born("C")(world),
        run="C",
        since=6,
    ),
    "attach": Operation(
        base=two_checkpoints,
        do=attached,
        is_done=has("metrics"),
        words=("attach", "{runs}/run@1", "--set", "sft/short", "loss=1.5"),
    ),
    "decide": Operation(
        base=with_branch,
        do=decided,
        is_done=has("decision", run="B"),
        run="B",
        since=6,
        words=(
            "compare", "{runs}/run", "{runs}/B", "--decide", "{runs}/B",
            "--approved-by", "Li", "--reason", "x", "--yes",
        ),
    ),
    "open final sets": Operation(
        base=with_decision,
        do=opened,
        is_done=lambda world: has("opened")(world) and has("opened", run="B")(world),
        run="B",
        since=6,
        words=("compare", "{runs}/run", "{runs}/B", "--open-final", "--by", "Li", "--reason", "x", "--yes"),
    ),
    "adopt as the trunk": Operation(
        base=with_branch,
        do=partial(adopted, how="trunk"),
        is_done=has("decision", run="B"),
        run="B",
        since=6,
    ),
    "adopt as an amendment": Operation(
        base=with_branch,
        do=partial(adopted, how="amend"),
        is_done=lambda world: has("amend")(world) and has("decision", run="B")(world),
    ),
}  # fmt: skip
"""Each with the runs it finds."""
