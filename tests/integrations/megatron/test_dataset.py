"""The run as samples for Megatron: its conventions, and how its sampler deals them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import recipe
from recipe.errors import RecipeError
from recipe.integrations.megatron import MegatronStream
from recipe.integrations.torch import StreamDataset
from recipe.run.state import stream_from
from tests.integrations.conftest import PLAIN, started
from tests.integrations.megatron.loop import Sampler
from tests.integrations.ranks import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def test_a_sample_is_a_sequence_of_the_run(state):
    stream = stream_from(state)
    data = MegatronStream(state, 32)
    assert len(data) == 24 * 4
    for sample in (0, 1, 6, 63):
        batch, item = stream.batch(sample // 4), data[sample]
        row = sample % 4
        assert item["tokens"].tolist() == batch["input_ids"][row].tolist()
        assert item["position_ids"].tolist() == batch["position_ids"][row].tolist()
        counted = item["loss_mask"] > 0
        assert item["labels"][counted].tolist() == [
            label for label in batch["labels"][row].tolist() if label != -100
        ]
        assert item["labels"][~counted].eq(0).all()


@pytest.mark.parametrize(("size", "each"), [(1, 4), (2, 2), (2, 1), (4, 1)])
def test_megatrons_sampler_gives_a_rank_what_the_stream_deals_it(state, size, each):
    for rank in range(size):
        data = MegatronStream(state, 32)
        loader = DataLoader(data, batch_sampler=Sampler(0, 64, each, rank, size))
        tokens = torch.cat([batch["tokens"] for batch in loader])
        dealt = StreamDataset(state, dp_rank=rank, dp_size=size, micro_batch=each)
        assert torch.equal(tokens, torch.cat([dealt[step]["input_ids"] for step in range(16)]))


def test_balanced_micro_batches_are_megatrons_too(tmp_path):
    state = started(tmp_path, deal="balanced", every_stage={"packing": {"method": "best_fit"}})
    assert any(stream_from(state).order(step, 2, 2).tolist() != [0, 1, 2, 3] for step in range(16))
    for rank in range(2):
        data = MegatronStream(state, 32, dp_size=2, micro_batch=2)
        tokens = [batch["tokens"] for batch in DataLoader(data, batch_sampler=Sampler(0, 64, 2, rank, 2))]
        dealt = StreamDataset(state, dp_rank=rank, dp_size=2, micro_batch=2)
        assert torch.equal(torch.cat(tokens), torch.cat([dealt[step]["input_ids"] for step in range(16)]))


def test_who_may_see_whom_is_said_in_either_way(state):
    masked, cut = (
        MegatronStream(state, 64, attention="mask"),
        MegatronStream(state, 64, attention="cu_seqlens"),
    )
    segments = stream_from(state).batch(20)["segment_ids"][1]
    mask, ends = masked[81]["attention_mask"][0], cut[81]["cu_seqlens"].tolist()
    for query in range(64):
        seen = [key for key in range(64) if not mask[query, key]]
        assert seen == [key for key in range(query + 1) if segments[key] == segments[query]]
        start = max(end for end in ends if end <= query)
        assert seen == list(range(start, query + 1))


JOINED = {"packing": {"attention": "sequence", "positions": "continue", "cross_labels": True}}


def test_without_being_asked_samples_keep_apart_what_the_recipe_keeps_apart(state, tmp_path):
    """The default follows the recipe: a mask for its pieces, none where rows are whole."""
    data, asked = MegatronStream(state, 32), MegatronStream(state, 32, attention="mask")
    assert all(torch.equal(data[k]["attention_mask"], asked[k]["attention_mask"]) for k in range(8))
    whole = MegatronStream(started(tmp_path / "joined", every_stage=JOINED), 32)
    assert "attention_mask" not in whole[0]


@pytest.mark.parametrize("context", [32, 64])
def test_pieces_that_would_see_each_other_are_refused(tmp_path, context):
    """In the stages of the job, whatever others do; also where a stage keeps them apart and one does not."""
    stages = PLAIN["stages"] | {"short": PLAIN["stages"]["short"] | JOINED}
    for name, told in (("apart", {}), ("partly", {"stages": stages})):
        state = started(tmp_path / name, **told)
        if name == "partly" and context == 32:
            assert "attention_mask" not in MegatronStream(state, 32, attention="none")[0]
            continue
        with pytest.raises(RecipeError, match=r"mask or cu_seqlens[\s\S]*attention: piece"):
            MegatronStream(state, context, attention="none")


@pytest.mark.parametrize("every_stage", [JOINED, {"packing": "none"}], ids=["whole rows", "a piece a row"])
def test_no_mask_is_taken_where_nothing_would_be_seen(tmp_path, every_stage):
    state = started(tmp_path, every_stage=every_stage)
    assert "attention_mask" not in MegatronStream(state, 32, attention="none")[0]


@pytest.mark.parametrize("told", [{}, {"dp_size": 2}, {"micro_batch": 2}])
def test_rows_dealt_evenly_need_the_sizes_of_the_job(tmp_path, told):
    state = started(tmp_path, deal="balanced")
    with pytest.raises(RecipeError, match="deal: balanced"):
        MegatronStream(state, 32, **told)


def test_a_job_is_one_stages(state):
    with pytest.raises(RecipeError, match="--seq-length 64"):
        MegatronStream(state, 32)[64]
    with pytest.raises(RecipeError, match="short 32, long 64"):
        MegatronStream(state, 48)
    with pytest.raises(IndexError):
        MegatronStream(state, 32)[96]


def test_consumed_samples_are_steps(state):
    data = MegatronStream(state, 32)
    assert [data.consumed_steps(samples) for samples in (0, 4, 64, 96)] == [0, 1, 16, 24]
    with pytest.raises(ValueError, match="inside step 1"):
        data.consumed_steps(5)


def test_labels_as_inputs_are_refused(tmp_path):
    with pytest.raises(RecipeError, match="labels: shifted"):
        MegatronStream(started(tmp_path, labels="inputs"), 32)


def _in_the_provider(rank: int, path: str) -> list[Any]:
    def provider(num_samples: Any, vp_stage: int | None = None) -> tuple[Any, None, None]:
        return MegatronStream.of_run(path, 32), None, None

    train, _, _ = provider(None)
    loader = DataLoader(train, batch_sampler=Sampler(0, 64, 2, rank, 2))
    return [batch["tokens"].tolist() for batch in loader]


def test_X01_six_lines_in_place_of_a_blend_give_every_rank_its_rows(state, tmp_path):
    before = sorted((tmp_path / "run").rglob("*"))
    ranks = on_ranks(_in_the_provider, 2, str(tmp_path / "run"))
    assert sorted((tmp_path / "run").rglob("*")) == before, "ranks write nothing"
    stream = stream_from(state)
    for step in range(16):
        rows = stream.batch(step)["input_ids"].tolist()
        assert [*ranks[0][step], *ranks[1][step]] == rows


def test_a_misspelt_attention_is_refused(state):
    with pytest.raises(RecipeError, match="none, mask, cu_seqlens"):
        MegatronStream(state, 32, attention="Mask")


def test_samples_before_an_amendment_come_from_the_runs_folder(state, tmp_path):
    before = [MegatronStream(state, 32)[sample]["tokens"].tolist() for sample in (0, 39, 40)]
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(10)
        run.amend(["stages.short.quotas.b=50%"], from_pool="a", reason="more b")
    data = MegatronStream.of_run(tmp_path / "run", 32)
    assert [data[sample]["tokens"].tolist() for sample in (0, 39)] == before[:2]
    with recipe.open_run(tmp_path / "run") as run:
        assert data[40]["tokens"].tolist() == run.stream().batch(10)["input_ids"][0].tolist()


def test_samples_after_a_pool_ran_dry_are_not_there(ending):
    data = MegatronStream(ending, 32)
    last = len(data) - 1
    with pytest.raises((IndexError, RecipeError)):
        data[last]


def test_the_loss_mask_holds_the_weights_of_an_objective(tmp_path):
    """Half and half, counted 4:1: the mask is 8/5 and 2/5 where there is a label."""
    short = {"quotas": {"a": "50%", "b": "50%"}, "objective": {"a": "80%", "b": "20%"}}
    stages = PLAIN["stages"] | {"short": PLAIN["stages"]["short"] | short}
    state = started(tmp_path, stages=stages)
    data, batch = MegatronStream(state, 32), stream_from(state).batch(3)
    for row in range(4):
        weight = (1.6, 0.4)[batch["pool"][row]]
        expected = torch.from_numpy(batch["labels"][row] != -100) * torch.tensor(weight)
        assert torch.equal(data[12 + row]["loss_mask"], expected)
    assert set(batch["pool"].tolist()) == {0, 1}
