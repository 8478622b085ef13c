"""A stream and its plain reference, led side by side through everything that can happen to a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.mixing.growth import grown
from recipe.mixing.skipping import Skipped, skipped
from recipe.mixing.snapshot import PoolState, Snapshot
from recipe.mixing.stream import Stream
from recipe.mixing.unread import at_next_epoch
from recipe.mixing.withdrawals import Withdrawals
from recipe.pools import Pool, grown_from
from tests.mixing.build import World, everything, plain_batch
from tests.mixing.reference import (
    KINDS,
    Account,
    Course,
    EmptyError,
    Reader,
    Source,
    Told,
    fresh_of,
    skip,
    tell,
)


def told(world: World, sources: dict[str, Source]) -> Told:
    """What the rules serve; cases in which a pool gives nothing are passed over once the stream says so."""
    try:
        return tell(world.recipe, sources)
    except EmptyError:
        with pytest.raises(RecipeError, match="0 sequences"):
            everything(world.stream())
        assume(False)
        raise


class Twins:
    """Both at the same step."""

    def __init__(self, world: World, sources: dict[str, Source]) -> None:
        self.recipe, self.pools = world.recipe, dict(world.pools)
        self.course = Course(world.recipe, sources)
        self.withdrawn = Withdrawals.none()
        self.stream = world.stream()
        self.ended = False
        self.fresh: dict[str, Counter[tuple[int, int, int]]] = {name: Counter() for name in self.pools}
        """By pool, how often (epoch, document, token) was served fresh."""

    @property
    def step(self) -> int:
        """Steps served."""
        return self.course.step

    @property
    def finished(self) -> bool:
        """Whether no step is left."""
        return self.ended or self.step == len(self.course.steps)

    def reader(self, name: str) -> Reader:
        """The plain reading of a pool."""
        return self.course.readers[list(self.recipe.pools).index(name)]

    def snapshot(self) -> Snapshot:
        """The state of the stream, through a file."""
        at = self.stream.snapshot(self.step)
        plain = json.loads(json.dumps(at.to_plain()))
        back = Snapshot.from_plain(plain)
        assert (back, back.to_plain()) == (at, plain)
        return replace(back, ended=False)

    def go_on(self, base: Snapshot) -> None:
        """Serve from another state."""
        assert base.step == self.step
        self.stream = Stream(self.recipe, self.pools, [base], self.withdrawn)
        self.compare_accounts()

    def serve(self, steps: int) -> None:
        """Serve and compare; cases in which a pool gives nothing at all are passed over once both say so."""
        for _ in range(steps):
            if self.finished:
                return
            step = self.step
            try:
                rows = self.course.serve()
            except EmptyError:
                with pytest.raises(RecipeError, match="0 sequences"):
                    self.stream.batch(step)
                assume(False)
                raise
            if rows is None:
                with pytest.raises(ValueError, match="ended"):
                    self.stream.batch(step)
                self.ended = True
                return
            right: dict[str, Any] = {key: [row.arrays[key] for row in rows] for key in rows[0].arrays}
            assert self._batch(step) == right | {"pool": [row.pool for row in rows]}
            for pool, place, row in self.course.taken:
                name = self.stream.pools[pool]
                self.fresh[name].update((place.epoch, *token) for token in fresh_of(place, row))
            self.compare_accounts()

    def _batch(self, step: int) -> dict[str, Any]:
        """A step of the stream; steps are planned together, so that a later one may be told to fail."""
        try:
            return plain_batch(self.stream.batch(step))
        except RecipeError as error:
            assert "gives 0 sequences" in str(error)
            with pytest.raises(EmptyError):
                while self.course.step < len(self.course.steps):
                    self.course.serve()
            assume(False)
            raise

    def compare_accounts(self) -> None:
        """Both count the same; and in every epoch every token is fresh once, or dropped by one reason."""
        for reader, pool in zip(self.course.readers, self.stream.snapshot(self.step).pools, strict=True):
            kinds = {kind: getattr(pool, kind) for kind in KINDS}
            got = Account(pool.spent, pool.sequences, pool.distinct, kinds, dict(pool.dropped))
            assert got == reader.account, (got, reader.account)
            self._check_conservation(reader, pool)

    def _check_conservation(self, reader: Reader, pool: PoolState) -> None:
        served = self.fresh[reader.name]
        assert max(served.values(), default=0) <= 1
        assert served.total() == pool.body - pool.overlap
        if pool.cursor.stage < 0 and pool.cursor.block == 0 and not pool.held:
            over = reader.past + (reader.epoch_tokens if reader.epoch < pool.cursor.epoch else 0)
            assert served.total() + sum(pool.dropped.values()) == over

    def skip(self, steps: int, *, returned: bool) -> Skipped | None:
        """Skip steps of the stage that comes next; None where there is none."""
        if self.finished:
            return None
        try:
            course, num = skip(self.course, steps, returned=returned)
        except EmptyError:
            assume(False)
            raise
        if not num:
            return None
        at, after = self.snapshot(), self.stream.snapshot(self.step + num)
        made = skipped(self.stream.ground, at, after, returned=returned)
        self.course = course
        self.go_on(made.snapshot)
        return made

    def withdraw(self, documents: dict[str, list[int]]) -> None:
        """Take documents down from here on."""
        if self.finished:
            return
        at = self.snapshot()
        self.withdrawn = self.withdrawn.and_then(documents)
        assert Withdrawals.from_plain(json.loads(json.dumps(self.withdrawn.to_plain()))) == self.withdrawn
        for name, numbers in documents.items():
            for number in numbers:
                self.reader(name).gone.setdefault(number, self.withdrawn.number)
        self.go_on(at)

    def grow(self, name: str, pool: Pool, source: Source, *, now: bool) -> None:
        """Let a pool grow; ``now``: its epoch ends here."""
        if self.finished:
            return
        at, prefix = self.snapshot(), grown_from(self.pools[name], pool)
        index = list(self.recipe.pools).index(name)
        self.pools[name] = pool
        state = grown(at.pools[index], prefix)
        if now:
            state = at_next_epoch(self.recipe, pool, state, self.withdrawn.of(name))
        self.reader(name).grow(source, now=now)
        self.go_on(replace(at, pools=(*at.pools[:index], state, *at.pools[index + 1 :])))

    def happen(self, draw: Any, name: str, ages: Sequence[tuple[Pool, Source]]) -> None:
        """Serve, and a few times let a pool grow to its next age, or something else befall the run."""
        age = 0
        for _ in range(draw(st.integers(1, 5))):
            self.serve(draw(st.integers(0, 5)))
            event = draw(st.sampled_from(["grow", "grow", "returned", "burnt", "withdraw"]))
            if event == "grow" and age < len(ages):
                self.grow(name, *ages[age], now=draw(st.booleans()))
                age += 1
            elif event == "withdraw":
                last = len(self.reader(name).source.docs) - 1
                self.withdraw({name: draw(st.lists(st.integers(0, last), max_size=3))})
            elif event != "grow":
                self.skip(draw(st.integers(1, 4)), returned=event == "returned")
        self.serve(1000)
