"""Real processes that talk over gloo."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist


def on_ranks(work: Callable[..., Any], size: int, *given: Any) -> list[Any]:
    """What ``work(rank, *given)`` gives in every process of a world.

    They find each other by a file: a free port may be somebody else's by the time a rank listens at it.

    Raises:
        AssertionError: with what every rank that failed says; the others of one that died have errors, too.
    """
    context, started = get_context("fork"), []
    with TemporaryDirectory() as folder:
        for rank in range(size):
            ours, theirs = context.Pipe(duplex=False)
            met = Path(folder) / "met"
            process = context.Process(target=_rank, args=(theirs, rank, (size, met), work, given))
            process.start()
            theirs.close()
            started.append((process, ours))
        answers = [_answer(ours) for _, ours in started]
        for process, _ in started:
            process.join()
    if failed := [text for done, text in answers if not done]:
        raise AssertionError("\n".join(failed))
    return [answer for _, answer in answers]


def _torchruns(rank: int, size: int) -> dict[str, str]:
    """The variables that torchrun sets: trainers find their ranks by them."""
    here = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "GROUP_RANK": 0}
    names = {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "test", "OMP_NUM_THREADS": "1"}
    return names | {name: str(value) for name, value in (here | {"MASTER_PORT": 0}).items()}


def _answer(pipe: Connection) -> tuple[bool, Any]:
    try:
        return pipe.recv()
    except EOFError:
        return False, "a rank died without a word"


def _rank(pipe: Connection, rank: int, world: tuple[int, Path], work: Callable[..., Any], given: Any) -> None:
    size, met = world
    os.environ |= _torchruns(rank, size)
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{met}", rank=rank, world_size=size)
        answer = (True, work(rank, *given))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        answer = (False, traceback.format_exc())
    pipe.send(answer)
    pipe.close()
    os._exit(0)
