"""Training: steps of the stream through the model, and checkpoints on record.

A step is a function of the weights before it and of its number: killed anywhere, the run goes on from its
last checkpoint on record to the same weights, to the bit on a processor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.integrations.torch.losses import IGNORED, PoolLosses, pool_losses
from recipe.integrations.training import weights
from recipe.integrations.training.heldout import read_held_out
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from recipe.integrations.training.rate import rate_at
from recipe.integrations.training.settings import Settings, settings_of
from recipe.integrations.training.size import check_size, machine_memory
from recipe.mixing.opening import close_pools, open_pools
from recipe.mixing.reader import LOSS_WEIGHT
from recipe.pools import Pool
from recipe.run.holdings import Holding
from recipe.run.manifests import run_manifests
from recipe.run.run import Run
from recipe.run.state import State

Batch = Mapping[str, torch.Tensor]
_HOUR = 3600.0


class Trainer:
    """A model, its optimizer, and what was measured since the last checkpoint."""

    def __init__(self, config: GPTConfig, settings: Settings, recipe: Recipe) -> None:
        """New weights; :meth:`restore` takes those of a checkpoint.

        Args:
            config: the model's shape.
            settings: the recipe's ``trainer:`` block.
            recipe: the run's, for its pools and whether labels are shifted already.
        """
        self.settings = settings
        self.seconds = 0.0
        """By the clock, on the device, over the run's lineage."""
        self._labels, self._num_pools = recipe.labels, len(recipe.pools)
        self.device = torch.device(settings.device)
        self.model = GPT(config, seed=settings.init_seed).to(self.device)
        large = [weight for weight in self.model.parameters() if weight.dim() > 1]
        small = [weight for weight in self.model.parameters() if weight.dim() <= 1]
        groups = [
            {"params": large, "weight_decay": settings.weight_decay},
            {"params": small, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas)
        self._by_pool: PoolLosses | None = None

    def take(self, batch: Batch, *, rate: float) -> float:
        """One optimizer step; the mean loss of its labels, in nats: with their weights, where there are some.

        Raises:
            RecipeError: the loss is no number: nothing was learnt from it.
        """
        began = time.perf_counter()
        rows = {name: array.to(self.device) for name, array in batch.items()}
        total = int((batch["labels"] != IGNORED).sum())
        each = self.settings.micro_batch or len(batch["pool"])
        summed = torch.zeros((), device=self.device)
        for first in range(0, len(batch["pool"]), each):
            part = {name: array[first : first + each] for name, array in rows.items()}
            losses, targets = self.losses(part)
            counted = losses * part[LOSS_WEIGHT][:, None] if LOSS_WEIGHT in part else losses
            torch.autograd.backward(counted.sum() / max(total, 1))
            summed += counted.detach().sum()
            found = pool_losses(losses, {**part, "labels": targets}, self._num_pools)
            self._by_pool = found if self._by_pool is None else self._by_pool.plus(found)
        mean = float(summed) / max(total, 1)
        if not math.isfinite(mean):
            raise _not_finite(mean, rate)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.seconds += time.perf_counter() - began
        return mean

    def losses(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Cross-entropy of every position, float32[rows, context], and its labels, shifted."""
        kind = self.device.type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            logits = self.model(batch["input_ids"], batch["position_ids"], batch["segment_ids"])
        labels = batch["labels"]
        if self._labels == "inputs":
            labels = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], IGNORED)], dim=1)
        return token_losses(logits, labels), labels

    @torch.no_grad()
    def measure(self, batches: list[dict[str, torch.Tensor]]) -> dict[str, float]:
        """``loss``, the mean over the labels of held-out batches, in nats, and ``labels``, their number."""
        self.model.eval()
        summed, labels = 0.0, 0
        for batch in batches:
            losses, targets = self.losses({name: array.to(self.device) for name, array in batch.items()})
            summed, labels = summed + float(losses.double().sum()), labels + int((targets != IGNORED).sum())
        self.model.train()
        return {"loss": summed / max(labels, 1), "labels": labels}

    def pool_losses(self, recipe: Recipe) -> dict[str, float]:
        """Mean training loss of pools and pool groups since this was asked last, in nats."""
        found, self._by_pool = self._by_pool, None
        return {} if found is None else found.means(recipe)

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def restore(self, content: Mapping[str, Any], where: str) -> None:
        """Go on from a checkpoint.

        Raises:
            RecipeError: it is of a model of another shape.
        """
        try:
            self.model.load_state_dict(content["model"])
        except RuntimeError as error:
            message = str(error).splitlines()[-1].strip()
            raise RecipeError.single(
                f"{where}: weights of another model",
                "trainer",
                given=message,
                expected="the shape that the weights have",
                fix="leave layers, heads and width as they were, or start the run anew",
            ) from None
        self.optimizer.load_state_dict(content["optimizer"])


def train(
    run: Run,
    watch: Callable[[int, float], None] = lambda step, loss: None,
    *,
    stop_step: int | None = None,
) -> None:
    """Train an open run to its end; each checkpoint's file is on disk before the run says so.

    Args:
        run: opened where it goes on.
        watch: called after each step with the number of steps taken and the step's mean loss, in nats.
        stop_step: stop there, with a checkpoint; the next call goes on.

    Raises:
        RecipeError: settings that are none, weights that are missing or of another model, held-out pools that
            are the run's own, or the system refuses.
    """
    settings = settings_of(run.recipe.trainer)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    holdings = State.from_bytes(run.state()).holdings
    held = {
        kind: read_held_out(
            run.recipe, holdings, getattr(settings, kind), f"trainer.{kind}", settings.validation_sequences
        )
        for kind in ("validation", "final")
    }
    config = _config(run.recipe, run.stream().ground.pools, settings)
    trainer = Trainer(config, settings, run.recipe)
    if (start := weights.weights_at(run.path, run.step)) is not None:
        trainer.restore(weights.load(start, trainer.device), str(start.path))
        trainer.seconds = start.gpu_hours * _HOUR
    end = run.num_steps if stop_step is None else min(stop_step, run.num_steps)
    if run.complete or run.step >= end:
        return
    due = _due(run, run.step, settings)
    for step, batch in run.stream().batches(run.step, stop=end):
        rows = {name: torch.from_numpy(array) for name, array in batch.items()}
        loss = trainer.take(rows, rate=rate_at(step, run.num_steps, settings))
        if step + 1 == due or step + 1 == stop_step:
            _checkpoint(run, trainer, step + 1, held)
            due = _due(run, step + 1, settings)
        watch(step + 1, loss)
        last = step + 1
    if run.step < last or (stop_step is None and not run.complete):
        _checkpoint(run, trainer, last, held)  # A pool ran dry and ended the run before its planned length.


def _not_finite(loss: float, rate: float) -> RecipeError:
    return RecipeError.single(
        "training",
        "loss",
        given=f"{loss} at a learning rate of {rate:g}",
        expected="a number",
        fix="lower trainer.learning_rate or trainer.clip, or leave out the data with `recipe skip`; the run "
        "stands at its last checkpoint",
    )


def check_trainer(recipe: Recipe) -> Settings:
    """The settings of a recipe, if this machine can train with them: asked before a run is started.

    Raises:
        RecipeError: settings that are none, no such device, a model that does not fit into its memory,
            held-out pools that cannot be opened.
    """
    settings = settings_of(recipe.trainer)
    if settings.device != "cpu" and not torch.cuda.is_available():
        fix = "use trainer.device=cpu, or a machine with one"
        raise RecipeError.single(
            "trainer", "trainer.device", given=settings.device, expected="a device of this machine", fix=fix
        )
    pools = open_pools(recipe)
    try:
        _config(recipe, list(pools.values()), settings)
        holdings = {name: Holding.of(pool) for name, pool in pools.items()}
        for kind in ("validation", "final"):
            read_held_out(recipe, holdings, getattr(settings, kind), f"trainer.{kind}", 1)
    finally:
        close_pools(pools.values())
    return settings


def _config(recipe: Recipe, pools: Sequence[Pool], settings: Settings) -> GPTConfig:
    """The model's shape, if its training can fit into the device's memory.

    Raises:
        RecipeError: it cannot.
    """
    size = recipe.model.vocab_size if recipe.model is not None else None
    if size is None:
        size = max(_vocabulary(pool) for pool in pools)
    memory = machine_memory()
    if settings.device != "cpu":
        memory = torch.cuda.get_device_properties(settings.device).total_memory
    check_size(settings, size, recipe.longest_context, memory)
    return GPTConfig(vocab_size=size, layers=settings.layers, heads=settings.heads, width=settings.width)


def _vocabulary(pool: Pool) -> int:
    """Ids that a pool may hold: the tokenizer's, or as many as the width of its tokens can say."""
    card = pool.card
    largest = card.max_id.id if card.max_id is not None else int(np.iinfo(pool.token_dtype).max)
    return max(card.vocab_size or 0, largest + 1)


def _due(run: Run, step: int, settings: Settings) -> int:
    """The next step at which a checkpoint is due."""
    if settings.checkpoint_steps is not None:
        return min(run.num_steps, (step // settings.checkpoint_steps + 1) * settings.checkpoint_steps)
    return run.stream().curriculum.chunk_close(step) if step < run.num_steps else step


def _checkpoint(run: Run, trainer: Trainer, step: int, held: Mapping[str, Any]) -> None:
    """Save, then say so; a run killed between the two overwrites the file when it comes here again."""
    trained = trainer.pool_losses(run.recipe)
    metrics = {f"pool:{name}": {"train_loss": trained[name]} for name in run.recipe.pools if name in trained}
    metrics |= {area: trainer.measure(batches) for area, batches in held["validation"].items()}
    if step == run.num_steps:
        metrics |= {f"final/{name}": trainer.measure(batches) for name, batches in held["final"].items()}
    uri, digest = weights.save(run.path, step, {"step": step, **trainer.state()})
    run.checkpoint(step, uri, gpu_hours=round(trainer.seconds / _HOUR, 6), metrics=metrics, digest=digest)
    _let_go(run, trainer.settings.keep)


def _let_go(run: Run, keep: int | None) -> None:
    """Forget, on record, and remove the weights of older checkpoints."""
    if keep is None:
        return
    there = [each for each in run_manifests(run.path) if each.uri and not (each.forgotten or each.discarded)]
    needed = weights.branched_from(run.path)
    stays = {str(each.uri) for each in there[-keep:]} | needed
    for old in there[:-keep]:
        if old.uri not in needed:
            run.forget(old.manifest, reason=f"the trainer keeps {keep}")
    for file in weights.files(run.path):
        if f"{weights.FOLDER}/{file.name}" not in stays:
            file.unlink(missing_ok=True)
