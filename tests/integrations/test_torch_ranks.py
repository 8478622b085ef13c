"""Which rows are a process's: never told by its global rank where ranks share a model."""

from __future__ import annotations

import warnings

import pytest
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from recipe.errors import RecipeError
from recipe.integrations.torch import Ranks, StreamDataset, ranks_from
from recipe.integrations.torch.ranks import check_ranks
from tests.integrations.conftest import started
from tests.integrations.ranks import on_ranks


def test_the_environment_alone_is_a_world_of_data_parallel_ranks():
    assert [ranks_from({"RANK": str(r), "WORLD_SIZE": "4"}) for r in range(4)] == [
        Ranks(r, 4) for r in range(4)
    ]


def test_ranks_that_share_a_model_share_rows():
    """Megatron's order: tensor fastest, then context, data, pipeline."""
    found = [ranks_from({"RANK": str(r), "WORLD_SIZE": "16"}, tp=2, pp=2, cp=2).dp_rank for r in range(16)]
    assert found == [0, 0, 0, 0, 1, 1, 1, 1] * 2


@pytest.mark.parametrize(
    ("environment", "sizes", "told"),
    [
        ({}, {}, ["RANK", "WORLD_SIZE", "torchrun"]),
        ({"RANK": "x", "WORLD_SIZE": "2"}, {}, ["RANK", "x"]),
        ({"RANK": "0", "WORLD_SIZE": "6"}, {"tp": 4}, ["world of 6", "tp 4"]),
        ({"RANK": "8", "WORLD_SIZE": "8"}, {"tp": 2}, ["rank 8"]),
        ({"RANK": "0", "WORLD_SIZE": "8"}, {"tp": 0}, ["tp", "at least 1"]),
    ],
)
def test_a_wrong_world_is_told(environment, sizes, told):
    with pytest.raises(RecipeError) as caught:
        ranks_from(environment, **sizes)
    assert all(text in str(caught.value) for text in told)


def test_the_global_rank_is_refused_where_ranks_share_rows():
    with pytest.raises(RecipeError, match="not the global one"):
        check_ranks(Ranks(5, 8), world_size=8, tp=2)
    assert check_ranks(Ranks(2, 4), world_size=8, tp=2) == Ranks(2, 4)


def _of_meshes(rank: int) -> list[Ranks]:
    plain = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    sharded = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_replicate", "dp_shard"))
    model = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "tp"))
    return [ranks_from(plain), ranks_from(sharded), ranks_from(model), ranks_from()]


def test_a_device_mesh_says_which_of_its_dimensions_get_other_rows():
    found = on_ranks(_of_meshes, 4)
    assert [each[0] for each in found] == [Ranks(0, 2), Ranks(0, 2), Ranks(1, 2), Ranks(1, 2)]
    assert [each[1] for each in found] == [Ranks(rank, 4) for rank in range(4)]
    assert [each[2] for each in found] == [Ranks(0, 1)] * 4
    assert [each[3] for each in found] == [Ranks(rank, 4) for rank in range(4)]


def _of_unknown(rank: int) -> str:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("elephants",))
    assert ranks_from(mesh, data=("elephants",)) == Ranks(rank, 2)
    with pytest.raises(RecipeError) as caught:
        ranks_from(mesh)
    return str(caught.value)


def test_a_dimension_that_nobody_knows_is_asked_about():
    assert all("elephants" in said and "data=" in said for said in on_ranks(_of_unknown, 2))


def _of_megatron(rank: int) -> Ranks:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of what Megatron imports of it
        from megatron.core import parallel_state

    parallel_state.initialize_model_parallel(tensor_model_parallel_size=2, create_gloo_process_groups=False)
    try:
        return ranks_from(parallel_state)
    finally:
        parallel_state.destroy_model_parallel()


def test_megatron_says_it_itself():
    assert on_ranks(_of_megatron, 4) == [Ranks(0, 2), Ranks(0, 2), Ranks(1, 2), Ranks(1, 2)]


def _of_a_folded_mesh(rank: int) -> list[str]:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("fsdp",))
    assert ranks_from(mesh) == Ranks(rank, 2)
    said = []
    both = init_device_mesh("cpu", (1, 2), mesh_dim_names=("fsdp", "dp_shard"))
    for given, sizes in ((mesh, {"cp": 2}), (both, {})):
        with pytest.raises(RecipeError) as caught:
            ranks_from(given, **sizes)
        said.append(str(caught.value))
    return said


def test_a_dimension_that_hides_ranks_which_share_rows_is_asked_about():
    for folded, overlapping in on_ranks(_of_a_folded_mesh, 2):
        assert "a dimension of its own for cp" in folded and "overlap" in overlapping


def _of_the_recipe(rank: int, state: bytes) -> str:
    StreamDataset(state, dp_rank=rank // 2, dp_size=2)
    with pytest.raises(RecipeError) as caught:
        StreamDataset(state, dp_rank=rank, dp_size=4)
    return str(caught.value)


def test_the_global_rank_is_refused_where_the_recipe_says_that_ranks_share_rows(tmp_path):
    state = started(tmp_path, parallel={"tp": 2})
    assert all("not the global one" in said for said in on_ranks(_of_the_recipe, 4, state))


def _world(rank: int) -> int:
    return dist.get_world_size()


def test_ranks_of_these_tests_are_processes():
    assert on_ranks(_world, 2) == [2, 2]
