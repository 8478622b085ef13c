"""Weights & Biases, online or offline as its own ``WANDB_MODE`` says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from recipe.integrations.logging.progress import missing


class WandbLog:
    """History of one run; opened again it goes on under the same id, found by the run's folder.

    The horizontal axis is ``recipe/step``, not W&B's own counter, which cannot go back: steps taken again
    after a resume stand beside those of the process that was killed.
    """

    def __init__(self, where: str | Path, identity: Mapping[str, str], *, project: str = "recipe") -> None:
        """Open or go on with a W&B run.

        Args:
            where: folder in which W&B writes its files.
            identity: what :func:`identity` gives; the run's config.
            project: of W&B.

        Raises:
            RecipeError: wandb is not installed.
        """
        try:
            import wandb
        except ImportError:
            raise missing("wandb") from None
        self.run_id = hashlib.blake2b(identity["recipe.path"].encode(), digest_size=8).hexdigest()
        self._run = wandb.init(
            project=project,
            name=identity["recipe.run"],
            id=self.run_id,
            resume="allow",
            dir=str(where),
            config=dict(identity),
            allow_val_change=True,
        )
        self._run.define_metric("recipe/step")
        self._run.define_metric("*", step_metric="recipe/step")

    def log(self, numbers: Mapping[str, float | int], step: int) -> None:
        """Numbers at a step."""
        self._run.log({**numbers, "recipe/step": step})

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()

    def __enter__(self) -> WandbLog:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Finished, or failed where an error passes."""
        self._run.finish(exit_code=0 if error is None else 1)
