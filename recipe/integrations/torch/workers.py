"""Which loader worker this process is."""

from __future__ import annotations

from torch.utils.data import get_worker_info


def worker_and_workers() -> tuple[int, int]:
    """This worker's number and how many there are; (0, 1) in the trainer's own process."""
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)
