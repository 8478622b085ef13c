"""The right to write to a run folder, held for one write.

The lease is the file with the highest number in ``lease/``. To take it is to create the next
number, which the file system lets only one process do; the number is the fence: who finds a
higher one than its own has lost the lease and writes no more. A lease is free once its owner
renamed it from ``.json`` to ``.free`` (which a full disk does not prevent), and when its owner is
dead: the process is gone from this host, or its heartbeat is older than ``STALE_SECONDS``. A live
owner is waited for, then named. A heartbeat that is no finite number says nothing: its owner is dead
only if its process is known to be gone.

Numbers have ten digits and are compared as numbers. Files of other names are not looked at; one whose
name is a number but that is no lease is named, and nothing is written until somebody removes it.
"""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from recipe.errors import Problem, RecipeError
from recipe.run import writes
from recipe.run.canonical import canonical
from recipe.run.owner import ACTIVE, Owner, read_owner, this_process

STALE_SECONDS = 30.0
"""A heartbeat older than this (or as far in the future) is a dead owner's."""
WAIT_SECONDS = 5.0
"""How long a live owner is waited for."""
POLL_SECONDS = 0.02
HELD, FREE = ".json", ".free"
LAST_FENCE = 10**10 - 1
_NAME = re.compile(r"([0-9]{10})(\.json|\.free)")
_LOOKS = 1000
"""Looks at a folder that others change meanwhile; each of them only repeats when somebody else got on."""


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
        ACTIVE.discard(self.owner.owner)


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
    """Who holds the lease or stopped while holding it, or None when it is free. Reads, never locks.

    Raises:
        RecipeError: the file with the highest number is no lease, or the folder cannot be read.
    """
    return _look(folder)[1]


def _look(folder: Path) -> tuple[int, Owner | None]:
    """The highest number there is, 0 for none, and its owner unless it is free."""
    for _ in range(_LOOKS):
        names = [found for found in map(_NAME.fullmatch, _names(folder)) if found]
        newest = max(names, key=lambda name: (int(name[1]), name[2] == FREE), default=None)
        if newest is None:
            return 0, None
        path, fence = folder / newest[0], int(newest[1])
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                raise _no_lease(path, "a folder, a link or the like")
            return fence, None if newest[2] == FREE else read_owner(path.read_bytes(), fence)
        except FileNotFoundError:
            continue  # It was released, or a later owner tidied up, between the two looks.
        except OSError as error:
            raise _no_lease(path, error.strerror) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise _no_lease(path, str(error)) from error
    raise _no_lease(folder, "files that come and go faster than they can be read")


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _no_lease(folder, error.strerror) from error


def _no_lease(path: Path, given: object) -> RecipeError:
    return RecipeError.single(
        f"{path}: no lease",
        str(path),
        given=given,
        expected="a lease as this version writes it",
        fix="make sure that nothing writes to the run, then delete it",
    )


def _take(folder: Path, wait: float, stale: float) -> Owner:
    give_up = time.monotonic() + wait
    lost = 0
    while True:
        fence, owner = _look(folder)
        if owner is None or owner.is_dead(time.time(), stale):
            if fence >= LAST_FENCE:
                raise _no_lease(_file(folder, fence), "the last number there is")
            mine = this_process(fence + 1)
            if _create(folder, mine):
                return mine
            lost += 1
            if lost > _LOOKS and time.monotonic() >= give_up:
                raise _no_lease(folder, f"{lost} tries that others were faster at")
        elif time.monotonic() >= give_up:
            raise RecipeError("the run is being written", [_taken(folder, owner)])
        time.sleep(POLL_SECONDS)


def _create(folder: Path, mine: Owner) -> bool:
    ACTIVE.add(mine.owner)
    won = False
    try:
        path = _file(folder, mine.fence)
        won = writes.create_file(path, canonical(asdict(mine))) and _tidy(folder, mine)
    finally:
        if not won:
            ACTIVE.discard(mine.owner)
    return won


def _tidy(folder: Path, mine: Owner) -> bool:
    """Remove older numbers; False if mine is itself an older one, put back where a later owner tidied."""
    newest = newest_owner(folder)
    if newest is None or newest.owner != mine.owner:
        writes.remove_file(_file(folder, mine.fence))
        return False
    for name in filter(None, map(_NAME.fullmatch, _names(folder))):
        if int(name[1]) < mine.fence:
            with suppress(RecipeError):  # What cannot be removed has a lower number and does no harm.
                writes.remove_file(folder / name[0])
    return True


def _file(folder: Path, fence: int) -> Path:
    return folder / f"{fence:010d}{HELD}"


def _taken(folder: Path, owner: Owner) -> Problem:
    age = owner.age(time.time())
    heard = "with a heartbeat that is no number" if math.isnan(age) else f"last heard of {age:.1f} s ago"
    fix = "let that process finish, or end it: its lease is then taken over"
    if math.isnan(age):
        fix = "let that process finish; if it is gone, delete the file"
    return Problem(
        str(_file(folder, owner.fence)),
        f"held by process {owner.pid} on {owner.host}, {heard}",
        "a free lease",
        fix,
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
