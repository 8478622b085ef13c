"""What is no state is the caller's fault: a ValueError that says what was expected, and nothing moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.errors import RecipeError
from recipe.integrations.grain import StreamSource
from recipe.integrations.lightning import RunDataModule
from recipe.integrations.megatron import MegatronStream
from recipe.integrations.titan import TitanSettings, titan_dataloader
from recipe.integrations.torch import StreamDataset, StreamIterable
from recipe.run.state import State, stream_from

MALFORMED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "nothing": (lambda saved: {}, "keys none; expected what state_dict"),
    "none": (lambda saved: None, "None; expected what state_dict"),
    "bytes": (lambda saved: saved["state"], "expected what state_dict"),
    "another's": (
        lambda saved: {"model": 1, "optimizer": 2},
        "keys model, optimizer; expected .* step, state",
    ),
    "no step": (lambda saved: {key: saved[key] for key in ("format", "state")}, "expected .* step"),
    "format": (lambda saved: saved | {"format": 9}, "format 9; this version reads format 1"),
    "text step": (lambda saved: saved | {"step": "3"}, "'3'; expected a whole number"),
    "a step below 0": (lambda saved: saved | {"step": -1}, "-1; expected a whole number"),
    "a step that is true": (lambda saved: saved | {"step": True}, "True; expected a whole number"),
    "another step": (lambda saved: saved | {"step": 5}, "step 5 beside a state of step 3"),
    "no bytes": (lambda saved: saved | {"state": {"a": 1}}, "of type dict; expected the bytes"),
    "a worker's": (lambda saved: saved | {"worker": True}, "a loader's worker; expected the trainer's"),
}


def loaders(state: bytes) -> list[Any]:
    return [
        StreamDataset(state),
        StreamIterable(state),
        titan_dataloader(state, TitanSettings(local_batch_size=4)),
    ]


@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_no_state_is_refused_and_the_loader_stays_where_it_was(state, kind):
    before = StreamDataset(state)
    before.step = 3
    change, told = MALFORMED[kind]
    for loader in loaders(before.state_dict()["state"]):
        if kind == "nothing" and hasattr(loader, "dataset"):
            loader.load_state_dict({})  # torchtitan's own way to say: from the start
            continue
        with pytest.raises(ValueError, match=told):
            loader.load_state_dict(change(before.state_dict()))
        assert loader.state_dict()["step"] == 3


def test_damaged_bytes_in_a_state_are_told_and_the_loader_stays_where_it_was(state):
    saved = StreamDataset(state).state_dict()
    saved["state"] = saved["state"][:-1] + bytes([saved["state"][-1] ^ 1])
    for loader in loaders(state):
        with pytest.raises(RecipeError, match="bytes that differ"):
            loader.load_state_dict(saved)
        assert loader.state_dict()["step"] == 0


def test_a_step_may_be_a_number_of_numpys(state):
    saved = StreamDataset(state).state_dict()
    for loader in loaders(state):
        loader.load_state_dict(saved | {"step": np.int64(0)})
        assert loader.state_dict()["step"] == 0


@pytest.mark.parametrize("given", [None, {}, "runs/a", 3])
@pytest.mark.parametrize(
    "make",
    [
        StreamDataset,
        StreamIterable,
        StreamSource,
        State.from_bytes,
        lambda given: MegatronStream(given, 32),
        lambda given: titan_dataloader(given, TitanSettings(local_batch_size=4)),
    ],
)
def test_a_loader_is_made_of_the_bytes_of_a_state(make, given):
    with pytest.raises(ValueError, match=r"expected the bytes that run\.state"):
        make(given)


def test_a_stream_is_made_of_bytes_or_of_a_manifests_path():
    with pytest.raises(ValueError, match="expected the bytes"):
        stream_from({})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "expected what state_dict"),
        (None, "expected what state_dict"),
        ({"step": "2"}, "'2'; expected a whole number"),
        ({"step": -2}, "-2; expected a whole number"),
        ({"step": 25}, r"step 25; expected 0\.\.24"),
    ],
)
def test_lightnings_state_is_a_step_of_the_run(state, tmp_path: Path, given, told):
    with recipe.open_run(tmp_path / "run") as run, pytest.raises(ValueError, match=told):
        RunDataModule(run).load_state_dict(given)
