"""The state inside the trainer's checkpoint: small, whole, and enough."""

from __future__ import annotations

import builtins
import random
import shutil
from pathlib import Path

import pytest

import recipe
from recipe import RecipeError
from recipe.config import recipe_from_plain
from recipe.mixing.snapshot import Cursor, Cut, PoolState, Snapshot
from recipe.run.holdings import Holding
from recipe.run.manifest import manifest_path
from recipe.run.state import State, step_of
from recipe.run.turns import TurnAt
from tests.run.conftest import Build, served


def big_state(num_pools: int, num_stages: int) -> State:
    """A state with incompressible names, weights and counters."""
    rng = random.Random(0)
    names = [f"pool_{rng.getrandbits(40):x}" for _ in range(num_pools)]
    pools = {
        name: {"path": f"/shared/tokens/{name}/v{rng.getrandbits(16)}", "block_units": 4096} for name in names
    }
    stages = {
        f"stage_{k}": {
            "tokens": rng.randrange(10**12),
            "context": 4096,
            "batch": {"sequences": 1024},
            "chunk": 10**9,
            "weights": {name: rng.randrange(1, 10**6) for name in names},
        }
        for k in range(num_stages)
    }
    states = tuple(
        PoolState(
            cursor=Cursor(
                epoch=3,
                block=rng.randrange(999),
                stage=num_stages - 1,
                sequence=rng.randrange(9999),
                cuts=(Cut(0, 77),),
            ),
            debt=rng.randrange(-(10**12), 10**12),
            dropped={"tail": rng.randrange(10**9)},
            **dict.fromkeys(("owed", "spent"), rng.randrange(10**11)),
            **{kind: rng.randrange(10**11) for kind in ("body", "special", "labels", "sequences")},
        )
        for _ in names
    )
    return State(
        run="run",
        version=1,
        recipe=recipe_from_plain({"seed": 1, "pools": pools, "stages": stages}, source="test"),
        holdings={
            name: Holding(path=pool["path"], fingerprint=f"{rng.getrandbits(256):064x}")
            for name, pool in pools.items()
        },
        turn=TurnAt(row=123_456, offset=10**9, step=10**6, mark=f"{rng.getrandbits(256):064x}"),
        snapshot=Snapshot(step=10**6, pools=states),
    )


@pytest.mark.parametrize(("num_pools", "num_stages"), [(2, 1), (10, 3), (100, 10)])
def test_the_state_is_small(num_pools: int, num_stages: int):
    size = len(big_state(num_pools, num_stages).to_bytes())
    assert size <= 4096 + 250 * num_pools + 16 * num_pools * num_stages


def test_the_state_comes_back_as_it_was():
    state = big_state(5, 2)
    assert State.from_bytes(state.to_bytes()) == state
    assert step_of(state.to_bytes()) == 10**6


@pytest.mark.parametrize(
    "data", [b"", b"recipe state", b"recipe state 1 abc\n", b"recipe state 9 abc\n", b"\x80\x04."]
)
def test_what_is_no_state_is_refused(data: bytes):
    with pytest.raises(RecipeError, match="the state cannot be read"):
        recipe.stream_from(data)


def test_any_flipped_byte_is_found():
    data = big_state(2, 1).to_bytes()
    for at in range(0, len(data), 7):
        with pytest.raises(RecipeError):
            State.from_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])


def test_other_ranks_open_no_file_of_the_run_and_write_nothing(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with recipe.start_run(build(), tmp_path / "run") as run:
        truth, state = served(run.stream(), 4), run.state(4)
    shutil.rmtree(tmp_path / "run")
    opened: list[str] = []
    real = builtins.open
    monkeypatch.setattr(
        builtins, "open", lambda file, *a, **k: (opened.append(str(file)), real(file, *a, **k))[1]
    )
    assert served(recipe.stream_from(state), 4) == truth
    assert not [path for path in opened if str(tmp_path) in path]
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_alone_resumes_on_a_machine_that_has_the_pools(
    build: Build, tmp_path: Path, pools_root: Path
):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(5)
        truth = served(run.stream(), 5)
    manifest = shutil.copy(manifest_path(tmp_path / "run", 1), tmp_path / "sent.yaml")
    shutil.rmtree(tmp_path / "run")
    shutil.copytree(pools_root, tmp_path / "elsewhere")
    stream = recipe.stream_from(manifest, pools_root=tmp_path / "elsewhere")
    assert stream.step == 5
    assert served(stream, stream.step) == truth


def test_pools_are_found_below_another_root(build: Build, tmp_path: Path, pools_root: Path):
    absolute = {name: {"path": str(pools_root / name)} for name in "abc"}
    with recipe.start_run(build(pools=absolute, pools_root=None), tmp_path / "run") as run:
        state, truth = run.state(0), served(run.stream(), 0, 3)
    shutil.copytree(pools_root, tmp_path / "copy")
    assert served(recipe.stream_from(state, tmp_path / "copy"), 0, 3) == truth
    with recipe.open_run(tmp_path / "run", pools_root=tmp_path / "copy") as run:
        assert served(run.stream(), 0, 3) == truth
    with pytest.raises(RecipeError, match=r"pools\.a"):
        recipe.stream_from(state, tmp_path / "nowhere")


def test_a_relative_root_is_kept_from_the_folder_the_run_was_started_in(
    build: Build, tmp_path: Path, pools_root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(pools_root.parent)
    with recipe.start_run(build(pools_root=pools_root.name), tmp_path / "run") as run:
        truth = served(run.stream(), 0, 2)
    monkeypatch.chdir(tmp_path)
    with recipe.open_run("run") as run:
        assert served(run.stream(), 0, 2) == truth
