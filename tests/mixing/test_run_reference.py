"""The stream equals a plain-Python run of the rules, over random recipes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.mixing.snapshot import Snapshot
from tests.mixing.build import everything
from tests.mixing.reference import KINDS, Account, Served
from tests.mixing.twins import told
from tests.mixing.worlds import Bank, draw_case

POLICIES = ("repeat", "stop", "redistribute")


def as_batch(rows: list[Served]) -> dict[str, list[object]]:
    batch: dict[str, list[object]] = {key: [row.arrays[key] for row in rows] for key in rows[0].arrays}
    return batch | {"pool": [row.pool for row in rows]}


def account_of(snapshot: Snapshot) -> list[Account]:
    return [
        Account(
            spent=pool.spent,
            sequences=pool.sequences,
            distinct=pool.distinct,
            kinds={kind: getattr(pool, kind) for kind in KINDS},
            dropped=dict(pool.dropped),
        )
        for pool in snapshot.pools
    ]


@settings(max_examples=120)
@given(st.data())
def test_every_batch_is_the_one_the_rules_give(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    right = told(case.world, case.sources)
    stream = case.world.stream()
    assert everything(stream) == [as_batch(rows) for rows in right.batches]
    assert stream.end_step == (len(right.batches) if right.ended else None)


@settings(max_examples=40)
@given(st.data())
def test_every_snapshot_counts_what_the_rules_served(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    right = told(case.world, case.sources)
    stream = case.world.stream()
    for step, accounts in enumerate(right.accounts):
        assert account_of(stream.snapshot(step)) == accounts


@settings(max_examples=40)
@given(st.data())
def test_A14_provenance_names_every_stretch_of_every_row(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank, policies=POLICIES)
    right = told(case.world, case.sources)
    stream = case.world.stream()
    for step, rows in enumerate(right.batches):
        for index, row in enumerate(rows):
            pieces = [(stream.pools.index(p.pool), *p[1:-1]) for p in stream.provenance(step, index)]
            assert pieces == [(row.pool, *piece) for piece in row.pieces]
