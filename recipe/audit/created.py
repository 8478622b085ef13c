"""The first row of a ledger: a run that starts, or that branches from another one."""

from __future__ import annotations

from recipe.audit import branching
from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.findings import compared
from recipe.audit.following import Following, body
from recipe.audit.intent import Intent
from recipe.audit.lineage import Mark
from recipe.audit.state import mapping
from recipe.audit.terms import Terms, holding
from recipe.audit.withdrawals import from_plain, to_plain

_ALWAYS = ("run", "id", "run_hash", "recipe", "recipe_hash", "recipe_fingerprint")
"""Fields that other files are held against."""


def follow(course: Following, entry: Entry, row: Plain) -> None:
    """A run's creation."""
    if entry.line:
        course.say(entry, "lineage", "kind", "one row of this kind, the first", "created")
        return
    intent = course.first
    course.created = row
    course.prior = prior_of(intent)
    pools = mapping(row.get("pools"), "pools")
    holdings = {name: holding(pools, name) for name in intent.names}
    course.stated = {name: (entry.where, held) for name, held in holdings.items()}
    expected: Plain = {"kind": "created", **{key: row.get(key) for key in _ALWAYS}, "pools": holdings}
    if (start := _start_of(intent, holdings)) is not None:
        expected["start"] = start
    if row.get("parent") is None:
        withdrawn, number = from_plain(row.get("withdrawals"))
        state, terms = intent.start(), Terms(intent, holdings, withdrawn, number)
        course.lineage.begin(Mark(entry, 0, 0, 0, terms), state)
        expected |= {"step": 0, "snapshot": state.to_plain()}
        if number:
            expected["withdrawals"] = to_plain(withdrawn, number)
    else:
        expected |= branching.follow(course, entry, row, holdings)
    course.findings[entry.line] += compared("lineage", entry.where, expected, body(row))


def prior_of(intent: Intent) -> Plain | None:
    """The weights a run starts from, and the tokens they have seen, as manifests repeat it."""
    start = intent.recipe.start
    if start is None:
        return None
    areas = start.prior if isinstance(start.prior, dict) else None
    return {
        "weights": start.weights,
        "revision": start.revision,
        "tokenizer": start.tokenizer,
        "prior": start.prior if areas is None else dict(areas),
        "prior_tokens": (start.prior or 0) if areas is None else sum(areas.values()),
    }


def _start_of(intent: Intent, holdings: dict[str, Plain]) -> Plain | None:
    """The same with the vocabulary, and the tokenizer that the pools were made with."""
    prior, model = prior_of(intent), intent.recipe.model
    if prior is None:
        return None
    made_with = {held["tokenizer"] for held in holdings.values()} - {None}
    return {
        **prior,
        "vocab_size": None if model is None else model.vocab_size,
        "pools_tokenizer": made_with.pop() if len(made_with) == 1 else None,
    }
