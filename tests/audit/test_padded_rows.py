"""A row whose documents are padded to a multiple, against one worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recipe.audit.parts import Piece
from recipe.audit.rows import ARRAYS, row_faults
from tests.audit.test_verify import EOS, RULE, TEXTS, row

RULE_4 = replace(RULE, context=16, document_multiple=4)
RIGHT = {
    "input_ids": [97, 98, 99, EOS, 100, 101, EOS, 0, 100, 101, EOS, 0, 0, 0, 0, 0],
    "labels": [98, 99, EOS, -100, 101, EOS, -100, -100, 101, EOS, *[-100] * 6],
    "position_ids": [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 0, 0],
    "segment_ids": [0, 0, 0, 0, 1, 1, 1, -1, 2, 2, 2, -1, -1, -1, -1, -1],
    "attention_mask": [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0],
}
PIECES = (Piece("abc", 0, 3, 0, 0), Piece("de", 0, 2, 0, 4), Piece("de", 0, 2, 0, 8))


def test_a_padded_row_worked_out_by_hand_is_right():
    assert row_faults(row(**RIGHT, pieces=PIECES), RULE_4, TEXTS) == []


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("column", range(16))
def test_any_other_value_is_found(name: str, column: int):
    values = np.array(RIGHT[name])
    values[column] += 7 if name != "attention_mask" else 1 - 2 * values[column]
    assert row_faults(row(**RIGHT | {name: values}, pieces=PIECES), RULE_4, TEXTS)


def test_a_piece_that_begins_elsewhere_is_found():
    moved = (*PIECES[:2], PIECES[2]._replace(column=7))
    [fault] = row_faults(row(**RIGHT, pieces=moved), RULE_4, TEXTS)
    assert "before column 7" in str(fault)
