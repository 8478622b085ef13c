"""Rows in which pieces are one segment, have markers in front or lack end marks: worked out a second time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.audit.parts import Piece, Row, Text
from recipe.audit.rows import ARRAYS, row_faults
from recipe.mixing.stream import Stream
from tests.mixing.reference import Source
from tests.mixing.worlds import Bank, draw_case, passed_over, write_bank
from tests.sequences.build import rule


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return write_bank(tmp_path_factory.mktemp("bank"))


def texts(source: Source) -> dict[int | str, Text]:
    return {
        number: Text(np.array(doc.tokens, np.int64), doc.bos, doc.eos, doc.lead, doc.unit)
        for number, doc in enumerate(source.docs)
    }


def rows(stream: Stream, step: int, batch: dict[str, Any]) -> list[tuple[str, Row]]:
    found = []
    for row in range(len(batch["pool"])):
        pieces = stream.provenance(step, row)
        held = tuple(Piece(p.document, p.start, p.stop, p.fresh, p.column) for p in pieces)
        name = stream.pools[int(batch["pool"][row])]
        found.append((name, Row(f"{step}.{row}", name, {a: batch[a][row] for a in ARRAYS}, held)))
    return found


@settings(max_examples=60)
@given(st.data())
def test_every_row_is_what_its_pieces_and_documents_say(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank)
    stream = case.world.stream()
    known = {name: texts(source) for name, source in case.sources.items()}
    with passed_over():
        batches = [(s, {k: v.copy() for k, v in b.items()}) for s, b in stream.batches(read_ahead=0)]
    for step, batch in batches:
        stage = stream.curriculum.stages[stream.curriculum.stretch(step).stage].name
        for name, row in rows(stream, step, batch):
            by = case.world.recipe.rule(stage, name)
            of = known[name]
            if by.specials == "window":
                of = {n: Text(t.tokens, 2, 1, (), t.unit) for n, t in of.items()}
            assert by.fim is not None or row_faults(row, by, of) == []


def test_a_piece_in_the_wrong_segment_is_found():
    arrays = {
        "input_ids": np.array([10, 11, 1, 20, 21, 1, 0, 0]),
        "labels": np.array([11, 1, -100, 21, 1, -100, -100, -100]),
        "position_ids": np.array([0, 1, 2, 3, 4, 5, 0, 0]),
        "segment_ids": np.array([0, 0, 0, 0, 0, 0, -1, -1]),
        "attention_mask": np.array([1, 1, 1, 1, 1, 1, 0, 0]),
    }
    row = Row("r", "p", arrays, (Piece(0, 0, 2, 0, 0), Piece(1, 0, 2, 0, 3)))
    both: dict[int | str, Text] = {
        k: Text(np.array([10 * (k + 1), 10 * (k + 1) + 1]), None, 1, unit=7) for k in (0, 1)
    }
    together = rule(8, attention="group")
    assert row_faults(row, together, both) == []
    apart: dict[int | str, Text] = {k: Text(t.tokens, None, 1, unit=int(k)) for k, t in both.items()}
    found = [finding.where for finding in row_faults(row, together, apart)]
    assert [where.rsplit(" ", 1)[1] for where in found] == ["position_ids", "segment_ids"]
    assert row_faults(row, rule(8, attention="piece"), both) != []
