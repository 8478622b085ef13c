"""Whether the files of consumed steps are there as they were written, and writing them again.

The stream is a function of the step, so a file that is missing or damaged is served once more. What
the files must be is on record (:mod:`recipe.run.files`), under the hash of a manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recipe.integrations.parquet import files_in
from recipe.run.files import (
    LINES_NAME,
    SEQUENCES,
    START,
    Content,
    Line,
    content_of,
    hash_of_file,
    link_of,
    linked,
    read_lines,
    stated_link,
)
from recipe.run.folder import RunFolder
from recipe.run.ledger import row_at

HASHED_BYTES = 8 << 30
"""So many bytes are hashed in any case, seconds of work; of more, the newest files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """Consumed steps that no file holds as it should."""

    first: int
    stop: int
    file: str
    """The file on record, or all of the folder."""
    why: str
    is_on_record: bool
    """Whether a file was written for them: else a program served them."""

    def __str__(self) -> str:
        """For a person."""
        return f"{self.file}, steps {self.first:,} to {self.stop - 1:,}: {self.why}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """What the folder of a run holds of the steps consumed."""

    lines: tuple[Line, ...]
    """Files that are as they should be, in step order."""
    gaps: tuple[Gap, ...]
    """What is to be written again, in step order."""
    strangers: tuple[Path, ...]
    """Files under names like those of the run that are none of its files: to be removed."""
    stated: str
    """The link that the last manifest answers for."""
    is_recorded: bool
    """Whether the record of the files is there as it should be."""
    not_hashed: int
    """Files of which only the size was compared."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is to be done."""
        return self.is_recorded and not self.gaps and not self.strangers


def inspect(run: Path, step: int, *, hash_all: bool = False) -> Holding:
    """Compare the files of the steps consumed with the record: all sizes, and contents from the newest on.

    A branch has files from the step on at which it begins; those before it are its parent's.

    Args:
        run: the run's folder.
        step: steps consumed.
        hash_all: compare the contents of every file, however many bytes.
    """
    folder = run / SEQUENCES
    lines, stated = _on_record(run, step)
    is_lost = not lines and stated != START
    hashed = _to_hash(lines, hash_all=hash_all)
    good, gaps, reached = [], [], row_at(RunFolder(run).ledger, 0).end_step
    for line in lines:
        content = line.content
        gaps += _hole(reached, content.first)
        why = _fault(folder, content, hashed=content.file in hashed)
        if why is None:
            good.append(line)
        else:
            first, stop, file = content.first, content.stop, content.file
            gaps.append(Gap(first=first, stop=stop, file=file, why=why, is_on_record=True))
        reached = content.stop
    gaps += _hole(reached, step, is_lost=is_lost)
    known = {line.content.file for line in lines}
    return Holding(
        lines=tuple(good),
        gaps=tuple(gaps),
        strangers=tuple(path for _, _, path in files_in(folder) if path.name not in known),
        stated=stated,
        is_recorded=link_of(lines) == stated and read_lines(folder) == lines,
        not_hashed=len(lines) - len(hashed),
    )


def _on_record(run: Path, step: int) -> tuple[tuple[Line, ...], str]:
    """The lines that the last manifest answers for, and the link it states; no line where they are lost.

    Lost lines are taken from the files where those are all as the manifest says.
    """
    folder = run / SEQUENCES
    bound, stated = stated_link(run)
    lines = tuple(line for line in read_lines(folder) if line.content.stop <= bound)
    if link_of(lines) == stated:
        return lines, stated
    files = [item for item in files_in(folder) if item[1] <= min(bound, step)]
    lines = tuple(linked(content_of(*item) for item in files))
    return (lines if link_of(lines) == stated else ()), stated


def _to_hash(lines: tuple[Line, ...], *, hash_all: bool) -> set[str]:
    """Names of the files whose contents are compared."""
    chosen, total = set(), 0
    for line in reversed(lines):
        total += line.content.size
        if total > HASHED_BYTES and not hash_all:
            break
        chosen.add(line.content.file)
    return chosen


def _fault(folder: Path, content: Content, *, hashed: bool) -> str | None:
    path = folder / content.file
    if not path.is_file():
        return "missing"
    size = path.stat().st_size
    if size != content.size:
        return f"{size:,} bytes where {content.size:,} were written"
    if hashed and hash_of_file(path) != content.hash:
        return "other bytes than were written"
    return None


def _hole(first: int, stop: int, *, is_lost: bool = False) -> list[Gap]:
    """Steps between files on record, if any."""
    if first == stop:
        return []
    why = f"{LINES_NAME} and the files are not what the manifest answers for" if is_lost else "no file"
    return [Gap(first=first, stop=stop, file=SEQUENCES, why=why, is_on_record=is_lost)]
