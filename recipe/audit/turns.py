"""Rows at which the course of a run turns, held against the state that the steps before them reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from recipe.audit import bases
from recipe.audit.account import Plain, by_name
from recipe.audit.chain import Entry
from recipe.audit.findings import shown
from recipe.audit.following import Following, body
from recipe.audit.intent import Intent
from recipe.audit.record import NamedRecipe, read_version
from recipe.audit.sayings import rests_on
from recipe.audit.segments import Anew, Segment, Stop
from recipe.audit.state import Malformed, PoolState, State, mapping, sequence, whole
from recipe.audit.terms import Terms, holding
from recipe.audit.withdrawals import and_then, read_list

_OPENS = ("next-epoch", "now")
_SAID = ("reason", "approved_by", "by", "evidence", "policy")
_WISHED_BY = ("user", "policy", "adoption")


def data(course: Following, entry: Entry, row: Plain) -> None:
    """New data was accepted: the pools that changed are read from their beginning."""
    terms = course.terms
    state, changes = terms.intent.state(row.get("snapshot")), mapping(row.get("pools"), "pools")
    course.end_segment()
    pools: dict[str, Plain] = {}
    holdings = dict(terms.holdings)
    for name, change in changes.items():
        after = mapping(change, f"pools.{name}").get("after")
        pools[name] = {"before": holdings.get(name, {}).get("fingerprint"), "after": after}
        holdings[name] = {"fingerprint": after}
    at = course.lineage.at
    replaced = {index for index, name in enumerate(terms.names) if name in changes}
    base = None if at is None else bases.at_the_beginning(bases.reopened(at, terms.intent), replaced)
    _compare(course, entry, row, base, {"accepted": True, "pools": pools})
    course.accepted[entry.line] = {"step": state.step, "pools": pools}
    withdrawn = {name: held for name, held in terms.withdrawn.items() if name not in changes}
    course.replaced |= {*changes}
    course.taken = {name: numbers for name, numbers in course.taken.items() if name not in changes}
    course.turn(entry, state, replace(terms, holdings=holdings, withdrawn=withdrawn))


def amend(course: Following, entry: Entry, row: Plain) -> None:
    """Another recipe from here on."""
    course.end_segment()
    number, terms, at = max(course.versions) + 1, course.terms, course.lineage.at
    named, folder = NamedRecipe.of(entry.where, row), course.folder
    if type(named.version) is int:
        course.versions.add(named.version)
    intent, found = (None, []) if folder is None else read_version(folder, named)
    course.findings[entry.line] += found
    if named.version != number:
        course.say(entry, "recipe", "recipe", number, named.version)
    _wished(course, entry, row)
    if intent is None:
        stated = {name: held for name, held in _stated(row).items() if isinstance(held, dict)}
        course.turn(entry, None, replace(terms, is_known=False, holdings={**terms.holdings, **stated}))
        return
    state, new, grown = intent.state(row.get("snapshot")), *_brought(row, terms, intent)
    base, goes_on = _amended(course, entry, at, (intent, state, grown))
    own = {key: row.get(key) for key in ("recipe_fingerprint", *_SAID)} | {"pools": new}
    if "grown" in row:
        own["grown"] = {
            name: {"before": mark, "opens": row["grown"][name]["opens"]} for name, mark in grown.items()
        }
    holdings = {name: new.get(name) or terms.holdings.get(name, {}) for name in intent.names}
    carried = terms.intent.carried if goes_on else None
    if not goes_on and any(pool.debt for pool in (base or state).pools):
        carried = state.stage
    after = replace(terms, intent=replace(intent, carried=carried), holdings=holdings, is_known=True)
    _compare(course, entry, row, base, {"recipe": number, "recipe_hash": intent.hash, **own})
    course.stated |= {name: (entry.where, held) for name, held in new.items()}
    course.turn(entry, state, after)
    if grown and at is not None and terms.is_known:
        _grow(course, entry, row, by_name(terms.names, at))


def _stated(row: Plain) -> Mapping[str, Any]:
    """Pools as a row states them."""
    return mapping(row.get("pools"), "pools")


def _brought(row: Plain, terms: Terms, intent: Intent) -> tuple[dict[str, Plain], dict[str, Any]]:
    """What an amendment says of pools that are new, or have grown; and the fingerprints these had."""
    grown = mapping(row.get("grown", {}), "grown")
    if not {*grown} <= {*terms.names} or not {*grown} <= {*intent.names}:
        raise Malformed("grown", "pools that were there before", sorted(grown))
    for name, how in grown.items():
        opens = mapping(how, f"grown.{name}").get("opens")
        if opens not in _OPENS:
            raise Malformed(f"grown.{name}.opens", f"one of {', '.join(_OPENS)}", opens)
    stated = _stated(row)
    new = [name for name in intent.names if name not in terms.holdings or name in grown]
    marks = {name: terms.holdings.get(name, {}).get("fingerprint") for name in grown}
    return {name: holding(stated, name) for name in new}, marks


def _amended(
    course: Following, entry: Entry, at: State | None, to: tuple[Intent, State, Mapping[str, Any]]
) -> tuple[State | None, bool]:
    """The state that an amendment goes on from; what it changes of what is behind is said."""
    (intent, state, grown), old = to, course.intent
    if at is None or not course.terms.is_known:
        return None, False
    behind = bases.behind(old, intent, at)
    for key, expected, observed in behind:
        course.say(entry, "behind", f"recipe {intent.version}: {key}", shown(expected), shown(observed))
    try:
        base, goes_on = bases.amended(at, old, intent, tuple(grown))
    except (Malformed, LookupError, ValueError, ArithmeticError):
        if behind:
            return None, False
        raise
    pools = zip(intent.names, base.pools, state.pools, strict=True)
    read_on = [bases.read_on(here, stated) if name in grown else here for name, here, stated in pools]
    return replace(base, pools=tuple(read_on)), goes_on


def _grow(course: Following, entry: Entry, row: Plain, before: Mapping[str, PoolState]) -> None:
    """Where the readings of pools that have grown go on is computed again from their contents."""
    grown, terms, mark = row["grown"], course.terms, course.lineage.marks[-1]
    debts = by_name(terms.names, course.lineage.at) if course.lineage.at is not None else before
    pools = {name: replace(before[name], debt=debts[name].debt) for name in grown}
    now = frozenset(name for name, how in grown.items() if how["opens"] == "now")
    marks = {name: how.get("before") for name, how in grown.items()}
    stops = (Stop(entry, mark.step, anew=Anew(terms, pools, marks, now)),)
    course.segments.append(Segment(entry, stops, mark.stage, 0, terms, frozenset(grown)))


def _wished(course: Following, entry: Entry, row: Plain) -> None:
    """Who wanted an amendment, and why."""
    if row.get("by") not in _WISHED_BY:
        course.say(entry, "shape", "by", f"one of {', '.join(_WISHED_BY)}", row.get("by"))
    policy, asked = row.get("policy"), course.intent.recipe.policy
    is_policy = isinstance(policy, dict) and {*policy} == {"target", "memory"}
    if is_policy is not (row.get("by") == "policy") or not (is_policy or policy is None):
        expected = "target and memory of the policy that wanted it, and nothing for anybody else"
        course.say(entry, "shape", "policy", expected, shown(policy))
    elif isinstance(policy, dict) and (asked is None or policy["target"] != asked.target):
        target = "none: the recipe has no policy" if asked is None else asked.target
        course.say(entry, "recipe", "policy.target", target, policy["target"])
    for key in ("reason", "approved_by"):
        if not isinstance(row.get(key), str | None):
            course.say(entry, "shape", key, "a text", shown(row.get(key)))
    evidence = row.get("evidence")
    if (row.get("by") == "adoption") is not isinstance(evidence, str):
        expected = "the hash of what an adoption rests on, and nothing for anything else"
        course.say(entry, "shape", "evidence", expected, shown(evidence))
    rests_on(course, entry, evidence)


def skip(course: Following, entry: Entry, row: Plain) -> None:
    """Steps that are not served."""
    intent = course.intent
    state, steps = intent.state(row.get("snapshot")), sequence(row.get("steps"), "steps")
    course.end_segment()
    stop = whole(steps[-1] if len(steps) == 2 else None, "steps.1")
    at = course.lineage.at
    start = state if at is None else at
    layout = intent.layouts[intent.enter(start).stage]
    if not start.step < stop <= layout.stop_step:
        expected = f"a step in {start.step + 1}..{layout.stop_step}, of one stage"
        raise Malformed("steps.1", expected, stop)
    own: Plain = {"steps": [start.step, stop], **{key: row.get(key) for key in ("reason", "approved_by")}}
    own |= {"returned": bool(row.get("returned"))}
    own |= {key: _by_pool(course, row, key) for key in ("sequences", "tokens")}
    base = None if at is None else _skipped(at, state)
    _compare(course, entry, row, base, own)
    skipped, between = sum(own["sequences"].values()), layout.sequences_between(start.step, stop)
    if skipped != between:
        course.say(entry, "sums", "sum of sequences", between, skipped)
    if at is not None:
        course.stops.append(Stop(entry, stop))
        course.end_segment()
    course.turn(entry, state, course.terms)


def _skipped(at: State, state: State) -> State:
    """The state at the first step that is skipped, with the reading and the losses that a row states."""
    pools = zip(at.pools, state.pools, strict=True)
    return replace(at, ended=False, pools=tuple(bases.read_on(before, after) for before, after in pools))


def _by_pool(course: Following, row: Plain, key: str) -> dict[str, int]:
    numbers = mapping(row.get(key), key)
    return {name: whole(numbers.get(name), f"{key}.{name}") for name in course.terms.names}


def _compare(course: Following, entry: Entry, row: Plain, base: State | None, own: Plain) -> None:
    """What every turn's row says, and what is its own; ``base`` is the state that the steps go on from."""
    mark, lineage = course.lineage.marks[-1], course.lineage
    step = row.get("step") if base is None else base.step
    before = {"stage": row.get("stage"), "grid": row.get("grid")}
    if not lineage.is_lost:
        before = {
            "stage": mark.terms.intent.layouts[mark.stage].name,
            "grid": [mark.planned_to, mark.planned_to],
        }
    expected = {
        "kind": entry.kind,
        "step": step,
        "recipe": course.intent.version,
        "recipe_hash": course.intent.hash,
        **before,
        "turn": lineage.turn.pointer,
        "snapshot": row.get("snapshot") if base is None else base.to_plain(),
        **own,
    }
    course.compare(entry, "sums", expected, body(row))


def withdraw(course: Following, entry: Entry, row: Plain) -> None:
    """Documents that yield nothing from here on."""
    terms = course.terms
    state = terms.intent.state(row.get("snapshot"))
    course.end_segment()
    at, name = course.lineage.at, f"withdrawn/{course.lists + 1:04d}.json"
    course.lists += 1
    taken, number = None, terms.withdrawals + 1
    if course.folder is not None and row.get("file") == name:
        course.files.add(name)
        where = f"{entry.where}: file_hash"
        taken, found = read_list(course.folder, name, row.get("file_hash"), where)
        course.findings[entry.line] += found
    own = {key: row.get(key) for key in ("file_hash", "documents", "reason", "ticket", "approved_by")}
    own |= {"number": number, "file": name}
    withdrawn = dict(terms.withdrawn)
    if taken is not None:
        withdrawn = and_then(withdrawn, number, taken.documents)
        new = {name: held.documents[held.numbers == number] for name, held in withdrawn.items()}
        own["documents"] = {name: len(documents) for name, documents in new.items() if len(documents)}
        course.lists_read.append((terms, taken))
        if taken.number != number or {*taken.documents} - {*terms.names}:
            course.say(entry, "withdrawn", f"{name}: number", number, taken.number)
    for key in ("reason", "ticket", "approved_by"):
        if not isinstance(row.get(key), str | None):
            course.say(entry, "shape", key, "a text", shown(row.get(key)))
    _compare(course, entry, row, None if at is None else bases.reopened(at, terms.intent), own)
    known = taken is not None and terms.is_known
    course.turn(entry, state, replace(terms, withdrawn=withdrawn, withdrawals=number, is_known=known))


KINDS: dict[str, Callable[[Following, Entry, Plain], None]] = {
    "data": data,
    "amend": amend,
    "skip": skip,
    "withdraw": withdraw,
}
