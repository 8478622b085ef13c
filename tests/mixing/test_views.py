"""Views in the stream: a document is one pool's in a stage, and of each pool every token is accounted for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.mixing.opening import open_pools
from recipe.mixing.outlook import outlook
from recipe.mixing.plan import make_plan
from recipe.mixing.stream import Stream
from recipe.mixing.withdrawals import Withdrawals
from tests.mixing.build import World, everything, make, stage, windows, world, write
from tests.mixing.worlds import passed_over

TAGS = ({"kind": "x"}, {"kind": "y"}, None)


@dataclass(frozen=True)
class Folder:
    """What is stored: lengths, groups and tags of its documents."""

    lengths: list[int]
    groups: list[int] | None
    tags: list[Any]

    def passes(self, pool: dict[str, Any], number: int) -> bool:
        """Whether a document passes a pool's filter, looked at plainly."""
        whole = pool.get("by") == "group" and self.groups is not None
        unit = [k for k in range(len(self.lengths)) if whole and self.groups[k] == self.groups[number]]
        unit = unit or [number]
        size = sum(self.lengths[k] for k in unit)
        wanted = pool.get("where", {}).get("kind")
        fits = pool.get("min_tokens", 0) <= size <= pool.get("max_tokens", 1 << 40)
        return fits and all(wanted is None or (self.tags[k] or {}).get("kind") == wanted for k in unit)


def owner(
    folder: Folder, pools: dict[str, dict[str, Any]], weights: dict[str, int], number: int
) -> str | None:
    """The pool that a document belongs to in a stage, by the words of the rule."""
    filtered = [name for name, pool in pools.items() if {"where", "min_tokens", "max_tokens"} & set(pool)]
    order = [*filtered, *(name for name in pools if name not in filtered)]
    return next((name for name in order if weights[name] and folder.passes(pools[name], number)), None)


@st.composite
def families(draw: st.DrawFn) -> tuple[Folder, dict[str, dict[str, Any]], list[dict[str, Any]]]:
    lengths = draw(st.lists(st.integers(1, 24), min_size=3, max_size=14))
    groups = sorted(draw(st.lists(st.integers(0, 3), min_size=len(lengths), max_size=len(lengths))))
    some = draw(st.sampled_from(TAGS))
    tags = [draw(st.sampled_from(TAGS)) for _ in lengths]
    tags[0] = some or TAGS[0]
    folder = Folder(lengths, groups if draw(st.booleans()) else None, tags)
    filters = st.fixed_dictionaries(
        {},
        optional={
            "min_tokens": st.integers(1, 12),
            "max_tokens": st.integers(8, 30),
            "where": st.sampled_from([{"kind": "x"}, {"kind": "y"}]),
        },
    )
    pools = {}
    for k in range(draw(st.integers(2, 4))):
        pool = draw(filters)
        if pool and draw(st.booleans()):
            pool["by"] = "group"
        if pool.get("max_tokens", 99) < pool.get("min_tokens", 0):
            del pool["max_tokens"]
        if not any(folder.passes(pool, number) for number in range(len(lengths))):
            pool = {}
        pools[f"p{k}"] = {"block_units": draw(st.integers(1, 5)), **pool}
    stages = []
    for _ in range(draw(st.integers(1, 3))):
        weights = {name: draw(st.sampled_from([0, 1, 1, 3])) for name in pools}
        owners = {owner(folder, pools, weights, number) for number in range(len(lengths))}
        weights = {name: weight if name in owners else 0 for name, weight in weights.items()}
        assume(any(weights.values()))
        window = draw(st.integers(4, 12))
        slicing = {"window": window, "stride": draw(st.integers(1, window))}
        slicing["tail"] = draw(st.sampled_from(["keep", "keep", "drop", "backfill"]))
        stages.append(
            stage(draw(st.sampled_from([12, 16])), weights, steps=draw(st.integers(1, 9)), slicing=slicing)
        )
    return folder, pools, stages


def opened(root: Path, folder: Folder, pools: dict[str, dict[str, Any]], stages: Any, **keys: Any) -> World:
    """The world of a family."""
    if not (root / "p0").exists():
        write(root / "p0", folder.lengths, groups=folder.groups, tags=folder.tags, eos=True)
    named = {
        name: {**pool, **({} if name == "p0" else {"path": None, "of": "p0"})} for name, pool in pools.items()
    }
    return world(root, named, stages, **keys)


@settings(max_examples=60)
@given(data=families(), policy=st.sampled_from(["redistribute", "repeat"]))
def test_invariant_3_every_document_is_one_pools_in_a_stage_and_every_token_served_once_or_dropped(
    tmp_path_factory: pytest.TempPathFactory, data: Any, policy: str
):
    folder, pools, stages = data
    made = opened(
        tmp_path_factory.mktemp("w"),
        folder,
        pools,
        stages,
        on_exhausted=policy,
        max_epochs=1 if policy != "repeat" else 99,
    )
    stream, fresh = made.stream(), Counter[tuple[str, int, int]]()
    done = 0
    with passed_over():
        for step, _ in stream.batches(read_ahead=0):
            done = step + 1
            weights = stages[stream.curriculum.stretch(step).stage]["weights"]
            for pool, document, start, stop, new, *_ in stream.provenance(step, 0):
                assert owner(folder, pools, weights, int(document)) == pool
                fresh.update((pool, int(document), token) for token in range(new, stop))
                assert start <= new <= stop
    end = stream.snapshot(done)
    for name, state in zip(pools, end.pools, strict=True):
        served = [times for (pool, _, _), times in fresh.items() if pool == name]
        assert sum(served) == state.body - state.overlap
        if policy == "repeat":
            assert max(served, default=0) <= state.cursor.epoch + 1
        else:
            assert max(served, default=0) <= 1
        if state.cursor.epoch and not state.cursor.block and state.cursor.stage < 0:
            assert sum(served) + sum(state.dropped.values()) == made.pools[name].stock * state.cursor.epoch


@settings(max_examples=40)
@given(data=families())
def test_invariant_5_a_stream_over_views_resumes_at_every_step(
    tmp_path_factory: pytest.TempPathFactory, data: Any
):
    root = tmp_path_factory.mktemp("w")
    made = opened(root, *data, max_epochs=99)
    stream = made.stream()
    with passed_over():
        batches = everything(stream)
    for step in range(stream.num_steps):
        again = opened(root, *data, max_epochs=99)
        assert everything(again.stream([stream.snapshot(step)]), step) == batches[step:]


def split(root: Path) -> dict[str, dict[str, Any]]:
    """A folder and another one; short and long documents of the first as pools of their own."""
    if not (root / "web").exists():
        write(root / "web", [3, 30, 5, 8, 25, 4, 9, 6, 40, 2, 7, 8], eos=True)
        write(root / "other", [5] * 20, eos=True)
    return {
        "web": {"path": "web", "max_tokens": 10, "slicing": {"oversize": "route"}},
        "other": {"path": "other"},
        "long": {"path": None, "of": "web", "min_tokens": 11},
    }


def of_pool(stream: Stream, name: str) -> list[tuple[int, int, int]]:
    return [window[1:] for window in windows(stream) if window[0] == name]


def test_b6_what_is_longer_than_the_window_is_read_whole_in_the_stage_that_holds_it(tmp_path):
    short = stage(12, {"web": 1, "other": 1, "long": 0}, steps=8)
    long = stage(48, {"web": 1, "other": 1, "long": 2}, steps=6)
    made = world(tmp_path, split(tmp_path), [short, long], max_epochs=99)
    stream = made.stream()
    lengths = np.diff(made.pools["web"].offsets) - 1
    for pool, document, start, stop in windows(stream):
        if pool != "other":
            assert (start, stop) == (0, lengths[document])
            assert (lengths[document] > 10) == (pool == "long")
    first = [window[0] for window in windows(stream)][: stream.snapshot(8).sequences]
    assert "long" not in first
    assert not any(state.dropped for state in stream.snapshot(stream.num_steps).pools)


def test_invariant_7_views_move_no_other_pools_order(tmp_path):
    pools = split(tmp_path)
    weights = {"web": 1, "other": 1, "long": 1}
    alone = {"web": {"path": "web", "max_tokens": 10}, "other": {"path": "other"}}
    plain = world(tmp_path, alone, [stage(48, {"web": 1, "other": 1}, steps=6)], max_epochs=99).stream()
    mixed = world(tmp_path, pools, [stage(48, weights, steps=9)], max_epochs=99).stream()
    for name in ("web", "other"):
        one, two = of_pool(plain, name), of_pool(mixed, name)
        size = min(len(one), len(two))
        assert size > 5 and one[:size] == two[:size]


def test_views_that_share_no_document_leave_nothing_out_and_cut_nothing_when_one_joins(tmp_path):
    pools = {**split(tmp_path), "web": {"path": "web", "max_tokens": 10, "block_units": 9}}
    stages = [stage(16, {"web": 1, "other": 1, "long": w}, steps=4) for w in (0, 1)]
    stream = world(tmp_path, pools, stages, max_epochs=99).stream()
    for step in range(stream.num_steps + 1):
        assert not any(pool.cursor.cuts for pool in stream.snapshot(step).pools)


def test_a_view_that_joins_takes_its_documents_from_what_is_left_of_a_block(tmp_path):
    pools = {**split(tmp_path), "web": {"path": "web", "block_units": 12}}
    stages = [stage(48, {"web": 1, "other": 0, "long": w}, steps=s) for w, s in ((0, 2), (1, 6))]
    stream = world(tmp_path, pools, stages, max_epochs=1, on_exhausted="redistribute").stream()
    seen = windows(stream)
    end = stream.snapshot(stream.end_step or stream.num_steps)
    web = end.pools[0]
    long_before = {document for pool, document, *_ in seen if pool == "web" and document in (1, 4, 8)}
    lost = sum({1: 30, 4: 25, 8: 40}[document] for document in {1, 4, 8} - long_before)
    assert web.dropped == ({"elsewhere": lost} if lost else {})
    assert web.body - web.overlap + lost == 147
    assert {document for pool, document, *_ in seen if pool == "long"} == {1, 4, 8}


def test_what_is_withdrawn_of_one_pool_no_pool_of_its_folder_reads(tmp_path):
    made = world(
        tmp_path, split(tmp_path), [stage(48, {"web": 1, "other": 1, "long": 1}, steps=9)], max_epochs=99
    )
    for name in ("web", "long"):
        withdrawn = Withdrawals.none().and_then({name: [3, 4]})
        stream = Stream(made.recipe, made.pools, withdrawn=withdrawn)
        read = {(pool, document) for pool, document, *_ in windows(stream)}
        assert {("web", 0), ("long", 1)} <= read
        assert not {("web", 3), ("long", 4)} & read


def test_every_view_that_cannot_be_opened_is_told_at_once(tmp_path):
    pools = {**split(tmp_path), "none": {"path": None, "of": "web", "min_tokens": 1000}}
    pools |= {"bad": {"path": None, "of": "web", "where": {"lang": "en"}}}
    weights = dict.fromkeys(pools, 1)
    with pytest.raises(RecipeError) as caught:
        open_pools(make(tmp_path, pools, [stage(48, weights)]))
    assert [problem.where.partition(":")[0] for problem in caught.value.problems] == [
        "pools.none",
        "pools.bad.where.lang",
    ]


def test_plan_says_who_reads_which_documents_and_what_is_routed(tmp_path):
    stages = [
        stage(12, {"web": 1, "other": 1, "long": 0}, steps=8),
        stage(48, {"web": 1, "other": 1, "long": 2}, steps=6),
    ]
    plan = make_plan(make(tmp_path, split(tmp_path), stages, max_epochs=99), exact=True)
    family = plan.families["web"]
    assert family.pools == ("web", "long")
    assert [(cell.holders, cell.documents, cell.tokens) for cell in family.cells] == [
        (("web",), 9, 52),
        (("long",), 3, 95),
    ]
    assert [route[:4] for route in family.routes] == [("web", "long", 3, 95)]
    assert family.routes[0].stages == ("s1",)
    read = [plan.stages[name].pools["web"].epochs for name in ("s0", "s1")]
    assert family.total(0) == sum(read)
    assert family.owned("s1", "long") == (3, 95) and family.owned("s0", "long") == (0, 0)
    assert set(plan.to_plain()["families"]) == {"web"}


def test_readings_of_a_document_add_up_over_the_pools_that_read_it(tmp_path):
    write(tmp_path / "web", [8] * 30, eos=True)
    pools = {"web": {"path": "web"}, "some": {"path": None, "of": "web", "where": {"id": {"max": 9}}}}
    stages = [stage(16, {"web": 1, "some": 0}, steps=24), stage(16, {"web": 0, "some": 1}, steps=9)]
    plan = make_plan(make(tmp_path, pools, stages, max_epochs=2))
    assert [cell.documents for cell in plan.families["web"].cells] == [10, 20]
    assert plan.families["web"].total(0) == Fraction(24, 30) + Fraction(9, 10)
    assert not plan.problems
    [problem] = make_plan(make(tmp_path, pools, stages, max_epochs=1)).problems
    assert problem.where == "pools.web.max_epochs"
    assert problem.given == "10 documents (80 tokens) read by web and some: 1.700 readings"
    assert "pools.web.max_epochs=2" in problem.fix


def test_what_is_left_of_a_run_warns_of_documents_that_pools_may_read_too_often_together(tmp_path):
    write(tmp_path / "web", [8] * 30, eos=True)
    pools = {"web": {"path": "web"}, "some": {"path": None, "of": "web", "where": {"id": {"max": 9}}}}
    stages = [stage(16, {"web": 1, "some": 0}, steps=24), stage(16, {"web": 0, "some": 1}, steps=9)]
    for allowed, told in ((2, []), (1, ["10 documents that some and web hold may be read 1.700 of 1"])):
        made = world(tmp_path, pools, stages, max_epochs=allowed)
        warnings = outlook(made.recipe, made.pools, made.stream().snapshot(24)).warnings
        assert [text in warning for text, warning in zip(told, warnings, strict=True)] == [True] * len(told)


@pytest.mark.parametrize(("eos", "bos"), [(True, False), (True, True)])
def test_b6_a_stage_that_would_cut_what_is_routed_is_refused_with_the_yaml_to_write(tmp_path, eos, bos):
    write(tmp_path / "web", [3, 30, 5, 40], eos=eos, bos=bos)
    web = {"path": "web", "max_tokens": 10, "slicing": {"oversize": "route"}}
    pools = {"web": web, "long": {"path": None, "of": "web", "min_tokens": 11}}
    weights = {"web": 1, "long": 1}
    problems = make_plan(make(tmp_path, pools, [stage(40, weights)], max_epochs=99)).problems
    found = [problem for problem in problems if problem.where == "pools.web.slicing.oversize"]
    assert len(found) == bos
    if bos:
        assert "a unit of 40 tokens in stage s0" in found[0].given
        assert "stages: {s0: {context: 41}}" in found[0].fix
        assert not make_plan(make(tmp_path, pools, [stage(41, weights)], max_epochs=99)).problems
