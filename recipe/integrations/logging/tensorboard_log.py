"""TensorBoard event files, through torch's writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from recipe.integrations.logging.progress import missing


class TensorBoardLog:
    """Scalars of a run in a folder; opened at a later step it goes on, and hides what stood from there.

    Any log is opened and written so, with ``identity(run)`` and ``progress(run.stream(), step)``:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as where, TensorBoardLog(where, {"recipe.step": "4"}) as log:
    ...     log.log({"recipe/tokens/news": 4096}, step=4)
    ...     log.close()
    ...     [file.name.split(".")[0] for file in Path(where).iterdir()]
    ['events']
    """

    def __init__(self, where: str | Path, identity: Mapping[str, str], *, step: int | None = None) -> None:
        """Open a folder of event files.

        Args:
            where: folder, made if it is not there.
            identity: what :func:`identity` gives; shown as text.
            step: where the run goes on: TensorBoard hides what an earlier process logged at or after it.
                Default: where the identity says that the run stood.

        Raises:
            RecipeError: torch or tensorboard is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise missing("tensorboard") from None
        at = int(identity["recipe.step"]) if step is None else step
        self._writer = SummaryWriter(str(where), purge_step=at)
        for name, value in identity.items():
            self._writer.add_text(name, value, at)

    def log(self, numbers: Mapping[str, float | int], step: int) -> None:
        """Numbers at a step."""
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step, double_precision=True)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def __enter__(self) -> TensorBoardLog:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
