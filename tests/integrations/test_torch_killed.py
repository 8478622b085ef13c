"""One training, killed fifty times: what is learnt is what an unbroken one learns, to the bit."""

from __future__ import annotations

import os
import pickle
import random
import signal
from collections.abc import Callable
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from recipe.integrations.torch import StreamDataset
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from tests.integrations.conftest import PLAIN, started

CONFIG = GPTConfig(vocab_size=100, layers=1, heads=2, width=8)
STEPS, KILLS = 80, 50
PLACES = ("before the step", "before it is saved", "half saved", "saved, not renamed", "after it is saved")


def _gradients(model: GPT, dataset: StreamDataset, step: int) -> bytes:
    """Those of one rank's rows; the digest of what it read."""
    item, digest = dataset[step], sha256()
    for part in dataset.micro_batches(item):
        batch = part.batch
        digest.update(batch["input_ids"].numpy().tobytes())
        logits = model(batch["input_ids"], batch["position_ids"], batch["segment_ids"])
        (token_losses(logits, batch["labels"]).sum() / dataset.num_labels(step)).backward()
    return digest.digest()


def _train(state: bytes, file: Path, sizes: dict[int, int], strike: Callable[[int, str], None]) -> None:
    """From the checkpoint in ``file`` to the end, saving after every step; ``sizes``: ranks from a step on.

    The ranks of a step are computed one after the other, their gradients added up: the arithmetic of an
    all-reduce of sums, in one process.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    saved = pickle.loads(file.read_bytes()) if file.exists() else None
    model = GPT(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    position = StreamDataset(state)
    read: list[tuple[int, list[bytes]]] = []
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        position.load_state_dict(saved["data"])
        read = saved["read"]
    ranks: list[StreamDataset] = []
    for step in range(position.step, STEPS):
        size = max((at, size) for at, size in sizes.items() if at <= step)[1]
        if len(ranks) != size:
            here = position.state_dict()["state"]
            ranks = [StreamDataset(here, dp_rank=r, dp_size=size, micro_batch=1) for r in range(size)]
        strike(step, "before the step")
        read.append((step, [_gradients(model, rank, step) for rank in ranks]))
        optimizer.step()
        optimizer.zero_grad()
        position.step = step + 1
        strike(step, "before it is saved")
        parts = {"model": model, "optimizer": optimizer, "data": position}
        content = pickle.dumps({name: part.state_dict() for name, part in parts.items()} | {"read": read})
        with file.with_suffix(".new").open("wb") as out:
            out.write(content[: len(content) // 2])
            out.flush()
            strike(step, "half saved")
            out.write(content[len(content) // 2 :])
        strike(step, "saved, not renamed")
        file.with_suffix(".new").replace(file)
        strike(step, "after it is saved")


def _child(state: bytes, file: Path, sizes: dict[int, int], when: tuple[int, str] | None) -> None:
    def strike(step: int, place: str) -> None:
        if (step, place) == when:
            os.kill(os.getpid(), signal.SIGKILL)

    _train(state, file, sizes, strike)
    os._exit(0)


def _killed(state: bytes, file: Path, sizes: dict[int, int], whens: list[tuple[int, str]]) -> dict:
    """The last checkpoint of a training whose processes end like this, and then one that is left alone."""
    for when in [*whens, None]:
        process = get_context("fork").Process(target=_child, args=(state, file, sizes, when))
        process.start()
        process.join()
        assert process.exitcode == (0 if when is None else -signal.SIGKILL)
    return pickle.loads(file.read_bytes())


def _same(one: dict, two: dict) -> bool:
    return all(torch.equal(one["model"][name], two["model"][name]) for name in one["model"])


@pytest.mark.slow
def test_R01_F4_killed_at_fifty_random_steps_the_weights_are_the_unbroken_runs(tmp_path):
    """With dp size 1 and 2 in turn, changed at the same steps in both; the record of what was read, too."""
    stages = {name: stage | {"tokens": 8192} for name, stage in PLAIN["stages"].items()}
    state = started(tmp_path, stages=stages)
    dice = random.Random(7)
    steps = sorted(dice.sample(range(STEPS), KILLS))
    sizes = {0: 1} | {step: 1 + turn % 2 for turn, step in enumerate(steps[9::10], start=1)}
    whole = _killed(state, tmp_path / "whole", sizes, [])
    broken = _killed(state, tmp_path / "broken", sizes, [(step, dice.choice(PLACES)) for step in steps])
    assert broken["read"] == whole["read"] and len(whole["read"]) == STEPS
    assert set(map(len, (digests for _, digests in whole["read"]))) == {1, 2}
    assert _same(broken, whole)
    alone = _killed(state, tmp_path / "alone", {0: 1}, [])
    for name, weight in alone["model"].items():  # other ranks, same batches: other order of adding up
        assert torch.allclose(weight, whole["model"][name], atol=1e-2)
