"""A loop of one's own, as short as a README's: killed anywhere, resumed to the same losses and weights."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import recipe
from recipe.integrations.torch import StreamDataset
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from recipe.run.manifest import manifest_path, read_manifest
from tests.integrations.conftest import started

Strike = Callable[[int, str], None]
PLACES = ("before the step", "half saved", "saved, not on record", "on record")


def nowhere(step: int, place: str) -> None:
    """Lets the training live."""


def train(folder: Path, strike: Strike = nowhere, *, every: int = 4, workers: int = 0) -> None:
    """The loop: all of a trainer's side is here."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, file = GPT(GPTConfig(vocab_size=100, layers=1, heads=2, width=8)), folder / "weights.pt"
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    saved = torch.load(file) if file.exists() else None
    with recipe.open_run(folder / "run", state=saved and saved["data"]["state"]) as run:
        dataset = StreamDataset(run.state(), micro_batch=2)
        if saved:
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            dataset.load_state_dict(saved["data"])
        loader = DataLoader(dataset, batch_size=None, sampler=dataset.sampler(), num_workers=workers)
        for step, item in dataset.follow(loader):
            strike(step, "before the step")
            total = 0.0
            for part in dataset.micro_batches(item):
                logits = model(*(part.batch[name] for name in ("input_ids", "position_ids", "segment_ids")))
                loss = token_losses(logits, part.batch["labels"]).sum() / item["num_labels"]
                loss.backward()
                total += loss.item()
            optimizer.step()
            optimizer.zero_grad()
            with (folder / "losses").open("a") as lines:
                lines.write(json.dumps([step, total]) + "\n")
            if dataset.step % every == 0:
                parts = {"model": model, "optimizer": optimizer, "data": dataset}
                torch.save({name: part.state_dict() for name, part in parts.items()}, folder / "new")
                strike(step, "half saved")
                (folder / "new").replace(file)
                strike(step, "saved, not on record")
                run.checkpoint(dataset.step, str(file), metrics={"train": {"loss": total}})
                strike(step, "on record")


def child(folder: Path, when: tuple[int, str] | None, options: dict[str, Any]) -> None:
    def strike(step: int, place: str) -> None:
        if (step, place) == when:
            os.kill(os.getpid(), signal.SIGKILL)

    train(folder, strike, **options)
    os._exit(0)


def trained(folder: Path, *whens: tuple[int, str], **options: Any) -> dict[str, torch.Tensor]:
    """Weights of a training whose processes end like this, and then one that is left alone."""
    for when in [*whens, None]:
        process = get_context("fork").Process(target=child, args=(folder, when, options))
        process.start()
        process.join()
        assert process.exitcode == (0 if when is None else -signal.SIGKILL)
    weights: dict[str, torch.Tensor] = torch.load(folder / "weights.pt")["model"]
    return weights


def losses(folder: Path) -> dict[int, float]:
    """The loss of every step: where one was taken twice, both have to be the same."""
    told: dict[int, float] = {}
    for line in (folder / "losses").read_text().splitlines():
        step, loss = json.loads(line)
        assert told.setdefault(step, loss) == loss
    return told


def cumulative(folder: Path) -> dict[str, Any]:
    """Tokens by pool and kind in the last manifest."""
    last = recipe.run_manifests(folder / "run")[-1].manifest
    manifest = read_manifest(manifest_path(folder / "run", last))
    return {name: pool["tokens"] for name, pool in manifest["pools"].items()}


def kinds(folder: Path) -> list[str]:
    lines = (folder / "run/ledger.jsonl").read_text().splitlines()
    return [json.loads(line)["kind"] for line in lines]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    started(folder)
    trained(folder)
    return folder


def same(folder: Path, whole: Path) -> bool:
    """Losses, weights, tokens on record, and a record without findings."""
    one, two = (torch.load(place / "weights.pt")["model"] for place in (folder, whole))
    assert recipe.audit_run(folder / "run", pools_root=folder).findings == ()
    assert cumulative(folder) == cumulative(whole) and losses(folder) == losses(whole)
    return all(torch.equal(one[name], two[name]) for name in two)


@pytest.mark.parametrize("place", PLACES)
def test_R01_killed_at_any_place_it_ends_as_the_unbroken_run(tmp_path, whole, place):
    started(tmp_path)
    trained(tmp_path, *((step, place) for step in (3, 7, 19)))
    assert same(tmp_path, whole) and recipe.run_status(tmp_path / "run").step == 24


@pytest.mark.slow
def test_killed_at_every_step_it_still_ends_there(tmp_path, whole):
    started(tmp_path)
    trained(tmp_path, *((step, PLACES[step % 4]) for step in range(24)), every=1)
    assert same(tmp_path, whole)


def test_workers_that_read_ahead_are_not_counted(tmp_path, whole):
    started(tmp_path)
    trained(tmp_path, (9, "before the step"), (15, "saved, not on record"), workers=2)
    assert same(tmp_path, whole)


def test_weights_that_were_put_back_rewind_the_record(tmp_path, whole):
    """The file of step 8 was kept aside; the record is at 24 when the training goes on from it."""
    started(tmp_path)
    for when, kept in (((8, "before the step"), "kept"), (None, "last")):
        process = get_context("fork").Process(target=child, args=(tmp_path, when, {}))
        process.start()
        process.join()
        (tmp_path / kept).write_bytes((tmp_path / "weights.pt").read_bytes())
    assert recipe.run_status(tmp_path / "run").step == 24 and "rewind" not in kinds(tmp_path)
    (tmp_path / "kept").replace(tmp_path / "weights.pt")
    trained(tmp_path)
    assert same(tmp_path, whole) and kinds(tmp_path).count("rewind") == 1


def test_the_record_counts_what_the_weights_have_seen(tmp_path):
    """Also after a kill between the weights and the record: summed up by hand from the rows themselves."""
    state = started(tmp_path)
    trained(tmp_path, (11, "saved, not on record"))
    rows = [StreamDataset(state)[step] for step in range(24)]
    labels, padding = {0: 0, 1: 0}, {0: 0, 1: 0}
    for item in rows:
        for pool, row, segments in zip(item["pool"], item["labels"], item["segment_ids"], strict=True):
            labels[int(pool)] += int((row != -100).sum())
            padding[int(pool)] += int((segments < 0).sum())
    told = cumulative(tmp_path)
    assert [told[name]["labels"] for name in "ab"] == list(labels.values())
    assert [told[name]["padding"] for name in "ab"] == list(padding.values())
