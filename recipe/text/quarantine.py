"""What the tasks of a first pass counted and left out, gathered; a reading that gave nothing, refused."""

from __future__ import annotations

import json
from pathlib import Path

from recipe.errors import Problem
from recipe.pools.workplace import written_durably
from recipe.text.documents import RecordsError, Tally, place_of, repair_of
from recipe.text.spill import read_report


def gathered_tally(folder: Path, num_tasks: int) -> Tally:
    """The counts of all tasks; they add up, which is asserted."""
    tally = Tally()
    for number in range(num_tasks):
        tally.add(Tally.from_plain(read_report(folder, number)["tally"]))
    tally.check()
    return tally


def check_usable(folder: Path, num_tasks: int, tally: Tally) -> None:
    """Refuse a reading in which records were left out and none gave a document: a wrong key, mostly.

    Empty texts alone are no fault: a source may hold nothing.

    Raises:
        RecordsError: each reason with its count and its first record.
    """
    if tally.kept or not tally.quarantined:
        return
    first = dict[str, Problem]()
    for number in range(num_tasks):
        for row in read_report(folder, number)["refused"]:
            reason = row["reason"]
            if reason not in first:
                place = place_of(row["source"], row.get("line", row.get("row")), row.get("member"))
                count = (
                    f"{reason.replace('_', ' ')} in {tally.quarantined[reason]:,} of {tally.read:,} records"
                )
                given = f"{count}; the first: {row['excerpt'] or '(nothing)'}"
                first[reason] = Problem(
                    place, given, row["detail"], repair_of(reason, row["detail"], may_skip=False)
                )
        if len(first) == len(tally.quarantined):
            break
    empty = f", {tally.empty:,} are empty" if tally.empty else ""
    raise RecordsError(f"no record gives a document{empty}: no pool is made", list(first.values()))


def write_quarantine(path: Path, folder: Path, num_tasks: int) -> None:
    """Write what was left out, a line of JSON each: source, line, row or member, reason, detail, excerpt.

    One task's rows are in memory at a time: a wrong key makes every record of a corpus one of them.
    """
    with written_durably(path) as file:
        for number in range(num_tasks):
            for row in read_report(folder, number)["refused"]:
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
