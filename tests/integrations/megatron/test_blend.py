"""A blend that becomes a recipe, and the lines that take the place of Megatron's provider."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from recipe.integrations.megatron import MegatronStream
from recipe.run.state import stream_from
from tests.integrations.conftest import started

SIX_LINES = textwrap.dedent(inspect.getdoc(MegatronStream).partition("::\n\n")[2].partition("\nWith ")[0])


def test_six_lines_take_the_place_of_a_blend(tmp_path, monkeypatch):
    """--data-path 0.6 a 0.4 b: the samples are the rows of the recipe, in these shares within a context."""
    monkeypatch.chdir(tmp_path)
    dice = np.random.default_rng(0)
    for name in "ab":
        documents = [dice.integers(0, 98, size=n) for n in dice.integers(5, 60, size=200)]
        path = Path(recipe.write_pool(f"made/{name}", documents, vocab_size=100, eos=99).path)
        for suffix in (".bin", ".idx"):
            next(path.glob(f"*{suffix}")).rename(f"{name}{suffix}")
    Path("blend.txt").write_text("--data-path 0.6 a 0.4 b")
    sizes = ["--seq-length", "32", "--global-batch-size", "4", "--train-samples", "96", "--eod", "99"]
    assert main(["new", "--megatron-blend", "blend.txt", *sizes, "--out", "my.yaml"]) == 0
    with recipe.start_run(recipe.load_recipe("my.yaml"), "runs/base") as run:
        stream = stream_from(run.state())

    script = {"get_args": lambda: SimpleNamespace(seq_length=32)}
    assert len([line for line in SIX_LINES.splitlines() if line.strip()]) <= 6
    exec(SIX_LINES, script)
    provider = script["train_valid_test_datasets_provider"]
    train, valid, test = provider([96, 0, 0])
    assert provider.is_distributed and (valid, test) == (None, None) and len(train) == 96
    body = {0: 0, 1: 0}
    for step in range(24):
        batch = stream.batch(step)
        items = train.__getitems__([4 * step + row for row in range(4)])
        assert [item["tokens"].tolist() for item in items] == batch["input_ids"].tolist()
        for pool, tokens in zip(batch["pool"].tolist(), batch["input_ids"], strict=True):
            body[pool] += int((tokens != 99).sum())
    total = sum(body.values())
    assert abs(body[0] - 0.6 * total) <= 32


def test_C05_a_pool_that_is_gone_is_no_smaller_blend(tmp_path):
    state = started(tmp_path)
    for file in (tmp_path / "pools" / "b").glob("*"):
        file.unlink()
    with pytest.raises(recipe.RecipeError, match="b"):
        MegatronStream(state, 32)[0]


def test_a_state_of_a_later_step_gives_the_samples_before_it_too(tmp_path):
    """Megatron may go back to an older checkpoint of its own: the numbers of samples say all."""
    state = started(tmp_path)
    expected = [item["tokens"].tolist() for item in MegatronStream(state, 32).__getitems__(list(range(12)))]
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(8)
    later = MegatronStream.of_run(tmp_path / "run", 32)
    assert [item["tokens"].tolist() for item in later.__getitems__(list(range(12)))] == expected
