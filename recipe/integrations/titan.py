"""The stream under torchtitan and loops like its: micro-batches of (inputs, labels), a ``Stateful`` loader.

::

    loader = titan_dataloader(run.state(), TitanSettings(dp_rank=rank, dp_world_size=world,
                                                         local_batch_size=4, global_batch_size=64))
    saving = dcp.async_save({"model": model, "dataloader": loader}, checkpoint_id=folder)
    told = record_when_saved(run, step, saving, folder)  # of one process; told.result() before the next save
    run = recipe.open_run(path, state=loader.state())    # after dcp.load: the run where the weights are

The state is the same on every rank, so a checkpoint resumes under any number of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.integrations.torch.dataset import StreamDataset
from recipe.mixing.curriculum import Curriculum
from recipe.run.run import Run
from recipe.run.state import State

MicroBatch = tuple[dict[str, torch.Tensor], torch.Tensor]
"""``{"input", "positions"}`` and the labels, each int64[local_batch_size, context]; -100 is no label."""

_TOLD_APART = {("piece", "restart"), ("sequence", "continue")}
"""What attention and positions may be where documents are told apart by positions that are 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TitanSettings:
    """What torchtitan gives a dataloader, and what of its own settings has to be the recipe's."""

    dp_rank: int = 0
    """Of its batch mesh: ranks that share a model's parts read the same rows."""
    dp_world_size: int = 1
    local_batch_size: int
    """Sequences of a micro-batch."""
    global_batch_size: int | None = None
    """``training.global_batch_size``, to be checked; its ratio is the accumulation."""
    seq_len: int | None = None
    """``training.seq_len``, to be checked: the recipe's longest context."""
    steps: int | None = None
    """``training.steps``, to be checked."""
    num_workers: int = 0


class TitanLoader:
    """Micro-batches of a rank from the trainer's step on, with the state that DCP keeps; see the module."""

    def __init__(self, dataset: StreamDataset, num_workers: int = 0) -> None:
        """Over a dataset that was given ``micro_batch``; it counts what the trainer took."""
        self.dataset = dataset
        self._num_workers = num_workers

    def __iter__(self) -> Iterator[MicroBatch]:
        """The micro-batches of one step after those of the one before, to the end of the run.

        A step is taken once its last micro-batch is: half of one is served again.
        """
        dataset = self.dataset
        loader = DataLoader(
            dataset, batch_size=None, sampler=dataset.sampler(), num_workers=self._num_workers
        )
        for step, item in dataset.follow(loader):
            for part in dataset.micro_batches(item):
                dataset.step = step + (part.number + 1 == part.of)
                inputs = {"input": part.batch["input_ids"], "positions": part.batch["position_ids"].long()}
                yield inputs, part.batch["labels"]

    def state(self) -> bytes:
        """For ``recipe.open_run(path, state=…)``: the run where the trainer stands."""
        return bytes(self.state_dict()["state"])

    def state_dict(self) -> dict[str, Any]:
        """Where the trainer stands; the same on every rank."""
        return self.dataset.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Stand there; an empty state, as torchtitan gives one for a start, changes nothing.

        Raises:
            ValueError: it is no state; the loader stays where it was.
        """
        if state_dict != {}:
            self.dataset.load_state_dict(state_dict)


def titan_dataloader(
    state: bytes, settings: TitanSettings, *, pools_root: str | Path | None = None
) -> TitanLoader:
    """A loader for torchtitan's trainer or one like it.

    Args:
        state: what ``run.state()`` gave.
        settings: of the trainer.
        pools_root: where the pools are on this machine.

    Raises:
        RecipeError: settings that do not give the recipe's steps and batches, or a recipe whose documents
            or labels such a trainer would misread; all at once.
        ValueError: there is no such rank.
    """
    _check(State.from_bytes(state).recipe, settings)
    dataset = StreamDataset(
        state,
        dp_rank=settings.dp_rank,
        dp_size=settings.dp_world_size,
        micro_batch=settings.local_batch_size,
        pools_root=pools_root,
    )
    return TitanLoader(dataset, settings.num_workers)


def record_when_saved(run: Run, step: int, saving: Future[Any], uri: str) -> Future[int]:
    """Put a checkpoint on record once its weights are saved, in the thread that saved them.

    Args:
        run: of the one process that writes it.
        step: steps that the weights have seen.
        saving: what ``dcp.async_save`` gave.
        uri: of the weights.

    Returns:
        The number of the manifest to come; or why the weights were not saved, or not put on record.

    Raises:
        RecipeError: the step is behind the run, or after its end.
    """
    pending, told = run.begin_checkpoint(step), Future[int]()

    def tell(saved: Future[Any]) -> None:
        try:
            saved.result()
            told.set_result(pending.commit(uri))
        except BaseException as error:
            told.set_exception(error)

    saving.add_done_callback(tell)
    return told


def _check(recipe: Recipe, settings: TitanSettings) -> None:
    """Refuse settings under which a step would not be the recipe's.

    Raises:
        RecipeError: all of them.
    """
    curriculum = Curriculum.from_recipe(recipe)
    problems = _of_rows(recipe)
    if settings.steps not in (None, curriculum.num_steps):
        expected = f"{curriculum.num_steps}, the run's"
        problems.append(Problem("training.steps", settings.steps, expected, "set it to the run's"))
    contexts = max(stretch.context for stretch in curriculum.stretches)
    if settings.seq_len not in (None, contexts):
        expected = f"{contexts}, the recipe's longest context"
        problems.append(Problem("training.seq_len", settings.seq_len, expected, "set it to the recipe's"))
    for batch in sorted({stretch.batch for stretch in curriculum.stretches}):
        if settings.global_batch_size not in (None, batch):
            fix = "set it to the recipe's; torchtitan has one batch, so a ramp needs a loop of your own"
            expected = f"{batch} sequences, the recipe's batch"
            given = settings.global_batch_size
            problems.append(Problem("training.global_batch_size", given, expected, fix))
    if problems:
        raise RecipeError("torchtitan: not the recipe's steps", problems)


def _of_rows(recipe: Recipe) -> list[Problem]:
    problems = []
    if recipe.labels != "shifted":
        problems.append(
            Problem("labels", recipe.labels, "shifted", "torchtitan's labels are shifted; remove the line")
        )
    for name, stage in recipe.stages.items():
        given = (stage.packing.attention, stage.packing.positions)
        if given not in _TOLD_APART:
            ways = "piece with restart, or sequence with continue"
            fix = "torchtitan finds documents by positions that are 0; choose one of the two"
            problems.append(Problem(f"stages.{name}.packing", " with ".join(given), ways, fix))
        if stage.objective is not None:
            fix = "train with StreamDataset and weighted_loss (recipe.integrations.torch), or leave it out"
            told = "none: torchtitan's loss takes no weights"
            problems.append(Problem(f"stages.{name}.objective", "weights of the loss", told, fix))
    return problems
