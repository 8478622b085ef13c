"""Checkpoints of real clusters: begun when the weights are handed to the saver, on record once it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recipe.mixing.snapshot import Snapshot
from recipe.run.statement import Metrics, Statement


class PendingCheckpoint:
    """A checkpoint that was begun; nothing of it is on record before it is committed.

    Made by ``run.begin_checkpoint``. It may be committed after later ones, and any number of steps
    later. One that is never committed never happened.
    """

    def __init__(self, at: Snapshot, commit: Callable[[Statement], int]) -> None:
        """Of a state; ``commit`` puts it on record."""
        self._at = at
        self._commit = commit
        self._number: int | None = None

    @property
    def step(self) -> int:
        """Steps consumed."""
        return self._at.step

    @property
    def manifest(self) -> int | None:
        """Number of its manifest; None before it is committed."""
        return self._number

    def commit(
        self,
        uri: str | None = None,
        *,
        digest: str | None = None,
        gpu_hours: float | None = None,
        metrics: Metrics | None = None,
    ) -> int:
        """Put it on record: the weights are saved.

        Args:
            uri: where they are.
            digest: of what was saved.
            gpu_hours: GPU-hours of the run up to its step, in total.
            metrics: ``{set: {name: number}}``.

        Returns:
            The number of the manifest.

        Raises:
            RecipeError: the run went another way since, somebody else is writing, or the folder cannot be
                written; it may be committed again then.
            ValueError: it was committed before, or numbers or texts that cannot be put on record.
        """
        if self._number is not None:
            raise ValueError(f"the checkpoint of step {self.step} was committed: manifest {self._number}")
        words: dict[str, Any] = {"uri": uri, "digest": digest, "gpu_hours": gpu_hours, "metrics": metrics}
        self._number = self._commit(Statement.of(**words))
        return self._number
