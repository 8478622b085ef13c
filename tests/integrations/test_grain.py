"""The stream under the real Grain: same items with any workers, exact iterator states, and into JAX."""

from __future__ import annotations

import grain
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl import flags

from recipe.errors import RecipeError
from recipe.integrations.grain import StreamSource
from recipe.run.state import stream_from
from tests.integrations.conftest import PLAIN, equal, started

flags.FLAGS.mark_as_parsed()  # as absl.app.run does in a program: Grain's workers read them


def steps_from(source: StreamSource, workers: int):
    """Steps from where the source stands, in order."""
    reading = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    steps = grain.MapDataset.source(source)[source.step :].to_iter_dataset(reading)
    return steps.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else steps


def test_an_item_is_the_rows_of_a_process_in_32_bits(state):
    source = StreamSource(state, dp_rank=1, dp_size=2)
    stream = stream_from(state)
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert len(source) == stream.num_steps == 24
    for step in (0, 15, 16, 23):
        item, batch = source[step], stream.batch(step, 1, 2)
        assert all(np.array_equal(item[name], batch[name]) for name in batch)
        assert {array.dtype for array in item.values()} == {np.dtype(np.int32)}
        assert (item["step"], item["num_labels"]) == (step, stream.num_labels(step))


@pytest.mark.parametrize("micro_batch", [None, 1])
def test_items_of_one_row_are_the_rows_of_the_steps(uneven, micro_batch):
    deal = {"dp_rank": 1, "dp_size": 2, "micro_batch": micro_batch}
    steps, rows = StreamSource(uneven, **deal), StreamSource(uneven, batch=False, **deal)
    expected = [row for step in range(len(steps)) for row in steps[step]["input_ids"]]
    assert len(rows) == len(expected)
    assert all(np.array_equal(rows[i]["input_ids"], expected[i]) for i in range(len(rows)))
    assert rows[rows.first_item(17)]["step"] == 17


@pytest.mark.parametrize("workers", [0, 2])
def test_every_worker_count_gives_the_same_steps(state, workers):
    source = StreamSource(state, dp_rank=1, dp_size=2)
    items = list(steps_from(source, workers))
    assert len(items) == len(source)
    assert all(equal(item, source[step]) for step, item in enumerate(items))


def test_threads_that_read_ahead_change_nothing(state):
    source = StreamSource(state)
    items = list(grain.MapDataset.source(source).to_iter_dataset())
    assert all(equal(item, source[step]) for step, item in enumerate(items))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_goes_on_from_its_state(state, workers):
    steps = iter(steps_from(StreamSource(state), workers))
    for _ in range(9):
        next(steps)
    saved = steps.get_state()
    other = iter(steps_from(StreamSource(state), workers))
    other.set_state(saved)
    rest = list(other)
    assert [int(item["step"]) for item in rest] == list(range(9, 24))
    assert all(equal(item, StreamSource(state)[9 + i]) for i, item in enumerate(rest))


def test_an_iterator_without_workers_goes_on_at_every_step_twice(state):
    whole = [item["input_ids"] for item in steps_from(StreamSource(state), 0)]
    for cut in range(1, 24):
        steps = iter(steps_from(StreamSource(state), 0))
        for _ in range(cut - 1):
            next(steps)
        for _ in range(2):
            saved = steps.get_state()
            steps = iter(steps_from(StreamSource(state), 0))
            steps.set_state(saved)
            following = next(steps, None)
            if following is not None:
                assert np.array_equal(following["input_ids"], whole[int(following["step"])])


@pytest.mark.parametrize("workers", [0, 2])
def test_grains_loader_with_a_sequential_sampler_goes_on_from_its_state(state, workers):
    def loader():
        source = StreamSource(state, dp_rank=0, dp_size=4)
        sampler = grain.samplers.SequentialSampler(
            num_records=len(source), shard_options=grain.sharding.NoSharding()
        )
        return grain.DataLoader(data_source=source, sampler=sampler, operations=[], worker_count=workers)

    steps = iter(loader())
    first = [int(next(steps)["step"]) for _ in range(7)]
    saved = steps.get_state()
    other = iter(loader())
    other.set_state(saved)
    assert first + [int(item["step"]) for item in other] == list(range(24))


def test_a_state_of_a_step_stands_there_in_another_number_of_processes(state):
    later = StreamSource(StreamSource(state).state(10), dp_rank=3, dp_size=4)
    first = next(iter(steps_from(later, 0)))
    assert later.step == first["step"] == 10
    assert np.array_equal(first["input_ids"], StreamSource(state)[10]["input_ids"][3:])


def test_a_run_that_ends_early_has_as_many_items_as_steps(ending):
    source = StreamSource(ending)
    stream = stream_from(ending)
    served = [step for step, _ in stream.batches()]
    assert 0 < len(source) == len(served)
    assert len(source) < stream.num_steps
    with pytest.raises(IndexError, match="outside"):
        source[len(source)]


def test_a_number_of_processes_that_cannot_be_dealt_is_refused(state):
    with pytest.raises(RecipeError, match="3 ranks"):
        StreamSource(state, dp_size=3)
    with pytest.raises(ValueError, match="dp_rank 2 is outside"):
        StreamSource(state, dp_rank=2, dp_size=2)


def test_jax_computes_the_loss_that_numpy_computes(state):
    """Two shapes are compiled: one for each context."""
    compiled = []

    @jax.jit
    def loss(item, table):
        compiled.append(item["input_ids"].shape)
        scores = jax.nn.log_softmax(table[item["input_ids"]])
        counted = item["labels"] != -100
        picked = jnp.take_along_axis(scores, jnp.where(counted, item["labels"], 0)[..., None], axis=-1)
        return -jnp.sum(picked[..., 0] * counted) / item["num_labels"]

    table = np.random.default_rng(0).normal(size=(100, 100)).astype(np.float32)
    scores = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for item in steps_from(StreamSource(state), 0):
        arrays = {name: jax.make_array_from_process_local_data(sharding, rows) for name, rows in item.items()}
        counted = item["labels"] != -100
        expected = -scores[item["input_ids"][counted], item["labels"][counted]].sum() / item["num_labels"]
        assert float(loss(arrays, table)) == pytest.approx(float(expected), rel=1e-5)
    assert compiled == [(4, 32), (4, 64)]


def test_weights_of_an_objective_stay_numbers_with_a_fraction(tmp_path):
    short = PLAIN["stages"]["short"] | {
        "quotas": {"a": "50%", "b": "50%"},
        "objective": {"a": "80%", "b": "20%"},
    }
    state = started(tmp_path, stages=PLAIN["stages"] | {"short": short})
    item = StreamSource(state)[0]
    assert item["loss_weight"].dtype == np.float32
    assert np.array_equal(item["loss_weight"], np.array([1.6, 0.4], np.float32)[item["pool"]])
    assert StreamSource(state, batch=False)[0]["loss_weight"] == item["loss_weight"][0]
