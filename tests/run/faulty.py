"""Stand-ins for ``os`` that kill the process, or refuse, at one chosen write.

Run as a program it enumerates every write of several operations on a run, cuts each of them
before, in the middle and after, and checks that the run resumes: see ``check``.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import recipe
from recipe.config import recipe_from_plain
from recipe.run import writes
from recipe.run.ledger import read_rows
from recipe.run.manifest import latest_path, read_manifest

CHANGING = ("write", "fsync", "rename", "link", "unlink", "ftruncate", "makedirs")
"""Calls that change a folder; ``open`` counts when it creates."""


Fault = Callable[..., Any]
"""Called as ``fault(stand_in, name, do, args)`` in place of a call; ``do()`` does it."""


class FaultyOs:
    """``os``, but its n-th changing call meets ``fault``; with ``fault=None`` it only counts.

    fsync is counted and left out: it changes nothing that a killed process leaves behind.
    """

    def __init__(self, fault: Fault | None, at: int = -1) -> None:
        self.calls: list[str] = []
        self._fault = fault
        self._at = at

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in (*CHANGING, "open"):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **kwargs)
            self.calls.append(name)
            if self._fault is not None and len(self.calls) - 1 == self._at:
                return self._fault(self, name, partial(real, *args, **kwargs), args)
            return None if name == "fsync" else real(*args, **kwargs)

        return call


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_before(stand_in: FaultyOs, name: str, do: Callable[[], Any], args: tuple[Any, ...]) -> None:
    die()


def killed_half_way(stand_in: FaultyOs, name: str, do: Callable[[], Any], args: tuple[Any, ...]) -> None:
    if name == "write":
        os.write(args[0], bytes(args[1])[: len(args[1]) // 2])
    die()


def full_once(stand_in: FaultyOs, name: str, do: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    if name == "unlink":
        return do()
    if name == "write":
        os.write(args[0], bytes(args[1])[: len(args[1]) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_from_then_on(stand_in: FaultyOs, name: str, do: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    """Nothing that needs room succeeds any more; removing and renaming do."""
    stand_in._at = len(stand_in.calls)
    if name in ("unlink", "rename", "ftruncate", "fsync"):
        return do()
    return full_once(stand_in, name, do, args)


def plain_recipe(root: Path) -> dict[str, Any]:
    quotas = {"a": "60%", "b": "40%"}
    return {
        "seed": 2,
        "pools_root": str(root),
        "pools": {"a": {"path": "a"}, "b": {"path": "b"}},
        "stages": {
            "s": {"steps": 12, "context": 16, "batch": {"sequences": 2}, "chunk": 100, "quotas": quotas},
        },
    }


def start(path: Path, root: Path) -> None:
    recipe.start_run(recipe_from_plain(plain_recipe(root), source="test"), path).close()


def first(path: Path, root: Path) -> None:
    recipe.open_run(path).checkpoint(5)


def second(path: Path, root: Path) -> None:
    recipe.open_run(path).checkpoint(9, uri="somewhere", metrics={"validation": {"loss": 2.0}})


def rewound(path: Path, root: Path) -> None:
    recipe.open_run(path, step=5).checkpoint(7)


OPERATIONS = {"start": start, "first": first, "second": second, "rewound": rewound}
"""Each goes on from what those before it left."""
MAY_BE_AT = {"start": {0}, "first": {0, 5}, "second": {5, 9}, "rewound": {9, 5, 7}}
"""Where the run may stand after a cut; a rewind row counts by itself."""


def numbers(path: Path) -> list[Any]:
    """What the surviving chunk rows say, without chain and time."""
    kept: list[dict[str, Any]] = []
    for row in read_rows(path / "ledger.jsonl"):
        if row.kind == "rewind":
            kept = [r for r in kept if r["steps"][1] <= row.data["to_step"]]
        if row.kind == "chunk":
            kept.append(row.data)
    return [{k: v for k, v in r.items() if k not in ("row", "time", "previous", "hash")} for r in kept]


class Checker:
    """What a run must look like after a fault: as if it had been opened once and served unbroken."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._root = root
        path = folder / "truth"
        start(path, root)
        with recipe.open_run(path) as run:
            self._batches = [run.stream().batch(step)["input_ids"].tolist() for step in range(run.num_steps)]
            run.checkpoint(run.num_steps)
        self._numbers = numbers(path)

    def check(self, path: Path, operation: str) -> None:
        """Open, serve, write to the end; everything equals the unbroken run."""
        if operation == "start" and not path.exists():
            start(path, self._root)
        recipe.run_status(path)
        with recipe.open_run(path) as run:
            assert run.step in MAY_BE_AT[operation], run.step
            stream = run.stream()
            left = [stream.batch(step)["input_ids"].tolist() for step in range(run.step, run.num_steps)]
            assert left == self._batches[run.step :]
            number = run.checkpoint(run.step + 1)
            run.checkpoint(run.num_steps)
        assert numbers(path) == self._numbers
        assert read_manifest(latest_path(path))["number"] == number + 1
        assert recipe.open_run(path).complete


def in_child(work: Callable[[], None], stand_in: FaultyOs) -> bool:
    """Do some work in a fork of this process; whether it was killed."""
    child = os.fork()
    if child == 0:
        writes.os = stand_in  # type: ignore[assignment]
        try:
            work()
        except BaseException as error:
            traceback.print_exception(error)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, status
    return False


def copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        shutil.copytree(source, target)
    return target


def cuts_of(work: Callable[[], None]) -> list[tuple[Fault, int]]:
    """Every moment to kill some work at: before each change, and within each write.

    After a change is the same as before the next one.
    """
    counting = FaultyOs(None)
    writes.os, outside = counting, writes.os  # type: ignore[assignment]
    work()
    writes.os = outside
    calls = counting.calls
    halves = [(killed_half_way, at) for at, name in enumerate(calls) if name == "write"]
    return [*((killed_before, at) for at in range(len(calls))), *halves]


def enumerate_kills(folder: Path, root: Path) -> dict[str, int]:
    """Kill at every write of every operation; the number of cuts made, by operation."""
    checker = Checker(folder, root)
    made = {}
    base = folder / "base"
    for name, operation in OPERATIONS.items():
        cuts = cuts_of(lambda o=operation: o(copy(base, folder / "count"), root))
        for fault, at in cuts:
            path = copy(base, folder / "run")
            assert in_child(lambda p=path, o=operation: o(p, root), FaultyOs(fault, at))
            checker.check(path, name)
        made[name] = len(cuts)
        operation(base, root)
    return made


def enumerate_second_kills(folder: Path, root: Path) -> int:
    """A run cut in the middle of the ledger's append, whose repair is cut at every write in turn."""
    checker = Checker(folder, root)
    base, torn = folder / "base", folder / "torn"
    start(base, root)
    first(base, root)
    halves = [at for fault, at in cuts_of(lambda: second(copy(base, torn), root)) if fault is killed_half_way]
    size = (base / "ledger.jsonl").stat().st_size
    for at in halves:
        assert in_child(lambda: second(copy(base, torn), root), FaultyOs(killed_half_way, at))
        if (torn / "ledger.jsonl").stat().st_size > size:
            break
    else:
        raise AssertionError("no write to the ledger was cut")
    cuts = cuts_of(lambda: second(copy(torn, folder / "count"), root))
    for fault, at in cuts:
        path = copy(torn, folder / "run")
        assert in_child(lambda p=path: second(p, root), FaultyOs(fault, at))
        checker.check(path, "second")
    return len(cuts)


if __name__ == "__main__":
    writes.os = FaultyOs(None)  # type: ignore[assignment]
    where, pools = Path(sys.argv[2]), Path(sys.argv[3])
    print(json.dumps({"kills": enumerate_kills, "second": enumerate_second_kills}[sys.argv[1]](where, pools)))
