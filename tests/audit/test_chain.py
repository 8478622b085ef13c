"""The ledger's text: every byte, every row's place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.audit.chain import read_text
from recipe.run.canonical import canonical
from recipe.run.row import first_line, sealed_row


def ledger(num_rows: int = 6) -> list[bytes]:
    lines = [first_line({"kind": "created", "note": 'a "row":7 inside', "parent": {"hash": "x"}}, time="t")]
    last = json.loads(lines[0])
    for number in range(1, num_rows):
        body = {"kind": "chunk", "steps": [number, number + 1], "pools": {"ü": {"spent": number}}}
        last = sealed_row(body, number=number, previous=last["hash"], time="t")
        lines.append(canonical(last) + b"\n")
    return lines


LINES = ledger()


def found(tmp_path: Path, data: bytes) -> list[str]:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(data)
    findings = read_text(path)[1]
    return [f"{f.check} {f.where}: expected {f.expected}, observed {f.observed}" for f in findings]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ledger")


def test_a_whole_chain_has_no_findings(folder):
    assert found(folder, b"".join(LINES)) == []
    text, _ = read_text(folder / "ledger.jsonl")
    assert [(entry.number, entry.kind) for entry in text.entries[:2]] == [(0, "created"), (1, "chunk")]


@given(at=st.integers(0, sum(map(len, LINES)) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found_in_its_row(folder, at, bit):
    data = bytearray(b"".join(LINES))
    row = bytes(data[:at]).count(b"\n")
    data[at] ^= 1 << bit
    findings = found(folder, bytes(data))
    assert any(f"row {row}" in finding or f"line {row}" in finding for finding in findings)


def test_a_changed_hash_is_told_from_a_changed_text(folder):
    lines = list(LINES)
    at = lines[2].index(b'"hash":"') + 8
    lines[2] = lines[2][:at] + (b"0" if lines[2][at : at + 1] != b"0" else b"1") + lines[2][at + 1 :]
    assert any("row 2: hash" in finding for finding in found(folder, b"".join(lines)))


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ([0, 1, 3, 4, 5], "row 3: row: expected row 2"),
        ([0, 1, 3, 2, 4, 5], "row 3: row: expected row 2"),
        ([0, 1, 2, 2, 3, 4, 5], "row 2 a second time"),
        ([1, 2, 3, 4, 5], "row 1: row: expected row 0"),
    ],
)
def test_dropped_swapped_and_repeated_rows_are_named(folder, order, named):
    assert any(named in line for line in found(folder, b"".join(LINES[k] for k in order)))


def test_a_last_line_that_was_cut_short_is_called_unfinished(folder):
    whole = b"".join(LINES)
    for cut in (2, 40, len(LINES[-1]) - 1):
        (finding,) = found(folder, whole[:-cut])
        assert finding.startswith("unfinished ledger.jsonl line 5")
    assert "a line end after the row" in found(folder, whole[:-1])[0]


def test_text_that_is_not_canonical_is_found_though_its_hash_fits(folder):
    line = LINES[-1].replace(b'"time":"t"', b'"time": "t"')
    assert any("not canonical" in finding for finding in found(folder, b"".join([*LINES[:-1], line])))


def test_an_empty_ledger_has_no_rows(folder):
    assert found(folder, b"") == []
