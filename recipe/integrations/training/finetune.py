"""One fixed short fine-tuning as a yardstick: the same steps over the same data from any checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch

from recipe.config.evaluation import HeldOutConfig
from recipe.errors import RecipeError
from recipe.integrations.training import weights
from recipe.integrations.training.heldout import ROWS, read_held_out
from recipe.integrations.training.loop import Trainer
from recipe.integrations.training.model import GPTConfig
from recipe.integrations.training.settings import settings_of
from recipe.run.branching.origin import Origin, find_origin
from recipe.run.comparing.attach import attach_metrics


@dataclass(frozen=True, kw_only=True, slots=True)
class FineTuning:
    """What is the same for every checkpoint that is measured by it."""

    data: Path
    """Pool of the fine-tuning; none of the run's."""
    test: Path
    """Pool whose loss is the measure; another one."""
    name: str = "short"
    """Of the set of metrics: ``sft/NAME``."""
    steps: int = 32
    """Optimizer steps, of eight sequences each; a pool that holds fewer is read again."""
    learning_rate: float = 1e-3
    """Of every step: no warm-up, no decay."""
    test_sequences: int = 64
    """Sequences of the test pool, from its beginning."""

    def __post_init__(self) -> None:
        """Refuse what measures nothing."""
        rate_is_one = self.learning_rate > 0 and math.isfinite(self.learning_rate)
        name_is_one = bool(self.name.strip()) and "/" not in self.name
        if min(self.steps, self.test_sequences) < 1 or not (rate_is_one and name_is_one):
            told = f"steps {self.steps}, test sequences {self.test_sequences}, rate {self.learning_rate}"
            raise ValueError(
                f"{told}, name {self.name!r}: at least one step and one sequence, a finite rate above 0, "
                "a name without a slash"
            )


def fine_tune(
    path: str | Path, told: FineTuning, manifest: int | None = None, *, step: int | None = None
) -> tuple[int, dict[str, float]]:
    """Fine-tune a copy of a checkpoint's weights, and attach what it then loses on the test pool.

    The run itself goes nowhere: its tokens, hours and weights stay as they are. The optimizer begins anew,
    nothing is drawn at random: the same weights give the same number, on a processor to the bit.

    Args:
        path: the run's folder.
        told: the yardstick.
        manifest: which checkpoint; default: the run's last.
        step: the checkpoint of a step, in place of a manifest's number.

    Returns:
        The number of the manifest, and its metrics: ``loss`` after, ``loss_before``, in nats; and the
        ``labels`` they are the means of.

    Raises:
        RecipeError: no such checkpoint or weights, pools that cannot be read or are the run's own, or
            somebody else is writing. Nothing was written then.
    """
    origin = find_origin(Path(path), manifest, step)
    found = _measured(origin, told)
    return attach_metrics(path, {f"sft/{told.name}": found}, origin.number), found


def _measured(origin: Origin, told: FineTuning) -> dict[str, float]:
    recipe, holdings, where = origin.version.recipe, origin.state.holdings, str(origin.folder.path)
    if told.data.resolve() == told.test.resolve():
        fix = "split the test off before"
        raise RecipeError.single(
            where, "--test", given=f"{told.test}, the data", expected="another pool", fix=fix
        )
    settings = settings_of(recipe.trainer)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    start = weights.weights_at(origin.folder.path, origin.step)
    if start is None:
        fix = "fine-tune one of its later checkpoints"
        raise RecipeError.single(
            where, "checkpoint", given="no weights", expected="one the trainer saved", fix=fix
        )
    content = weights.load(start, settings.device)
    as_rows = recipe.model_copy(update={"evaluation": None})  # windows that score are no rows to learn from
    data, test = (
        read_held_out(read_by, holdings, {key: HeldOutConfig(path=str(pool.absolute()))}, "finetune", most)[
            key
        ]
        for key, pool, most, read_by in (
            ("data", told.data, told.steps * ROWS, as_rows),
            ("test", told.test, told.test_sequences, recipe),
        )
    )
    config = GPTConfig(
        vocab_size=len(content["model"]["embedding.weight"]),
        layers=settings.layers,
        heads=settings.heads,
        width=settings.width,
    )
    trainer = Trainer(config, settings, recipe)
    trainer.restore({**content, "optimizer": trainer.optimizer.state_dict()}, str(start.path))
    before = trainer.measure(test)["loss"]
    for number in range(told.steps):
        trainer.take(data[number % len(data)], rate=told.learning_rate)
    return {**trainer.measure(test), "loss_before": before}
