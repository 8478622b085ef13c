"""The windows of the real ``GPTDataset`` and those of a recipe, over the same tokens.

Both join documents and cut them every ``--seq-length`` tokens, reading one more. Both shuffle documents
first, each by its own order; a window that spans documents depends on who stands beside whom. So:

- where no window depends on that (documents of whole windows), an epoch is the same set as it is;
- for documents of any length it is the same set once Megatron is given them in the recipe's order.

What a sample holds is the same too (``packing: concat``, ``tail: drop``, and the flags of the recipe).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.config import recipe_from_plain
from recipe.integrations.megatron import MegatronStream, megatron_flags
from recipe.pools import open_pool
from recipe.sequences.reading_order import BlockPlace, block_documents
from tests.integrations.megatron.loop import EOS, Tokenizer
from tests.integrations.ranks import on_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports warn of
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

CONTEXT = 16
RULES = {"packing": {"method": "concat"}, "slicing": {"tail": "drop"}}


def arrays(item: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """A sample in numbers: labels only where the loss counts them."""
    labels = item["labels"] * item["loss_mask"].long()
    found = (
        item["tokens"],
        labels,
        item["loss_mask"],
        item["position_ids"],
        item["attention_mask"].flatten(),
    )
    return tuple(tuple(each.tolist()) for each in found)


def _megatrons(rank: int, prefixes: list[str], samples: int, flags: list[str], cache: str) -> list[Any]:
    """Samples of Megatron's own builder over a blend of equal weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = GPTDatasetConfig(
            random_seed=1,
            sequence_length=int(flags[flags.index("--seq-length") + 1]),
            blend=(prefixes, [50.0] * len(prefixes)),
            split="1,0,0",
            path_to_cache=cache,
            tokenizer=Tokenizer(),
            reset_position_ids="--reset-position-ids" in flags,
            reset_attention_mask="--reset-attention-mask" in flags,
            eod_mask_loss="--eod-mask-loss" in flags,
            create_attention_mask="--no-create-attention-mask-in-dataloader" not in flags,
        )
        data = BlendedMegatronDatasetBuilder(GPTDataset, [samples, 0, 0], lambda: True, config).build()[0]
        return [arrays(data[sample]) for sample in range(samples)]


def run_over(root: Path, pools: dict[str, str], samples: int) -> tuple[list[Any], list[str]]:
    """As many samples of a recipe that draws from pools alike, and its flags."""
    batch = {"steps": samples, "context": CONTEXT, "batch": {"sequences": 1}}
    plain = {
        "seed": 3,
        "count": "positions",
        "pools": {name: {"path": path} for name, path in pools.items()},
        "stages": {"one": batch | RULES | {"weights": dict.fromkeys(pools, 1)}},
    }
    loaded = recipe_from_plain(plain, source="test")
    with recipe.start_run(loaded, root / "run") as run:
        data = MegatronStream(run.state(), CONTEXT, attention="mask")
        found = [arrays(data[sample]) for sample in range(samples)]
    return found, megatron_flags(recipe.make_plan(loaded).recipe)


def pool_of(root: Path, name: str, documents: list[Any]) -> str:
    return str(recipe.write_pool(root / name, documents, vocab_size=100, eos=EOS).path)


def in_our_order(root: Path, name: str) -> tuple[str, int]:
    """A pair of Megatron's own that holds a pool's first epoch as one document, and its ids."""
    pool = open_pool(root / name, name)
    order = block_documents(pool, BlockPlace(3, 0, 0, pool.num_documents))
    stream = np.concatenate([[*pool.tokens(int(document)), EOS] for document in order])
    prefix = root / f"{name}_stream"
    builder = IndexedDatasetBuilder(str(prefix.with_suffix(".bin")), dtype=np.int32)
    builder.add_document(stream.astype(np.int32), [len(stream)])
    builder.finalize(str(prefix.with_suffix(".idx")))
    return str(prefix), len(stream)


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_A5_documents_of_any_length_are_cut_into_megatrons_samples(tmp_path, names):
    """One pool, or two of equal weights: tokens, labels, loss mask, positions and attention mask."""
    dice = np.random.default_rng(len(names))
    for name in names:
        inside = dice.integers(1, 60, size=30)
        inside[-1] += 1207 - inside.sum() if len(names) > 1 else 0
        assert inside.min() > 0
        pool_of(tmp_path, name, [dice.integers(0, 98, size=n) for n in inside])
    made = [in_our_order(tmp_path, name) for name in names]
    samples = sum(1 + (ids - (CONTEXT + 1)) // CONTEXT for _, ids in made)
    ours, flags = run_over(tmp_path, {name: str(tmp_path / name) for name in names}, samples)
    prefixes = [prefix for prefix, _ in made]
    (theirs,) = on_ranks(_megatrons, 1, prefixes, samples, flags, str(tmp_path / "cache"))
    assert len(set(ours)) == samples and sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_documents_of_whole_windows_are_megatrons_samples_whatever_the_order(tmp_path, names):
    """The same pairs as they are, of equal weights. The last window of a pool has no token after it and is
    left out by both sides: each leaves out the one that its own order puts last."""
    dice = np.random.default_rng(1)
    windows = (1, 2, 3, 4, 5, 6, 7)
    pools, prefixes, ends = dict[str, str](), list[str](), set[tuple[int, ...]]()
    for name in names:
        documents = [dice.integers(0, 98, size=CONTEXT * k - 1) for k in windows]
        pools[name] = pool_of(tmp_path, name, documents)
        prefixes += [str(part.with_suffix("")) for part in Path(pools[name]).glob("*.bin")]
        ends |= {(*document.tolist(), EOS)[-CONTEXT:] for document in documents}
    samples = (sum(windows) - 1) * len(names)
    ours, flags = run_over(tmp_path, pools, samples)
    (theirs,) = on_ranks(_megatrons, 1, prefixes, samples, flags, str(tmp_path / "cache"))
    assert len(set(ours)) == samples
    assert {sample[0] for sample in set(ours) ^ set(theirs)} <= ends
    assert len(set(ours) - set(theirs)) == len(set(theirs) - set(ours)) <= len(names)
