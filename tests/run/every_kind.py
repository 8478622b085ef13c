"""A run whose record holds rows of every kind, a branch of it, and every verb that reads or writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import recipe
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.canonical import canonical
from recipe.run.changing.amend import amend_run
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.comparing.compare import compared, read_histories
from recipe.run.comparing.comparison import Question
from recipe.run.comparing.decisions import decide, open_final
from recipe.run.ledger import read_rows
from recipe.run.manifest import sealed, unseal
from recipe.run.row import sealed_row
from tests.run.operations import UP, WHY, WORD, World

Verb = Callable[[], object]


def rich_run(world: World) -> None:
    """``run`` with every kind of row, of two stages; and its branch ``B``."""
    stage = {"context": 16, "batch": {"sequences": 2}, "chunk": 100}
    stages = {
        "s": {**stage, "steps": 20, "quotas": {"a": "60%", "b": "40%"}},
        "t": {**stage, "steps": 6, "quotas": {"a": "50%", "b": "50%"}},
    }
    with recipe.start_run(world.recipe(stages=stages), world.run) as run:
        run.checkpoint(2, uri="w2", metrics={"code": {"loss": 3}})
        run.checkpoint(5)
    with recipe.open_run(world.run, step=2) as run:
        run.checkpoint(4)
    amend_run(world.run, UP, from_pool="b", approval=WHY)
    skip_run(world.run, (4, 6), reason="spike", returned=True)
    with recipe.open_run(world.run) as run:
        early, late = run.begin_checkpoint(7), run.begin_checkpoint(9)
        late.commit("w9", metrics={"final/code": {"loss": 2}})
        early.commit("w7")
        run.forget(1)
    withdraw_run(world.run, [3, 70, 80], pool="a", ticket=Ticket(reason="take-down"))
    with recipe.open_run(world.run) as run:
        run.amend(["stages.s.quotas={a: 45%, b: 55%}"], reason="live", step=11)
        run.checkpoint(12, uri="w12", gpu_hours=4, metrics={"code": {"loss": 2}})
    recipe.attach_metrics(world.run, {"code": {"loss": 1.5}})
    branch_run(world.run, Wish(name="B", overrides=("stages.s.quotas={a: 35%, b: 65%}",)))
    for name in ("run", "B"):
        with recipe.open_run(world.runs / name) as run:
            run.checkpoint(14, metrics={"code": {"loss": 1}, "final/code": {"loss": 1}})
    histories = read_histories([world.run, world.runs / "B"])
    decide(compared(histories, Question()), "run", WORD)
    open_final(read_histories([world.run, world.runs / "B"]), Question(), WORD)


def reading(world: World, name: str = "run") -> dict[str, Verb]:
    """Every verb that only reads a run."""
    path = world.runs / name
    return {
        "status": lambda: recipe.run_status(path),
        "open": lambda: recipe.open_run(path).close(),
        "open at 4": lambda: recipe.open_run(path, step=4).close(),
        "open at 12": lambda: recipe.open_run(path, step=12).close(),
        "serve": lambda: _served(path),
        "compare": lambda: recipe.compare_runs([world.run, world.runs / "B"]),
        "trace": lambda: recipe.trace_document(path, 3, pool="a"),
        "trace row": lambda: recipe.trace_row(path, 13, 1),
        "table": lambda: recipe.ledger_table(path),
        "audit": lambda: recipe.audit_run(path, workers=1),
        "seal": lambda: recipe.seal_run(path),
    }


def writing(world: World, name: str = "run") -> dict[str, Verb]:
    """Every verb that writes to a run, or from it."""
    path = world.runs / name
    withdrawn = Ticket(reason="take-down")
    return {
        "checkpoint": lambda: recipe.open_run(path).checkpoint(15),
        "rewind": lambda: recipe.open_run(path, step=12).checkpoint(13),
        "amend": lambda: amend_run(path, ["stages.s.quotas={a: 30%, b: 70%}"], approval=WHY),
        "skip": lambda: skip_run(path, (14, 15), reason="spike"),
        "withdraw": lambda: withdraw_run(path, [5], pool="a", ticket=withdrawn),
        "attach": lambda: recipe.attach_metrics(path, {"code": {"loss": 1}}),
        "forget": lambda: recipe.open_run(path).forget(2),
        "branch": lambda: branch_run(path, Wish(name="C")),
        "branch at 4": lambda: branch_run(f"{path}@step:4", Wish(name="D")),
        "decide": lambda: decide(recipe.compare_runs([world.run, world.runs / "B"]), name, WORD),
        "open final": lambda: open_final(read_histories([world.run, world.runs / "B"]), Question(), WORD),
    }


def _served(path: Path) -> list[bytes]:
    """Batches of every course that the run took."""
    with recipe.open_run(path) as run:
        first = 12 if "parent" in next(read_rows(path / "ledger.jsonl")).data else 0
        return [run.stream().batch(step)["input_ids"].tobytes() for step in range(first, run.num_steps)]


def rewritten(path: Path, change: Callable[[int, dict[str, Any]], dict[str, Any]]) -> None:
    """A ledger whose rows say something else, each with its hash, chained on: a forgery."""
    file = path / "ledger.jsonl"
    lines, previous = [], None
    for row in list(read_rows(file)):
        whole = {"format", "row", "time", "previous", "hash"}
        body = {key: value for key, value in row.data.items() if key not in whole}
        made = sealed_row(
            change(row.number, body), number=row.number, previous=previous, time=row.data["time"]
        )
        previous = made["hash"]
        lines.append(canonical(made) + b"\n")
    file.write_bytes(b"".join(lines))


def resealed(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    """A sealed file that says something else, with its hash; the hash."""
    plain = unseal(path, path.read_bytes())
    del plain["hash"]
    data = sealed(change(plain))
    path.write_bytes(data)
    return data.rpartition(b"hash: ")[2].decode().strip()
