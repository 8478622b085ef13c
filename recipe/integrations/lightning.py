"""The stream under Lightning: its own loop and checkpoints, the run's order and record.

::

    run = recipe.resume_or_start(recipe.load_recipe("my.yaml"), "runs/mine")
    data = RunDataModule(run)
    trainer = Trainer(max_steps=run.num_steps, plugins=[RunCheckpointIO(data)], ...)
    trainer.fit(model, data, ckpt_path="last")

An optimizer step of the trainer is a step of the run, so its ``global_step`` says where the data stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, IterableDataset

from recipe.errors import Problem, RecipeError
from recipe.integrations.record import check_digest, course_of, digest_of, forget_weights, opened_at
from recipe.integrations.torch.place import Item, TrainerPlace
from recipe.integrations.torch.ranks import Ranks
from recipe.integrations.torch.saved import whole_step
from recipe.integrations.torch.workers import worker_and_workers
from recipe.run.run import Run


class RunDataModule(LightningDataModule):
    """Batches of a run for ``Trainer.fit``: a micro-batch an item, see ``torch.place.Item``.

    Where the training ends is on record also where nothing was saved there.
    """

    def __init__(self, run: Run, *, micro_batch: int | None = None, num_workers: int = 0) -> None:
        """Open nothing yet; on other ranks than 0 the run is read and never written.

        Args:
            run: opened where the training goes on.
            micro_batch: sequences of an item; default: all rows of a rank's step. The trainer's
                ``accumulate_grad_batches`` is then the number of items that make a step.
            num_workers: of the loader.
        """
        super().__init__()
        self.run = run
        self._micro_batch, self._num_workers = micro_batch, num_workers
        self._resumed: int | None = None
        self._course: object = None
        """Of the weights that the trainer resumed from."""
        self._serves = False
        """Whether the trainer has had rows in this process: what it has seen since is this run's."""

    def train_dataloader(self) -> DataLoader[Item]:
        """From the step that the trainer resumed at, or where the run was opened.

        Raises:
            RecipeError: the trainer's steps or accumulation are not the recipe's, or its weights are ahead of
                the record without being this run's.
        """
        trainer = self.trainer
        assert trainer is not None
        step = trainer.global_step if self._resumed is None else self._resumed
        if not self._serves or step < self.run.step:
            resume = 'trainer.fit(model, data, ckpt_path="last")'
            self.run = opened_at(self.run, step, self._course, resume)
        self._serves = True
        ranks = _ranks(trainer)
        self._check(trainer, ranks.dp_size)
        place = TrainerPlace(self.run.state(self.run.step), **ranks._asdict(), micro_batch=self._micro_batch)
        place.step = step
        return DataLoader(_Items(place, self._micro_batch), batch_size=None, num_workers=self._num_workers)

    def state_dict(self) -> dict[str, Any]:
        """The step that the trainer took last, and on whose rows, into its checkpoints."""
        assert self.trainer is not None
        return {"step": int(self.trainer.global_step), "course": course_of(self.run)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Where the weights are.

        Raises:
            ValueError: it does not say so, or not in steps of this run.
        """
        if not isinstance(state, Mapping) or "step" not in state:
            raise ValueError(f"no state: {state!r:.200}; expected what state_dict() gave, {{'step': N}}")
        step = whole_step(state["step"])
        if step > self.run.num_steps:
            raise ValueError(f"step {step}; expected 0..{self.run.num_steps}, the steps of {self.run.path}")
        self._resumed, self._course, self._serves = step, state.get("course"), False

    def teardown(self, stage: str) -> None:
        """Rank 0 puts the end of the training on record, after the last of its checkpoints."""
        trainer = self.trainer
        if stage == "fit" and trainer is not None and self._serves and trainer.is_global_zero:
            step = int(trainer.global_step)
            if self.run.step < step:
                self.run.checkpoint(step)

    def _check(self, trainer: Any, dp_size: int) -> None:
        problems = []
        if trainer.max_steps != self.run.num_steps:
            expected, fix = f"{self.run.num_steps}, the run's", "Trainer(max_steps=run.num_steps)"
            problems.append(Problem("max_steps", trainer.max_steps, expected, fix))
        for batch in sorted({stretch.batch for stretch in self.run.stream().curriculum.stretches}):
            items = 1 if self._micro_batch is None else batch // dp_size // self._micro_batch
            if trainer.accumulate_grad_batches != items:
                given = f"{trainer.accumulate_grad_batches} items of {self._micro_batch or 'all'} sequences"
                fix = f"Trainer(accumulate_grad_batches={items}); a ramp of batches needs one item a step"
                expected = f"{items}, which make a batch of {batch}"
                problems.append(Problem("accumulate_grad_batches", given, expected, fix))
        if problems:
            raise RecipeError(f"{self.run.path}: not the recipe's steps", problems)


def _ranks(trainer: Any) -> Ranks:
    """As the strategy deals data: processes that share a model's parts read the same rows."""
    told = trainer.distributed_sampler_kwargs
    return Ranks(0, 1) if told is None else Ranks(int(told["rank"]), int(told["num_replicas"]))


class _Items(IterableDataset[Item]):
    """A rank's steps, or their micro-batches, in order; a worker serves every n-th of them."""

    def __init__(self, place: TrainerPlace, micro_batch: int | None) -> None:
        self._place, self._micro_batch = place, micro_batch

    def __iter__(self) -> Iterator[Item]:
        number, workers = worker_and_workers()
        for count, item in enumerate(self._all()):
            if count % workers == number:
                yield item

    def _all(self) -> Iterator[Item]:
        for step in self._place.steps_left():
            item = self._place.item(step)
            if self._micro_batch is None:
                yield item
            else:
                yield from (part.batch for part in self._place.micro_batches(item))


class RunCheckpointIO(TorchCheckpointIO):
    """Writes the trainer's checkpoints, and puts each on record with its SHA-256 once its file is there.

    Inside Lightning's ``AsyncCheckpointIO`` both happen in its thread, late and in order. A checkpoint that
    the trainer removes, or writes over (``last.ckpt``), is forgotten on record. A file that is not the one on
    record is not loaded.
    """

    def __init__(self, data: RunDataModule) -> None:
        """For the run of this data: opened anew where the trainer resumes from an older checkpoint."""
        super().__init__()
        self._data = data

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Say that what was there is gone, write the file, then say that it is there."""
        run, step = self._data.run, int(checkpoint["global_step"])
        forget_weights(run, {str(path)}, f"written over at step {step} by the trainer")
        super().save_checkpoint(checkpoint, path, storage_options)
        run.begin_checkpoint(step).commit(str(path), digest=digest_of(path))

    def load_checkpoint(self, path: Any, *args: Any, **options: Any) -> dict[str, Any]:
        """The file, if it is the one on record.

        Raises:
            RecipeError: the file was written over by something else.
        """
        check_digest(self._data.run, path)
        loaded: dict[str, Any] = super().load_checkpoint(path, *args, **options)
        return loaded

    def remove_checkpoint(self, path: Any) -> None:
        """Forget, then remove."""
        forget_weights(self._data.run, {str(path)}, "removed by the trainer")
        super().remove_checkpoint(path)
