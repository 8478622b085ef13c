"""How each pool was read, and what of it was lost: the account of its documents and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from recipe.audit.account import KINDS, Plain
from recipe.audit.ancestry import with_parents
from recipe.audit.course import Course
from recipe.audit.reads import History, histories
from recipe.audit.spread import MOST_DOCUMENTS, Spread, count, spread_of, summed
from recipe.audit.state import Malformed, PoolState
from recipe.audit.tags import Tags, by_tags, has_tags
from recipe.errors import RecipeError
from recipe.pools import Pool

_FAULTS = (Malformed, RecipeError, ValueError, LookupError, ArithmeticError, AssertionError)


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolReading:
    """One pool: what was read of it, how often, and what was not served."""

    spread: Spread | None
    """None where it cannot be told; ``note`` says why."""
    tags: Tags = field(default_factory=dict)
    """What was read by the documents' tags; {} for a pool without any."""
    begun: int = 0
    """Documents begun, over all epochs, as the record has it."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Tokens that were not served, by reason, as the record has it."""
    discarded: Mapping[str, int] = field(default_factory=dict)
    """Tokens that were served and that rewinds discarded, by kind."""
    replaced: int = 0
    """Documents begun of other pools that stood in its place."""
    note: str = ""

    def to_plain(self) -> Plain:
        """As ``recipe audit --json`` prints it."""
        spread = self.spread
        known: dict[str, Any] = {"documents": None, "distinct": None, "readings": None, "tokens": None}
        if spread is not None:
            known = {
                "documents": spread.documents,
                "distinct": spread.distinct,
                "readings": {str(times): number for times, number in sorted(spread.readings.items())},
                "tokens": spread.tokens,
                "covered": spread.covered,
            }
        tags = {
            key: {value: asdict(one) for value, one in values.items()} for key, values in self.tags.items()
        }
        return {
            **known,
            "begun": self.begun,
            "tags": tags,
            "dropped": dict(self.dropped),
            "discarded": dict(self.discarded),
            "replaced": self.replaced,
            "note": self.note,
        }


def readings_of(folder: Path, course: Course, pools: Mapping[str, Pool]) -> dict[str, PoolReading]:
    """Of every pool of the recipe in force; ``pools`` are those that are there."""
    state = course.lineage.furthest()[1]
    if state is None:
        return {}
    try:
        courses, whole = with_parents(folder, course)
        known = histories(courses, pools, whole=whole)
    except _FAULTS:
        known = {}
    discarded = _discarded(course)
    return {
        name: _reading(pools.get(name), known.get(name), at, discarded.get(name, {}))
        for name, at in zip(course.intent.names, state.pools, strict=True)
    }


def _reading(
    pool: Pool | None, history: History | None, at: PoolState, discarded: Mapping[str, int]
) -> PoolReading:
    spread, note = None, "" if history is None else history.note
    tags: Tags | None = {}
    if pool is None or history is None:
        note = "the pool is not here" if pool is None else "a row of its reading cannot be followed"
    else:
        try:
            spread, tags = _counted(pool, history)
        except _FAULTS as error:
            note = f"its reading cannot be followed: {error}"
        if spread is None and not note:
            note = f"too many documents to count each (more than {MOST_DOCUMENTS:,})"
        if tags is None:
            note = "; ".join(filter(None, (note, "too many different tags to count by them")))
    return PoolReading(
        spread=spread,
        tags=tags or {},
        begun=at.counts["documents"],
        dropped=dict(sorted(at.dropped.items())),
        discarded=discarded,
        replaced=0 if history is None else history.replaced,
        note=note,
    )


def _counted(pool: Pool, history: History) -> tuple[Spread | None, Tags | None]:
    spread = spread_of(pool, history)
    if spread is None:
        return None, {}
    if spread.covered == spread.tokens:
        return spread, by_tags(pool, None)
    if pool.num_numbers > MOST_DOCUMENTS or not has_tags(pool):
        return spread, {}
    counted = count(pool, history)
    return summed(pool, counted), by_tags(pool, counted)


def _discarded(course: Course) -> dict[str, dict[str, int]]:
    """By pool and kind: what rewinds on record discarded, in all."""
    found: dict[str, Counter[str]] = {}
    for entry in course.text.entries:
        if entry.kind != "rewind":
            continue
        discarded = course.text.row(entry).get("discarded")
        for name, kinds in discarded.items() if isinstance(discarded, dict) else ():
            here = found.setdefault(name, Counter())
            for kind in ("spent", *KINDS, "sequences", "documents"):
                if isinstance(kinds, dict) and type(kinds.get(kind)) is int:
                    here[kind] += kinds[kind]
    return {name: dict(kinds) for name, kinds in found.items()}
