"""A row of a run as a reader sees it: its text, stretch by stretch, and what each stretch is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recipe.mixing.reader import Batch
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.tracing.courses import Course, Lineage
from recipe.run.tracing.rows import RowSources, course_of, pieces_of_row
from recipe.run.tracing.sources import Sources
from recipe.run.tracing.tokenizers import TokenizerOf
from recipe.run.tracing.values import Progress, RowPiece, watch_nothing
from recipe.sequences.page import IGNORED
from recipe.text.vocabulary import token_bytes

Kind = Literal["fresh", "overlap", "special", "padding"]
KINDS: tuple[Kind, ...] = ("fresh", "overlap", "special", "padding")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Positions of a row that lie side by side and are of one kind."""

    columns: tuple[int, int]
    """Half-open."""
    kind: Kind
    labelled: bool
    """Whether these positions carry a label."""
    segment: int
    """What may see each other; -1 is padding."""
    text: str
    """As read: bytes that are no character are written like ⟨e4⟩, ids without text like ⟨id 7⟩."""
    piece: int | None = None
    """Which of the row's pieces; None for what is no document's text."""
    tokens: tuple[int, int] | None = None
    """Of the document, half-open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """A row of the global batch of a step."""

    run: str
    step: int
    row: int
    stage: str
    context: int
    pieces: tuple[RowPiece, ...]
    stretches: tuple[Stretch, ...]
    has_text: bool
    """Whether the tokenizer of the row's pool is on this machine."""

    @property
    def positions(self) -> dict[Kind, int]:
        """How many positions are of each kind; together they are the context."""
        counts = dict.fromkeys(KINDS, 0)
        for one in self.stretches:
            counts[one.kind] += one.columns[1] - one.columns[0]
        return counts

    @property
    def labels(self) -> int:
        """Positions that carry a label."""
        return sum(one.columns[1] - one.columns[0] for one in self.stretches if one.labelled)

    def to_plain(self) -> Plain:
        """Plain values for ``recipe inspect --json``."""
        return {
            "run": self.run,
            "step": self.step,
            "row": self.row,
            "stage": self.stage,
            "context": self.context,
            "positions": self.positions,
            "labels": self.labels,
            "pieces": [piece.to_plain() for piece in self.pieces],
            "stretches": [_plain(one) for one in self.stretches],
        }


def _plain(stretch: Stretch) -> Plain:
    plain = asdict(stretch)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def look_at_rows(
    path: str | Path,
    places: Sequence[tuple[int, int]],
    where: RowSources | None = None,
    *,
    pools_root: str | Path | None = None,
    progress: Progress = watch_nothing,
) -> list[Look]:
    """Rows of a run as text.

    Args:
        path: the run's folder; nothing in it is locked or written.
        places: steps, and rows of their global batches in schedule order.
        where: folders of source files, and the tokenizer; default: the working directory and the recipe's.
        pools_root: where the pools are on this machine; default: where they were.
        progress: called while steps are walked.

    Raises:
        RecipeError: no run, no such step or row, a pool that is missing or changed.
    """
    where, looks = where or RowSources(), list[Look]()
    sources, spelt = dict[int, Sources](), dict[str, list[bytes]]()
    with Lineage(Path(path), None if pools_root is None else Path(pools_root)) as lineage:
        for at in places:
            course = course_of(lineage, at[0])
            of = sources.setdefault(course.first_step, where.of(course))
            pieces = pieces_of_row(lineage, course, at, of, progress)
            looks.append(_look(course, at, pieces, of.tokenizer_of, spelt))
    return looks


def _look(
    course: Course,
    at: tuple[int, int],
    pieces: Sequence[RowPiece],
    tokenizer_of: TokenizerOf,
    known: dict[str, list[bytes]],
) -> Look:
    """A row as text; ``known``: by fingerprint, the bytes of tokens that were looked up before."""
    step, row = at
    batch = course.stream.rows(step, [row])
    pool = course.pools[course.stream.pools[int(batch["pool"][0])]]
    tokenizer, spelt = tokenizer_of(pool), None
    if tokenizer is not None:
        if (mark := tokenizer.fingerprint()) not in known:
            known[mark] = token_bytes(tokenizer)
        spelt = known[mark]
    stretch = course.stream.curriculum.stretch(step)
    return Look(
        run=course.run,
        step=step,
        row=row,
        stage=course.stream.curriculum.stages[stretch.stage].name,
        context=stretch.context,
        pieces=tuple(pieces),
        stretches=tuple(_stretches(batch, pieces, pool, spelt)),
        has_text=spelt is not None,
    )


def _stretches(
    batch: Batch, pieces: Sequence[RowPiece], pool: Pool, spelt: list[bytes] | None
) -> Iterator[Stretch]:
    """The row cut wherever kind, label, segment or piece changes."""
    labelled, segments = batch["labels"][0] != IGNORED, batch["segment_ids"][0]
    piece_of, token_of = _places(pieces, len(labelled))
    overlap = np.zeros(len(labelled), bool)
    for number, piece in enumerate(pieces):
        overlap |= (piece_of == number) & (token_of < piece.fresh)
    kinds = np.where(batch["attention_mask"][0] == 0, 3, np.where(piece_of < 0, 2, np.where(overlap, 1, 0)))
    states = np.stack([kinds, labelled, segments, piece_of])
    edges = np.flatnonzero((states[:, 1:] != states[:, :-1]).any(axis=0)) + 1
    for first, last in pairwise([0, *edges.tolist(), len(labelled)]):
        kind = KINDS[int(kinds[first])]
        is_text = kind in ("fresh", "overlap")
        ids = batch["input_ids"][0, first:last]
        yield Stretch(
            columns=(first, last),
            kind=kind,
            labelled=bool(labelled[first]),
            segment=int(segments[first]),
            text="" if kind == "padding" else _read(ids, kind, spelt, pool),
            piece=int(piece_of[first]) if is_text else None,
            tokens=(int(token_of[first]), int(token_of[last - 1]) + 1) if is_text else None,
        )


def _places(pieces: Sequence[RowPiece], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every position, which piece it is of and which token of the document; -1 where it is of none."""
    piece_of, token_of = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
    for number, piece in enumerate(pieces):
        columns = slice(*piece.columns)
        piece_of[columns], token_of[columns] = number, np.arange(piece.start, piece.stop)
    return piece_of, token_of


def _read(ids: NDArray[Any], kind: Kind, spelt: list[bytes] | None, pool: Pool) -> str:
    if kind == "special" or spelt is None:
        return _special(ids, spelt, pool)
    return _text(ids, spelt)


def _special(ids: NDArray[Any], spelt: list[bytes] | None, pool: Pool) -> str:
    """Marks by their names; a marker by its text, so far as it has one."""
    names = {pool.bos: "bos"} | {pool.eos: "eos"}
    told = ""
    for is_mark, group in groupby(ids.tolist(), key=names.__contains__):
        if is_mark or spelt is None:
            told += "".join(f"⟨{names.get(number, f'id {number}')}⟩" for number in group)
            continue
        numbers = list(group)
        text = _text(np.array(numbers), spelt)
        told += text or "".join(f"⟨id {number}⟩" for number in numbers)
    return told


def _text(ids: NDArray[Any], spelt: list[bytes]) -> str:
    read = b"".join(spelt[number] for number in ids.tolist()).decode("utf-8", "surrogateescape")
    return "".join(f"⟨{ord(sign) - 0xDC00:02x}⟩" if "\udc80" <= sign <= "\udcff" else sign for sign in read)
