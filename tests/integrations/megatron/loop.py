"""What Megatron's training loop does with a data set, by Megatron-core's own parts, on a processor.

``pretrain_gpt.py`` and its sampler are no part of the package; the few lines here stand for them. Builder,
model, parallel groups, gradient buffers, micro-batch calculator and schedule are the real ones.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader

import recipe
from recipe.integrations.megatron.builder import RunDataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports warn of
    from megatron.core import num_microbatches_calculator as calculator
    from megatron.core import parallel_state
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig
    from megatron.core.distributed import (
        DistributedDataParallel,
        DistributedDataParallelConfig,
        finalize_model_grads,
    )
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.tensor_parallel.random import get_cuda_rng_tracker
    from megatron.core.transformer import TransformerConfig

EOS = 99
FLAGS = {"reset_position_ids": True, "reset_attention_mask": True, "eod_mask_loss": True}
"""As ``recipe flags`` prints them for documents that are kept apart."""


class Sampler:
    """Samples as MegatronPretrainingSampler deals them: of every global micro-batch each rank its own."""

    def __init__(self, consumed: int, stop: int, micro_batch: int, rank: int, size: int) -> None:
        self.given = (consumed, stop, micro_batch, rank, size)

    def __iter__(self) -> Iterator[list[int]]:
        consumed, stop, each, rank, size = self.given
        for first in range(consumed, stop - each * size + 1, each * size):
            yield list(range(first + rank * each, first + (rank + 1) * each))


class Tokenizer:
    """The least that GPTDatasetConfig asks for."""

    def __init__(self) -> None:
        self.unique_identifiers = {"class": "test"}
        self.vocab_size, self.eod, self.pad, self.bos, self.eos = 200, EOS, -1, 98, EOS


def built(
    samples: list[int | None], built_here: Callable[[], bool] = lambda: True, **changes: Any
) -> list[Any]:
    """Training, validation and test sets of Megatron's own builder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = GPTDatasetConfig(**{"random_seed": 1, "tokenizer": Tokenizer(), **FLAGS, **changes})
        return BlendedMegatronDatasetBuilder(RunDataset, samples, built_here, config).build()


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launch of the script."""

    run: Path
    saves: Path
    seq_length: int = 32
    train_samples: int = 64
    tp: int = 1
    micro_batch: int = 1
    dies_at: int = -1
    """The step after which the last rank is killed."""


class _OnProcessor(TorchFunctionMode):
    """What is made on a GPU is made here."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        return func(*args, **kwargs | ({"device": "cpu"} if str(kwargs.get("device")) == "cuda" else {}))


def train(rank: int, launch: Launch) -> dict[int, float]:
    """Losses by step, over all ranks, from the last save of these ranks to the end of the launch."""
    with warnings.catch_warnings(), _OnProcessor():
        warnings.simplefilter("ignore")  # what Megatron warns of on a processor
        torch.cuda.current_device = lambda: "cpu"
        get_cuda_rng_tracker().fork = lambda *_: nullcontext()  # of a dropout that is 0
        parallel_state.initialize_model_parallel(launch.tp, create_gloo_process_groups=False)
        size = parallel_state.get_data_parallel_world_size()
        calculator.init_num_microbatches_calculator(rank, None, 4, launch.micro_batch, size, False)
        return _Job(rank, launch).train()


class _Job:
    def __init__(self, rank: int, launch: Launch) -> None:
        torch.manual_seed(1)
        self.rank, self.launch = rank, launch
        options = {"use_cpu_initialization": True, "attention_dropout": 0.0, "hidden_dropout": 0.0}
        options |= {"masked_softmax_fusion": False, "bias_dropout_fusion": False}
        options |= {"gradient_accumulation_fusion": False, "calculate_per_token_loss": True}
        config = TransformerConfig(
            num_layers=1,
            hidden_size=16,
            num_attention_heads=2,
            tensor_model_parallel_size=launch.tp,
            **options,
        )
        model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=100, max_sequence_length=64)
        self.model = DistributedDataParallel(config, DistributedDataParallelConfig(), model)
        config.finalize_model_grads_func, config.no_sync_func = finalize_model_grads, self.model.no_sync
        self.file = launch.saves / f"tp{parallel_state.get_tensor_model_parallel_rank()}.pt"
        self.consumed = 0
        if self.file.exists():
            saved = torch.load(self.file)
            self.model.module.load_state_dict(saved["model"])
            self.consumed = saved["consumed"]

    def train(self) -> dict[int, float]:
        launch, losses = self.launch, dict[int, float]()
        reads = parallel_state.get_tensor_model_parallel_rank() == 0
        options = {"sequence_length": launch.seq_length, "blend": ([str(launch.run)], None), "split": "1,0,0"}
        data = built([launch.train_samples, 0, 0], lambda: reads, **options)[0]
        assert (data is not None) == reads
        batches = self._batches(data)
        while self.consumed < launch.train_samples:
            step = self.consumed // 4
            losses[step] = self._step(batches)
            self.consumed += calculator.get_current_running_global_batch_size()
            if step == launch.dies_at and self.rank == dist.get_world_size() - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if step % 4 == 3:
                self._save(data)
        return losses

    def _batches(self, data: Any) -> Iterator[dict[str, torch.Tensor]]:
        """Micro-batches of this rank; ranks of a tensor-parallel group get those of its first."""
        group = parallel_state.get_tensor_model_parallel_group()
        source = parallel_state.get_tensor_model_parallel_src_rank()
        ranks = (parallel_state.get_data_parallel_rank(), parallel_state.get_data_parallel_world_size())
        dealt = Sampler(self.consumed, self.launch.train_samples, self.launch.micro_batch, *ranks)
        loader = iter(() if data is None else DataLoader(data, batch_sampler=dealt))
        while True:
            given = [next(loader, None)]
            dist.broadcast_object_list(given, src=source, group=group)
            if given[0] is None:
                return
            yield given[0]

    def _step(self, batches: Iterator[dict[str, torch.Tensor]]) -> float:
        self.model.zero_grad_buffer()
        calculator.update_num_microbatches(self.consumed, True)
        reduced = get_forward_backward_func()(
            forward_step_func=_forward,
            data_iterator=[batches],
            model=[self.model],
            num_microbatches=calculator.get_num_microbatches(),
            seq_length=self.launch.seq_length,
            micro_batch_size=self.launch.micro_batch,
            forward_only=False,
        )
        with torch.no_grad():
            for weight in self.model.parameters():
                weight -= 0.1 * weight.main_grad
        total = torch.stack([told["loss"] for told in reduced]).sum(0)
        dist.all_reduce(total, group=parallel_state.get_data_parallel_group())
        return float(total[0] / total[1])

    def _save(self, data: Any) -> None:
        """The ranks that hold other weights save theirs; one of them says so."""
        if parallel_state.get_data_parallel_rank() == 0:
            state = {"model": self.model.module.state_dict(), "consumed": self.consumed}
            torch.save(state, self.file.with_suffix(".new"))
            self.file.with_suffix(".new").replace(self.file)
        dist.barrier()
        if self.rank == 0:
            step = data.dataset.consumed_steps(self.consumed)
            with recipe.open_run(self.launch.run) as run:
                run.checkpoint(step, str(self.launch.saves))


def _forward(batches: Iterator[dict[str, torch.Tensor]], model: Any) -> Any:
    batch = next(batches)
    arrays = (batch["tokens"], batch["position_ids"], batch["attention_mask"])
    return model(*arrays, labels=batch["labels"]), partial(_loss, batch["loss_mask"])


def _loss(mask: torch.Tensor, losses: torch.Tensor) -> Any:
    loss, labels = (losses * mask).sum(), mask.sum().int()
    return loss, labels, {"loss": torch.stack([loss.detach(), labels])}
