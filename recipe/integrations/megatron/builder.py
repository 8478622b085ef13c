"""A run inside Megatron's own builder of data sets: its folder stands where a prefix would.

In ``pretrain_gpt.py`` one line changes, ``dataset_type = RunDataset``, and the launch says::

    --train-data-path runs/base --valid-data-path held_out/text_document

or, without validation, ``--data-path runs/base --split 1,0,0``. Needs Megatron-core, which the rest of this
package does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.integrations.megatron.dataset import Item, MegatronStream
from recipe.integrations.megatron.rules import Attention, attention_of
from recipe.run.folder import RunFolder
from recipe.run.handover.setting import Habits, habits_of
from recipe.run.opening import open_run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the imports of Megatron warn of
    from megatron.core import parallel_state
    from megatron.core.datasets.gpt_dataset import GPTDataset
    from megatron.core.datasets.megatron_dataset import MegatronDataset
    from megatron.core.datasets.utils import Split
    from megatron.core.num_microbatches_calculator import get_micro_batch_size


class RunDataset(MegatronDataset):
    """A run as :class:`MegatronStream` gives it; a path that is no run's is what ``GPTDataset`` makes of it.

    Whether the data loader makes masks decides how documents are kept apart: by ``attention_mask``, or,
    where the recipe isolates them, by ``cu_seqlens``. ``dataset`` is the :class:`MegatronStream`, which
    knows how many steps the consumed samples are.

    Source:
        Megatron-core, ``BlendedMegatronDatasetBuilder`` and ``MegatronDataset``.
    """

    def __init__(  # noqa: PLR0913 - what the builder gives
        self, dataset: Any, path: str | None, indices: Any, num_samples: int | None, split: Split, config: Any
    ) -> None:
        """As the builder calls it.

        Raises:
            RecipeError: the run is not trained on as a whole and in its order, or flags of the launch say
                otherwise than the recipe; all at once.
        """
        super().__init__(dataset, path, indices, num_samples, split, config)
        self._text: GPTDataset | None = None
        if not isinstance(dataset, MegatronStream):
            self._text = GPTDataset(dataset, path, indices, num_samples, split, config)
        elif problems := [*_places(self), *_flags(config, habits_of(dataset.stream().recipe))]:
            raise RecipeError(f"Megatron: {path}", problems)

    @staticmethod
    def numel_low_level_dataset(low_level_dataset: Any) -> int:
        """1 for a run, which ``--split`` cannot divide; else the sequences of a file."""
        if isinstance(low_level_dataset, MegatronStream):
            return 1
        return int(GPTDataset.numel_low_level_dataset(low_level_dataset))

    @staticmethod
    def build_low_level_dataset(dataset_path: str, config: Any) -> Any:
        """The run of a folder, or the files of a prefix.

        Raises:
            RecipeError: as :class:`MegatronStream`.
        """
        if dataset_path is None or not RunFolder(Path(dataset_path)).is_run:
            return GPTDataset.build_low_level_dataset(dataset_path, config)
        with open_run(dataset_path) as run:
            attention = _attention(config, run.recipe)
        return MegatronStream.of_run(dataset_path, config.sequence_length, attention=attention, **_dealt())

    def __len__(self) -> int:
        """Sequences of the whole run, or the samples that were built."""
        return len(self.dataset if self._text is None else self._text)

    def __getitem__(self, idx: int | None) -> Item:
        """A sample; None is one without any label, to fill up a batch."""
        if self._text is not None:
            return dict(self._text[idx])
        if idx is None:
            item: Item = self.dataset[self.dataset.first_sample()]
            return item | {"loss_mask": torch.zeros_like(item["loss_mask"])}
        return dict(self.dataset[idx])

    def __getitems__(self, samples: Sequence[int]) -> list[Item]:
        """Some samples, of each step all at once."""
        if self._text is not None:
            return [self._text[sample] for sample in samples]
        return list(self.dataset.__getitems__(samples))


def _dealt() -> dict[str, int]:
    """Size of the job's data parallelism and its micro-batch, where Megatron knows them."""
    found = {}
    if parallel_state.is_initialized():
        found["dp_size"] = int(parallel_state.get_data_parallel_world_size())
    with suppress(AttributeError):  # it was not set up
        found["micro_batch"] = int(get_micro_batch_size())
    return found


def _attention(config: Any, recipe: Recipe) -> Attention:
    if getattr(config, "create_attention_mask", False):
        return "mask"
    return "none" if attention_of(recipe, config.sequence_length) == "none" else "cu_seqlens"


def _places(data: RunDataset) -> Iterator[Problem]:
    """What would not train on the samples of the run in their order."""
    config = data.config
    if data.index_split is not Split.train:
        given, expected = f"a run for {data.index_split.name}", "a run for training only"
        fix = "--split 1,0,0, or --train-data-path with a --valid-data-path of its own"
        yield Problem("--split", given, expected, fix)
        return
    prefixes, _ = config.blend or config.blend_per_split[Split.train.value]
    if len(prefixes) > 1:
        fix = "name the run alone: put the other prefixes into its recipe as pools"
        yield Problem("--data-path", f"{len(prefixes)} prefixes", "one run, which has its own mixture", fix)
    if data.num_samples is not None and data.num_samples > len(data.dataset):
        fix = "take --train-samples or --train-iters as recipe flags prints it"
        yield Problem("--train-samples", data.num_samples, f"at most {len(data.dataset)}, the run's", fix)


def _flags(config: Any, habits: Habits) -> Iterator[Problem]:
    """Flags that say another thing than the arrays of a sample."""
    masked = getattr(config, "create_attention_mask", False)
    told = {
        "--reset-position-ids": ("reset_position_ids", habits.restarts),
        "--reset-attention-mask": ("reset_attention_mask", habits.isolated if masked else None),
        "--eod-mask-loss": ("eod_mask_loss", None if habits.crosses is None else not habits.crosses),
    }
    for option, (name, right) in told.items():
        given = getattr(config, name, None)
        if None not in (given, right) and bool(given) != right:
            expected = "set" if right else "left out"
            fix = "launch with the flags that recipe flags prints for the run"
            yield Problem(option, "set" if given else "left out", f"{expected}, as the recipe says", fix)
