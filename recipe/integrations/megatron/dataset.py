"""A dataset for Megatron: sample i is sequence i of the run, so that consumed samples say where it stands.

Megatron's own sampler deals the samples to ranks and micro-batches. Nothing is built or cached: every rank
opens the state, and an item is a function of its number.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from recipe.errors import RecipeError
from recipe.integrations.megatron.rules import Attention, attention_of, check_dealt
from recipe.mixing.reader import LOSS_WEIGHT
from recipe.run.opening import open_run
from recipe.run.state import State, stream_from
from recipe.run.stream import RunStream
from recipe.sequences.segment_lengths import padded_segment_lengths, segment_lengths

Item = dict[str, torch.Tensor]


class MegatronStream(Dataset[Item]):
    """Sequences of a run as ``GPTDataset`` gives samples; for ``--dataloader-type single``.

    In a pre-training script it takes the place of the blend::

        from recipe.integrations.megatron import MegatronStream


        def train_valid_test_datasets_provider(num_samples, vp_stage=None):
            return MegatronStream.of_run("runs/base", get_args().seq_length), None, None


        train_valid_test_datasets_provider.is_distributed = True

    With ``packing: concat`` and ``tail: drop`` the samples of an epoch are those that ``GPTDataset`` cuts
    from the same documents in the same order, array by array, under the flags that ``recipe flags`` prints.
    The order of documents is the recipe's own: windows that span documents differ where Megatron shuffles.
    Validation sets stay the script's own: return them in place of None.

    Where the recipe keeps the pieces of a row apart, samples bring the ``attention_mask`` that Megatron's
    ``get_batch`` takes; with ``--no-create-attention-mask-in-dataloader`` that is ``attention="cu_seqlens"``.
    Under ``deal: balanced`` give ``dp_size`` and ``micro_batch``, too.

    Source:
        Megatron-LM, ``MegatronPretrainingSampler`` (samples dealt in order of their index) and
        ``GPTDataset.__getitem__`` (names and meaning of the arrays).
    """

    def __init__(  # noqa: PLR0913 - the job's own words
        self,
        state: bytes,
        sequence_length: int,
        *,
        attention: Attention | None = None,
        dp_size: int | None = None,
        micro_batch: int | None = None,
        pools_root: str | Path | None = None,
    ) -> None:
        """Open no pool yet.

        Args:
            state: what ``run.state()`` gave; of any step.
            sequence_length: ``--seq-length`` of this job: a stage with another context is a job of its own.
            attention: what says who may see whom: a ``mask``, or ``cu_seqlens`` for kernels of variable
                length (micro-batches of one); ``none``: neither. Default: the mask where the recipe keeps
                pieces apart, which ``none`` cannot (unless every row is one piece).
            dp_size, micro_batch: of this job; ``deal: balanced`` puts the samples of a step in the order that
                evens out its micro-batches and needs both, other recipes need neither.
            pools_root: where the pools are on this machine.

        Raises:
            RecipeError: no stage has such a context, the recipe's labels are not shifted, pieces would see
                each other against the recipe, or what it needs to deal rows evenly is missing.
        """
        place = State.from_bytes(state)
        contexts = {name: stage.context for name, stage in place.recipe.stages.items()}
        if sequence_length not in contexts.values():
            told = ", ".join(f"{name} {context}" for name, context in contexts.items())
            fix = "give --seq-length the context of the stage that this job trains (recipe flags says it)"
            raise _refused("--seq-length", sequence_length, f"the context of a stage: {told}", fix)
        if place.recipe.labels != "shifted":
            fix = "set labels: shifted: Megatron takes labels as they are"
            raise _refused("labels", place.recipe.labels, "shifted", fix)
        check_dealt(place.recipe, dp_size, micro_batch)
        self.sequence_length = sequence_length
        self._run: Path | None = None
        self._attention = attention_of(place.recipe, sequence_length, attention)
        self._state = state
        self._deal = (1 if dp_size is None else dp_size, micro_batch)
        self._pools_root = pools_root
        self._opened: tuple[int, RunStream] | None = None
        self._whole: tuple[int, RunStream] | None = None

    @classmethod
    def of_run(cls, path: str | Path, sequence_length: int, **options: Any) -> MegatronStream:
        """Of a run on a disk that all ranks see; nothing is written there.

        Raises:
            RecipeError: no run, or as :class:`MegatronStream`.
        """
        with open_run(path) as run:
            data = cls(run.state(), sequence_length, **options)
        data._run = Path(path)
        return data

    def __len__(self) -> int:
        """Sequences of the whole run: ``--train-samples``, over all its jobs."""
        stream = self.stream()
        return stream.curriculum.sequences_at(stream.num_steps)

    def __getitem__(self, sample: int) -> Item:
        """One sequence.

        ``tokens, labels, position_ids`` int64[context]; ``loss_mask`` float32[context], 0 where there is no
        label (``labels`` is 0 there), else 1, or the row's weight where a stage has an ``objective``: the sum
        of ``losses * loss_mask`` over that of ``loss_mask``, Megatron's loss, is then the weighted mean.
        With ``mask`` also ``attention_mask`` bool[1, context, context], true
        where a query may *not* see a key; with ``cu_seqlens`` what ``PackedSeqParams`` takes: ``cu_seqlens``
        and ``cu_seqlens_padded`` int32[segments + 1], ``max_seqlen`` int32[]. Under ``document_multiple`` the
        first counts true positions and the second says where segments lie; without it both are one, and
        padding is a segment of its own.

        Raises:
            RecipeError: it belongs to a stage with another context.
            IndexError: the run has no such sequence.
        """
        return self.__getitems__([sample])[0]

    def __getitems__(self, samples: Sequence[int]) -> list[Item]:
        """Some sequences, of each step all at once."""
        stream = self.stream()
        if any(not 0 <= sample < len(self) for sample in samples):
            raise IndexError(f"samples {min(samples)}..{max(samples)} are outside 0..{len(self) - 1}")
        items: list[Item] = []
        for step, some in groupby(samples, stream.curriculum.step_of_sequence):
            first = stream.curriculum.sequences_at(step)
            self._check(stream, step)
            at = stream if step >= stream.floor else self._earlier()
            try:
                order = at.order(step, *self._deal)
                batch = at.rows(step, [int(order[sample - first]) for sample in some])
            except ValueError as error:
                if at.end_step is None:
                    raise
                raise IndexError(f"the run ended before its planned samples: {error}") from error
            multiple = _multiple(stream, step)
            items += [self._item(batch, row, multiple) for row in range(len(batch["pool"]))]
        return items

    def first_sample(self) -> int:
        """The first sequence that has the job's context."""
        stretches = self.stream().curriculum.stretches
        return next(each.first_sequence for each in stretches if each.context == self.sequence_length)

    def consumed_steps(self, consumed_samples: int) -> int:
        """Steps that so many samples are: for ``run.checkpoint`` and ``open_run``.

        Raises:
            ValueError: they end inside a step.
        """
        curriculum = self.stream().curriculum
        if consumed_samples == len(self):
            return curriculum.num_steps
        step = curriculum.step_of_sequence(consumed_samples)
        if curriculum.sequences_at(step) != consumed_samples:
            raise ValueError(f"{consumed_samples} samples end inside step {step}")
        return step

    def _check(self, stream: RunStream, step: int) -> None:
        stretch = stream.curriculum.stretch(step)
        if stretch.context != self.sequence_length:
            stage = stream.curriculum.stages[stretch.stage].name
            expected = f"steps of a context of {self.sequence_length}"
            fix = f"start the job of stage {stage} with --seq-length {stretch.context} (see recipe flags)"
            raise _refused("sample", f"step {step}, of stage {stage}", expected, fix)

    def _item(self, batch: dict[str, Any], row: int, multiple: int) -> Item:
        labels = torch.from_numpy(batch["labels"][row])
        counted = labels != -100
        item = {
            "tokens": torch.from_numpy(batch["input_ids"][row]),
            "labels": labels.where(counted, 0),
            "loss_mask": counted.float() * float(batch[LOSS_WEIGHT][row] if LOSS_WEIGHT in batch else 1),
            "position_ids": torch.from_numpy(batch["position_ids"][row].astype(np.int64)),
        }
        segments = batch["segment_ids"][row]
        if self._attention == "mask":
            visible = np.tril(segments[:, None] == segments[None, :])
            item["attention_mask"] = torch.from_numpy(~visible[None])
        if self._attention == "cu_seqlens":
            item |= _lengths(segments[None], multiple)
        return item

    def stream(self) -> RunStream:
        """The stream of this process; a worker opens its own."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = (os.getpid(), stream_from(self._state, pools_root=self._pools_root))
        return self._opened[1]

    def _earlier(self) -> RunStream:
        """The stream with the turns before the state's: those that the run's folder has."""
        stream = self.stream()
        if self._run is not None and (self._whole is None or self._whole[0] != os.getpid()):
            self._whole = (os.getpid(), open_run(self._run).stream())
        return stream if self._whole is None else self._whole[1]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open streams."""
        return self.__dict__ | {"_opened": None, "_whole": None}


def _multiple(stream: RunStream, step: int) -> int:
    """Positions of which every document takes a multiple there."""
    stage = stream.curriculum.stages[stream.curriculum.stretch(step).stage].name
    return stream.recipe.stages[stage].packing.multiple(stream.recipe.parallel)


def _lengths(segment_ids: NDArray[np.int32], multiple: int) -> Item:
    """Where the segments of a row begin, counted in true positions and as they lie; the longest as it lies.

    Megatron makes as many rotary positions as the longest is said to have, and takes those of the padding
    that a row ends with from them, too.
    """
    if multiple == 1:
        ends, _ = segment_lengths(segment_ids)
        true = ends
    else:
        true, ends, _ = padded_segment_lengths(segment_ids, multiple)
    lengths = {"cu_seqlens": torch.from_numpy(true), "cu_seqlens_padded": torch.from_numpy(ends)}
    return lengths | {"max_seqlen": torch.tensor(np.diff(ends).max(), dtype=torch.int32)}


def _refused(where: str, given: object, expected: str, fix: str) -> RecipeError:
    return RecipeError.single("Megatron", where, given=given, expected=expected, fix=fix)
