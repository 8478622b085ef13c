"""The sections of a pool, joined from what its parts noted while they were written; needs resolved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import ContentError, Problem
from recipe.pools.leads import part_leads
from recipe.pools.megatron import read_index
from recipe.pools.part import FinishedPart
from recipe.pools.sections import Boundaries, sections_path

_SHOWN_PROBLEMS = 20


class _Scope:
    """The sections of one unit: what its needs may name."""

    def __init__(self) -> None:
        self.spans: dict[int | str, tuple[int, int]] = {}
        self.needing: list[tuple[tuple[int, int], list[int | str], int]] = []

    def add(self, document: int, entry: Any, span: tuple[int, int]) -> Iterator[Problem]:
        if isinstance(entry, int):
            return
        _, id, needs = entry
        if id is not None:
            if id in self.spans:
                fix = "give each section of a group, or of a document without one, an id of its own"
                yield Problem(f"document {document}", f"section id {id!r} again", "unique ids", fix)
            self.spans[id] = span
        if needs:
            self.needing.append((span, needs, document))

    def rows(self, problems: list[Problem]) -> Iterator[tuple[int, int, int, int]]:
        for span, needs, document in self.needing:
            for id in needs:
                needed = self.spans.get(id)
                if needed is None or needed == span:
                    given = f"needs {id!r}" + (", itself" if needed == span else "")
                    expected = "the id of another section of the same document or group"
                    fix = "correct the id, or put both documents into one group"
                    problems.append(Problem(f"document {document}", given, expected, fix))
                else:
                    yield (*span, *needed)


def joined(
    folder: Path,
    parts: Sequence[FinishedPart],
    units: NDArray[np.int64] | None,
    marks: tuple[bool, bool],
    before: Boundaries | None,
) -> Boundaries | None:
    """The sections of all parts; None where nothing was said of any.

    Args:
        folder: of the pool that is written.
        parts: all of them; those of an extended pool have no file.
        units: int64[n + 1]: first documents of the units; None: each document is one.
        marks: whether BOS and EOS are stored.
        before: what the pool that is extended has.

    Raises:
        ContentError: a needed section that is not there, or two of one id.
    """
    if before is None and not any(part.has_sections for part in parts):
        return None
    starts: list[NDArray[np.int64]] = [] if before is None else [before.sections]
    rows: list[tuple[int, int, int, int]] = []
    problems: list[Problem] = []
    scope, current = _Scope(), -1
    for number, entries, (first, last) in _documents(folder, parts, marks):
        unit = number if units is None else int(np.searchsorted(units, number, side="right")) - 1
        if unit != current:
            rows += scope.rows(problems)
            scope, current = _Scope(), unit
        begins = [first + (entry if isinstance(entry, int) else entry[0]) for entry in entries]
        starts.append(np.array([begin for begin in begins if begin > first], np.int64))
        spans = zip(begins, [*begins[1:], last], strict=True)
        for entry, span in zip(entries, spans, strict=True):
            problems += scope.add(number, entry, span)
    rows += scope.rows(problems)
    if problems:
        raise ContentError(str(folder), problems[:_SHOWN_PROBLEMS])
    old = [] if before is None or before.needs is None else [before.needs]
    needs = [*old, *([np.array(sorted(rows, key=lambda row: row[0]), np.int64)] if rows else [])]
    return Boundaries(
        np.concatenate([*starts, np.empty(0, np.int64)]), np.concatenate(needs) if needs else None
    )


def _documents(
    folder: Path, parts: Sequence[FinishedPart], marks: tuple[bool, bool]
) -> Iterator[tuple[int, list[Any], tuple[int, int]]]:
    """Documents that have sections: number, sections, and where their body is stored."""
    document = token = 0
    for part in parts:
        path = sections_path(folder, part.record.name)
        if part.has_sections:
            offsets = token + read_index(folder / f"{part.record.name}.idx").offsets()
            fronts = part_leads(folder, part, marks[0])
            with path.open("rb") as file:
                for line in file:
                    number, entries = json.loads(line)
                    body = (int(offsets[number] + fronts[number]), int(offsets[number + 1]) - marks[1])
                    yield document + number, entries, body
        document, token = document + part.record.documents, token + part.record.tokens
