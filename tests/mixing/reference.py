"""A whole run in plain words: what the stream must serve, step by step. Slow, and independent of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from recipe.config import Recipe, Rule
from recipe.maths.draws import draw
from recipe.maths.order import key, permute
from tests.sequences.edges import may_cut
from tests.sequences.reference import (
    Choices,
    Doc,
    Draw,
    Row,
    counts,
    left_over,
    open_block,
    repeated_tokens,
    takes,
    written,
)

KINDS = ("body", "overlap", "special", "padding", "labels", "documents", "separators")


@dataclass(repr=False)
class Source:
    """A pool's contents: its documents, and the document numbers of every unit."""

    docs: list[Doc]
    units: list[list[int]]
    repeats: int | None = None
    """Tokens of the stretches that were looked for twice in a unit."""

    @cached_property
    def repeated(self) -> set[tuple[int, int]]:
        """(document, token) of what repeats."""
        tokens = [[self.docs[number].tokens for number in unit] for unit in self.units]
        return repeated_tokens(tokens, self.repeats) if self.repeats else set()

    def __post_init__(self) -> None:
        for number, unit in enumerate(self.units):
            for document in unit if len(unit) > 1 else ():
                self.docs[document].unit = number

    def __deepcopy__(self, memo: object) -> Source:
        return self


class EmptyError(Exception):
    """A whole epoch gives no row."""


@dataclass
class Account:
    spent: int = 0
    sequences: int = 0
    distinct: int = 0
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    dropped: dict[str, int] = field(default_factory=dict)


@dataclass(repr=False, eq=False)
class Place:
    """A block, or a returned range of one: the rows that are still to be served of it."""

    epoch: int
    block: int
    docs: list[Doc]
    numbers: list[int]
    rows: list[Row]
    rule: Rule
    withdrawn: int
    depth: int = 0


class Reader:
    """One pool, read row by row."""

    def __init__(self, recipe: Recipe, name: str, source: Source) -> None:
        self.recipe, self.name, self.source = recipe, name, source
        self.size = recipe.pools[name].block_units or 0
        self.epoch, self.block = 0, -1
        self.num_units = len(source.units)
        self.main: Place | None = None
        self.held: list[Place] = []
        self.gone: dict[int, int] = {}
        """Withdrawal of every document that was withdrawn."""
        self.account = Account()
        self.past = 0
        """Tokens of the epochs that are over."""

    @property
    def number(self) -> int:
        return max(self.gone.values(), default=0)

    @property
    def read_units(self) -> int:
        """Units of this epoch."""
        fraction = self.recipe.simulated_fraction
        return self.num_units if fraction is None else -int(-self.num_units * fraction // 1)

    def drop(self, reason: str, tokens: int) -> None:
        if tokens:
            self.account.dropped[reason] = self.account.dropped.get(reason, 0) + tokens

    def shuffled(self, place: Place, rows: list[Row]) -> list[Row]:
        name = self.recipe.order_name(self.name)
        k = key(self.recipe.seed, place.epoch, "shuffle", name, place.block, place.depth)
        return [rows[permute(i, len(rows), k)] for i in range(len(rows))]

    @property
    def here(self) -> Place | None:
        """What is read: the open block; when no block of the epoch is left, the first returned range."""
        if self.main is not None and self.main.rows:
            return self.main
        if self.block + 1 < self.num_blocks:
            return None
        return self.held[0] if self.held else None

    @property
    def num_blocks(self) -> int:
        return -(-self.read_units // self.size)

    def ready(self, rule: Rule) -> bool:
        """Have rows under this rule at hand; False when no further epoch is allowed."""
        opened, most = 0, 3 * self.num_blocks + len(self.held) + 2
        while True:
            place = self.here
            if place is not None:
                self.settle(place, rule)
                if place.rows:
                    return True
                self.held = [held for held in self.held if held.rows]
                continue
            opened += 1
            if opened > most:
                raise EmptyError(self.name)
            if not self.next_block(rule):
                return False

    def next_block(self, rule: Rule) -> bool:
        if self.block + 1 < self.num_blocks:
            if self.block < 0 and not self.may_read(self.epoch):
                return False
            self.block += 1
        else:
            if not self.may_read(self.epoch + 1):
                return False
            self.turn()
            self.block = 0
        self.open(rule)
        return True

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of the epoch."""
        return self.here is None and self.block + 1 >= self.num_blocks

    @property
    def epoch_tokens(self) -> int:
        units = self.order(range(self.read_units))
        return sum(len(self.source.docs[d].tokens) for unit in units for d in self.source.units[unit])

    def grow(self, source: Source, *, now: bool) -> None:
        """More documents behind those that are there; ``now``: what is unread of the epoch is dropped."""
        if self.block >= 0 and now and not self.is_over:
            places = range((self.block + 1) * self.size, self.read_units)
            numbers = [d for unit in self.order(places) for d in self.source.units[unit]]
            open_places = [*([self.main] if self.main else []), *self.held]
            rows = [(place, row) for place in open_places for row in place.rows]
            unread = sum(len(fresh_of(place, row)) for place, row in rows)
            self.drop("unread", unread + sum(len(self.source.docs[d].tokens) for d in numbers))
            self.main, self.held, self.source = None, [], source
            self.turn()
        self.source = source
        if self.block < 0:
            self.num_units = len(source.units)

    def turn(self) -> None:
        """The next epoch reads everything that the pool holds by then."""
        self.past += self.epoch_tokens
        self.epoch, self.block, self.num_units = self.epoch + 1, -1, len(self.source.units)

    def may_read(self, epoch: int) -> bool:
        policy = self.recipe.exhaustion(self.name)
        return policy == "repeat" or epoch < self.recipe.epochs_allowed(self.name)

    def order(self, places: range) -> list[int]:
        """Units at some places of this epoch's order."""
        seed, name, n = self.recipe.seed, self.recipe.order_name(self.name), self.num_units
        first, now = key(seed, 0, "order", name), key(seed, self.epoch, "order", name)
        if self.recipe.simulated_fraction is None or self.epoch == 0:
            return [permute(place, n, now) for place in places]
        return [permute(permute(place, self.read_units, now), n, first) for place in places]

    def open(self, rule: Rule) -> None:
        places = range(self.block * self.size, min(self.read_units, (self.block + 1) * self.size))
        numbers = [d for unit in self.order(places) for d in self.source.units[unit]]
        docs = [self.source.docs[number] for number in numbers]
        kept = [replace(d, tokens=[]) if n in self.gone else d for n, d in zip(numbers, docs, strict=True)]
        self.drop("withdrawn", sum(len(d.tokens) - len(k.tokens) for d, k in zip(docs, kept, strict=True)))
        opened = open_block(kept, rule, None, self.choices(self.epoch, numbers, rule))
        for reason, tokens in opened.dropped.items():
            self.drop(reason, tokens)
        self.main = Place(self.epoch, self.block, docs, numbers, [], rule, self.number)
        self.main.rows = self.shuffled(self.main, opened.rows)

    def choices(self, epoch: int, numbers: list[int], rule: Rule) -> Choices:
        name = self.recipe.order_name(self.name)

        def drawn(domain: str) -> Draw:
            k = key(self.recipe.seed, epoch, domain, name)
            return lambda document, token: draw(k, (numbers[document], token), 4)

        def permitted(document: int, cut: int) -> bool:
            doc = self.source.docs[numbers[document]]
            return cut in doc.sections or may_cut(doc.tokens, cut, rule.align)

        def repeated(document: int, token: int) -> bool:
            return (numbers[document], token) in self.source.repeated

        domains = ("transform", "offset", "density", "separators")
        return Choices(*map(drawn, domains), permitted, repeated)

    def settle(self, place: Place, rule: Rule) -> None:
        """Cut a place that cannot go on as it is."""
        late = {i for i, n in enumerate(place.numbers) if self.gone.get(n, 0) > place.withdrawn}
        if rule == place.rule and not any(late & shown(row, place.rule) for row in place.rows):
            return
        runs = left_over(place.docs, place.rows)
        self.drop("withdrawn", sum(b - a for i, a, b in runs if i in late))
        place.depth += 1
        left = [run for run in runs if run[0] not in late]
        choices = self.choices(place.epoch, place.numbers, rule)
        hidden = frozenset(i for i, n in enumerate(place.numbers) if n in self.gone)
        opened = open_block(place.docs, rule, left, choices, hidden)
        place.rows = self.shuffled(place, opened.rows)
        place.rule, place.withdrawn = rule, self.number

    def take(self, count: str) -> tuple[Row, Place, int]:
        place = self.here
        assert place is not None
        row = place.rows.pop(0)
        got = counts(place.docs, row, place.rule)
        for kind in KINDS:
            self.account.kinds[kind] += got[kind]
        if place.epoch == 0:
            self.account.distinct += got["documents"]
        counted = {
            "body": got["body"],
            "fresh": got["body"] - got["overlap"],
            "labels": got["labels"],
            "positions": place.rule.context,
        }[count]
        self.account.spent += counted
        self.account.sequences += 1
        if not place.rows and place in self.held:
            self.held.remove(place)
        return row, place, counted


def shown(row: Row, rule: Rule) -> set[int]:
    """Documents (of a block) that a row shows anything of, a label across documents included."""
    found = {cell.document for segment in row.segments for cell in segment}
    if rule.method == "concat" and rule.cross_labels and row.ahead is not None:
        found.add(row.ahead.document)
    return found


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


def carried(old: Sequence[Fraction], new: Sequence[Fraction], spent: Sequence[int]) -> list[int]:
    """What pools are ahead or behind when shares change, in whole tokens; nothing where one leaves."""
    if any(a and not b for a, b in zip(old, new, strict=True)):
        return [0] * len(spent)
    due = [share * sum(spent) for share in old]
    whole = [int(d // 1) for d in due]
    rest = sorted(range(len(due)), key=lambda p: (-(due[p] % 1), p))
    for p in rest[: sum(spent) - sum(whole)]:
        whole[p] += 1
    return [had - owed for had, owed in zip(spent, whole, strict=True)]


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


class Course:
    """A run that is served step by step; what a step did can be undone by going on from a copy."""

    def __init__(self, recipe: Recipe, sources: dict[str, Source]) -> None:
        self.recipe = recipe
        self.steps = steps_of(recipe)
        self.readers = [Reader(recipe, name, sources[name]) for name in recipe.pools]
        self.step, self.stage = 0, -1
        self.shares, self.spent = [Fraction(0)], [0]
        self.leg, self.positions, self.left = 0, 0, set[int]()
        self.taken: list[tuple[int, Place, Row]] = []
        """Pool, place and row of everything served in the last step."""

    def serve(self) -> list[Served] | None:
        """The rows of the next step; None when a pool runs dry and the run ends."""
        index, batch = self.steps[self.step]
        stage = list(self.recipe.stages.values())[index]
        if index != self.stage:
            self.stage = index
            self.leg, self.positions, self.left = 0, 0, set()
            self.shares = list(self.recipe.legs(stage.name)[0].shares.values())
            self.spent = [0] * len(self.readers)
        if not self.change_leg(stage.name):
            return None
        rows: list[Served] = []
        self.taken = []
        while len(rows) < batch:
            p = pick(self.shares, self.spent, stage.context)
            reader = self.readers[p]
            rule = self.recipe.rule(stage.name, reader.name)
            if not reader.ready(rule):
                rest = 1 - self.shares[p]
                if self.recipe.exhaustion(reader.name) == "stop" or not rest:
                    return None
                self.left.add(p)
                self.shares = [Fraction(0) if q == p else s / rest for q, s in enumerate(self.shares)]
                self.spent = [0] * len(self.readers)
                continue
            row, place, counted = reader.take(self.recipe.count)
            self.spent[p] += counted
            self.taken.append((p, place, row))
            rows.append(_served(p, row, (place.docs, place.numbers), rule))
        self.step += 1
        self.positions += batch * stage.context
        return rows

    def change_leg(self, stage: str) -> bool:
        """Take up the shares of the step's leg; False when only pools that left would have one."""
        legs = self.recipe.legs(stage)
        leg = max(k for k, leg in enumerate(legs) if leg.start <= self.positions)
        if leg == self.leg:
            return True
        stated = list(legs[leg].shares.values())
        shares = [Fraction(0) if p in self.left else share for p, share in enumerate(stated)]
        if not sum(shares):
            return False
        shares = [share / sum(shares) for share in shares]
        self.spent = carried(self.shares, shares, self.spent)
        self.leg, self.shares = leg, shares
        return True


def skip(course: Course, steps: int, *, returned: bool) -> tuple[Course, int]:
    """The course as it goes on when some steps of a stage are not served, and how many these were."""
    later = copy.deepcopy(course)
    taken: list[tuple[int, Place, Row]] = []
    stage = course.steps[course.step][0]
    while later.step < len(later.steps) and later.step < course.step + steps:
        if later.steps[later.step][0] != stage:
            break
        before = copy.deepcopy(later)
        if later.serve() is None:
            later = before
            break
        taken += later.taken
    left = copy.deepcopy(course)
    left.readers = later.readers
    for p, (reader, before) in enumerate(zip(later.readers, course.readers, strict=True)):
        dropped = reader.account.dropped
        mine = [(place, row) for q, place, row in taken if q == p]
        reader.account = copy.deepcopy(before.account)
        reader.account.dropped = dropped
        if returned:
            reader.held += _ranges(mine)
        else:
            reader.drop("skipped", sum(len(fresh_of(place, row)) for place, row in mine))
    return left, later.step - course.step


def _ranges(taken: list[tuple[Place, Row]]) -> list[Place]:
    ranges: list[tuple[Place, Place]] = []
    for place, row in taken:
        if not ranges or ranges[-1][0] is not place:
            ranges.append((place, copy.copy(place)))
            ranges[-1][1].rows = []
        ranges[-1][1].rows.append(row)
    return [held for _, held in ranges]


def fresh_of(place: Place, row: Row) -> list[tuple[int, int]]:
    """(document number, token) of everything that a row serves for the first time in its epoch."""
    cells = [cell for segment in row.segments for cell in segment if cell.new]
    return [
        (place.numbers[cell.document], cell.place)
        for cell in cells
        if 0 <= cell.place < len(place.docs[cell.document].tokens)
    ]


def tell(recipe: Recipe, sources: dict[str, Source]) -> Told:
    """Run a settled recipe."""
    course = Course(recipe, sources)
    told = Told([], [[Account() for _ in course.readers]], [0], [], False)
    while course.step < len(course.steps):
        rows = course.serve()
        if rows is None:
            told.ended = True
            break
        told.batches.append(rows)
        told.stages.append(course.stage)
        told.counted.append(sum(course.spent))
        told.accounts.append([copy.deepcopy(reader.account) for reader in course.readers])
    return told


def _served(pool: int, row: Row, texts: tuple[list[Doc], list[int]], rule: Rule) -> Served:
    docs, numbers = texts
    pieces, fresh, column = [], [], 0
    for number, segment in enumerate(row.segments):
        body = [cell for cell in segment if 0 <= cell.place < len(docs[cell.document].tokens)]
        for part in dict.fromkeys(cell.part for cell in body):
            mine = [cell for cell in body if cell.part == part]
            start, stop = mine[0].place, mine[-1].place + 1
            new = [cell.place for cell in mine if cell.new]
            first = new[0] if new else stop
            pieces.append((numbers[body[0].document], start, stop, first, column + segment.index(mine[0])))
            fresh += [(numbers[body[0].document], place) for place in new]
        column += len(segment)
        if not row.goes_on(number + 1):
            column += takes(column, rule) - column
    return Served(pool, written(docs, row, rule), pieces, fresh)
