"""What a trainer gets: ids, labels, positions, segments and masks of rows worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mixing.build import EOS, plain_batch, stage, world, write

A, B = [10, 11, 12], [13, 14]


def served(tmp_path: Path, lengths: list[int], context: int, rows: int, **more: Any) -> dict[str, Any]:
    """The first batch of ``rows`` sequences from a pool of these documents, rows sorted."""
    marks = {"eos": more.pop("eos", False), "bos": more.pop("bos", False)}
    write(tmp_path / "a", lengths, **marks)
    keys = {"labels": more.pop("labels", "shifted")}
    made = world(tmp_path, {"a": {}}, [stage(context, {"a": 1}, batch=rows, steps=1, **more)], **keys)
    batch = plain_batch(made.stream().batch(0))
    order = sorted(range(rows), key=lambda row: batch["input_ids"][row])
    return {name: [column[row] for row in order] for name, column in batch.items()}


def test_C1_C2_P05_P06_two_documents_packed_do_not_mix(tmp_path: Path):
    """Positions restart, EOS belongs to its own document, A's last token predicts it, nothing predicts B."""
    batch = served(tmp_path, [3, 2], 8, 1, eos=True)
    a_first = batch["input_ids"][0][0] == 10
    first, second = (A, B) if a_first else (B, A)
    assert batch["input_ids"] == [[*first, EOS, *second, EOS, 0]]
    assert batch["labels"] == [[*first[1:], EOS, -100, *second[1:], EOS, -100, -100]]
    assert batch["position_ids"] == [[*range(len(first) + 1), *range(len(second) + 1), 0]]
    assert batch["segment_ids"] == [[0] * (len(first) + 1) + [1] * (len(second) + 1) + [-1]]
    assert batch["attention_mask"] == [[1] * 7 + [0]]


def test_C1_apart_two_documents_take_sixteen_positions_for_seven(tmp_path: Path):
    batch = served(tmp_path, [3, 2], 8, 2, eos=True, packing="none")
    assert batch["input_ids"] == [[*A, EOS, 0, 0, 0, 0], [*B, EOS, 0, 0, 0, 0, 0]]
    assert np.sum(batch["attention_mask"]) == 7


def test_A4_a_document_shorter_than_the_window_is_padded_and_masked(tmp_path: Path):
    batch = served(tmp_path, [3], 6, 1, packing="none")
    assert batch["input_ids"] == [[*A, 0, 0, 0]]
    assert batch["labels"] == [[11, 12, -100, -100, -100, -100]]
    assert batch["attention_mask"] == [[1, 1, 1, 0, 0, 0]]


def test_A16_the_mask_is_one_on_body_and_special_and_as_long_as_the_ids(tmp_path: Path):
    batch = served(tmp_path, [3], 8, 1, eos=True, bos=True)
    assert batch["attention_mask"] == [[1, 1, 1, 1, 1, 0, 0, 0]]
    shapes = {np.shape(batch[name]) for name in ("input_ids", "position_ids", "attention_mask", "labels")}
    assert shapes == {(1, 8)}


def test_A7_a_document_read_whole_has_one_label_fewer_than_tokens(tmp_path: Path):
    assert served(tmp_path, [5], 5, 1)["labels"] == [[11, 12, 13, 14, -100]]


def test_A7_a_document_that_fills_the_row_has_its_end_mark_as_last_label_only(tmp_path: Path):
    batch = served(tmp_path, [5], 5, 1, eos=True)
    assert batch["input_ids"] == [[10, 11, 12, 13, 14]]
    assert batch["labels"] == [[11, 12, 13, 14, EOS]]


def test_A7_a_cut_piece_reads_one_token_ahead_and_has_a_label_per_fresh_position(tmp_path: Path):
    batch = served(tmp_path, [6], 4, 2, slicing={"stride": 2})
    assert batch["input_ids"] == [[10, 11, 12, 13], [12, 13, 14, 15]]
    assert batch["labels"] == [[11, 12, 13, 14], [-100, -100, 15, -100]]


def test_A7_the_first_token_is_a_label_only_by_a_begin_mark(tmp_path: Path):
    batch = served(tmp_path, [3], 6, 1, bos=True)
    assert batch["input_ids"] == [[2, 10, 11, 12, 0, 0]]
    assert batch["labels"] == [[10, 11, 12, -100, -100, -100]]


def test_A9_overlap_carries_labels_only_when_asked(tmp_path: Path):
    batch = served(tmp_path, [6], 4, 2, slicing={"stride": 2, "overlap_labels": True})
    assert batch["labels"] == [[11, 12, 13, 14], [13, 14, 15, -100]]


def test_W02_every_token_but_the_first_is_predicted_once(tmp_path: Path):
    for method in ("best_fit", "none", "concat"):
        batch = served(tmp_path / method, [17], 4, 5, packing=method)
        labels = [label for row in batch["labels"] for label in row if label != -100]
        assert sorted(labels) == list(range(11, 27))


def test_W05_labels_are_shifted_here_or_by_the_model_but_not_twice(tmp_path: Path):
    shifted = served(tmp_path / "shifted", [5], 4, 2)
    inputs = served(tmp_path / "inputs", [5], 4, 2, labels="inputs")
    assert shifted["labels"] == [[11, 12, 13, 14], [-100] * 4]
    assert inputs["input_ids"] == shifted["input_ids"]
    assert inputs["labels"] == [[-100, 11, 12, 13], [-100] * 4]


@pytest.mark.parametrize(("method", "rows"), [("none", 3), ("best_fit", 2)])
def test_W07_no_short_document_is_left_out(tmp_path: Path, method: str, rows: int):
    batch = served(tmp_path, [3, 8, 5], 8, rows, packing=method)
    assert np.sum(batch["attention_mask"]) == 16
    assert sorted(i for row in batch["input_ids"] for i in row if i) == list(range(10, 26))


def test_W07_short_documents_are_dropped_when_asked_and_counted(tmp_path: Path):
    write(tmp_path / "a", [3, 8, 5])
    made = world(tmp_path, {"a": {}}, [stage(8, {"a": 1}, steps=1, slicing={"tail": "drop"})])
    state = made.stream().snapshot(1).pools[0]
    assert (state.body, dict(state.dropped)) == (8, {"short": 8})


def pairs(segments: list[int]) -> int:
    """Allowed (query, key) pairs under a causal mask that stays inside segments."""
    return sum(segments[q] == segments[k] != -1 for q in range(len(segments)) for k in range(q + 1))


def test_P04_documents_of_a_row_do_not_see_each_other(tmp_path: Path):
    assert pairs(served(tmp_path / "apart", [3, 2], 5, 1)["segment_ids"][0]) == 9
    whole = served(tmp_path / "whole", [3, 2], 5, 1, packing={"attention": "sequence"})
    assert pairs(whole["segment_ids"][0]) == 15


def test_P05_positions_may_run_on_through_the_row(tmp_path: Path):
    batch = served(tmp_path, [3, 2], 6, 1, packing={"positions": "continue"})
    assert batch["position_ids"] == [[0, 1, 2, 3, 4, 0]]
    assert batch["segment_ids"][0][-1] == -1


@pytest.mark.parametrize("labels", ["shifted", "inputs"])
def test_P06_labels_cross_documents_only_when_asked(tmp_path: Path, labels: str):
    apart = served(tmp_path / "no", [3, 2], 7, 1, eos=True, labels=labels)
    cross = served(tmp_path / "yes", [3, 2], 7, 1, eos=True, labels=labels, packing={"cross_labels": True})
    ids = apart["input_ids"][0]
    end, shift = ids.index(EOS), labels == "shifted"
    at = end if shift else end + 1
    assert apart["labels"][0][at] == -100
    assert cross["labels"][0][at] == ids[end + 1]
    assert cross["labels"][0][:at] == apart["labels"][0][:at]
    assert cross["labels"][0][at + 1 :] == apart["labels"][0][at + 1 :]


def test_tail_pad_gives_a_row_of_its_own(tmp_path: Path):
    batch = served(tmp_path, [6, 2], 4, 3, slicing={"tail": "pad"})
    assert batch["input_ids"] == [[10, 11, 12, 13], [14, 15, 0, 0], [16, 17, 0, 0]]


def test_cu_seqlens_on_request_of_a_batch(tmp_path: Path):
    write(tmp_path / "a", [3, 2])
    made = world(tmp_path, {"a": {}}, [stage(6, {"a": 1}, steps=1)])
    batch = made.stream().batch(0, cu_seqlens=True)
    assert batch["cu_seqlens"].tolist() in ([0, 3, 5, 6], [0, 2, 5, 6])
    assert batch["max_seqlen"] == 3


@pytest.mark.parametrize("vocab_size", [200, 65_536, 65_537, 200_000])
def test_token_widths_are_read_as_written(tmp_path: Path, vocab_size: int):
    """Ids next to every limit of the width come back as they are."""
    import recipe

    ids = [vocab_size - 1, 0, min(vocab_size - 1, 32_768), min(vocab_size - 1, 65_535)]
    recipe.write_pool(tmp_path / "a", [np.array(ids)], vocab_size=vocab_size)
    batch = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=1)]).stream().batch(0)
    assert batch["input_ids"].tolist() == [ids]
    assert batch["labels"].tolist() == [[*ids[1:], -100]]


def test_B7_pieces_decode_and_documents_decode_to_the_text(tmp_path: Path):
    import recipe

    texts = ["emoji 🎉🎊 and 中文字符。", "naïve café – 1,000.5 ¥", "x" * 40]
    recipe.write_pool(tmp_path / "a", [np.frombuffer(t.encode(), np.uint8) for t in texts], vocab_size=256)
    slicing = {"window": 7, "stride": 5}
    made = world(tmp_path, {"a": {}}, [stage(16, {"a": 1}, steps=20, slicing=slicing)], max_epochs=9)
    stream, found = made.stream(), [bytearray(len(t.encode())) for t in texts]
    for step in range(stream.num_steps):
        ids = stream.batch(step)["input_ids"][0]
        for piece in stream.provenance(step, 0):
            own = bytes(ids[piece.column : piece.column + piece.stop - piece.start].tolist())
            own.decode(errors="replace")
            found[piece.document][piece.start : piece.stop] = own
    assert [bytes(document).decode() for document in found] == texts
