"""Withdrawals: documents that yield nothing from a step on, and a value that says which."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.mixing.snapshot import Cut
from recipe.mixing.stream import Stream
from recipe.mixing.withdrawals import Withdrawals
from tests.mixing.build import World, everything, stage, windows, world, write
from tests.mixing.twins import Twins
from tests.mixing.worlds import Bank, draw_case

GOLDEN = {"number": 3, "pools": {"code": [[3, 1, "2>"]], "web": [[1, 2, "2LL4j"], [3, 2, "0s!U%"]]}}

NUMBERS = st.lists(st.one_of(st.integers(0, 50), st.integers(0, 1 << 50)), max_size=20)


def again(withdrawn: Withdrawals) -> Withdrawals:
    return Withdrawals.from_plain(json.loads(json.dumps(withdrawn.to_plain())))


@given(st.lists(st.dictionaries(st.sampled_from(["web", "code"]), NUMBERS), max_size=4))
def test_a_document_counts_under_the_first_withdrawal_that_names_it(made: list[dict[str, list[int]]]):
    known = Withdrawals.none()
    first: dict[tuple[str, int], int] = {}
    for number, documents in enumerate(made, 1):
        known = again(known.and_then(documents))
        for pool, numbers in documents.items():
            for document in numbers:
                first.setdefault((pool, document), number)
    assert known.number == len(made)
    for pool in ("web", "code", "other"):
        mine = {document: number for (name, document), number in first.items() if name == pool}
        assert known.documents(pool).tolist() == sorted(mine)
        for number in range(len(made) + 1):
            assert known.documents(pool, number).tolist() == sorted(d for d, n in mine.items() if n <= number)
            assert known.up_to(number).documents(pool).tolist() == known.documents(pool, number).tolist()
        assert known.of(pool).number == max(mine.values(), default=0)
        asked = np.array([*mine, 3, 7], np.int64)
        assert known.of(pool).of(asked).tolist() == [mine.get(d, 0) for d in asked.tolist()]


def test_golden_plain_form():
    known = Withdrawals.none().and_then({"web": [300, 7]}).and_then({"web": [7]})
    known = known.and_then({"web": [1000, 7, 2], "code": [9]})
    assert known.to_plain() == GOLDEN
    assert Withdrawals.from_plain(GOLDEN) == known
    assert Withdrawals.none().to_plain() == {"number": 0, "pools": {}}
    assert len({known, again(known), Withdrawals.none()}) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"number": 1},
        {"number": 1, "pools": {"a": [[2, 1, "2>"]]}},
        {"number": 1, "pools": {"a": [[1, 9, "2>"]]}},
        {"number": 1, "pools": {"a": [[1, 3, "2LL4j"]]}},
        {"number": 1, "pools": {"a": [[1, 1, ""]]}},
        {"number": 2, "pools": {"a": [[1, 1, "2>"], [2, 1, "2>"]]}},
        {"number": 1, "pools": {"a": [[1, 1]]}},
        {"number": 1, "pools": {"a": []}},
        {"number": 1, "pools": 7},
    ],
)
def test_what_is_no_list_of_withdrawals_is_refused(wrong: Any):
    with pytest.raises(ValueError, match="withdrawals"):
        Withdrawals.from_plain(wrong)


def test_numbers_below_zero_are_refused():
    with pytest.raises(ValueError, match="document -1 of pool 'web'"):
        Withdrawals.none().and_then({"web": [3, -1]})


def test_ten_thousand_documents_travel_in_a_few_kilobytes():
    rng = random.Random(1)
    known = Withdrawals.none().and_then({"web": rng.sample(range(10**9), 10_000)})
    text = json.dumps(known.to_plain()).encode()
    assert len(text) < 4 * 10_000
    assert len(zstandard.ZstdCompressor(level=19).compress(text)) < 3 * 10_000


@settings(max_examples=60)
@given(st.data())
def test_invariant_3_withdrawals_at_any_steps_follow_the_rules(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=("repeat", "stop", "redistribute"))
    twins = Twins(case.world, case.sources)
    for _ in range(data.draw(st.integers(1, 4))):
        some = {
            reader.name: data.draw(st.lists(st.integers(0, len(reader.source.docs) - 1), max_size=4))
            for reader in twins.course.readers
        }
        twins.withdraw(some)
        twins.serve(data.draw(st.integers(0, 5)))
    twins.serve(1000)


@pytest.fixture
def ten(tmp_path: Path) -> World:
    """A pool of ten windows in blocks of four, read three times."""
    write(tmp_path / "a", [4] * 10)
    return world(tmp_path, {"a": {"block_units": 4}}, [stage(4, {"a": 1}, steps=24)])


def read(stream: Stream, start: int) -> list[int]:
    """Documents from a step on, one a step."""
    return [piece.document for step in range(start, stream.num_steps) for piece in stream.provenance(step, 0)]


def without(made: World, step: int, *documents: int) -> Stream:
    known = Withdrawals.none().and_then({"a": list(documents)})
    return Stream(made.recipe, made.pools, [made.stream().snapshot(step)], known)


def test_the_others_stay_in_their_blocks(ten: World):
    whole = [window[1] for window in windows(ten.stream())]
    gone = whole[5], whole[9]
    stream = without(ten, 4, *gone)
    assert set(read(stream, 4)[:3]) == set(whole[4:8]) - set(gone)
    assert read(stream, 4)[3:4] == [whole[8]]
    assert set(read(stream, 4)[4:12]) == set(range(10)) - set(gone)
    assert dict(stream.snapshot(8).pools[0].dropped) == {"withdrawn": 8}
    assert stream.snapshot(8).pools[0].cursor.epoch == 1


def test_an_open_block_is_cut_only_where_it_still_holds_a_withdrawn_document(ten: World):
    whole = [window[1] for window in windows(ten.stream())]
    served, to_come = without(ten, 2, whole[1]), without(ten, 2, whole[2])
    assert read(served, 2)[:2] == whole[2:4]
    at = served.snapshot(3).pools[0]
    assert (at.cursor.cuts, at.cursor.withdrawn, dict(at.dropped)) == ((), 0, {})
    assert read(to_come, 2)[:2] == [whole[3], whole[4]]
    assert to_come.snapshot(2) == ten.stream().snapshot(2)
    assert not to_come.snapshot(2).pools[0].dropped
    assert dict(to_come.snapshot(3).pools[0].dropped) == {"withdrawn": 4}


def test_a_cut_says_what_the_block_left_out_before_and_after(tmp_path: Path):
    write(tmp_path / "a", [4] * 10)
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=24)])
    whole = [window[1] for window in windows(made.stream())]
    first = Withdrawals.none().and_then({"a": [whole[9]]})
    second = first.and_then({"a": [whole[8]], "other": [3]}).and_then({"other": [5]})
    opened = Stream(made.recipe, made.pools, [made.stream().snapshot(0)], first)
    at = opened.snapshot(2)
    assert (at.pools[0].cursor.withdrawn, at.pools[0].cursor.cuts) == (1, ())
    after = Stream(made.recipe, made.pools, [at], second).snapshot(3).pools[0]
    assert (after.cursor.withdrawn, after.cursor.cuts) == (2, (Cut(0, 2, 1),))
    assert dict(after.dropped) == {"withdrawn": 8}


def test_a_pool_of_which_nothing_was_withdrawn_does_not_notice(tmp_path: Path):
    write(tmp_path / "a", [4] * 10)
    write(tmp_path / "b", [4] * 10, first=100)
    made = world(tmp_path, {"a": {}, "b": {}}, [stage(4, {"a": 1, "b": 1}, batch=2, steps=9)])
    known = Withdrawals.none().and_then({"a": [3]}).and_then({"a": [4]})
    plain, stream = made.stream(), Stream(made.recipe, made.pools, [], known)
    assert [s.cursor for s in plain.snapshot(7).pools[1:]] == [s.cursor for s in stream.snapshot(7).pools[1:]]
    assert stream.snapshot(7).pools[1].cursor.withdrawn == 0


def test_nothing_withdrawn_is_the_stream_as_it_was(bank: Bank, tmp_path: Path):
    write(tmp_path / "a", [5, 3, 9], eos=True)
    made = world(tmp_path, {"a": {}}, [stage(6, {"a": 1}, batch=2)])
    assert everything(Stream(made.recipe, made.pools, [], Withdrawals.none())) == everything(made.stream())


@pytest.mark.parametrize("policy", ["repeat", "stop", "redistribute"])
def test_a_pool_withdrawn_whole_gives_no_sequence(tmp_path: Path, policy: str):
    write(tmp_path / "a", [4] * 5)
    write(tmp_path / "b", [4] * 50, first=100)
    keys = {"on_exhausted": policy, "max_epochs": 1}
    made = world(tmp_path, {"a": {}, "b": {}}, [stage(4, {"a": 1, "b": 1}, batch=2, steps=9)], **keys)
    at = made.stream().snapshot(1)
    stream = Stream(made.recipe, made.pools, [at], Withdrawals.none().and_then({"a": range(5)}))
    if policy == "repeat":
        with pytest.raises(RecipeError, match=r"'a' gives 0 sequences .*5 documents withdrawn"):
            stream.batch(1)
    elif policy == "stop":
        with pytest.raises(ValueError, match="ended at step 1"):
            stream.batch(1)
    else:
        assert stream.batch(1)["pool"].tolist() == [1, 1]
        end = stream.snapshot(9)
        assert end.left == (0,)
        assert dict(end.pools[0].dropped) == {"withdrawn": 16}
