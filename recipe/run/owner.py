"""The owner of a lease: which process it is, and whether it is still there."""

from __future__ import annotations

import json
import math
import os
import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

_LONGEST_TEXT = 4096

ACTIVE: set[str] = set()
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
    """Seconds since 1970, by the owner's clock; NaN where the file holds no finite number."""

    def age(self, now: float) -> float:
        """Seconds since the heartbeat; negative when the owner's clock is ahead."""
        return now - self.heartbeat

    def is_dead(self, now: float, stale: float) -> bool:
        """Whether the owner can no longer write."""
        if self.host == socket.gethostname() and self.space == _space():
            if self.pid == os.getpid():
                return self.owner not in ACTIVE
            return not _alive(self.pid) or _began(self.pid) != self.began
        return abs(self.age(now)) > stale


def this_process(fence: int) -> Owner:
    """This process as the owner of a lease."""
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


def read_owner(data: bytes, fence: int) -> Owner:
    """The owner that a lease file states; raises ValueError or TypeError when it is none."""
    plain = json.loads(data)
    if not isinstance(plain, dict):
        raise TypeError(f"a {type(plain).__name__}")
    owner = Owner(**{**plain, "heartbeat": _finite(plain["heartbeat"]) if "heartbeat" in plain else math.nan})
    if type(owner.fence) is not int or owner.fence != fence:
        raise ValueError(f"fence {owner.fence!r:.40} in file {fence}")
    if type(owner.pid) is not int or not 0 < owner.pid < 1 << 31:
        raise ValueError(f"process {owner.pid!r:.40}")
    for text in (owner.owner, owner.host, owner.space, owner.began):
        if not isinstance(text, str) or len(text.encode()) > _LONGEST_TEXT:
            raise ValueError(f"{text!r:.40} as owner, host, space or beginning")
    return owner


def _finite(value: object) -> float:
    """The number, or NaN where it is none that a clock gives."""
    try:
        number = float(value) if type(value) in (int, float) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


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
