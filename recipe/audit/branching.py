"""Where a branch starts: its first row held against the manifest of its parent, of which it has a copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recipe.audit import bases
from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.controlled import differences, unfixed, unnamed
from recipe.audit.coverage import LEDGER_GONE
from recipe.audit.findings import shown
from recipe.audit.following import Following
from recipe.audit.intent import Intent
from recipe.audit.lineage import Mark
from recipe.audit.parent import Parent, Wish, read_parent
from recipe.audit.parent_ledger import checkpoint_at, find_parent, row_at
from recipe.audit.segments import Anew, Segment, Stop
from recipe.audit.state import Cursor, PoolState, State, mapping, sequence, whole
from recipe.audit.terms import Terms
from recipe.audit.withdrawals import Known, from_plain, to_plain

_NEW_SEED = ("seed", "tokenizer", "start")
"""What a branch may have otherwise though an amendment may not."""
_DATA = ("continue", "fresh")


def follow(course: Following, entry: Entry, row: Plain, holdings: dict[str, Plain]) -> Plain:
    """Begin at a branch's first row; what it must say beside what every first row does."""
    intent = course.first
    state, said = intent.state(row.get("snapshot")), mapping(row.get("parent"), "parent")
    wish = Wish.of(said, intent.names)
    grid = sequence(row.get("grid"), "grid")
    planned_to = whole(grid[-1] if grid else None, "grid")
    terms = Terms(intent, holdings)
    parent = read_parent(course, entry, said, wish)
    if parent is None:
        withdrawn, number = from_plain(row.get("withdrawals"))
        terms = replace(terms, withdrawn=withdrawn, withdrawals=number)
        course.lineage.begin(Mark(entry, state.step, state.stage, planned_to, terms), state)
        return {key: value for key, value in row.items() if key not in ("kind", "pools")}
    base, goes_on = _base(course, entry, parent, (intent, wish))
    carried = parent.terms.intent.carried if goes_on else None
    if not goes_on and any(pool.debt for pool in base.pools):
        carried = base.stage
    withdrawals = _withdrawn(parent, wish, holdings)
    number = parent.terms.withdrawals
    terms = Terms(replace(intent, carried=carried), holdings, withdrawals, number)
    course.lineage.begin(Mark(entry, state.step, base.stage, planned_to, terms), state)
    _inherit(course, parent)
    _moves(course, entry, parent, (base, wish))
    expected: Plain = {
        "step": base.step,
        "stage": intent.layouts[base.stage].name,
        "grid": _grid(course, entry, said, parent),
        "snapshot": _as_stated(base, state, parent, (intent, wish)).to_plain(),
        "parent": _told(parent, intent, holdings, (said, wish)),
    }
    if (policy := intent.recipe.policy) is not None and "policy" in row:
        told = mapping(row["policy"], "policy")
        memory, asked = mapping(told.get("memory"), "policy.memory"), told.get("asked")
        is_step = type(asked) is int and 0 < asked <= base.step
        expected["policy"] = {
            "target": policy.target,
            "memory": memory,
            "asked": asked if is_step else f"a step up to {base.step}",
        }
    plain = to_plain(withdrawals, number)
    return expected if plain is None else {**expected, "withdrawals": plain}


def _base(course: Following, entry: Entry, parent: Parent, branch: tuple[Intent, Wish]) -> tuple[State, bool]:
    """The state that the branch's steps go on from, as far as it follows without the pools."""
    intent, wish = branch
    allowed = {*_NEW_SEED, *(f"pools.{name}.{key}" for name in wish.fresh for key in bases.OF_BLOCKS)}
    for key, expected, observed in bases.behind(parent.called, intent, parent.state):
        if key not in allowed:
            course.say(entry, "behind", f"recipe: {key}", shown(expected), shown(observed))
    base, goes_on = bases.amended(parent.state, parent.called, intent, wish.fresh)
    if wish.is_retokenised:
        return replace(base, counted=0, pools=tuple(PoolState() for _ in base.pools)), False
    pools = zip(intent.names, base.pools, strict=True)
    begun = [replace(pool, cursor=Cursor(), held=()) if name in wish.fresh else pool for name, pool in pools]
    return replace(base, pools=tuple(begun)), goes_on


def _new_epochs(parent: Parent, intent: Intent, wish: Wish) -> frozenset[str]:
    """Pools that another seed sends on to their next epoch."""
    if parent.terms.intent.recipe.seed == intent.recipe.seed or wish.is_retokenised:
        return frozenset()
    return frozenset(parent.called.names) - wish.fresh


def _as_stated(base: State, state: State, parent: Parent, branch: tuple[Intent, Wish]) -> State:
    """The base; what only the contents of pools tell is taken from the row, and computed again later."""
    intent, wish = branch
    moved = _new_epochs(parent, intent, wish)
    if not moved:
        return base
    pools = zip(intent.names, base.pools, state.pools, strict=True)
    return replace(
        base,
        pools=tuple(
            replace(here, cursor=stated.cursor, held=stated.held, dropped=stated.dropped)
            if name in moved
            else here
            for name, here, stated in pools
        ),
    )


def _moves(course: Following, entry: Entry, parent: Parent, branch: tuple[State, Wish]) -> None:
    """Readings that another seed moves on are computed again from the pools."""
    (base, wish), intent = branch, course.first
    moved = _new_epochs(parent, intent, wish)
    if not moved:
        return
    before = {name: pool for name, pool in zip(intent.names, base.pools, strict=True) if name in moved}
    called = {new: old for old, new in wish.renamed.items()}
    anew = Anew(parent.terms, before, next_epoch=moved, called=called)
    stops = (Stop(entry, base.step, anew=anew),)
    course.segments.append(Segment(entry, stops, base.stage, 0, course.terms, moved))


def _withdrawn(parent: Parent, wish: Wish, holdings: Mapping[str, Plain]) -> Known:
    """What the parent withdrew, of pools that are the same ones still."""
    kept = {}
    for name, known in parent.terms.withdrawn.items():
        new = wish.renamed.get(name, name)
        before = parent.terms.holdings.get(name, {}).get("fingerprint")
        if holdings.get(new, {}).get("fingerprint") == before:
            kept[new] = known
    return kept


def _inherit(course: Following, parent: Parent) -> None:
    """What the branch's manifests go on from."""
    value = parent.value
    course.parent = {"number": value.get("number"), "hash": value.get("hash")}
    course.before = value.get("stages") or {}
    course.told = tuple(value.get("warnings") or ())
    course.changes = list(value.get("accepted_data_changes") or ())


def _told(
    parent: Parent, intent: Intent, holdings: Mapping[str, Plain], asked: tuple[Mapping[str, Any], Wish]
) -> Plain:
    """What the row must say of the parent, and of what differs from it."""
    (said, wish), value = asked, parent.value
    recipes = parent.called.recipe, intent.recipe
    differs = differences(*recipes)
    names = {new: old for old, new in wish.renamed.items()}
    before = {name: parent.terms.holdings.get(names.get(name, name), {}) for name in parent.called.names}
    stated = [str(line) for line in said.get("against") or []]
    unsaid = [
        what
        for what in unfixed((parent.called, before), (intent, holdings), parent.state.step)
        if not any(line.startswith(what) for line in stated)
    ]
    nameless = (f"not named: {line}" for line in unnamed(differs, list(said.get("named") or []), *recipes))
    unsaid += [line for line in nameless if line not in stated]
    expected = {
        **said,
        "run": value.get("run"),
        "manifest": value.get("number"),
        "hash": value.get("hash"),
        "step": parent.state.step,
        "differs": differs,
        "controlled": not stated and not unsaid,
    }
    if said.get("data") not in _DATA:
        expected["data"] = f"one of {', '.join(_DATA)}"
    return {**expected, "against": [*stated, *unsaid]} if unsaid else expected


def _grid(course: Following, entry: Entry, said: Mapping[str, Any], parent: Parent) -> list[int]:
    """How far the stage in progress was planned for, as the parent's ledger has it, where that is found."""
    state, layout = parent.state, parent.terms.intent.layouts[parent.state.stage]
    place = None if course.folder is None else find_parent(course.folder, said)
    if place is None:
        course.of_parent = f"parent: {said.get('path')} {LEDGER_GONE}"
        planned = sequence(course.created.get("grid"), "grid")[-1:]
        ways = min(state.stage_positions, layout.length), min(state.chunk * layout.chunk, layout.length)
        return planned * 2 if planned and planned[0] in ways else [ways[0]] * 2
    course.of_parent = f"parent: the checkpoint that this run started from is in the ledger of {place}"
    point = row_at(place, checkpoint_at(place, said.get("manifest")))
    if point.get("manifest_hash") != said.get("hash"):
        expected = f"a manifest that the ledger of {place} has on record, with its hash"
        course.say(entry, "parent", "parent.manifest", expected, said.get("manifest"))
    closing = row_at(place, (point.get("closing") or {}).get("offset"))
    end = closing.get("step", (closing.get("steps") or [None])[-1])
    grid = min(state.stage_positions, layout.length)
    if end == state.step:
        grid = (closing.get("grid") or [0])[-1]
    return [grid, grid]
