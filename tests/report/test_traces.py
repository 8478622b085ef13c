"""Traces as a person reads them."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from recipe.report.traces import row_tables, trace_tables
from recipe.run.tracing.courses import Gap
from recipe.run.tracing.sources import CHANGED, SourcePlace
from recipe.run.tracing.values import Reading, RowPiece, Trace, Traced

READING = Reading(
    run="r", pool="p", document="[b]x", epoch=0, step=3, row=1, columns=(4, 8), start=10, stop=14, fresh=11,
    stage="s", recipe=2, status="read",
)  # fmt: skip


def shown(tables: object) -> str:
    out = io.StringIO()
    console = Console(width=400, file=out)
    for table in tables:  # type: ignore[attr-defined]
        console.print(table)
    return out.getvalue()


def trace(*readings: Reading, tokens: int = 20, until: int = 5) -> Trace:
    document = Traced(pool="p", document="[b]x", tokens=tokens, readings=readings)
    return Trace(run="r", step=5, until=until, documents=(document,))


def test_a_reading_is_a_line_with_step_row_columns_and_tokens():
    out = shown(trace_tables(trace(READING)))
    assert "p: document '[b]x', 20 tokens" in out
    (line,) = [line.split() for line in out.splitlines() if "4..8" in line]
    assert line == ["3", "1", "4..8", "10..14", "3", "0", "s", "2", "read"]


def test_epochs_that_served_as_much_are_told_together():
    readings = [replace(READING, epoch=epoch, fresh=10) for epoch in (0, 1, 2, 4)]
    out = shown(trace_tables(trace(*readings, replace(READING, epoch=3))))
    assert "served fresh: 4 in each of epochs 0..2, 3 in epoch 3, 4 in epoch 4" in out


def test_many_readings_are_summed_up_unless_all_are_asked_for():
    first = [replace(READING, step=step) for step in range(30)]
    later = [replace(READING, step=step, epoch=1) for step in range(30, 50)]
    out = shown(trace_tables(trace(*first, *later)))
    lines = [line.split() for line in out.splitlines() if line.strip().startswith("s ")]
    assert lines == [
        ["s", "0", "2", "30", "120", "90", "0", "29", "read"],
        ["s", "1", "2", "20", "80", "60", "30", "49", "read"],
    ]
    assert "50 readings: --all lists each" in out
    assert shown(trace_tables(trace(*first, *later), every=True)).count("4..8") == 50


def test_a_withdrawn_document_says_from_which_step():
    (document,) = trace(READING).documents
    gone = replace(trace(READING), documents=(replace(document, withdrawn=1200),))
    assert "20 tokens, withdrawn from step 1,200 on" in shown(trace_tables(gone))
    never = replace(gone, documents=(replace(document, readings=(), withdrawn=4),))
    assert "withdrawn from step 4 on: not read" in shown(trace_tables(never))


def test_steps_of_a_parent_are_named_with_it():
    assert "3 of q" in shown(trace_tables(trace(READING, replace(READING, run="q"))))
    assert "3 of r" not in shown(trace_tables(trace(READING)))


def test_what_was_not_read_says_why():
    assert "not read, in steps 0..4" in shown(trace_tables(trace()))
    assert "not read, and will not be, in steps 0..8" in shown(trace_tables(trace(until=9)))
    assert "nothing to read" in shown(trace_tables(trace(tokens=0)))
    assert "no step is on record yet" in shown(trace_tables(trace(until=0)))


def test_gaps_are_told():
    gap = Gap(run="q", first_step=0, stop_step=3, why="gone")
    assert "not traced: steps 0..2 of q: gone" in shown(trace_tables(replace(trace(READING), gaps=(gap,))))


def test_a_row_is_told_in_one_line_a_piece_whatever_its_text():
    place = SourcePlace(
        source="a.txt:3", lines=(1, 2), characters=(0, 9), text="one\n[red]two", missing=f"a.txt {CHANGED}"
    )
    piece = RowPiece(
        pool="p", document=7, epoch=1, columns=(0, 9), start=0, stop=9, fresh=0, status="read", source=place
    )
    out = shown(row_tables((3, 1), [piece, replace(piece, columns=(9, 18))]))
    assert r"one\n[red]two" in out
    assert out.count("missing: a.txt changed") == 1
    known = replace(piece, source=replace(place, missing="a.txt: name the folder"))
    assert "missing" not in shown(row_tables((3, 1), [known]))
    unknown = replace(known, source=replace(known.source, characters=None))
    assert "missing: a.txt: name the folder" in shown(row_tables((3, 1), [unknown]))
    assert "only marks and padding" in shown(row_tables((3, 1), []))
