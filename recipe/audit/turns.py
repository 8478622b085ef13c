"""Rows at which the course of a run turns, held against the state that the steps before them reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recipe.audit import bases
from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.findings import shown
from recipe.audit.following import Following, body
from recipe.audit.intent import Intent
from recipe.audit.record import NamedRecipe, read_version
from recipe.audit.sayings import rests_on
from recipe.audit.segments import Stop
from recipe.audit.state import Malformed, State, mapping, sequence, whole

_HOLDING = ("path", "fingerprint", "tokenizer", "stock", "documents")
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
    base = None if at is None else bases.at_the_beginning(at, replaced)
    _compare(course, entry, row, base, {"accepted": True, "pools": pools})
    course.accepted[entry.line] = {"step": state.step, "pools": pools}
    course.turn(entry, state, replace(terms, holdings=holdings))


def amend(course: Following, entry: Entry, row: Plain) -> None:
    """Another recipe from here on."""
    course.end_segment()
    number, terms, at = max(course.versions) + 1, course.terms, course.lineage.at
    named = NamedRecipe.of(entry.where, row)
    if type(named.version) is int:
        course.versions.add(named.version)
    folder = course.folder
    intent, found = (None, []) if folder is None else read_version(folder, named)
    course.findings[entry.line] += found
    if named.version != number:
        course.say(entry, "recipe", "recipe", number, named.version)
    _wished(course, entry, row)
    if intent is None:
        course.turn(entry, None, replace(terms, is_known=False))
        return
    state = intent.state(row.get("snapshot"))
    base = _amended(course, entry, at, intent, row) if at is not None and terms.is_known else None
    added = [name for name in intent.names if name not in terms.names]
    new = {name: _holding(row, name) for name in added}
    own = {key: row.get(key) for key in ("recipe", "recipe_hash", "recipe_fingerprint")}
    said = {key: row.get(key) for key in ("reason", "approved_by", "by", "evidence", "policy")}
    _compare(course, entry, row, base, {**own, **said, "pools": new})
    course.stated |= {
        name: (entry.where, holding) for name, holding in new.items() if name not in course.stated
    }
    holdings = {name: terms.holdings.get(name, new.get(name, {})) for name in intent.names}
    start = base or state
    inside = any(pool.debt for pool in start.pools)
    intent = replace(intent, carried=start.stage if inside else None)
    course.turn(entry, state, replace(terms, intent=intent, holdings=holdings, is_known=True))


def _amended(course: Following, entry: Entry, at: State, intent: Intent, row: Plain) -> State | None:
    """The state that an amendment goes on from; what it changes of what is behind is said."""
    behind = bases.behind(course.intent, intent, at)
    for key, expected, observed in behind:
        field = f"recipe {intent.version}: {key}"
        course.say(entry, "behind", field, shown(expected), shown(observed))
    try:
        return bases.amended(at, course.intent, intent, mapping(row.get("grown", {}), "grown"))
    except (Malformed, LookupError, ValueError, ArithmeticError):
        if behind:
            return None
        raise


def _wished(course: Following, entry: Entry, row: Plain) -> None:
    """Who wanted an amendment, and why."""
    if row.get("by") not in _WISHED_BY:
        course.say(entry, "shape", "by", f"one of {', '.join(_WISHED_BY)}", row.get("by"))
    policy = row.get("policy")
    is_policy = isinstance(policy, dict) and {*policy} == {"target", "memory"}
    if is_policy is not (row.get("by") == "policy") or not (is_policy or policy is None):
        expected = "target and memory of the policy that wanted it, and nothing for anybody else"
        course.say(entry, "shape", "policy", expected, shown(policy))
    for key in ("reason", "approved_by"):
        if not isinstance(row.get(key), str | None):
            course.say(entry, "shape", key, "a text", shown(row.get(key)))
    evidence = row.get("evidence")
    if evidence is not None and not isinstance(evidence, str):
        course.say(entry, "shape", "evidence", "a hash", shown(evidence))
    rests_on(course, entry, evidence)


def _holding(row: Plain, name: str) -> Plain:
    """What a row says of a pool that it brings."""
    stated = mapping(mapping(row.get("pools"), "pools").get(name), f"pools.{name}")
    for key in ("path", "fingerprint"):
        if not isinstance(stated.get(key), str):
            raise Malformed(f"pools.{name}.{key}", "a text", stated.get(key))
    for key in ("stock", "documents"):
        whole(stated.get(key), f"pools.{name}.{key}")
    return {key: stated.get(key) for key in _HOLDING}


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
    base = None if at is None else _skipped(course, at, state)
    _compare(course, entry, row, base, own)
    skipped, between = sum(own["sequences"].values()), layout.sequences_between(start.step, stop)
    if skipped != between:
        course.say(entry, "sums", "sum of sequences", between, skipped)
    if at is not None:
        course.stops.append(Stop(entry, stop))
        course.end_segment()
    course.turn(entry, state, course.terms)


def _skipped(course: Following, at: State, state: State) -> State:
    """The state at the first step that is skipped, with the reading and the losses that a row states."""
    pools = zip(at.pools, state.pools, strict=True)
    read_on = (
        replace(before, cursor=after.cursor, held=after.held, dropped=after.dropped)
        for before, after in pools
    )
    return replace(at, ended=False, pools=tuple(read_on))


def _by_pool(course: Following, row: Plain, key: str) -> dict[str, int]:
    numbers = mapping(row.get(key), key)
    return {name: whole(numbers.get(name), f"{key}.{name}") for name in course.terms.names}


def _compare(course: Following, entry: Entry, row: Plain, base: State | None, own: Plain) -> None:
    """What every turn's row says, and what is its own; ``base`` is the state that the steps go on from."""
    mark, lineage = course.lineage.marks[-1], course.lineage
    step = row.get("step") if base is None else base.step
    expected = {
        "kind": entry.kind,
        "step": step,
        "recipe": course.intent.version,
        "recipe_hash": course.intent.hash,
        "stage": mark.terms.intent.layouts[mark.stage].name,
        "grid": [mark.planned_to, mark.planned_to],
        "turn": lineage.turn.pointer,
        "snapshot": row.get("snapshot") if base is None else base.to_plain(),
        **own,
    }
    course.compare(entry, "sums", expected, body(row))


KINDS: dict[str, Callable[[Following, Entry, Plain], None]] = {"data": data, "amend": amend, "skip": skip}
