"""Invariant 12 for branches and screens: at any write a full disk or a kill leaves whole runs or none."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.config import recipe_from_plain
from recipe.run import writes
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.screening.mixtures import Grid
from recipe.run.screening.screen import Ask, create_screen, plan_screen
from tests.run import faulty
from tests.run.faulty import FaultyOs, full_from_then_on, full_once

WISHES = [Wish(name="A"), Wish(name="B", overrides=("stages.s.quotas.a=50%",), from_pool="b")]


@pytest.fixture
def trunk(tmp_path: Path, pools_root: Path) -> Path:
    faulty.start(tmp_path / "trunk", pools_root)
    faulty.first(tmp_path / "trunk", pools_root)
    return tmp_path / "trunk"


def refused(stand_in: FaultyOs, name: str, do: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    raise PermissionError(13, os.strerror(13))


@pytest.mark.parametrize("fault", [full_once, full_from_then_on, refused])
def test_F06_whatever_the_system_refuses_leaves_no_branch(
    fault: Any, trunk: Path, monkeypatch: pytest.MonkeyPatch
):
    told = 0
    for at in range(200):
        monkeypatch.setattr(writes, "os", FaultyOs(fault, at))
        try:
            branch_run(trunk, WISHES)
            break
        except RecipeError:
            told += 1
            assert [path.name for path in trunk.parent.iterdir()] == ["trunk"]
    monkeypatch.setattr(writes, "os", os)
    assert told > 30
    assert {path.name for path in trunk.parent.iterdir()} >= {"A", "B"}


def _killed(trunk: Path, at: int) -> int:
    """Branch in a process that is killed at its ``at``-th write; its exit code."""
    child = os.fork()
    if child == 0:
        writes.os = FaultyOs(faulty.killed_half_way, at)  # type: ignore[assignment]
        try:
            branch_run(trunk, WISHES)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def test_invariant_12_a_kill_at_any_write_leaves_whole_branches_or_none(trunk: Path):
    kills = 0
    for at in range(200):
        code = _killed(trunk, at)
        for name in ("A", "B"):
            path = trunk.parent / name
            if path.exists():
                with recipe.open_run(path) as run:
                    assert run.step == 5
                path.rename(trunk.parent / f".done-{at}-{name}")
        if code == 0:
            break
        kills += 1
    assert kills > 30


def test_F06_a_screen_is_there_whole_or_not(
    tmp_path: Path, pools_root: Path, monkeypatch: pytest.MonkeyPatch
):
    wanted = recipe_from_plain(faulty.plain_recipe(pools_root), source="test")
    ask, told = Ask(how=Grid(step=Fraction(1, 2))), 0
    screen = plan_screen(wanted, ask, tmp_path / "deep" / "screen")
    for at in range(300):
        monkeypatch.setattr(writes, "os", FaultyOs(full_once, at))
        try:
            create_screen(screen)
            break
        except RecipeError:
            told += 1
            assert not (tmp_path / "deep" / "screen").exists()
            assert not list(tmp_path.rglob(f"{writes.TEMPORARY}*"))
    assert told > 30
    monkeypatch.setattr(writes, "os", os)
    with recipe.open_run(tmp_path / "deep" / "screen" / "m001") as run:
        run.checkpoint(3)
