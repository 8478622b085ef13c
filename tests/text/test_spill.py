"""Sorted runs come out as one order, from any place on, whatever the ranges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.text.spill import (
    Entry,
    encode_run,
    has_finished,
    merged,
    read_report,
    remove_unfinished,
    store_run,
)

DTYPE = np.dtype("<u2")
KEYS = st.tuples(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**64 - 1]))


def entry(key, file, line):
    tokens = np.arange(1 + line % 7, dtype=np.uint16)
    return Entry(key=key, file=file, line=line, tokens=tokens, row=(f"{file}:{line}", None, {}, "é"))


@given(
    tasks=st.lists(st.lists(KEYS, max_size=12), max_size=4),
    range_bytes=st.integers(1, 200),
    start=st.integers(0, 50),
)
@settings(max_examples=25)
def test_merging_is_sorting(tmp_path_factory, tasks, range_bytes, start):
    folder = tmp_path_factory.mktemp("spill")
    entries = []
    for number, keys in enumerate(tasks):
        task = [entry(key, number, line) for line, key in enumerate(keys)]
        entries += task
        store_run(folder, number, encode_run(task, DTYPE, {}))
    wanted = sorted(entries, key=lambda e: (e.key, e.file, e.line))[start:]
    found = list(merged(folder, len(tasks), DTYPE, start, range_bytes))
    assert [(e.key, e.file, e.line, e.tokens.tolist()) for e in found] == [
        (e.key, e.file, e.line, e.tokens.tolist()) for e in wanted
    ]
    assert [e.row for e in found] == [e.row for e in wanted]


def test_a_task_without_its_report_is_not_there(tmp_path):
    store_run(tmp_path, 0, encode_run([entry((1, 1), 0, 1)], DTYPE, {"kept": 1}))
    store_run(tmp_path, 1, encode_run([entry((2, 2), 0, 2)], DTYPE, {}))
    (tmp_path / "task-000001.json").unlink()
    remove_unfinished(tmp_path)
    assert has_finished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"task-000000.{ending}" for ending in ("tokens", "rows", "npy", "json")
    }
    assert read_report(tmp_path, 0) == {"kept": 1}


@pytest.mark.parametrize("start", [0, 1])
def test_nothing_gives_nothing(tmp_path, start):
    assert list(merged(tmp_path, 0, DTYPE, start)) == []
