"""Run as a program: operations in processes of their own, killed by SIGKILL at random touches of the runs.

``python -m tests.run.killed_operations FOLDER SEED TIMES`` prints how many were killed, by operation. It
is a program because it forks, and a test's process has threads.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

from tests.cli.killed import count_touches
from tests.run.cuts import Checker
from tests.run.operations import OPERATIONS, World, make_pools

NAMES = (
    "checkpoint",
    "commit late",
    "amend at an older checkpoint",
    "skip and return",
    "withdraw",
    "two branches",
    "decide",
)
TOUCHES = 60
"""Touches that an operation makes at most, about."""


def is_killed(checker: Checker, at: int) -> bool:
    """Do the operation in a child that dies at a touch; False where it had fewer."""
    checker.start_over()
    child = os.fork()
    if child == 0:
        count_touches(at)
        checker.operation.do(checker.world)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status != 0


def main(folder: Path, seed: int, times: int) -> dict[str, int]:
    """Kill each operation some times; check what it left."""
    chance, killed = random.Random(seed), {}
    pools = make_pools(folder / "pools")
    for number, name in enumerate(NAMES):
        scratch = folder / str(number)
        checker = Checker(World(pools, scratch / "runs"), OPERATIONS[name], scratch)
        killed[name] = 0
        for _ in range(times):
            killed[name] += is_killed(checker, chance.randint(1, TOUCHES))
            checker.check()
    return killed


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
