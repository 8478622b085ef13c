"""A model that cannot fit is refused with the bytes it needs, before anything is made of it."""

from __future__ import annotations

import pytest

import recipe
from recipe.errors import RecipeError
from recipe.integrations.training.loop import check_trainer, train
from recipe.integrations.training.model import GPT, GPTConfig
from recipe.integrations.training.settings import Settings
from recipe.integrations.training.size import check_size, least_bytes, machine_memory, num_weights


@pytest.mark.parametrize(("layers", "heads", "width"), [(1, 2, 16), (3, 1, 10), (2, 4, 128)])
def test_weights_are_counted_as_torch_counts_them(layers, heads, width):
    told = Settings(layers=layers, heads=heads, width=width)
    model = GPT(GPTConfig(vocab_size=61, layers=layers, heads=heads, width=width))
    assert num_weights(told, 61) == sum(weight.numel() for weight in model.parameters())


def test_the_least_that_training_takes_by_hand():
    told = Settings(layers=1, heads=1, width=6, micro_batch=2)  # 510 weights with 10 ids
    assert least_bytes(told, 10, 32) == 16 * 510 + 4 * 2 * 32 * 10
    check_size(told, 10, 32, least_bytes(told, 10, 32))
    with pytest.raises(RecipeError, match="10,720 bytes"):
        check_size(told, 10, 32, least_bytes(told, 10, 32) - 1)


@pytest.mark.parametrize(
    "changes", [{"model": {"vocab_size": 10**10}}, {"trainer": {"width": 65536, "layers": 1024}}]
)
def test_a_model_too_large_is_refused_with_its_bytes_and_the_machines(build, changes):
    with pytest.raises(RecipeError, match=r"bytes to train") as caught:
        check_trainer(build(**changes))
    (found,) = caught.value.problems
    assert found.where == ("model.vocab_size" if "model" in changes else "trainer")
    assert f"{machine_memory():,} bytes of cpu" in found.expected


def test_a_run_of_it_takes_no_step(tmp_path, build):
    with recipe.start_run(build(model={"vocab_size": 10**10}), tmp_path / "run") as run:
        with pytest.raises(RecipeError, match="too large"):
            train(run)
        assert run.step == 0
