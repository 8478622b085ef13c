"""A whole run in plain words: what the stream must serve, step by step. Slow, and independent of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from recipe.config import Recipe, Rule
from recipe.maths.order import key, permute
from tests.sequences.reference import Doc, Row, counts, left_over, open_block, written

KINDS = ("body", "overlap", "special", "padding", "labels", "documents")


@dataclass(repr=False)
class Source:
    """A pool's contents: its documents, and the document numbers of every unit."""

    docs: list[Doc]
    units: list[list[int]]


class EmptyError(Exception):
    """A whole epoch gives no row."""


@dataclass
class Account:
    spent: int = 0
    sequences: int = 0
    distinct: int = 0
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    dropped: dict[str, int] = field(default_factory=dict)


class Reader:
    """One pool, read row by row."""

    def __init__(self, recipe: Recipe, name: str, source: Source) -> None:
        self.recipe, self.name, self.source = recipe, name, source
        self.units = recipe.pools[name].block_units or 0
        self.num_blocks = -(-len(source.units) // self.units)
        self.epoch, self.block, self.started = 0, -1, False
        self.docs: list[Doc] = []
        self.numbers: list[int] = []
        self.rows: list[Row] = []
        self.rule: Rule | None = None
        self.depth = 0
        self.account = Account()

    def shuffled(self, rows: list[Row]) -> list[Row]:
        k = key(self.recipe.seed, self.epoch, "shuffle", self.name, self.block, self.depth)
        return [rows[permute(i, len(rows), k)] for i in range(len(rows))]

    def ready(self, rule: Rule) -> bool:
        """Have rows under this rule at hand; False when no further epoch is allowed."""
        if self.rows and rule != self.rule:
            self.depth += 1
            self.rows = self.shuffled(open_block(self.docs, rule, left_over(self.docs, self.rows)).rows)
        self.rule = rule
        empty = 0
        while not self.rows:
            if self.block + 1 < self.num_blocks:
                self.block += 1
            else:
                self.block = 0
                self.epoch += self.started
            if self.block == 0 and not self.may_turn():
                self.block = self.num_blocks - 1
                self.epoch -= 1
                return False
            self.open(rule)
            empty += 1
            if empty > 2 * self.num_blocks + 2:
                raise EmptyError(self.name)
        return True

    def may_turn(self) -> bool:
        policy = self.recipe.exhaustion(self.name)
        return policy == "repeat" or self.epoch < self.recipe.epochs_allowed(self.name)

    def open(self, rule: Rule) -> None:
        self.started = True
        n, size = len(self.source.units), self.units
        k = key(self.recipe.seed, self.epoch, "order", self.name)
        places = range(self.block * size, min(n, (self.block + 1) * size))
        self.numbers = [d for place in places for d in self.source.units[permute(place, n, k)]]
        self.docs = [self.source.docs[number] for number in self.numbers]
        self.depth = 0
        opened = open_block(self.docs, rule)
        for reason, tokens in opened.dropped.items():
            self.account.dropped[reason] = self.account.dropped.get(reason, 0) + tokens
        self.rows = self.shuffled(opened.rows)

    def take(self, count: str) -> tuple[Row, list[Doc], list[int], int]:
        row = self.rows.pop(0)
        assert self.rule is not None
        got = counts(self.docs, row, self.rule)
        for kind in KINDS:
            self.account.kinds[kind] += got[kind]
        if self.epoch == 0:
            self.account.distinct += got["documents"]
        counted = {
            "body": got["body"],
            "fresh": got["body"] - got["overlap"],
            "labels": got["labels"],
            "positions": self.rule.context,
        }[count]
        self.account.spent += counted
        self.account.sequences += 1
        return row, self.docs, self.numbers, counted


def pick(shares: Sequence[Fraction], spent: Sequence[int], context: int) -> int:
    """The rule of the schedule in fractions: shares, tokens spent in the leg, context."""
    total = sum(spent)
    drawn = [p for p, share in enumerate(shares) if share]
    if len(drawn) == 1:
        return drawn[0]
    ahead = (1 - Fraction(1, 2 * len(drawn) - 2)) * context
    debts = {p: spent[p] - shares[p] * total for p in drawn}
    able = [p for p in drawn if debts[p] + context * (1 - shares[p]) <= ahead]
    return min(able, key=lambda p: ((debts[p] + ahead) / shares[p], p))


@dataclass
class Served:
    """A row as it stands in a batch, with where it comes from."""

    pool: int
    arrays: dict[str, list[int]]
    pieces: list[tuple[int, int, int, int, int]]
    """(document number, start, stop, fresh, column) of every stretch of document tokens."""
    fresh: list[tuple[int, int]]
    """(document number, token) of every token served for the first time in its epoch."""


@dataclass
class Told:
    """A run as it must be: batches, and the accounts after every step; ``ended`` when a pool ran dry."""

    batches: list[list[Served]]
    accounts: list[list[Account]]
    counted: list[int]
    stages: list[int]
    ended: bool


def steps_of(recipe: Recipe) -> list[tuple[int, int]]:
    """(stage index, sequences) of every step."""
    steps: list[tuple[int, int]] = []
    position = 0
    for index, stage in enumerate(recipe.stages.values()):
        first, start = len(steps), position
        while True:
            if stage.steps is not None and len(steps) - first == stage.steps:
                break
            if stage.tokens is not None and position - start >= stage.tokens:
                break
            if stage.until is not None and position >= stage.until:
                break
            batch = [size for at, size in stage.ramp if at <= position][-1]
            steps.append((index, batch))
            position += batch * stage.context
    return steps


def tell(recipe: Recipe, sources: dict[str, Source]) -> Told:
    """Run a settled recipe."""
    names = list(recipe.pools)
    readers = [Reader(recipe, name, sources[name]) for name in names]
    told = Told([], [[Account() for _ in names]], [0], [], False)
    stage_at, shares, spent = -1, [Fraction(0)], [0]
    for index, batch in steps_of(recipe):
        stage = list(recipe.stages.values())[index]
        if index != stage_at:
            stage_at = index
            shares = list(recipe.shares(stage.name).values())
            spent = [0] * len(names)
        rows: list[Served] = []
        while len(rows) < batch:
            p = pick(shares, spent, stage.context)
            rule = recipe.rule(stage.name, names[p])
            if not readers[p].ready(rule):
                rest = 1 - shares[p]
                if recipe.exhaustion(names[p]) == "stop" or not rest:
                    told.ended = True
                    return told
                shares = [Fraction(0) if q == p else share / rest for q, share in enumerate(shares)]
                spent = [0] * len(names)
                continue
            row, docs, numbers, counted = readers[p].take(recipe.count)
            spent[p] += counted
            rows.append(_served(p, row, (docs, numbers), rule))
        told.batches.append(rows)
        told.stages.append(index)
        told.counted.append(sum(spent))
        told.accounts.append([copy.deepcopy(reader.account) for reader in readers])
    return told


def _served(pool: int, row: Row, texts: tuple[list[Doc], list[int]], rule: Rule) -> Served:
    docs, numbers = texts
    pieces, fresh, column = [], [], 0
    for segment in row.segments:
        body = [cell for cell in segment if 0 <= cell.place < len(docs[cell.document].tokens)]
        if body:
            start, stop = body[0].place, body[-1].place + 1
            new = [cell.place for cell in body if cell.new]
            first = new[0] if new else stop
            at = column + (segment[0].place == -1)
            pieces.append((numbers[body[0].document], start, stop, first, at))
            fresh += [(numbers[body[0].document], place) for place in new]
        column += len(segment)
    return Served(pool, written(docs, row, rule), pieces, fresh)
