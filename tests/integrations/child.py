"""A process of its own, which may be killed."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

import torch


def in_a_child(work: Callable[[], object]) -> int:
    """The signal (below zero) or the code that a process of its own ended with; 9 where the work failed."""
    child = os.fork()
    if not child:
        torch.set_num_threads(1)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(9)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
