"""Filling in the middle beside the rest: pools that grow or shrink, balanced dealing, resuming anywhere."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recipe.config import recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.mixing.dealing import dealt_rows
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.stream import Stream
from recipe.pools import extend_pool, open_pool
from tests.mixing.build import EOS, World, everything, plain_batch, world, write
from tests.mixing.reference import Source
from tests.mixing.test_run_reference import account_of, as_batch
from tests.mixing.twins import Twins, told
from tests.sequences.reference import Doc

MARKERS = {"prefix": 4, "middle": 5, "suffix": 6}


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Source]]:
    """A pool that grows twice (``p0``, ``p1``, ``p2``), and another one (``q``)."""
    root = tmp_path_factory.mktemp("ages")
    sources, at = [write(root / "p0", [5, 30, 2, 9, 12, 1, 22], eos=True, part_tokens=60)], 200
    for age, lengths in ((1, [8, 3, 17, 2]), (2, [40, 1])):
        docs = [Doc(list(range(at := at + 1, (at := at + n))), None, EOS) for n in lengths]
        extend_pool(root / f"p{age - 1}", root / f"p{age}", [d.tokens for d in docs])
        all_docs = [*sources[-1].docs, *docs]
        sources.append(Source(all_docs, [[n] for n in range(len(all_docs))]))
    return root, [*sources, write(root / "q", [7, 7, 20], first=400)]


def drawn(draw: Any, root: Path, path: str, *, policies: tuple[str, ...], **top: Any) -> World:
    """A pool whose pieces are filled in the middle, and a plain one, in one or two stages."""
    portion = st.sampled_from(["30%", "50%", "100%"])
    slicing = {"tail": draw(st.sampled_from(["keep", "backfill", "drop"]))}
    filled = {
        "path": path,
        "transform": {"fim": {"rate": draw(portion), "spm": draw(st.sampled_from(["0%", "50%"])), **MARKERS}},
        "block_units": draw(st.sampled_from([1, 2, 3, 64])),
        "on_exhausted": draw(st.sampled_from(policies)),
        "max_epochs": 2,
    }
    stages = [
        {
            "context": draw(st.integers(8, 20)),
            "batch": {"sequences": draw(st.integers(1, 4))},
            "weights": {"p": draw(st.integers(1, 3)), "q": draw(st.integers(0, 2))},
            "slicing": slicing,
            "packing": draw(st.sampled_from(["best_fit", "none"])),
            "steps": draw(st.integers(2, 8)),
        }
        for _ in range(draw(st.integers(1, 2)))
    ]
    for later in stages[1:]:
        if draw(st.booleans()):
            later["transform"] = {"p": {"fim": {"rate": draw(portion), "spm": "100%", **MARKERS}}}
    return world(root, {"p": filled, "q": {"max_epochs": 99}}, stages, seed=draw(st.integers(0, 3)), **top)


@settings(max_examples=40)
@given(st.data())
def test_invariant_3_a_pool_that_grows_is_filled_in_by_the_rules(
    ages: tuple[Path, list[Source]], data: st.DataObject
):
    root, sources = ages
    made = drawn(data.draw, root, "p0", policies=("repeat", "redistribute"))
    twins = Twins(made, {"p": sources[0], "q": sources[3]})
    twins.happen(data.draw, "p", [(open_pool(root / f"p{age}", "p"), sources[age]) for age in (1, 2)])


@settings(max_examples=40)
@given(st.data())
def test_a_proxy_fills_its_part_of_a_pool_in_by_the_rules(
    ages: tuple[Path, list[Source]], data: st.DataObject
):
    root, sources = ages
    made = drawn(
        data.draw, root, "p1", policies=("repeat", "stop"), simulate_budget=data.draw(st.integers(900, 4000))
    )
    assume(made.recipe.simulated_fraction not in (None, 1))
    right = told(made, {"p": sources[1], "q": sources[3]})
    stream = made.stream()
    assert everything(stream) == [as_batch(rows) for rows in right.batches]
    assert account_of(stream.snapshot(len(right.batches))) == right.accounts[-1]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, World]:
    """Two stages, the second with another context and overlap, dealt either way, whole or as a proxy."""
    root = tmp_path_factory.mktemp("together")
    write(root / "code", [n * n % 41 + 1 for n in range(200)], eos=True, bos=True)
    write(root / "web", [n % 9 + 1 for n in range(200)], first=20_000)
    fim = {"rate": "60%", "spm": "50%", **MARKERS}
    pools = {"code": {"transform": {"fim": fim}, "block_units": 16}, "web": {"block_units": 16}}
    short = {"steps": 9, "context": 24, "batch": {"sequences": 12}, "weights": {"code": 2, "web": 1}}
    long = short | {"context": 40, "slicing": {"stride": 21}, "steps": 7}
    kinds: dict[str, dict[str, Any]] = {
        "order": {},
        "balanced": {"deal": "balanced"},
        "balanced proxy": {"deal": "balanced", "simulate_budget": 20_000},
    }
    return {kind: world(root, pools, [short, long], max_epochs=99, **top) for kind, top in kinds.items()}


def through_a_file(at: Snapshot) -> Snapshot:
    return Snapshot.from_plain(json.loads(json.dumps(at.to_plain())))


@pytest.mark.parametrize("kind", ["order", "balanced", "balanced proxy"])
def test_invariant_5_a_resume_at_every_step_equals_the_unbroken_run(worlds: dict[str, World], kind: str):
    """Twice: from a state of the unbroken run, and from one of a run that was resumed before."""
    made = worlds[kind]
    whole = made.stream()
    steps = [plain_batch(whole.batch(step, 1, 2, 3)) for step in range(whole.num_steps)]
    assert sum(ids.count(5) for step in steps for ids in step["input_ids"]) > 30
    before = whole
    for cut in range(whole.num_steps):
        resumed = Stream(made.recipe, made.pools, [through_a_file(before.snapshot(cut))])
        assert [plain_batch(resumed.batch(s, 1, 2, 3)) for s in range(cut, whole.num_steps)] == steps[cut:]
        assert resumed.snapshot(whole.num_steps) == whole.snapshot(whole.num_steps)
        before = resumed


@pytest.mark.parametrize(("size", "micro"), [(1, None), (2, None), (3, 2), (12, 1)])
def test_invariant_6_balanced_ranks_hold_the_batch_and_its_markers(
    worlds: dict[str, World], size: int, micro: int | None
):
    for step in (0, 8, 9, 15):
        right = worlds["order"].stream().batch(step)
        parts = [worlds["balanced"].stream().batch(step, rank, size, micro) for rank in range(size)]
        places = np.concatenate([part["rows"] for part in parts])
        assert sorted(places.tolist()) == list(range(12))
        for key in right:
            assert np.array_equal(np.concatenate([part[key] for part in parts]), right[key][places])


@pytest.mark.parametrize(("size", "micro"), [(2, None), (3, 2)])
def test_markers_count_in_what_is_balanced(worlds: dict[str, World], size: int, micro: int | None):
    """The costs are those of the segments as they lie, markers in them: squares of their lengths."""
    stream, parts = worlds["balanced"].stream(), size if micro is None else 12 // micro
    for step in range(stream.num_steps):
        segments = worlds["order"].stream().batch(step)["segment_ids"]
        costs = np.array([(np.bincount(row[row >= 0]) ** 2).sum() for row in segments])
        rows = [stream.order(step, size, micro)[dealt_rows(12, rank, size, micro)] for rank in range(size)]
        each = 12 // parts
        largest = max(costs[mine[j : j + each]].sum() for mine in rows for j in range(0, len(mine), each))
        assert stream.balance(step, size, micro).dealt == Fraction(int(largest) * parts, int(costs.sum()))


def test_a_transform_of_every_stage_is_that_of_the_pool(tmp_path: Path):
    write(tmp_path / "code", [n * n % 41 + 1 for n in range(200)])
    fim = {"fim": {"rate": "60%", **MARKERS}}
    stage = {"steps": 5, "context": 24, "batch": {"sequences": 4}, "weights": {"code": 1}}
    own = world(tmp_path, {"code": {"transform": fim}}, [stage, stage | {"context": 40}]).stream()
    staged = [each | {"transform": {"code": fim}} for each in (stage, stage | {"context": 40})]
    assert everything(world(tmp_path, {"code": {}}, staged).stream()) == everything(own)


def test_a_stage_s_own_transform_takes_the_place_of_the_pool_s(tmp_path: Path):
    write(tmp_path / "code", [n * n % 41 + 1 for n in range(200)])
    stage = {"steps": 5, "context": 24, "batch": {"sequences": 4}, "weights": {"code": 1}}
    stages = [stage, stage | {"transform": {"code": {"fim": {"rate": "0%", **MARKERS}}}}]
    made = world(tmp_path, {"code": {"transform": {"fim": {"rate": "100%", **MARKERS}}}}, stages)
    marked = [sum(ids.count(5) for ids in batch["input_ids"]) for batch in everything(made.stream())]
    assert all(marked[:5]) and not any(marked[5:])
    assert made.stream().snapshot(6).pools[0].cursor.cuts


@pytest.mark.parametrize(
    ("transform", "stage", "where"),
    [
        ({"cod": {"fim": {"rate": "1%", **MARKERS}}}, {}, "stages.s0.transform.cod"),
        ({"code": {"fim": {"rate": "101%", **MARKERS}}}, {}, "stages.s0.transform.code.fim.rate"),
        (
            {"code": {"fim": {"rate": "1%", **MARKERS, "middle": 4}}},
            {},
            "stages.s0.transform.code.fim.middle",
        ),
        (
            {"code": {"fim": {"rate": "1%", **MARKERS, "middle": 999}}},
            {},
            "stages.s0.transform.code.fim.middle",
        ),
        ({"code": {"fim": {"rat": "1%", **MARKERS}}}, {}, "stages.s0.transform.code.fim.rat"),
        ({"code": {"fim": {"rate": "1%", **MARKERS}}}, {"packing": "concat"}, "stages.s0.packing.method"),
        ({"code": {"fim": {"rate": "1%", **MARKERS}}}, {"context": 4}, "stages.s0.context"),
        ({"code": {"fim": {"rate": "1%", **MARKERS, "prefix": "<p>"}}}, {}, "stages.s0.transform.code.fim"),
    ],
)
def test_what_is_wrong_with_a_stage_s_own_transform_is_told_there(
    tmp_path: Path, transform: Any, stage: Any, where: str
):
    write(tmp_path / "code", [9, 9])
    plain = {
        "steps": 5,
        "context": 24,
        "batch": {"sequences": 4},
        "weights": {"code": 1},
        "transform": transform,
    }
    with pytest.raises(RecipeError) as caught:
        world(tmp_path, {"code": {}}, [plain | stage], model={"vocab_size": 500})
    assert where in [found.where for found in caught.value.problems]


def test_the_texts_of_a_stage_s_own_markers_become_ids(tmp_path: Path):
    added = [{"id": 4 + i, "content": text} for i, text in enumerate(("<pre>", "<mid>", "<suf>"))]
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"model": {"vocab": {"a": 0}}, "added_tokens": added}), "utf-8")
    write(tmp_path / "code", [9, 9])
    fim = {"rate": "50%", "prefix": "<pre>", "middle": 5, "suffix": "<suf>"}
    stage = {"steps": 1, "context": 24, "batch": {"sequences": 1}, "weights": {"code": 1}}
    stages = [stage, stage | {"transform": {"code": {"fim": fim}}}]
    settled = world(tmp_path, {"code": {}}, stages, tokenizer={"path": str(file)}).recipe
    assert settled.is_settled
    assert settled.rule("s1", "code").fim.ids == (4, 5, 6) and settled.rule("s0", "code").fim is None
    assert recipe_from_plain(recipe_to_plain(settled), source="stored") == settled
