"""What a worker of a cluster does: the work comes to it by value, the run goes back by value.

Nothing here opens a file: a worker may be on a machine that has neither the sources nor the spill folder.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from recipe.errors import RecipeError
from recipe.text.engines.local import use_one_thread
from recipe.text.spill import Run
from recipe.text.tokenise import Work

_works: dict[bytes, Work] = {}
"""The work this process has, by its digest: one."""


def package_version() -> str:
    """Of this package, as it is installed here."""
    return version("token-recipe")


def sent_function() -> Callable[..., object]:
    """What Ray runs: sent by value, it can say that a worker has not got this package."""

    def call(stated: tuple[str, bytes], work: list[Any], number: int, batch: Any) -> object:
        import socket

        import ray

        try:
            from recipe.text.engines.remote_tasks import answer
        except ImportError as error:
            return f"node {socket.gethostname()}: {error}"
        return answer(stated, lambda: ray.get(work[0]), number, batch)

    return call


def answer(
    stated: tuple[str, bytes], fetch: Callable[[], bytes], number: int, batch: Any
) -> Run | RecipeError:
    """The run of one task, or the error of its records.

    Args:
        stated: version of the package that asks, digest of the work.
        fetch: gives the work, where this process has not got it yet.
        number: of the task.
        batch: its records, pickled: any buffer.
    """
    try:
        return _work(stated, fetch).run(number, pickle.loads(batch)).packed()
    except RecipeError as error:
        return error


def _work(stated: tuple[str, bytes], fetch: Callable[[], bytes]) -> Work:
    """Loaded once in a process, and held against what it was where it came from."""
    asked, digest = stated
    if digest not in _works:
        if (here := package_version()) != asked:
            raise _unlike(f"token-recipe {here}", f"token-recipe {asked}, as where the command runs")
        use_one_thread()
        work: Work = pickle.loads(fetch())
        if work.tokenizer.fingerprint() != work.fingerprint:
            raise _unlike(
                f"packages that give the tokenizer {work.tokenizer.spec} another fingerprint",
                f"fingerprint {work.fingerprint}",
            )
        _works.clear()
        _works[digest] = work
    return _works[digest]


def _unlike(given: str, expected: str) -> RecipeError:
    fix = "install the same packages on every node"
    return RecipeError.single("ray", f"node {socket.gethostname()}", given=given, expected=expected, fix=fix)
