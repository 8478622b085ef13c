"""The right to write to a run folder, held for one write.

The lease is the file with the highest number in ``lease/``. To take it is to create the next
number, which the file system lets only one process do; the number is the fence: who finds a
higher one than its own has lost the lease and writes no more. A lease is free once its owner
renamed it from ``.json`` to ``.free`` (which a full disk does not prevent), and when its owner is
dead: the process is gone from this host, or its heartbeat is older than ``STALE_SECONDS``. A live
owner is waited for, then named.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from recipe.errors import Problem, RecipeError
from recipe.run import writes
from recipe.run.canonical import canonical

STALE_SECONDS = 30.0
"""A heartbeat older than this (or as far in the future) is a dead owner's."""
WAIT_SECONDS = 5.0
"""How long a live owner is waited for."""
POLL_SECONDS = 0.02
HELD, FREE = ".json", ".free"

_ACTIVE: set[str] = set()
"""Owners of this process that hold, or are taking, a lease: one that could not be freed is not among them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """Who holds, or held, a lease."""

    fence: int
    owner: str
    """Random, one per taking: two handles of one process are two owners."""
    host: str
    pid: int
    space: str
    """The process-id space: equal numbers of two containers are two processes."""
    began: str
    """When the process began, as its system counts; a number given again is another process."""
    heartbeat: float
    """Seconds since 1970, by the owner's clock."""

    def age(self, now: float) -> float:
        """Seconds since the heartbeat; negative when the owner's clock is ahead."""
        return now - self.heartbeat

    def is_dead(self, now: float, stale: float) -> bool:
        """Whether the owner can no longer write."""
        if self.host == socket.gethostname() and self.space == _space():
            if self.pid == os.getpid():
                return self.owner not in _ACTIVE
            return not _alive(self.pid) or _began(self.pid) != self.began
        return abs(self.age(now)) > stale


class Lease:
    """A lease that is held; made by :func:`held`."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        """Wrap what was taken."""
        self._folder = folder
        self.owner = owner

    def check(self) -> None:
        """Raise RecipeError if somebody else took the lease since; else refresh the heartbeat."""
        newest = newest_owner(self._folder)
        if newest is None or newest.owner != self.owner.owner:
            raise RecipeError("the lease was lost", [_lost(self._folder, self.owner, newest)])
        self.owner = replace(self.owner, heartbeat=time.time())
        path = _file(self._folder, self.owner.fence)
        writes.replace_file(path, canonical(asdict(self.owner)), durable=False)

    def release(self) -> None:
        """Let the next one write. Never fails: what cannot be renamed is left to be found dead."""
        held = _file(self._folder, self.owner.fence)
        with suppress(RecipeError):
            writes.rename_file(held, held.with_suffix(FREE))
        _ACTIVE.discard(self.owner.owner)


@contextmanager
def held(folder: Path, *, wait: float | None = None, stale: float | None = None) -> Iterator[Lease]:
    """Hold the lease of ``folder`` (a run's ``lease/``) for the length of a ``with``.

    Args:
        folder: made when missing.
        wait: seconds to wait for a live owner; default ``WAIT_SECONDS``.
        stale: seconds after which a silent owner is dead; default ``STALE_SECONDS``.

    Raises:
        RecipeError: a live owner holds it (named, with host, process and age), or the folder
            cannot be written.
    """
    wait = WAIT_SECONDS if wait is None else wait
    stale = STALE_SECONDS if stale is None else stale
    writes.make_folder(folder)
    lease = Lease(folder, _take(folder, wait, stale))
    try:
        yield lease
    finally:
        lease.release()


def newest_owner(folder: Path) -> Owner | None:
    """Who holds the lease or stopped while holding it, or None when it is free. Reads, never locks."""
    while True:
        newest = _newest(folder)
        if newest is None or newest.suffix == FREE:
            return None
        try:
            return Owner(**json.loads(newest.read_bytes()))
        except FileNotFoundError:
            continue  # It was released, or a later owner tidied up, between the two looks.
        except (ValueError, TypeError) as error:
            raise RecipeError.single(
                f"{newest}: no lease",
                str(newest),
                given=str(error),
                expected="a lease as this version writes it",
                fix="make sure that nothing writes to the run, then delete the file",
            ) from error


def _newest(folder: Path) -> Path | None:
    files = [path for path in folder.glob("[0-9]*") if path.suffix in (HELD, FREE)]
    return max(files, key=lambda path: (path.stem, path.suffix == FREE), default=None)


def _take(folder: Path, wait: float, stale: float) -> Owner:
    give_up = time.monotonic() + wait
    while True:
        newest = _newest(folder)
        owner = newest_owner(folder)
        if owner is None or owner.is_dead(time.time(), stale):
            mine = _me(1 if newest is None else int(newest.stem) + 1)
            taken = newest is None or owner is None or owner.fence == int(newest.stem)
            if taken and _create(folder, mine):
                return mine
        elif time.monotonic() >= give_up:
            raise RecipeError("the run is being written", [_taken(folder, owner)])
        else:
            time.sleep(POLL_SECONDS)


def _create(folder: Path, mine: Owner) -> bool:
    _ACTIVE.add(mine.owner)
    won = False
    try:
        path = _file(folder, mine.fence)
        won = writes.create_file(path, canonical(asdict(mine))) and _tidy(folder, mine)
    finally:
        if not won:
            _ACTIVE.discard(mine.owner)
    return won


def _tidy(folder: Path, mine: Owner) -> bool:
    """Remove older numbers; False if mine is itself an older one, put back where a later owner tidied."""
    newest = newest_owner(folder)
    if newest is None or newest.owner != mine.owner:
        writes.remove_file(_file(folder, mine.fence))
        return False
    for path in folder.glob("[0-9]*"):
        if path.stem < _file(folder, mine.fence).stem:
            writes.remove_file(path)
    return True


def _file(folder: Path, fence: int) -> Path:
    return folder / f"{fence:010d}{HELD}"


def _me(fence: int) -> Owner:
    pid = os.getpid()
    return Owner(
        fence=fence,
        owner=uuid.uuid4().hex,
        host=socket.gethostname(),
        pid=pid,
        space=_space(),
        began=_began(pid),
        heartbeat=time.time(),
    )


def _space() -> str:
    """Names this system's process-id space (and boot), or nothing where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _began(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def _taken(folder: Path, owner: Owner) -> Problem:
    return Problem(
        str(_file(folder, owner.fence)),
        f"held by process {owner.pid} on {owner.host}, last heard of {owner.age(time.time()):.1f} s ago",
        "a free lease",
        "let that process finish, or end it: its lease is then taken over",
    )


def _lost(folder: Path, mine: Owner, newest: Owner | None) -> Problem:
    by = (
        f"process {newest.pid} on {newest.host}, fence {newest.fence}" if newest else "nobody: it was removed"
    )
    return Problem(
        str(_file(folder, mine.fence)),
        f"taken over by {by}",
        f"still held, with fence {mine.fence}",
        "nothing more was written; open the run again and write from there",
    )
