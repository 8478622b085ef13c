"""A disk that is full while text is prepared."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recipe.errors import RecipeError
from recipe.pools.workplace import NO_SPACE
from recipe.text.spill import remove_unfinished


@contextmanager
def disk_errors(spill: Path, source_bytes: int | None) -> Iterator[None]:
    """A full disk as a fault that says what is needed; finished tasks stay, halves go.

    Args:
        spill: folder between the passes.
        source_bytes: stored bytes of what is read, where they are known.

    Raises:
        RecipeError: there is no space left.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        remove_unfinished(spill)
        written = sum(path.stat().st_size for path in spill.iterdir())
        free = shutil.disk_usage(spill).free
        needed = max(2 * written, 2 * (source_bytes or 0))
        raise RecipeError.single(
            "prepare",
            str(spill),
            given=f"no space left: {free:,} bytes free, {written:,} written",
            expected=f"about {needed:,} bytes, for tokens between the passes and for the pool",
            fix="free space and run the same again, it goes on; or remove the folder to give up",
        ) from error
