"""Tasks on a Ray cluster: batches go out by value, runs come back, this process stores them."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from recipe.errors import RecipeError
from recipe.text.documents import Document, place_of
from recipe.text.engines.local import Tasks
from recipe.text.engines.ray_cluster import Cluster, cluster
from recipe.text.engines.remote_tasks import package_version, sent_function
from recipe.text.inputs import Batch
from recipe.text.preparation import PrepareOptions, Progress, Tell
from recipe.text.spill import store_run
from recipe.text.tokenise import Work

ATTEMPTS = 4
"""How often a task is begun whose workers die, or have no memory left: then it is the task."""


def run_on_ray(tasks: Tasks, work: Work, folder: Path, options: PrepareOptions, tell: Tell) -> None:
    """Every task on some worker of a cluster, which is looked for when there is a task.

    Tasks in flight are bounded in number and in bytes. A task whose worker died is begun again, anywhere.

    Raises:
        RecipeError: of the first task that has one; no cluster; or a task that no worker survived.
    """
    first = next(tasks, None)
    if first is None:
        return
    with cluster(options, lambda text: tell(Progress(phase="note", text=text))) as found:
        flight = _Flight(found, work, folder)
        try:
            for number, batch in chain([first], tasks):
                first = None
                flight.send(number, batch)
                flight.take(wait=False)
                while flight.is_full and flight.error is None:
                    flight.take(wait=True)
                if flight.error is not None:
                    break
            flight.finish()
        finally:
            flight.cancel()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sent:
    """A task that is somewhere."""

    number: int
    records: Any
    """Reference of its batch, which stays with this process until the task is done."""
    size: int
    place: str
    """Of its first record."""
    attempts: int = 1


class _Flight:
    """The tasks that are on their way."""

    def __init__(self, found: Cluster, work: Work, folder: Path) -> None:
        self._cluster, self._ray, self._folder, self._files = found, found.ray, folder, work.files
        data: bytes = self._ray.cloudpickle.dumps(work)
        self._stated = package_version(), blake2b(data).digest()
        self._work = [self._ray.put(data)]  # in a list: fetched by the workers that have not got it
        # Ray would begin again tasks that ran out of memory without end: it is done here, and counted
        self._call = self._ray.remote(max_retries=0, num_cpus=1)(sent_function())
        self._running: dict[Any, _Sent] = {}
        self.error: tuple[int, RecipeError] | None = None
        """Of the lowest task that has one, and its number."""

    @property
    def is_full(self) -> bool:
        """Whether one has to come back before another goes."""
        size = sum(sent.size for sent in self._running.values())
        return size > self._cluster.most_bytes or len(self._running) >= self._cluster.slots

    def send(self, number: int, batch: Batch) -> None:
        """Give a task away."""
        data = np.frombuffer(pickle.dumps(batch, pickle.HIGHEST_PROTOCOL), np.uint8)
        self._begin(
            _Sent(
                number=number,
                records=self._ray.put(data),
                size=len(data),
                place=self._place(batch),
            )
        )

    def take(self, *, wait: bool) -> None:
        """Store what has come back; wait for something if asked to."""
        timeout = None if wait else 0
        running = list(self._running)
        for reference in self._ray.wait(running, num_returns=1 if wait else len(running), timeout=timeout)[0]:
            sent = self._running.pop(reference)
            try:
                answer = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError:
                raise  # not of a record, and not of a machine
            except self._ray.exceptions.RayError as error:
                self._again(sent, error)
                continue
            if isinstance(answer, RecipeError):
                self._fail(sent, answer)
            elif isinstance(answer, str):
                self._fail(sent, _without_package(answer, self._stated[0]))
            else:
                store_run(self._folder, sent.number, answer)

    def finish(self) -> None:
        """Wait for the rest; where a task failed, for those before it.

        Raises:
            RecipeError: of the first task, in the order of the sources, that has one.
        """
        while any(self.error is None or sent.number < self.error[0] for sent in self._running.values()):
            self.take(wait=True)
        if self.error is not None:
            raise self.error[1]

    def cancel(self) -> None:
        """Nothing more is wanted of the tasks that are still running."""
        for reference in self._running:
            with suppress(Exception):  # where the cluster is gone they are gone too
                self._ray.cancel(reference, force=True)

    def _begin(self, sent: _Sent) -> None:
        self._running[self._call.remote(self._stated, self._work, sent.number, sent.records)] = sent

    def _again(self, sent: _Sent, error: Exception) -> None:
        if sent.attempts < ATTEMPTS:
            self._begin(replace(sent, attempts=sent.attempts + 1))
        else:
            self._fail(sent, _deadly(sent, error))

    def _fail(self, sent: _Sent, error: RecipeError) -> None:
        if self.error is None or sent.number < self.error[0]:
            self.error = sent.number, error

    def _place(self, batch: Batch) -> str:
        record = batch[0]
        if isinstance(record, Document):
            return record.place
        return place_of(self._files[record.file].name, record.line, record.member)


def _deadly(sent: _Sent, error: Exception) -> RecipeError:
    words = " ".join(str(error).split())
    return RecipeError.single(
        "prepare",
        f"task {sent.number}, from {sent.place} on",
        given=f"{sent.attempts} workers that died over it: {type(error).__name__}: {words:.300}",
        expected="a worker that finishes it (out of memory?)",
        fix="run the same again, it goes on where it stopped; nodes with more memory, or fewer CPUs each, "
        "have more for each task",
    )


def _without_package(answer: str, version: str) -> RecipeError:
    return RecipeError.single(
        "prepare", "ray", given=answer, expected=f"token-recipe {version} on every node",
        fix=f"pip install token-recipe=={version} there, or name it in the runtime_env of the job",
    )  # fmt: skip
