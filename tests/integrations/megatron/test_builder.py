"""A run in Megatron's own builder and loop: data-parallel and tensor-parallel ranks, killed and resumed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recipe
from recipe.errors import RecipeError
from recipe.integrations.megatron import MegatronStream
from recipe.integrations.torch import StreamDataset
from tests.integrations.conftest import started
from tests.integrations.megatron.loop import Launch, Sampler, built, train
from tests.integrations.ranks import on_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from megatron.core.datasets.gpt_dataset import GPTDataset


def begun(folder: Path) -> Launch:
    started(folder)
    (folder / "saves").mkdir()
    return Launch(run=folder / "run", saves=folder / "saves")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Launch, dict[int, float]]:
    """Two data-parallel ranks, micro-batches of one: sixteen steps without a break."""
    launch = begun(tmp_path_factory.mktemp("whole"))
    return launch, on_ranks(train, 2, launch)[0]


def test_R01_killed_and_resumed_by_consumed_samples_the_losses_are_the_same(tmp_path, whole):
    launch = begun(tmp_path)
    with pytest.raises(AssertionError):
        on_ranks(train, 2, replace(launch, dies_at=6))
    losses = on_ranks(train, 2, launch)
    assert losses[0] == {step: whole[1][step] for step in range(4, 16)} == losses[1]


def test_checkpoints_are_on_record(whole):
    path = whole[0].run
    assert [told.step for told in recipe.run_manifests(path)] == [4, 8, 12, 16]
    assert recipe.audit_run(path, pools_root=path.parent).findings == ()


@pytest.mark.parametrize(
    ("ranks", "options"), [(1, {"micro_batch": 2}), (2, {"tp": 2}), (2, {"micro_batch": 2})]
)
def test_other_ranks_and_micro_batches_learn_from_the_same_batches(tmp_path, whole, ranks, options):
    """To rounding; of tensor-parallel ranks only the first of a group builds a data set."""
    losses = on_ranks(train, ranks, replace(begun(tmp_path), **options))[0]
    assert losses == pytest.approx(whole[1], rel=1e-4)


def test_the_next_stage_is_a_launch_from_the_weights_of_the_last(whole):
    losses = on_ranks(train, 2, replace(whole[0], seq_length=64, train_samples=96))[0]
    assert sorted(losses) == list(range(16, 24))
    assert recipe.run_status(whole[0].run).complete


def test_a_run_and_held_out_text_are_built_at_once(tmp_path):
    """--train-data-path RUN --valid-data-path PREFIX: the run's sequences, and GPTDataset's own samples."""
    launch = begun(tmp_path)
    held = recipe.write_pool(tmp_path / "held", [np.arange(50) + k for k in range(9)], vocab_size=100, eos=99)
    prefix = str(next(Path(held.path).glob("*.bin")).with_suffix(""))
    blends = [([str(launch.run)], None), ([prefix], None), None]
    options = {"sequence_length": 32, "path_to_cache": str(tmp_path / "cache")}
    train_set, valid, test = built([64, 8, 0], blend_per_split=blends, **options)
    assert test is None and len(train_set) == 96 and isinstance(train_set.dataset, MegatronStream)
    direct = MegatronStream.of_run(launch.run, 32, attention="mask")
    assert all(same(train_set[sample], direct[sample]) for sample in (0, 33, 63))
    assert same(train_set.__getitems__([5])[0], direct[5])
    theirs = GPTDataset(valid.dataset, prefix, valid.indices, 8, valid.index_split, valid.config)
    assert len(valid) == len(theirs)
    assert all(same(valid[sample], theirs[sample]) for sample in range(8))
    assert not (launch.run / "cache").exists() and recipe.run_status(launch.run).step == 0


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def run_alone(folder: Path, **changes: Any) -> Any:
    options = {"sequence_length": 32, "blend": ([str(folder)], None), "split": "1,0,0"}
    return built([64, 0, 0], **options | changes)[0]


def test_a_loader_without_masks_tells_documents_apart_by_lengths(tmp_path):
    run = begun(tmp_path).run
    item = run_alone(run, create_attention_mask=False)[3]
    assert same(item, MegatronStream.of_run(run, 32, attention="cu_seqlens")[3]) and "cu_seqlens" in item
    rows = {"packing": {"attention": "sequence", "positions": "continue", "cross_labels": True}}
    started(tmp_path / "joined", every_stage=rows)
    flags = {"reset_position_ids": False, "reset_attention_mask": False, "eod_mask_loss": False}
    item = run_alone(tmp_path / "joined/run", create_attention_mask=False, **flags)[3]
    assert item.keys() == {"tokens", "labels", "loss_mask", "position_ids"}


def test_a_sample_that_fills_up_a_batch_has_no_label(tmp_path):
    data = run_alone(begun(tmp_path).run, sequence_length=64)
    filling = data[None]
    assert filling["tokens"].shape == (64,) and not filling["loss_mask"].any()
    assert data[64]["loss_mask"].any()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"reset_position_ids": False, "eod_mask_loss": False}, "--reset-position-ids.*--eod-mask-loss"),
        ({"reset_attention_mask": False}, "--reset-attention-mask"),
        ({"split": "9,1,0"}, "--split"),
        ({"sequence_length": 48}, "short 32, long 64"),
    ],
)
def test_a_launch_that_is_not_the_recipes_is_refused(tmp_path, changes, told):
    with pytest.raises(RecipeError, match=f"(?s){told}"):
        run_alone(begun(tmp_path).run, **changes)


def test_a_run_is_no_part_of_a_blend_and_has_no_more_samples_than_its_own(tmp_path):
    path = str(begun(tmp_path).run)
    options = {"sequence_length": 32, "split": "1,0,0"}
    with pytest.raises(RecipeError, match="2 prefixes"):
        built([64, 0, 0], blend=([path, path], [1.0, 1.0]), **options)
    with pytest.raises(RecipeError, match=r"(?s)--train-samples.*at most 96"):
        built([97, 0, 0], blend=([path], None), **options)


def _balanced(rank: int, run: Path) -> list[Any]:
    from tests.integrations.megatron import loop

    loop.parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
    loop.calculator.init_num_microbatches_calculator(rank, None, 4, 1, 2, False)
    data = run_alone(run)
    return [data[sample]["tokens"].tolist() for dealt in Sampler(0, 64, 1, rank, 2) for sample in dealt]


def test_balanced_micro_batches_follow_megatrons_own_sizes(tmp_path):
    state = started(tmp_path, deal="balanced", every_stage={"packing": {"method": "best_fit"}})
    ranks = on_ranks(_balanced, 2, tmp_path / "run")
    for rank in range(2):
        dealt = StreamDataset(state, dp_rank=rank, dp_size=2, micro_batch=1)
        rows = [row for step in range(16) for row in dealt[step]["input_ids"].tolist()]
        assert ranks[rank] == rows
