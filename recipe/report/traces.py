"""Where documents were read, and what a row was made of, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group
from rich.text import Text

from recipe.errors import counted
from recipe.report.tables import table
from recipe.run.tracing.values import Reading, RowPiece, Trace, Traced

MOST_SHOWN = 20
"""Documents that get a table of their own; of more, each gets a line."""
MOST_READINGS = 40
"""Readings of a document that get a line each; more are summed up."""
_TEXT = 60
FROM_TOKENS = (
    "lines and characters are of the text that the tokens give, not of its file: --sources DIR looks there"
)


def trace_tables(trace: Trace, *, every: bool = False) -> Iterator[Group | Text]:
    """A table a document, or of many documents one for all; then what could not be looked at.

    ``every``: a line for every reading, however many a document has.
    """
    if len(trace.documents) > MOST_SHOWN:
        yield _many(trace)
    else:
        for document in trace.documents:
            yield _one(trace, document, every=every)
    for gap in trace.gaps:
        steps = f"{gap.first_step:,}..{gap.stop_step - 1:,}"
        yield Text(f"not traced: steps {steps} of {gap.run}: {gap.why}")


def _one(trace: Trace, document: Traced, *, every: bool) -> Group | Text:
    title = f"{document.pool}: document {document.document!r}, {document.tokens:,} tokens"
    if document.withdrawn is not None:
        title += f", withdrawn from step {document.withdrawn:,} on"
    if not document.readings:
        return Text(f"{title}: {_never(trace, document)}\n")
    others = len({one.run for one in document.readings} | {trace.run}) > 1
    if len(document.readings) > MOST_READINGS and not every:
        return _summed(title, document, others)
    columns = ("step", "row", "columns", "tokens", "fresh", "epoch", "stage", "recipe", "")
    rows = [_reading(one, others) for one in document.readings]
    return table(title, columns, rows, caption=_served(document))


def _summed(title: str, document: Traced, others: bool) -> Group:
    """Readings by stage, epoch and recipe version."""

    def kind(one: Reading) -> tuple[str, str, int, int, str]:
        return one.run, one.stage, one.epoch, one.recipe, one.status

    rows = []
    for (run, stage, epoch, version, status), group in groupby(document.readings, key=kind):
        some = list(group)
        cells = (
            stage + (f" of {run}" if others else ""),
            str(epoch),
            str(version),
            f"{len(some):,}",
            f"{sum(one.stop - one.start for one in some):,}",
            f"{sum(one.stop - one.fresh for one in some):,}",
            f"{some[0].step:,}",
            f"{some[-1].step:,}",
            status,
        )
        rows.append(cells)
    columns = ("stage", "epoch", "recipe", "readings", "tokens", "fresh", "first step", "last step", "")
    caption = f"{_served(document)}; {len(document.readings):,} readings: --all lists each, --json has them"
    return table(title, columns, rows, caption=caption)


def _reading(one: Reading, others: bool) -> tuple[str, ...]:
    return (
        f"{one.step:,}" + (f" of {one.run}" if others else ""),
        str(one.row),
        f"{one.columns[0]}..{one.columns[1]}",
        f"{one.start:,}..{one.stop:,}",
        f"{one.stop - one.fresh:,}",
        str(one.epoch),
        one.stage,
        str(one.recipe),
        one.status,
    )


def _served(document: Traced) -> str:
    """How much of the document each epoch served fresh; epochs that follow one another are told together."""
    told = []
    for fresh, group in groupby(sorted(document.fresh), key=lambda epoch: document.fresh[epoch]):
        epochs = list(group)
        which = f"epoch {epochs[0]}" if len(epochs) == 1 else f"each of epochs {epochs[0]}..{epochs[-1]}"
        told.append(f"{fresh:,} in {which}")
    return f"of {document.tokens:,} tokens, served fresh: {', '.join(told)}"


def _never(trace: Trace, document: Traced) -> str:
    if not document.tokens:
        return "nothing to read"
    if not trace.until:
        return "no step is on record yet"
    later = ", and will not be" if trace.until > trace.step else ""
    return f"not read{later}, in steps 0..{trace.until - 1:,}"


def _many(trace: Trace) -> Group:
    rows = [
        (
            str(one.document),
            one.pool,
            f"{one.tokens:,}",
            str(sum(reading.status == "read" for reading in one.readings)),
            str(sum(reading.status != "read" for reading in one.readings)),
            f"{one.readings[0].step:,}" if one.readings else "–",
            f"{one.readings[-1].step:,}" if one.readings else "–",
            str(len(one.fresh)),
        )
        for one in trace.documents
    ]
    read = sum(one[3] != "0" for one in rows)
    title = f"{counted(len(rows), 'document')} in steps 0..{trace.until - 1:,}"
    columns = ("document", "pool", "tokens", "pieces read", "to be read", "first step", "last step", "epochs")
    caption = f"{read:,} of {len(rows):,} were read; --json has every step, row and column"
    return table(title, columns, rows, caption=caption)


def row_tables(at: tuple[int, int], pieces: Sequence[RowPiece]) -> Iterator[Group | Text]:
    """The pieces of a row (``at``: step and row), then what is missing to name their lines."""
    step, row = at
    columns = (
        "columns",
        "pool",
        "document",
        "epoch",
        "tokens",
        "fresh",
        "region",
        "source",
        "lines",
        "characters",
        "text",
    )
    status = f", {pieces[0].status}" if pieces else ", only marks and padding"
    yield table(f"step {step:,}, row {row}{status}", columns, [_piece(one) for one in pieces])
    missing: dict[str, None] = dict.fromkeys(
        one.source.wanted for one in pieces if one.source.wanted is not None
    )
    yield from (Text(f"missing: {what}") for what in missing)
    if any(one.source.known_from == "tokens" and one.source.characters for one in pieces):
        yield Text(FROM_TOKENS)


def _piece(one: RowPiece) -> tuple[str, ...]:
    place = one.source
    lines, characters = place.lines, place.characters
    return (
        f"{one.columns[0]}..{one.columns[1]}",
        one.pool,
        str(one.document),
        str(one.epoch),
        f"{one.start:,}..{one.stop:,}",
        f"{one.stop - one.fresh:,}",
        one.region or "–",
        "–" if place.source is None else str(place.source),
        "–" if lines is None else f"{lines[0]}..{lines[1]}",
        "–" if characters is None else f"{characters[0]:,}..{characters[1]:,}",
        "–" if place.text is None else _excerpt(place.text),
    )


def _excerpt(text: str) -> str:
    shown = one_line(text[:_TEXT])
    return f"{shown}…" if len(text) > _TEXT else shown


def one_line(text: str) -> str:
    """A text in one line: what is not printable is shown as its escape.

    >>> one_line("a\\n\\tb")
    'a\\\\n\\\\tb'
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
