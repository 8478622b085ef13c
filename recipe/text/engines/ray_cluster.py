"""A Ray cluster: one that runs already, or one that is started here and ends with the preparation."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from recipe.errors import RecipeError
from recipe.text.preparation import PrepareOptions

LOCAL = "local"
"""Ray's own word for a cluster that is started here."""
WAITING = 2
"""Tasks that wait for a worker, so that none waits for a task."""
WORKER_STORE_BYTES = 64 << 20
"""Object store of a cluster started here, for each worker: a batch of 16 MiB goes, its run comes back."""
STORE_BYTES = 256 << 20
CONNECT_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster this process is connected to."""

    ray: Any
    """The package."""
    asked: int | None
    """Workers that were asked for; None: every one there is."""
    most_bytes: int
    """Of the batches in flight: a part of the smallest object store, which holds their runs too."""

    @property
    def slots(self) -> int:
        """Tasks in flight at the moment: nodes may come and go."""
        workers = int(self.ray.cluster_resources().get("CPU", 0))
        return workers + WAITING if self.asked is None or self.asked >= workers else self.asked


@contextmanager
def cluster(options: PrepareOptions, say: Callable[[str], None]) -> Iterator[Cluster]:
    """The cluster at ``options.ray_address``, or at ``RAY_ADDRESS``; or one that ends with the block.

    Where the program that calls is connected to one already, this is it, and it stays connected.

    Raises:
        RecipeError: there is none at that address, or it is not one of this version of Ray and Python.
    """
    import ray

    if ray.is_initialized():
        yield _found(ray, options.workers, say)
        return
    address = options.ray_address or os.environ.get("RAY_ADDRESS") or LOCAL
    with _terminated_as_before():
        try:
            _connect(ray, address, options.num_workers, say)
            yield _found(ray, options.workers, say)
        finally:
            ray.shutdown()


def _connect(ray: Any, address: str, num_workers: int, say: Callable[[str], None]) -> None:
    _check_address(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    own: dict[str, Any] = {}
    if address == LOCAL:
        say("starting Ray on this machine")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        store = max(STORE_BYTES, num_workers * WORKER_STORE_BYTES)
        own = {"num_cpus": num_workers, "num_gpus": 0, "object_store_memory": store}
        own["include_dashboard"] = False
    try:
        ray.init(address=address, **quiet, **own)
    except Exception as error:  # of many classes: no such address, other versions, a package too few
        raise _unreachable(address, error) from error


def _check_address(address: str) -> None:
    """Refuse a host and port at which nobody listens: Ray would try them for half an hour."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> RecipeError:
    words = " ".join(str(error).split()) or type(error).__name__
    return RecipeError.single(
        "prepare", "ray_address", given=f"{address}: {words:.300}",
        expected="a Ray cluster that answers, of the same versions of Ray and Python",
        fix="check `ray status`, and RAY_AUTH_MODE=token where the cluster wants one; --ray-address local, "
        "or none and no RAY_ADDRESS, starts one here",
    )  # fmt: skip


def _found(ray: Any, asked: int | None, say: Callable[[str], None]) -> Cluster:
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    say(f"Ray with {sum(node.get('CPU', 0) for node in nodes):.0f} workers on {len(nodes)} nodes")
    stores = [int(node["object_store_memory"]) for node in nodes if "object_store_memory" in node]
    return Cluster(ray, asked, min(stores, default=STORE_BYTES) // 4)


@contextmanager
def _terminated_as_before() -> Iterator[None]:
    """Ray puts a handler of its own for SIGTERM into the process that calls it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
