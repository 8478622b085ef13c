"""A03: tokens on record are the training's own, each once: no evaluation, replica or resume adds to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recipe
from recipe.config import Recipe, recipe_from_plain
from recipe.integrations.logging.progress import progress
from recipe.integrations.torch import StreamDataset
from recipe.integrations.training.loop import train
from recipe.run.manifest import manifest_path, read_manifest

STEPS, TOKENS = 50, 1_000
"""Steps, and document tokens of each: ten full rows of a hundred."""


@pytest.fixture
def told(tmp_path: Path) -> Recipe:
    """Fifty steps of a thousand tokens; a held-out pool of a thousand is measured after each."""
    dice = np.random.default_rng(1)
    for name, size in (("text", STEPS * TOKENS), ("held", TOKENS)):
        recipe.write_pool(tmp_path / "pools" / name, [dice.integers(0, 60, size=size)], vocab_size=61)
    trainer = {"layers": 1, "heads": 1, "width": 4, "threads": 1, "checkpoint_steps": 1}
    held = {"validation": {"held": "held"}, "validation_sequences": TOKENS // 100}
    plain: dict[str, Any] = {
        "seed": 3,
        "model": {"vocab_size": 61},
        "pools_root": str(tmp_path / "pools"),
        "pools": {"text": {"path": "text", "max_epochs": 1}},
        "stages": {
            "all": {"steps": STEPS, "context": 100, "batch": {"sequences": 10}, "quotas": {"text": "100%"}}
        },
        "sink": "train",
        "trainer": trainer | held,
    }
    return recipe_from_plain(plain, source="test")


def on_record(path: Path) -> list[dict[str, Any]]:
    return [read_manifest(manifest_path(path, each.manifest)) for each in recipe.run_manifests(path)]


def test_A03_the_reference_trainer_counts_no_evaluation_and_no_step_twice(tmp_path: Path, told: Recipe):
    """Evaluated after every step, stopped at step 25 and resumed."""
    with recipe.start_run(told, tmp_path / "run") as run:
        train(run, stop_step=25)
    with recipe.open_run(tmp_path / "run") as run:
        train(run)
    manifests = on_record(tmp_path / "run")
    body = [each["pools"]["text"]["tokens"]["body"] for each in manifests]
    assert body == [TOKENS * step for step in range(1, STEPS + 1)]
    assert all(list(each["pools"]) == ["text"] for each in manifests), (
        "the held-out pool is none of the run's"
    )
    assert all("held" in each["metrics"] for each in manifests), "it was measured every time"
    assert recipe.audit_run(tmp_path / "run").ok


@pytest.mark.parametrize("replicas", [1, 2])
def test_A03_a_plain_loop_counts_a_row_once_however_many_replicas_read_it(
    tmp_path: Path, told: Recipe, replicas: int
):
    """Two data-parallel ranks, each read by so many replicas, evaluated every step, stopped at step 25."""
    held = recipe_from_plain(
        {
            "seed": 0,
            "pools_root": str(tmp_path / "pools"),
            "pools": {"held": {"path": "held"}},
            "stages": {
                "all": {"steps": 1, "context": 100, "batch": {"sequences": 10}, "quotas": {"held": "100%"}}
            },
        },
        source="test",
    )
    with recipe.start_run(held, tmp_path / "held") as run:
        evaluation = run.state()
    saved: dict[str, Any] = {}
    recipe.start_run(told, tmp_path / "run").close()
    seen = evaluated = 0
    for stop in (25, STEPS):
        with recipe.open_run(tmp_path / "run", state=saved.get("state")) as run:
            readers = [
                StreamDataset(run.state(), dp_rank=r // replicas, dp_size=2) for r in range(2 * replicas)
            ]
            for step in range(run.step, stop):
                items = [reader[step] for reader in readers]
                seen += sum(int(item["attention_mask"].sum()) for item in items)
                evaluated += int(StreamDataset(evaluation)[0]["attention_mask"].sum())
                for reader in readers:
                    reader.step = step + 1
                assert torch.equal(items[0]["input_ids"], items[replicas - 1]["input_ids"])
            saved = readers[-1].state_dict()
            run.checkpoint(stop)
            assert progress(run.stream(), stop)["recipe/tokens/text"] == stop * TOKENS
    assert (seen, evaluated) == (replicas * STEPS * TOKENS, STEPS * TOKENS)
    assert [each["pools"]["text"]["tokens"]["body"] for each in on_record(tmp_path / "run")] == [
        25_000,
        50_000,
    ]
    assert recipe.run_status(tmp_path / "held").positions == 0
