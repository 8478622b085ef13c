"""Invariant 12: every operation that writes, cut at every one of its writes, leaves runs that go on.

Killed before a write or in the middle of it, met by a full disk, or by a folder that turns read-only:
the run opens, the audit finds nothing but what is unfinished, and it goes on as if nothing had been
tried; or the operation is done again and ends as it would have undisturbed.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.cli.main import main
from recipe.errors import RecipeError
from recipe.run.run import Run
from tests.run.cuts import Checker, End, end_of, patched, restore, temporaries
from tests.run.faulty import FaultyOs, full_once
from tests.run.operations import OPERATIONS, World, make_pools, two_checkpoints


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pools(tmp_path_factory.mktemp("pools"))


@pytest.fixture(scope="module", params=list(OPERATIONS))
def checker(
    request: pytest.FixtureRequest, pools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Checker]:
    folder = tmp_path_factory.mktemp("faults")
    with patched(FaultyOs(None)):
        yield Checker(World(pools, folder / "runs"), OPERATIONS[request.param], folder)


def read_only(stand_in: FaultyOs, name: str, do: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    """From here on nothing in the folder changes any more."""
    stand_in._at = len(stand_in.calls)
    raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def test_killed_at_any_write(checker: Checker):
    assert len(checker.cuts()) > 12
    for cut in checker.cuts():
        checker.check(cut)


@pytest.mark.parametrize(("fault", "code"), [(full_once, errno.ENOSPC), (read_only, errno.EACCES)])
def test_F06_refused_at_any_write(
    checker: Checker, fault: Any, code: int, capsys: pytest.CaptureFixture[str]
):
    told = at = 0
    while True:
        world, stand_in = checker.start_over(), FaultyOs(fault, at)
        with patched(stand_in):
            message = refused(checker, world, capsys)
        if len(stand_in.calls) <= at:
            break
        if message is not None:
            told += 1
            assert os.strerror(code) in message, message
        else:
            assert checker.operation.is_done(world)
        if fault is full_once:
            assert temporaries(world.runs) == []
        with patched(FaultyOs(None)):
            checker.check()
        at += 1
    assert told > 4


def refused(checker: Checker, world: World, capsys: pytest.CaptureFixture[str]) -> str | None:
    """The one message; None where the operation got through."""
    words = checker.operation.command(world)
    if not words:
        try:
            checker.operation.do(world)
        except RecipeError as error:
            return str(error)
        return None
    code = main(words)
    said = capsys.readouterr().err
    assert code in (0, 2), said
    assert "Traceback" not in said
    assert (code == 2) == ("problem" in said), said
    return said if code else None


def is_refused(call: Callable[[], object], stand_in: FaultyOs) -> bool:
    """Call, and once more where the disk was full; what counts all the same is not done twice."""
    try:
        with patched(stand_in):
            call()
    except RecipeError as error:
        assert "No space left" in str(error)
    else:
        return False
    try:
        with patched(FaultyOs(None)):
            call()
    except RecipeError as error:
        assert "nothing to amend" in str(error)
    return True


def commits(run: Run) -> list[Callable[[], object]]:
    early, late = run.begin_checkpoint(7), run.begin_checkpoint(9)
    return [lambda: late.commit("w9"), lambda: early.commit("w7")]


def amends(run: Run) -> list[Callable[[], object]]:
    return [
        lambda: run.amend(["stages.s.quotas={a: 40%, b: 60%}"], reason="live"),
        lambda: run.amend(["stages.s.quotas={a: 45%, b: 55%}"], reason="again", step=8),
        lambda: run.checkpoint(10),
        lambda: run.forget(1),
    ]


@pytest.mark.parametrize("calls", [commits, amends])
def test_F06_a_handle_that_was_refused_at_any_write_goes_on(calls: Any, pools: Path, tmp_path: Path):
    """The call that was refused is made again, and nothing of the first try is left."""
    world = World(pools, tmp_path / "runs")
    with patched(FaultyOs(None)):
        two_checkpoints(world)
        shutil.copytree(world.runs, tmp_path / "base")
    truth: End | None = None
    at = told = 0
    while True:
        restore(tmp_path / "base", world.runs)
        stand_in = FaultyOs(full_once, at)
        with recipe.open_run(world.run) as run:
            for call in calls(run):
                told += is_refused(call, stand_in)
        with patched(FaultyOs(None)):
            end = end_of(world.run)
        assert recipe.audit_run(world.run, workers=1).findings == ()
        truth = truth or end
        assert end == truth
        if len(stand_in.calls) <= at:
            break
        at += 1
    assert told > 40
