"""Leakage: what training reads of the pools that measure it, found exactly and in bounded memory.

Two texts share a stretch of n tokens, or a whole document. Held-out pools are taken some documents at a
time; of each such slice every stretch of n tokens is hashed into a table, and every pool that training
reads is gone through once. What a hash proposes is compared token by token before it is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from heapq import heappush, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.audit.shared_text import Run, Seen, Slice, Stretch, cut, shared_runs, slice_of, stretches_of
from recipe.pools import Pool
from recipe.pools.same_tokenizer import Stated, cannot_tell, check_comparable

NGRAM = 50
"""Tokens of a stretch, by default."""
SLICE_TOKENS = 16 << 20
"""Held-out tokens that a table is made of at once: about 40 bytes of memory each."""
SHOWN = 1000
"""Leaks that are kept with their places, the longest ones; the rest is counted."""

Progress = Callable[[int, int], None]
"""Called with the tokens of training looked at, and those to be looked at in all."""


@dataclass(frozen=True, slots=True)
class Place:
    """Tokens of a document, marks not counted."""

    pool: str
    document: int | str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Leak:
    """The longest stretch that two documents share at two places."""

    held: Place
    trained: Place
    whole: bool
    """All of the held-out document."""


@dataclass(frozen=True, slots=True)
class Leaked:
    """What was found of one held-out pool."""

    documents: int
    tokens: int
    leaked_documents: int
    """Documents that share something with training."""
    leaked_tokens: int
    """Tokens of them that lie in a shared stretch."""
    short_documents: int
    """Documents with fewer tokens than a stretch: only compared as a whole."""
    found_in: Mapping[str, int]
    """Documents that share something with each pool of training."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was found in one pool that training reads."""

    documents: int
    tokens: int
    leaking_documents: int


@dataclass(frozen=True, slots=True)
class Leakage:
    """What training reads of held-out pools."""

    ngram: int
    held: Mapping[str, Leaked]
    trained: Mapping[str, Read]
    leaks: tuple[Leak, ...]
    """The longest ones, longest first, at most ``SHOWN``."""
    num_leaks: int
    unchecked: tuple[str, ...] = ()
    """Sentences on pools that do not say their tokenizer: that nothing was found clears none of them."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found, and every pool says that its ids can be compared."""
        return self.num_leaks == 0 and not self.unchecked

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"ok": self.ok, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is looked for, and where not."""

    ngram: int = NGRAM
    """Tokens of a stretch; shorter documents are compared as a whole."""
    left_out: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Documents of training that are not read, by pool."""
    said: Stated | None = None
    """The tokenizer that is said to have made the pools that do not say theirs."""
    slice_tokens: int = SLICE_TOKENS
    """Held-out tokens of one passage through the pools, unless one document has more."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        if self.ngram < 1 or self.slice_tokens < 1:
            raise ValueError(
                f"ngram and slice_tokens are at least 1, not {self.ngram} and {self.slice_tokens}"
            )


def find_leakage(
    trained: Mapping[str, Pool],
    held: Mapping[str, Pool],
    search: Search | None = None,
    progress: Progress = lambda done, total: None,
) -> Leakage:
    """Every stretch of held-out documents that pools of training hold too.

    Args:
        trained: pools that training reads, by name; no stretch goes from one document to the next.
        held: held-out pools, by name.
        search: what is looked for; default: stretches of ``NGRAM`` tokens.
        progress: called while pools are gone through.

    Raises:
        RecipeError: pools of different tokenizers, as far as they say or their ids tell.
    """
    both = {f"{name} (trained on)" if name in held else name: pool for name, pool in trained.items()}
    both |= held
    search = search or Search()
    check_comparable(both, search.said)
    ngram = search.ngram
    slices = [(name, ends) for name, pool in held.items() for ends in cut(pool, search.slice_tokens)]
    total = len(slices) * sum(pool.num_tokens for pool in trained.values())
    findings, done = _Findings(ngram, held, trained), 0
    for name, (first, last) in slices:
        part = slice_of(held[name], np.setdiff1d(np.arange(first, last), held[name].erased), ngram)
        anywhere = Seen(part)
        for pool in trained.values():
            seen = Seen(part)
            unread = search.left_out.get(pool.name, np.empty(0, np.int64))
            for stretch in stretches_of(pool, unread):
                findings.add((name, part), (pool, stretch), seen)
                done += int((stretch.bodies[:, 1] - stretch.bodies[:, 0]).sum())
                progress(done, total)
            findings.count_documents((name, part), pool.name, seen)
            anywhere.add(seen)
        findings.count_tokens((name, part), anywhere)
    return replace(findings.result(), unchecked=cannot_tell(both, search.said))


class _Findings:
    """What is found, counted while slices and pools are gone through."""

    def __init__(self, ngram: int, held: Mapping[str, Pool], trained: Mapping[str, Pool]) -> None:
        self._ngram, self._held, self._trained = ngram, held, trained
        self._leaks: list[tuple[int, int, Leak]] = []
        """A heap: the shortest on top, of as short ones the last found."""
        self._num_leaks = 0
        self._leaking: dict[str, set[int]] = defaultdict(set)
        """Documents by pool of training."""
        self._found_in: dict[tuple[str, str], int] = defaultdict(int)
        """Held-out documents by held-out pool and pool of training."""
        self._tokens: dict[str, int] = defaultdict(int)
        self._documents: dict[str, int] = defaultdict(int)
        self._shorts: dict[str, int] = defaultdict(int)

    def add(self, held: tuple[str, Slice], trained: tuple[Pool, Stretch], seen: Seen) -> None:
        """Look at some documents of training for what a slice holds."""
        (name, part), (pool, stretch) = held, trained
        for run in shared_runs(part, stretch, self._ngram):
            self._num_leaks += 1
            self._leaking[pool.name].add(int(stretch.documents[run.at]))
            seen.note(run, self._ngram)
            key = run.stop - run.start, -self._num_leaks
            if len(self._leaks) < SHOWN:
                heappush(self._leaks, (*key, _leak(name, part, (pool, stretch), run)))
            elif key > self._leaks[0][:2]:
                heapreplace(self._leaks, (*key, _leak(name, part, (pool, stretch), run)))

    def count_documents(self, held: tuple[str, Slice], trained: str, seen: Seen) -> None:
        """Count the documents of a slice that were seen in one pool of training."""
        name, part = held
        self._found_in[name, trained] += _touched(part, part.tokens_of(seen, self._ngram))

    def count_tokens(self, held: tuple[str, Slice], seen: Seen) -> None:
        """Count what of a slice was seen anywhere."""
        name, part = held
        covered = part.tokens_of(seen, self._ngram)
        self._tokens[name] += int(covered.sum())
        self._documents[name] += _touched(part, covered)
        self._shorts[name] += int((part.short_groups >= 0).sum())

    def result(self) -> Leakage:
        """All that was found."""
        held = {
            name: Leaked(
                documents=pool.num_documents,
                tokens=pool.stock,
                leaked_documents=self._documents[name],
                leaked_tokens=self._tokens[name],
                short_documents=self._shorts[name],
                found_in={where: self._found_in[name, where] for where in self._trained},
            )
            for name, pool in self._held.items()
        }
        trained = {
            name: Read(pool.num_documents, pool.stock, len(self._leaking[name]))
            for name, pool in self._trained.items()
        }
        leaks = tuple(leak for *_, leak in sorted(self._leaks, key=lambda kept: kept[:2], reverse=True))
        return Leakage(self._ngram, held, trained, leaks, self._num_leaks)


def _touched(part: Slice, covered: NDArray[np.bool_]) -> int:
    """Documents of a slice with a token that is covered."""
    sums = np.concatenate([[0], np.cumsum(covered)])
    return int((sums[part.bodies[:, 1]] > sums[part.bodies[:, 0]]).sum())


def _leak(name: str, part: Slice, trained: tuple[Pool, Stretch], run: Run) -> Leak:
    """A run with the ids of both documents and places inside them."""
    pool, stretch = trained
    document = part.document_of(run.held)
    first, begin = int(part.bodies[document, 0]), int(stretch.bodies[run.at, 0])
    (held_id,), (trained_id,) = (
        part.pool.ids(part.documents[[document]]),
        pool.ids(stretch.documents[[run.at]]),
    )
    size = run.stop - run.start
    held = Place(name, held_id, run.held - first, run.held - first + size)
    return Leak(
        held,
        Place(pool.name, trained_id, run.start - begin, run.stop - begin),
        whole=size == int(part.bodies[document, 1]) - first,
    )
