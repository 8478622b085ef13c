"""Invariants 1 to 4 over random recipes, read off the batches themselves."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.maths.deadlines import drift_bound
from recipe.mixing.provenance import PieceAt
from recipe.mixing.snapshot import COUNTS, PoolState, Snapshot
from recipe.mixing.stream import Stream
from tests.mixing.build import FIRST, World, world
from tests.mixing.reference import Source, carried
from tests.mixing.worlds import Bank, Case, draw_case, draw_stage, passed_over

Batches = list[tuple[int, dict[str, Any], list[list[PieceAt]]]]


def read(stream: Stream) -> Batches:
    """Every step: batch, and provenance of every row; cases whose pools give nothing are passed over."""
    with passed_over():
        steps = [(step, {k: v.copy() for k, v in b.items()}) for step, b in stream.batches(read_ahead=0)]
    return [(s, b, [stream.provenance(s, row) for row in range(len(b["pool"]))]) for s, b in steps]


def counted(count: str, batch: dict[str, Any], row: int, pieces: list[PieceAt]) -> int:
    """Tokens of a row in the counted kind, from what the trainer sees."""
    return {
        "body": int((batch["input_ids"][row] >= FIRST).sum()),
        "fresh": sum(piece.stop - piece.fresh for piece in pieces),
        "labels": int((batch["labels"][row] != -100).sum()),
        "positions": batch["input_ids"].shape[1],
    }[count]


def end(stream: Stream, batches: Batches) -> Snapshot:
    return stream.snapshot(len(batches))


@settings(max_examples=40)
@given(st.data())
def test_invariant_1_every_prefix_of_every_leg_is_within_the_bound(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank)
    stream = case.world.stream()
    stages = stream.curriculum.stages
    spent: list[int] = []
    shares: list[Fraction] = []
    for step, batch, pieces in read(stream):
        layout = stages[stream.curriculum.stretch(step).stage]
        leg = layout.leg(step)
        race = layout.legs[leg].race
        now = [Fraction(part, race.denominator) for part in race.parts]
        if step == layout.first_step:
            spent, first = [0] * len(stream.pools), leg
        elif leg != layout.leg(step - 1):
            spent = carried(shares, now, spent)
        shares = now
        bound = drift_bound(race) if leg == first else Fraction(2 * layout.context)
        for row, pool in enumerate(batch["pool"].tolist()):
            spent[pool] += counted(case.world.recipe.count, batch, row, pieces[row])
            drift = [s - share * sum(spent) for s, share in zip(spent, shares, strict=True)]
            assert max(map(abs, drift)) <= bound


@settings(max_examples=40)
@given(st.data())
def test_invariant_2_owed_and_spent_sum_to_what_was_counted_at_every_step(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=("repeat", "stop", "redistribute"))
    stream, total, positions = case.world.stream(), 0, 0
    for step, batch, pieces in read(stream):
        rows = range(len(pieces))
        total += sum(counted(case.world.recipe.count, batch, row, pieces[row]) for row in rows)
        positions += batch["input_ids"].size
        at = stream.snapshot(step + 1)
        assert sum(pool.owed for pool in at.pools) == sum(pool.spent for pool in at.pools) == total
        assert at.positions == positions == stream.curriculum.positions_at(step + 1)
        assert sum(pool.debt for pool in at.pools) == 0
    for layout in stream.curriculum.stages:
        assert 0 <= layout.overshoot < max(s.step_positions for s in stream.curriculum.stretches)


@settings(max_examples=40)
@given(st.data())
def test_invariant_2_spent_is_owed_and_the_debt_rounded(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, stages=1)
    stream = case.world.stream()
    denominator = stream.curriculum.stages[0].race.denominator
    for pool in end(stream, read(stream)).pools:
        assert abs(pool.spent - pool.owed - Fraction(pool.debt, denominator)) < 1


@settings(max_examples=40)
@given(st.data(), st.integers(2, 50))
def test_invariant_2_changing_the_chunk_changes_no_batch(bank: Bank, data: st.DataObject, factor: int):
    case = draw_case(data.draw, bank, policies=("repeat", "stop", "redistribute"))
    stages = [stage | {"chunk": stage["chunk"] * factor} for stage in case.plain["stages"]]
    keys = {k: v for k, v in case.plain.items() if k not in ("pools", "stages")}
    other = world(bank.root, case.plain["pools"], stages, **keys)
    assert same(read(case.world.stream()), read(other.stream()))


def same(one: Batches, two: Batches) -> bool:
    return len(one) == len(two) and all(
        all(np.array_equal(a[1][key], b[1][key]) for key in a[1]) and a[2] == b[2]
        for a, b in zip(one, two, strict=True)
    )


@settings(max_examples=50)
@given(st.data())
def test_invariant_3_every_token_is_fresh_once_an_epoch_or_dropped(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=("repeat", "stop", "redistribute"))
    stream = case.world.stream()
    served: dict[str, Counter[tuple[Any, int]]] = {name: Counter() for name in stream.pools}
    for step, _, pieces in read(stream):
        for piece in (piece for row in pieces for piece in row):
            served[piece.pool].update((piece.document, j) for j in range(piece.fresh, piece.stop))
        for name, pool in zip(stream.pools, stream.snapshot(step + 1).pools, strict=True):
            check_epoch(case.sources[name], case.world, (name, pool), served[name])


def check_epoch(
    source: Source, made: World, state: tuple[str, PoolState], served: Counter[tuple[Any, int]]
) -> None:
    """No token more often than epochs were begun; between blocks nothing is missing."""
    name, pool = state
    cursor, stock = pool.cursor, sum(len(doc.tokens) for doc in source.docs)
    assert max(served.values(), default=0) <= cursor.epoch + 1
    if cursor.stage >= 0 or cursor.block > 0:
        assert served.total() + sum(pool.dropped.values()) <= (cursor.epoch + 1) * stock
        return
    assert served.total() + sum(pool.dropped.values()) == cursor.epoch * stock
    if not pool.dropped:
        assert set(served.values()) <= {cursor.epoch}
        assert len(served) == (stock if cursor.epoch else 0)
    assert made.recipe.exhaustion(name) == "repeat" or cursor.epoch <= made.recipe.epochs_allowed(name)


@settings(max_examples=50)
@given(st.data())
def test_invariant_3_a_token_is_a_label_once_iff_the_one_before_it_was_served_fresh(
    bank: Bank, data: st.DataObject
):
    case = draw_case(data.draw, bank, distinct=True)
    case = without(case, bank, labels="shifted", overlap_labels=False, cross_labels=False)
    labels: Counter[int] = Counter()
    right: Counter[int] = Counter()
    firsts = {doc.tokens[0] for s in case.sources.values() for doc in s.docs if doc.tokens}
    for _, batch, pieces in read(case.world.stream()):
        labels.update(label for label in batch["labels"].reshape(-1).tolist() if label >= FIRST)
        for piece in (piece for row in pieces for piece in row):
            tokens = case.sources[piece.pool].docs[piece.document].tokens
            right.update(tokens[piece.fresh + 1 : piece.stop + 1])
    assert Counter({t: n for t, n in labels.items() if t not in firsts}) == right
    begun = [doc for source in case.sources.values() for doc in source.docs if doc.tokens]
    assert all(doc.bos is not None or doc.lead for doc in begun if labels[doc.tokens[0]])


@settings(max_examples=40)
@given(st.data())
def test_invariant_3_with_marks_round_windows_a_token_is_a_label_once_iff_it_was_served_fresh(
    bank: Bank, data: st.DataObject
):
    draw = data.draw
    distinct = [name for name, source in bank.sources.items() if not source.repeats]
    chosen = draw(st.sampled_from([name for name in distinct if bank.marked.get(name)]))
    planned = draw_stage(draw, ["p"])
    context = planned["context"] + 3
    window = draw(st.integers(1, context - 2))
    slicing = planned["slicing"] | {"window": window, "stride": draw(st.integers(1, window))}
    slicing |= {"specials": "window", "min_tail": 0, "overlap_labels": False}
    method = draw(st.sampled_from(["best_fit", "none"]))
    planned |= {"context": context, "slicing": slicing, "packing": method, "chunk": 10_000}
    keys = {"labels": draw(st.sampled_from(["shifted", "inputs"]))}
    made = world(bank.root, {"p": {"path": chosen}}, [planned], **keys)
    labels: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for _, batch, pieces in read(made.stream()):
        labels.update(label for label in batch["labels"].reshape(-1).tolist() if label >= FIRST)
        for piece in (piece for row in pieces for piece in row):
            tokens = bank.sources[chosen].docs[piece.document].tokens
            right.update(tokens[piece.fresh : piece.stop])
    assert labels == right


def without(case: Case, bank: Bank, *, labels: str, **rules: bool) -> Case:
    """The same case under other label rules; no piece is filled in the middle."""
    stages = [
        stage
        | {"slicing": stage["slicing"] | {"overlap_labels": rules["overlap_labels"]}}
        | {"packing": stage["packing"] | {"cross_labels": rules["cross_labels"]}}
        for stage in case.plain["stages"]
    ]
    keys = {"seed": case.plain["seed"], "count": case.plain["count"], "labels": labels}
    pools = {name: pool | {"slicing": None, "transform": None} for name, pool in case.plain["pools"].items()}
    plain = {"pools": pools, "stages": stages, **keys}
    return Case(world(bank.root, pools, stages, **keys), case.sources, plain)


@settings(max_examples=50)
@given(st.data())
def test_invariant_4_body_special_and_padding_fill_every_row_and_are_counted(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=("repeat", "stop", "redistribute"))
    stream, names = case.world.stream(), COUNTS
    seen = [dict.fromkeys(names, 0) for _ in stream.pools]
    for _, batch, pieces in read(stream):
        for row, pool in enumerate(batch["pool"].tolist()):
            ids, mask = batch["input_ids"][row], batch["attention_mask"][row]
            body = sum(piece.stop - piece.start for piece in pieces[row])
            assert body == (ids >= FIRST).sum()
            assert not ids[mask == 0].any()
            assert set(batch["labels"][row][mask == 0]) <= {-100}
            seen[pool]["body"] += body
            seen[pool]["special"] += int(mask.sum()) - body
            seen[pool]["padding"] += int((mask == 0).sum())
            seen[pool]["labels"] += int((batch["labels"][row] != -100).sum())
            seen[pool]["overlap"] += sum(piece.fresh - piece.start for piece in pieces[row])
            seen[pool]["sequences"] += 1
    kinds = ("body", "special", "padding", "labels", "overlap", "sequences")
    got = [[getattr(pool, kind) for kind in kinds] for pool in stream.snapshot(stream_end(stream)).pools]
    assert got == [[pool[kind] for kind in kinds] for pool in seen]


def stream_end(stream: Stream) -> int:
    return stream.num_steps if stream.end_step is None else stream.end_step


@settings(max_examples=40)
@given(st.data())
def test_A14_provenance_says_where_every_id_comes_from(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank)
    for _, batch, pieces in read(case.world.stream()):
        for row, held in enumerate(pieces):
            ids = batch["input_ids"][row].tolist()
            for piece in held:
                tokens = case.sources[piece.pool].docs[piece.document].tokens[piece.start : piece.stop]
                assert ids[piece.column : piece.column + len(tokens)] == tokens
                assert piece.start <= piece.fresh <= piece.stop
