"""The steps of a run that have a checkpoint, as messages name them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from recipe.run.ledger import read_tail
from recipe.run.surviving import surviving

SHOWN = 8
"""Steps that a message names."""


def checkpoint_steps(ledger: Path) -> list[int]:
    """The steps with a checkpoint that no rewind discarded, rising."""
    rows = surviving(ledger, read_tail(ledger))
    return sorted({row.end_step for row in rows if row.kind == "checkpoint"})


def nearest(steps: Iterable[int], step: int, most: int = SHOWN) -> list[int]:
    """Those of some steps that lie nearest to one, rising.

    >>> nearest(range(0, 100, 10), 42, 4)
    [30, 40, 50, 60]
    """
    return sorted(sorted(steps, key=lambda known: abs(known - step))[:most])


def steps_shown(steps: list[int], step: int) -> str:
    """Where there is one, and which: the end of a sentence about the steps that one could mean.

    >>> steps_shown([16, 32], 7), steps_shown([], 7)
    ('there are 16, 32', 'there is none but where it began')
    """
    if not steps:
        return "there is none but where it began"
    which = "the nearest ones are" if len(steps) > SHOWN else "there are" if len(steps) > 1 else "there is"
    return f"{which} {', '.join(map(str, nearest(steps, step)))}"
