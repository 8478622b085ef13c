"""One whole tiny stream, in literal values: what a run of this version serves, now and for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.mixing.build import World, everything, stage, windows, world, write

GOLDEN_POOLS = [[0, 1], [0, 1], [0, 1, 0], [1, 0, 0]]
GOLDEN_IDS = [
    [[18, 19, 20, 21, 22, 23], [47, 48, 49, 0, 0, 0]],
    [[10, 11, 12, 13, 14, 1], [2, 44, 45, 46, 47, 48]],
    [[24, 25, 26, 1, 0, 0, 0, 0], [2, 40, 41, 42, 43, 0, 0, 0], [15, 16, 17, 1, 0, 0, 0, 0]],
    [[2, 44, 45, 46, 47, 48, 49, 0], [15, 16, 17, 1, 0, 0, 0, 0], [10, 11, 12, 13, 14, 1, 0, 0]],
]
GOLDEN_LABELS = [
    [[19, 20, 21, 22, 23, 24], [-100, -100, -100, -100, -100, -100]],
    [[11, 12, 13, 14, 1, -100], [44, 45, 46, 47, 48, 49]],
    [
        [25, 26, 1, -100, -100, -100, -100, -100],
        [40, 41, 42, 43, -100, -100, -100, -100],
        [16, 17, 1, -100, -100, -100, -100, -100],
    ],
    [
        [44, 45, 46, 47, 48, 49, -100, -100],
        [16, 17, 1, -100, -100, -100, -100, -100],
        [11, 12, 13, 14, 1, -100, -100, -100],
    ],
]
GOLDEN_WINDOWS = [
    ("a", 2, 0, 6),
    ("b", 1, 3, 6),
    ("a", 0, 0, 5),
    ("b", 1, 0, 5),
    ("a", 2, 6, 9),
    ("b", 0, 0, 4),
    ("a", 1, 0, 3),
    ("b", 1, 0, 6),
    ("a", 1, 0, 3),
    ("a", 0, 0, 5),
]
GOLDEN_SNAPSHOT = {
    "format": 1,
    "step": 3,
    "stage": 1,
    "positions": 48,
    "stage_positions": 24,
    "sequences": 7,
    "chunk": 1,
    "counted": 10,
    "left": [],
    "ended": False,
    "pools": [
        {
            "cursor": [1, 0, -1, 0],
            "debt": 2,
            "owed": 18,
            "spent": 17,
            "body": 17,
            "overlap": 0,
            "special": 3,
            "padding": 8,
            "labels": 17,
            "sequences": 4,
            "documents": 3,
            "distinct": 3,
        },
        {
            "cursor": [1, 0, -1, 0],
            "debt": -2,
            "owed": 11,
            "spent": 12,
            "body": 12,
            "overlap": 2,
            "special": 2,
            "padding": 6,
            "labels": 10,
            "sequences": 3,
            "documents": 2,
            "distinct": 2,
        },
    ],
}


def tiny(root: Path) -> World:
    """Two pools, two stages, a re-cut, an epoch's end."""
    write(root / "a", [5, 3, 9], eos=True)
    write(root / "b", [4, 6], bos=True, first=40)
    stages = [
        stage(6, {"a": 2, "b": 1}, batch=2, steps=2, slicing={"stride": 4}),
        stage(8, {"a": 1, "b": 1}, batch=3, steps=2),
    ]
    pools: dict[str, Any] = {"a": {"block_units": 2}, "b": {"block_units": 2}}
    return world(root, pools, stages, seed=11)


def test_golden_stream(tmp_path: Path):
    batches = everything(tiny(tmp_path).stream())
    assert [batch["pool"] for batch in batches] == GOLDEN_POOLS
    assert [batch["input_ids"] for batch in batches] == GOLDEN_IDS
    assert [batch["labels"] for batch in batches] == GOLDEN_LABELS


def test_golden_provenance(tmp_path: Path):
    assert windows(tiny(tmp_path).stream()) == GOLDEN_WINDOWS


def test_golden_snapshot(tmp_path: Path):
    assert tiny(tmp_path).stream().snapshot(3).to_plain() == GOLDEN_SNAPSHOT
