"""Manifests: text with its own hash."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.run.canonical import canonical, plain_number
from recipe.run.manifest import FORMAT, read_manifest, seal_of, sealed, unseal
from recipe.run.statement import Statement

PLAIN = {
    "format": FORMAT,
    "names": ["no", "1e5", "2024_01", "zh 中文", "a: b # c", "", "~", " x "],
    "numbers": [0, -1, 2**63, 2**70, 1e-05, 1.5],
    "nothing": None,
    "flag": True,
}


def test_values_come_back_as_they_were(tmp_path: Path):
    data = sealed(PLAIN)
    assert unseal(tmp_path, data) == {**PLAIN, "hash": seal_of(data)}


def test_any_flipped_byte_is_found(tmp_path: Path):
    data = sealed(PLAIN)
    for at in range(len(data)):
        with pytest.raises(RecipeError):
            unseal(tmp_path, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


@pytest.mark.parametrize(
    "data", [b"", b"hash: ", b"a: 1\n", sealed(PLAIN)[:-1], sealed(PLAIN) + b"\n", b"\xff"]
)
def test_a_cut_or_longer_file_is_found(tmp_path: Path, data: bytes):
    (tmp_path / "m.yaml").write_bytes(data)
    with pytest.raises(RecipeError, match="damaged"):
        read_manifest(tmp_path / "m.yaml")


def test_a_manifest_of_another_number_is_not_the_one_on_record(tmp_path: Path):
    (tmp_path / "m.yaml").write_bytes(sealed(PLAIN))
    with pytest.raises(RecipeError, match=r"no manifest|not the manifest of the ledger"):
        read_manifest(tmp_path / "m.yaml", "0" * 64)


def test_yaml_is_data_and_constructs_nothing(tmp_path: Path):
    with pytest.raises(RecipeError, match="no manifest"):
        unseal(tmp_path, _sealed_text("x: !!python/object/apply:os.getcwd []\n"))


def _sealed_text(text: str) -> bytes:
    from recipe.run.canonical import digest

    return text.encode() + f"hash: {digest(text.encode())}\n".encode()


def test_metrics_of_a_trainer_become_plain_numbers():
    metrics = {
        "validation": {"loss": np.float32(2.5), "n": np.int64(3), "bad": float("nan"), "worse": -np.inf}
    }
    said = Statement.of(uri="u", digest=None, gpu_hours=np.float64(1.5), metrics=metrics)
    assert said.metrics == {"validation": {"loss": 2.5, "n": 3.0, "bad": "nan", "worse": "-inf"}}
    assert canonical(said.metrics)


@pytest.mark.parametrize("value", ["2.5", True, None, [1.0], b"1"])
def test_what_is_no_number_is_the_callers_fault(value: object):
    with pytest.raises(ValueError, match="is no number"):
        plain_number(value)


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf")])
def test_gpu_hours_are_a_total(hours: float):
    with pytest.raises(ValueError, match="gpu_hours"):
        Statement.of(uri=None, digest=None, gpu_hours=hours, metrics=None)


def test_metrics_without_a_set_are_refused():
    with pytest.raises(ValueError, match="set"):
        Statement.of(uri=None, digest=None, gpu_hours=None, metrics={"loss": 2.5})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "said",
    [
        {"uri": 3},
        {"uri": b"x"},
        {"uri": "x" * 5000},
        {"uri": "\ud800"},
        {"uri": "a\nb"},
        {"uri": "a\u2028b"},
        {"digest": 3},
        {"digest": "\x00"},
        {"gpu_hours": float("nan")},
        {"gpu_hours": -1},
        {"gpu_hours": 10**400},
        {"gpu_hours": True},
        {"metrics": []},
        {"metrics": 0},
        {"metrics": {"v": 3}},
        {"metrics": {1: {}}},
        {"metrics": {"\udfff": {}}},
        {"metrics": {"v": {"loss": 10**400}}},
        {"metrics": {"v": {"loss": Fraction(10**400)}}},
        {"metrics": {"v": {"loss": np.arange(2)}}},
        {"metrics": {"v": {"loss": "nan"}}},
        {"metrics": {"v": {3: 1.0}}},
        {"metrics": {"v": {"x" * 5000: 1.0}}},
    ],
    ids=lambda said: repr(said)[:40],
)
def test_what_cannot_be_put_on_record_is_refused_before_anything_is_written(said: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(said)) + r"|number|put on record|text"):
        Statement.of(**{"uri": None, "digest": None, "gpu_hours": None, "metrics": None, **said})


@given(st.text(max_size=40), st.text(max_size=10), st.integers() | st.floats())
def test_what_is_taken_comes_back_from_ledger_and_manifest(text: str, name: str, number: float):
    try:
        said = Statement.of(uri=text, digest=name, gpu_hours=None, metrics={name: {text: number}})
    except ValueError:
        return
    plain = {"uri": said.uri, "digest": said.digest, "metrics": said.metrics}
    back = unseal(Path("m"), sealed(plain))
    assert {key: back[key] for key in plain} == plain
    assert json.loads(canonical(plain)) == plain
