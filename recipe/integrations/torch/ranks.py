"""Which data-parallel rank this process is: from a device mesh, from Megatron, or from the environment.

Ranks that differ only along tensor, pipeline or context parallelism work on the same rows. Dealing by the
global rank would hand each of them other rows, and nothing would fail: the model would just learn nonsense.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recipe.errors import Problem, RecipeError

DATA_DIMENSIONS = (
    "dp",
    "data",
    "dp_replicate",
    "dp_shard",
    "fsdp",
    "ddp",
    "data_parallel",
    "replicate",
    "shard",
)
"""Names of mesh dimensions along which ranks get other rows."""
MODEL_DIMENSIONS = ("tp", "pp", "cp", "tensor", "pipeline", "context", "tensor_parallel", "sp", "model")
"""Names of mesh dimensions along which ranks share rows; expert parallelism is a view of the others."""


class Ranks(NamedTuple):
    """What the datasets ask for: ``StreamDataset(state, **ranks._asdict())``."""

    dp_rank: int
    dp_size: int


def ranks_from(
    source: Any = None, *, tp: int = 1, pp: int = 1, cp: int = 1, data: Sequence[str] = DATA_DIMENSIONS
) -> Ranks:
    """This process's place among the data-parallel ones.

    Args:
        source: a torch ``DeviceMesh`` with named dimensions; Megatron's ``parallel_state`` module once it is
            initialised; or environment variables (default: those of this process, ``RANK`` and
            ``WORLD_SIZE`` as torchrun and Slurm launchers set them).
        tp: tensor-parallel size, for the environment; ranks lie as in Megatron: tp fastest, then cp, dp, pp.
        pp: pipeline-parallel size.
        cp: context-parallel size: its ranks share rows, and each takes its part of every row.
        data: names of the mesh dimensions along which ranks get other rows.

    Raises:
        RecipeError: a mesh dimension that is neither data nor model parallel, sizes that do not fit the
            world, variables that are missing or no numbers.

    >>> ranks_from({"RANK": "6", "WORLD_SIZE": "8"}, tp=2)
    Ranks(dp_rank=3, dp_size=4)
    """
    if hasattr(source, "get_data_parallel_rank"):
        return _of_megatron(source)
    if hasattr(source, "mesh_dim_names"):
        return _of_mesh(source, tuple(data), {"tp": tp, "pp": pp, "cp": cp})
    return _of_world(os.environ if source is None else source, {"tp": tp, "pp": pp, "cp": cp})


def check_ranks(ranks: Ranks, *, world_size: int, tp: int = 1, pp: int = 1, cp: int = 1) -> Ranks:
    """The same ranks, if they can be data-parallel ones in such a world.

    Raises:
        RecipeError: world size and sizes do not give that many data-parallel ranks: most often the global
            rank was given.
    """
    shared = tp * pp * cp
    if ranks.dp_size * shared != world_size or not 0 <= ranks.dp_rank < ranks.dp_size:
        layout = f"tp {tp} x pp {pp} x cp {cp}"
        fits = f"dp_size {world_size // shared}" if world_size % shared == 0 else "sizes whose product it is"
        raise RecipeError.single(
            "data-parallel ranks",
            "dp_rank, dp_size",
            given=f"{ranks.dp_rank}, {ranks.dp_size} in a world of {world_size} with {layout}",
            expected=fits,
            fix="give the data-parallel rank, not the global one: ranks that share a model's parts read "
            "the same rows (ranks_from finds it)",
        )
    return ranks


def _of_megatron(parallel_state: Any) -> Ranks:
    """Megatron's own answer: ranks of one context-parallel group share rows."""
    rank = int(parallel_state.get_data_parallel_rank(with_context_parallel=False))
    return Ranks(rank, int(parallel_state.get_data_parallel_world_size(with_context_parallel=False)))


def _of_mesh(mesh: Any, data: tuple[str, ...], sizes: Mapping[str, int]) -> Ranks:
    names, shape, here = mesh.mesh_dim_names, tuple(mesh.mesh.shape), mesh.get_coordinate()
    if not names:
        raise _refused(
            "the mesh's dimensions have no names", "names such as ('dp', 'tp')", "give mesh_dim_names"
        )
    unknown = [name for name in names if name not in data and name not in MODEL_DIMENSIONS]
    if unknown:
        raise _refused(
            f"mesh dimensions {', '.join(unknown)} of {names}",
            f"of data parallelism ({', '.join(data)}) or of the model's ({', '.join(MODEL_DIMENSIONS)})",
            "say which dimensions get other rows: ranks_from(mesh, data=('…',))",
        )
    if here is None:
        raise _refused(
            "a process outside the mesh", "one of its ranks", "build the dataset inside the mesh only"
        )
    if data == DATA_DIMENSIONS and (folded := _folded(names, sizes)):
        fix = "say which dimensions get other rows: ranks_from(mesh, data=('dp_replicate', 'dp_shard'))"
        raise _refused(f"mesh dimensions {names}", folded, fix)
    rank = size = 0
    for name, length, index in zip(names, shape, here, strict=True):
        if name in data:
            rank, size = rank * length + index, (size or 1) * length
    return Ranks(rank, size or 1)


def _folded(names: Sequence[str], sizes: Mapping[str, int]) -> str:
    """What a mesh should be where ranks that share rows lie inside a dimension of data, or nothing."""
    if "fsdp" in names and {"dp_shard", "dp", "cp"} & {*names}:
        return "dimensions that do not overlap: fsdp holds dp_shard, and cp where there is one"
    hidden = [name for name, size in sizes.items() if size > 1 and name not in names]
    return f"a dimension of its own for {', '.join(hidden)}: its ranks share rows" if hidden else ""


def _of_world(environment: Mapping[str, str], sizes: Mapping[str, int]) -> Ranks:
    problems, found = list[Problem](), dict[str, int]()
    for name in ("RANK", "WORLD_SIZE"):
        text = environment.get(name, "nothing")
        if text.isascii() and text.isdigit():
            found[name] = int(text)
        else:
            fix = "start with torchrun or set it; one process alone needs no ranks"
            problems.append(Problem(name, text, "a whole number in the environment", fix))
    for name, size in sizes.items():
        if size < 1:
            problems.append(Problem(name, str(size), "at least 1", f"leave {name} out where there is none"))
    if problems:
        raise RecipeError("data-parallel ranks", problems)
    rank, world = found["RANK"], found["WORLD_SIZE"]
    tp, pp, cp = sizes["tp"], sizes["pp"], sizes["cp"]
    size, rest = divmod(world, tp * pp * cp)
    if rest or not 0 <= rank < world:
        given = f"rank {rank} of a world of {world} with tp {tp}, pp {pp}, cp {cp}"
        raise _refused(given, f"a world that {tp * pp * cp} divides, and a rank in it", "correct the sizes")
    return Ranks(rank // (tp * cp) % size, size)


def _refused(given: str, expected: str, fix: str) -> RecipeError:
    return RecipeError.single("data-parallel ranks", "ranks", given=given, expected=expected, fix=fix)
