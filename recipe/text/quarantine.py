"""What the tasks of a first pass counted and left out, gathered."""

from __future__ import annotations

import json
from pathlib import Path

from recipe.pools.workplace import sync
from recipe.text.documents import Tally
from recipe.text.spill import read_report


def gathered_tally(folder: Path, num_tasks: int) -> Tally:
    """The counts of all tasks; they add up, which is asserted."""
    tally = Tally()
    for number in range(num_tasks):
        tally.add(Tally.from_plain(read_report(folder, number)["tally"]))
    tally.check()
    return tally


def write_quarantine(path: Path, folder: Path, num_tasks: int) -> None:
    """Write what was left out, a line of JSON each: source, line, row or member, reason, detail, excerpt.

    One task's rows are in memory at a time: a wrong key makes every record of a corpus one of them.
    """
    with path.open("wb") as file:
        for number in range(num_tasks):
            for row in read_report(folder, number)["refused"]:
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    sync(path)
