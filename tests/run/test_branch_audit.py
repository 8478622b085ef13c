"""Every kind of branch, run on in two sittings, is what the audit computes it to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.run.branching.branch import branch_run, plan_branches
from recipe.run.branching.origin import find_origin
from recipe.run.branching.wishes import Wish
from recipe.run.changing.withdraw import Ticket, withdraw_run
from tests.run.conftest import Build, write
from tests.run.test_branch import pieces

TAIL = "{name: decay, tokens: 300, context: 16, quotas: {a: 50%, b: 20%, c: 30%}}"
MORE = "+stages.three={like: two, tokens: 300}"
UP = ("stages.two.quotas.a=40%",)


@pytest.fixture
def trunk(build: Build, tmp_path: Path) -> Path:
    """25 steps; checkpoints inside the first stage, at its end, inside the second, and at the end."""
    with recipe.start_run(build(trainer={"lr": 1}), tmp_path / "trunk") as run:
        for step in (4, 9, 15, 20, run.num_steps):
            run.checkpoint(step, uri=f"weights-{step}")
    return tmp_path / "trunk"


def findings(path: Path) -> list[str]:
    audit = recipe.audit_run(path, full=True)
    return [str(finding) for finding in audit.findings]


def finished(path: Path) -> None:
    """Go on in two sittings, the second rewound once."""
    with recipe.open_run(path) as run:
        start, middle = run.step, (run.step + run.num_steps + 1) // 2
        run.checkpoint(middle)
    with recipe.open_run(path, step=start) as run:
        run.checkpoint(min(start + 1, run.num_steps))
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
        assert run.complete


ANYWHERE: list[dict[str, Any]] = [
    {},
    {"overrides": UP, "from_pool": "b"},
    {"overrides": ("stages.two.quotas.c=50%", "stages.two.quotas.b=0%")},
    {"data": "fresh"},
    {"fresh": ("b",)},
    {"overrides": ("seed=2",)},
    {"overrides": ("seed=2",), "data": "fresh"},
    {"overrides": ("seed=2",), "fresh": ("a",)},
    {"renamed": (("b", "books"), ("a", "arts")), "overrides": ("seed=3",)},
    {"end_stage": TAIL},
    {"overrides": ("stages.two.tokens=1200", "trainer.lr=2", "max_epochs=12")},
]
AT_THE_END: list[dict[str, Any]] = [
    {},
    {"overrides": (MORE,)},
    {"overrides": ("seed=2", MORE)},
    {"end_stage": TAIL},
]


@pytest.mark.parametrize("wish", ANYWHERE, ids=str)
def test_branches_of_any_kind_audit_clean(trunk: Path, wish: dict[str, Any]):
    """From inside a stage, from its end, and from inside the next."""
    for manifest in (2, 3, 4):
        (path,) = branch_run(f"{trunk}@{manifest}", Wish(name=f"A{manifest}", **wish))
        finished(path)
        assert findings(path) == []


@pytest.mark.parametrize("wish", AT_THE_END, ids=str)
def test_branches_of_a_complete_run_audit_clean(trunk: Path, wish: dict[str, Any]):
    (path,) = branch_run(trunk, Wish(name="A", **wish))
    finished(path)
    assert findings(path) == []


def test_a_branch_with_a_pool_more_audits_clean(trunk: Path, tmp_path: Path):
    write(tmp_path / "d", seed=9, documents=30)
    words = (f"+pools.d={{path: '{tmp_path / 'd'}'}}", "stages.two.quotas.d=10%")
    (path,) = branch_run(f"{trunk}@2", Wish(name="A", overrides=words, from_pool="b"))
    finished(path)
    assert findings(path) == []


def test_branches_of_branches_and_of_amended_runs_audit_clean(trunk: Path):
    (a,) = branch_run(f"{trunk}@1", Wish(name="A", overrides=UP, from_pool="b"))
    with recipe.open_run(a) as run:
        run.checkpoint(8)
        run.amend(["stages.one.quotas.b=30%"], from_pool="c", reason="more b")
        run.checkpoint(12)
    (b,) = branch_run(a, Wish(name="B", overrides=("seed=4",)))
    finished(b)
    (c,) = branch_run(b, Wish(name="C", end_stage=None, overrides=(MORE,)))
    finished(c)
    assert [findings(path) for path in (a, b, c)] == [[], [], []]


def test_a_branch_keeps_what_its_parent_withdrew(trunk: Path):
    ticket = Ticket(reason="take-down")
    withdraw_run(trunk, list(range(0, 60, 2)), ticket=ticket, pool="b", at=9)
    wishes = [
        Wish(name="A"),
        Wish(name="B", renamed=(("b", "books"),)),
        Wish(name="C", overrides=("seed=2",)),
    ]
    for path, pool in zip(branch_run(trunk, wishes), ("b", "books", "b"), strict=True):
        with recipe.open_run(path) as run:
            given = {piece[0] for piece in pieces(run.stream(), 9, pool)}
            assert given
            assert all(int(document) % 2 for document in given)
        finished(path)
        assert findings(path) == []


def test_what_was_withdrawn_later_is_told_and_not_withdrawn(trunk: Path):
    withdraw_run(trunk, [0, 1], ticket=Ticket(reason="take-down"), pool="b", at=20)
    (branch,) = plan_branches(find_origin(trunk, step=9), [Wish(name="A")])
    assert any("withdrew documents after this checkpoint" in note for note in branch.notes)


def test_a_forged_parent_is_found(trunk: Path):
    (path,) = branch_run(f"{trunk}@2", Wish(name="A"))
    copy = path / "parent.yaml"
    copy.write_bytes(copy.read_bytes().replace(b"weights-9", b"weights-8"))
    assert any("parent" in line for line in findings(path))
