"""Several writers of one run at once: nobody loses a row, no number is given twice, the loser is told."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.errors import RecipeError
from recipe.run import lease, writes
from recipe.run.ledger import read_rows
from tests.run.cuts import patched, restore
from tests.run.faulty import CHANGING, FaultyOs
from tests.run.operations import OPERATIONS, World, make_pools, two_checkpoints

ROOT = Path(__file__).parents[2]
TWO = [
    "checkpoint",
    "rewind",
    "commit late",
    "forget",
    "amend",
    "amend while training, after it",
    "skip",
    "withdraw",
    "accept new data",
    "branch",
    "attach",
]
"""Operations that all go on from the same run."""
TOLD = (
    "this handle is behind",
    "another course",
    "not branched",
    "not started",
    "the run is being written",
    "the lease was lost",
    "changed while it was written",
)
"""What the one who loses may be told."""


class StallingOs:
    """``os``, but once, right before its n-th changing call, something else happens first."""

    def __init__(self, at: int, meanwhile: Callable[[], None]) -> None:
        self.calls: list[str] = []
        self._at = at
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in (*CHANGING, "open"):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **kwargs)
            self.calls.append(name)
            if len(self.calls) - 1 == self._at:
                with patched(FaultyOs(None)):
                    self._meanwhile()
                writes.os = self  # type: ignore[assignment]
            return None if name == "fsync" else real(*args, **kwargs)

        return call


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Runs that are copied to where they are worked on."""
    folder = tmp_path_factory.mktemp("writers")
    world = World(make_pools(folder / "pools"), folder / "base")
    with patched(FaultyOs(None)):
        two_checkpoints(world)
    return world


@pytest.fixture
def world(base: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(lease, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(writes, "LOCK_SECONDS", 0.0)
    yield World(base.pools, tmp_path / "runs")
    writes.os = os


def outcome(work: Callable[[], object]) -> str | None:
    """The one message of a writer that was refused."""
    try:
        work()
    except RecipeError as error:
        return str(error)
    return None


def lines(world: World) -> list[bytes]:
    return (world.run / "ledger.jsonl").read_bytes().splitlines()


def check(world: World, whole: list[bytes]) -> None:
    """Rows that were whole are still there; manifests and recipe versions have numbers of their own."""
    assert lines(world)[: len(whole)] == whole
    rows = [row.data for row in read_rows(world.run / "ledger.jsonl")]
    manifests = [row["manifest"] for row in rows if row["kind"] == "checkpoint"]
    assert manifests == list(range(1, len(manifests) + 1))
    versions = [row["recipe"] for row in rows if row["kind"] == "amend"]
    assert versions == sorted(set(versions))
    found = recipe.audit_run(world.run, workers=1).findings
    assert {finding.check for finding in found} <= {"unfinished", "pools"}, found
    recipe.run_status(world.run)


@pytest.mark.parametrize("second", TWO)
@pytest.mark.parametrize("first", TWO)
def test_X01_whoever_planned_before_another_wrote_goes_on_after_it_or_is_told(
    first: str, second: str, base: World, world: World
):
    """The first one is worked out, then the second one writes, then the first one would."""
    restore(base.runs, world.runs)
    later: list[Any] = []

    def meanwhile() -> None:
        later.append(outcome(lambda: OPERATIONS[second].do(world)))
        later.append(lines(world))

    with patched(StallingOs(0, meanwhile)):
        told = outcome(lambda: OPERATIONS[first].do(world))
    assert later[0] is None, "nobody was writing yet"
    check(world, later[1])
    if told is None:
        assert OPERATIONS[first].is_done(world)
    else:
        assert lines(world) == later[1], "who is refused writes nothing"
        assert any(words in told for words in TOLD), told


PAIRS = [
    ("amend", "checkpoint"),
    ("checkpoint", "attach"),
    ("attach", "checkpoint"),
    ("skip", "amend"),
    ("branch", "checkpoint"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_X01_who_comes_while_another_writes_is_told_or_writes_in_turn(
    first: str, second: str, base: World, world: World
):
    """At every write of the first one the second one tries."""
    refused = at = 0
    while True:
        restore(base.runs, world.runs)
        later: list[Any] = []

        def meanwhile(later: list[Any] = later) -> None:
            later.append(outcome(lambda: OPERATIONS[second].do(world)))
            later.append(lines(world) if later[0] is None else [])

        stand_in = StallingOs(at, meanwhile)
        with patched(stand_in):
            told = outcome(lambda: OPERATIONS[first].do(world))
        if len(stand_in.calls) <= at:
            break
        check(world, later[1])
        refused += later[0] is not None
        assert told is None or any(words in told for words in TOLD), told
        assert later[0] is None or any(words in later[0] for words in TOLD), later[0]
        at += 1
    assert at > 10
    assert refused > 5 or "branch" in (first, second), "a branch is created without the lease"


@pytest.mark.parametrize(
    ("first", "second", "leftover"),
    [
        ("checkpoint", "amend", False),
        ("checkpoint", "amend", True),
        ("amend", "checkpoint", True),
        ("attach", "checkpoint", False),
        ("skip", "amend", False),
    ],
)
def test_X04_who_sleeps_through_its_lease_at_any_write_loses_nobody_a_row(
    first: str, second: str, leftover: bool, base: World, world: World
):
    """At every write of the first one it seems dead, as after a clock's jump, and the second one goes on."""
    lost = at = 0
    while True:
        restore(base.runs, world.runs)
        if leftover:
            unfinished(world)
        later: list[Any] = []

        def meanwhile(later: list[Any] = later) -> None:
            seem_dead(world.run / "lease")
            later.append(outcome(lambda: OPERATIONS[second].do(world)))
            later.append(lines(world) if later[0] is None else [])

        stand_in = StallingOs(at, meanwhile)
        with patched(stand_in):
            told = outcome(lambda: OPERATIONS[first].do(world))
        if len(stand_in.calls) <= at:
            break
        check(world, later[1])
        if later[0] is not None:
            assert "the run is being written" in later[0], later[0]
        lost += told is not None
        assert told is None or any(words in told for words in TOLD), told
        at += 1
    assert lost


def seem_dead(folder: Path) -> None:
    """The newest lease is of another host, and of long ago."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "STALE_SECONDS", 30.0)
        owner = lease.newest_owner(folder)
    if owner is not None:
        old = replace(owner, host="elsewhere", heartbeat=0.0)
        (folder / f"{owner.fence:010d}.json").write_text(json.dumps(asdict(old)))


def unfinished(world: World) -> None:
    """What a crash left: a manifest without a row, half a line."""
    shutil.copy(world.run / "manifests" / "000002.yaml", world.run / "manifests" / "000003.yaml")
    with (world.run / "ledger.jsonl").open("ab") as file:
        file.write(b'{"closing":{"offset":1')


def test_X04_without_locks_only_the_very_last_call_is_left_to_chance(
    base: World, world: World, monkeypatch: pytest.MonkeyPatch
):
    """Some shared file systems have no locks: then the lease is looked at right before each file appears."""

    def no_locks(*args: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(writes.fcntl, "flock", no_locks)
    at = 0
    while True:
        restore(base.runs, world.runs)
        later: list[Any] = []

        def meanwhile(later: list[Any] = later) -> None:
            seem_dead(world.run / "lease")
            later.append(outcome(lambda: OPERATIONS["amend"].do(world)))
            later.append(lines(world))

        stand_in = StallingOs(at, meanwhile)
        with patched(stand_in):
            outcome(lambda: OPERATIONS["checkpoint"].do(world))
        if stand_in.calls[at - 1 :][:2] == ["rename", "write"]:
            break
        assert later[0] is None
        check(world, later[1])
        at += 1
    assert at > 15
