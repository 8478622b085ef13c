"""G2, A10: rows against their documents, pieces joined again, every token a label once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe
from recipe.audit.infilling import IGNORED
from recipe.audit.parts import Piece, Row, Text
from recipe.audit.rows import ARRAYS, allowed_pairs, row_faults
from recipe.audit.seams import Held, is_whole, join, label_faults
from recipe.audit.tiny_model import LOSSES, loss_fault
from recipe.audit.verify import Acceptance, Check, Readings, Seen, check_rows, check_seams, claim
from recipe.config import Recipe, recipe_from_plain
from recipe.mixing.opening import close_pools, open_pools, settle_with
from recipe.mixing.stream import Stream

EOS = 256
RULE = recipe_from_plain(
    {
        "seed": 1,
        "pools": {"p": {"path": "p"}},
        "stages": {"s": {"steps": 1, "context": 8, "batch": {"sequences": 1}, "quotas": {"p": "100%"}}},
    },
    source="test",
).rule("s", "p")
ABC, DE = Text(np.array([97, 98, 99]), eos=EOS), Text(np.array([100, 101]), eos=EOS)
TEXTS: dict[int | str, Text] = {"abc": ABC, "de": DE}


def row(**changes: Any) -> Row:
    """C2: two documents of three and two tokens, each with its end mark, and one position of padding."""
    arrays = {
        "input_ids": [97, 98, 99, EOS, 100, 101, EOS, 0],
        "labels": [98, 99, EOS, -100, 101, EOS, -100, -100],
        "position_ids": [0, 1, 2, 3, 0, 1, 2, 0],
        "segment_ids": [0, 0, 0, 0, 1, 1, 1, -1],
        "attention_mask": [1, 1, 1, 1, 1, 1, 1, 0],
    } | {name: value for name, value in changes.items() if name in ARRAYS}
    pieces = changes.get("pieces", (Piece("abc", 0, 3, 0, 0), Piece("de", 0, 2, 0, 4)))
    return Row("step 0, row 0", "p", {name: np.array(value) for name, value in arrays.items()}, pieces)


def test_C2_a_row_worked_out_by_hand_is_right():
    assert row_faults(row(), RULE, TEXTS) == []


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("column", range(8))
def test_any_other_value_is_named_by_array_and_column(name, column):
    values = row().arrays[name].copy()
    values[column] += 7 if name != "attention_mask" else -1 if values[column] else 1
    faults = row_faults(row(**{name: values}), RULE, TEXTS)
    if name == "attention_mask":
        assert faults  # a position more or less: what stands there is no mark of a document
    else:
        [fault] = faults
        assert f"column {column}" in fault.where and fault.where.endswith(name)


def test_P04_attention_counts_pairs_inside_segments_alone():
    assert allowed_pairs(np.array([0, 0, 0, 1, 1])) == 9
    assert allowed_pairs(np.array([0, 0, 0, 0, 1, 1, 1, -1])) == 16
    assert allowed_pairs(np.zeros(5, int)) == 15


def test_a_piece_is_named_with_its_token():
    ids = [97, 98, 42, EOS, 100, 101, EOS, 0]
    [fault] = row_faults(row(input_ids=ids), RULE, TEXTS)
    assert "document 'abc', token 2 of piece 0..3" in fault.where
    assert (fault.expected, fault.observed) == ("99", "42")


def test_positions_that_belong_to_nothing_are_named():
    pieces = (Piece("abc", 0, 3, 0, 0), Piece("de", 0, 2, 0, 5))
    [fault] = row_faults(row(pieces=pieces), RULE, TEXTS)
    assert "before column 5" in fault.where


# seams


def held(start: int, stop: int, fresh: int, text: Text, **change: Any) -> Held:
    piece = Piece("d", start, stop, fresh, 0)
    labels = np.full(stop - start, IGNORED)
    after = [*text.tokens[1:], text.eos if text.eos is not None else IGNORED]
    labels[fresh - start :] = after[fresh:stop]
    made = Held(piece, f"at {start}", np.array(text.tokens[start:stop]), labels)
    return replace(made, **change)


LONG = Text(np.arange(100, 120), eos=EOS)
PIECES = [held(0, 8, 0, LONG), held(6, 14, 8, LONG), held(12, 20, 14, LONG)]


def test_A10_pieces_in_any_order_join_to_the_document():
    joined = join("d", PIECES[::-1], LONG)
    assert joined.finding is None and joined.tokens.tolist() == LONG.tokens.tolist()
    assert is_whole(PIECES, 20) and not is_whole(PIECES[:2], 20) and not is_whole(PIECES[1:], 20)
    assert label_faults("d", PIECES, LONG) == []


def test_G3_a_tiny_models_loss_is_what_the_text_makes_it_by_hand():
    """Tokens 97 98 99 and the end mark 256: three labels, each lost behind the token before it."""
    whole = held(0, 3, 0, ABC)
    assert loss_fault("d", [whole], ABC) is None
    by_hand = LOSSES[97 % 64, 98 % 64] + LOSSES[98 % 64, 99 % 64] + LOSSES[99 % 64, 256 % 64]
    fault = loss_fault("d", [replace(whole, labels=np.array([98, 99, IGNORED]))], ABC)
    assert fault is not None and f"{by_hand:.6f} over 3 labels" in fault.expected


@pytest.mark.parametrize("piece", range(3))
@pytest.mark.parametrize("label", [IGNORED, 7])
def test_G3_the_first_piece_with_another_loss_is_named(piece, label):
    labels = PIECES[piece].labels.copy()
    labels[-1] = label
    pieces = [*PIECES[:piece], replace(PIECES[piece], labels=labels), *PIECES[piece + 1 :]]
    assert loss_fault("d", PIECES, LONG) is None
    fault = loss_fault("d", pieces[::-1], LONG)
    assert fault is not None and f"piece {piece + 1} of 3, which starts at token" in fault.where


def test_a_label_across_documents_is_no_documents_loss():
    bare = Text(np.array([97, 98]), eos=None)
    across = replace(held(0, 2, 0, bare), labels=np.array([98, 5]))
    assert loss_fault("d", [across], bare) is None


SEAMS = {
    "a gap": (
        held(9, 14, 9, LONG),
        "piece 2 of 3, which starts at token 9",
        "seam at token 8",
        "8..9 are in no",
    ),
    "fresh twice": (
        held(6, 14, 7, LONG),
        "piece 2 of 3, which starts at token 6",
        "seam at token 8",
        "token 7",
    ),
    "another token": (
        held(6, 14, 8, LONG, ids=np.array([106, 107, 108, 9, 110, 111, 112, 113])),
        "piece 2 of 3, which starts at token 6",
        "token 9, seam at token 8",
        "id 9",
    ),
    "another overlap": (
        held(6, 14, 8, LONG, ids=np.array([106, 9, 108, 109, 110, 111, 112, 113])),
        "piece 2 of 3, which starts at token 6",
        "overlap 7, seam at token 8",
        "id 9",
    ),
}


@pytest.mark.parametrize("case", SEAMS)
def test_G3_the_first_bad_piece_its_start_and_the_seam_are_named(case):
    bad, start, seam, observed = SEAMS[case]
    finding = join("d", [PIECES[0], bad, PIECES[2]], LONG).finding
    assert finding is not None
    assert start in finding.where and seam in finding.where and observed in finding.observed


def test_a_document_cut_off_is_not_taken_for_whole():
    finding = join("d", PIECES[:2], LONG).finding
    assert finding is not None and (finding.expected, finding.observed) == ("20 tokens", "14 tokens")


def test_a_label_twice_or_never_is_named():
    twice = held(6, 14, 8, LONG, labels=np.array([107, -100, 109, 110, 111, 112, 113, 114]))
    [fault] = label_faults("d", [PIECES[0], twice, PIECES[2]], LONG)
    assert ("token 7" in fault.where, fault.expected, fault.observed) == (True, "a label 1 times", "2 times")
    never = held(12, 20, 14, LONG, labels=np.full(8, IGNORED))
    [fault] = label_faults("d", [*PIECES[:2], never], LONG)
    assert "token 15" in fault.where and fault.observed == "0 times"


# claims


def test_a_claim_fails_when_something_was_found_and_is_open_when_nothing_could_be():
    assert claim("x", "said").ok is True
    assert check_rows([], 0).ok is None
    assert [check.ok for check in check_seams(Readings())] == [None, None, None]
    bad = row(input_ids=[1] * 8)
    assert check_rows([Seen(bad, RULE, TEXTS)], 1).ok is False


def test_many_findings_are_counted_and_the_first_are_shown():
    rows = [Seen(replace(row(input_ids=[1] * 8), where=f"row {k}"), RULE, TEXTS) for k in range(30)]
    check = check_rows(rows, 1)
    assert isinstance(check, Check) and len(check.findings) == 20 and "10 more findings" in check.said


# the same, over what the program itself makes, with any rule

RULES = st.fixed_dictionaries(
    {
        "labels": st.sampled_from(["shifted", "inputs"]),
        "method": st.sampled_from(["best_fit", "concat", "none"]),
        "cross_labels": st.booleans(),
        "attention": st.sampled_from(["piece", "sequence"]),
        "positions": st.sampled_from(["restart", "continue"]),
        "stride": st.sampled_from([5, 9, 16]),
        "tail": st.sampled_from(["keep", "backfill", "drop", "pad"]),
        "overlap_labels": st.booleans(),
        "marks": st.sampled_from([{}, {"eos": 0}, {"eos": 0, "bos": 1}, {"bos": 1}]),
    }
)


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    """Pools of the same documents, one for each kind of marks."""
    root = tmp_path_factory.mktemp("pools")
    chance = np.random.default_rng(0)
    documents = [chance.integers(2, 500, chance.integers(1, 60)) for _ in range(24)]
    for marks in ({}, {"eos": 0}, {"eos": 0, "bos": 1}, {"bos": 1}):
        recipe.write_pool(root / named(marks), documents, vocab_size=500, **marks).close()
    return root


def named(marks: Mapping[str, int]) -> str:
    return "-".join(["p", *marks])


def loaded(root: Any, rule: dict[str, Any]) -> Recipe:
    concat = rule["method"] == "concat"
    slicing = {
        "stride": rule["stride"],
        "tail": "keep" if concat and rule["tail"] in ("backfill", "pad") else rule["tail"],
        "overlap_labels": rule["overlap_labels"],
    }
    packing = {key: rule[key] for key in ("method", "cross_labels", "attention", "positions")}
    stage = {"context": 16, "slicing": slicing, "packing": packing, "quotas": {"p": "100%"}}
    return recipe_from_plain(
        {
            "seed": 1,
            "max_epochs": 99,
            "labels": rule["labels"],
            "pools_root": str(root),
            "pools": {"p": {"path": named(rule["marks"]), "block_units": 8}},
            "stages": {"s": {**stage, "steps": 6, "batch": {"sequences": 6}}},
        },
        source="test",
    )


@given(rule=RULES)
def test_A10_whatever_the_program_serves_is_found_right(pools, rule):
    made = loaded(pools, rule)
    opened = open_pools(made)
    stream = Stream(settle_with(made, opened), opened)
    readings, rows = Readings(), []
    for step in range(3):
        batch = stream.batch(step)
        for number in range(6):
            pieces = tuple(Piece(*piece[1:6]) for piece in stream.provenance(step, number))
            arrays = {name: batch[name][number] for name in ARRAYS}
            texts = {piece.document: text_of(opened["p"], int(piece.document)) for piece in pieces}
            seen = Seen(Row(f"step {step}, row {number}", "p", arrays, pieces), made.rule("s", "p"), texts)
            rows.append(seen)
            if step == 0:  # one reading of the pool at most
                readings.add(seen, 0)
    close_pools(opened.values())
    checks = [check_rows(rows, 3), *check_seams(readings)]
    assert [fault for check in checks for fault in check.findings] == []


def text_of(pool: Any, number: int) -> Text:
    [bos], [eos] = pool.stored_marks(np.array([number]))
    return Text(pool.tokens(number), pool.bos if bos else None, pool.eos if eos else None)


def test_claims_of_which_none_could_be_checked_are_no_acceptance():
    unseen = Check("text", None, "no document was seen whole")
    nothing_claimed = Check("loss", None, "labels are repeated", applies=False)
    held, failed = Check("rows", True, "48 rows"), Check("ranks", False, "rank 1 differs")
    assert not Acceptance("r", (unseen, nothing_claimed)).ok
    assert Acceptance("r", (unseen, held, nothing_claimed)).ok
    assert Acceptance("r", (unseen, held)).unchecked == ("text: no document was seen whole",)
    assert not Acceptance("r", (held, failed)).ok
    assert Acceptance("r", (held, failed)).failed == ("ranks",)
