"""What a manifest must say, by its checkpoint's row and the rows before it."""

from __future__ import annotations

from recipe.audit.account import Plain, added, by_name, gained
from recipe.audit.chain import Entry
from recipe.audit.following import Following
from recipe.audit.lineage import Begin
from recipe.audit.state import State
from recipe.run.canonical import hash_of

_IDENTITY = ("kind", "step", "recipe_hash", "snapshot", "file_hash")
"""What a turn is, beside where its row stands."""


def must_state(course: Following, entry: Entry, row: Plain, at: tuple[State, tuple[Plain, ...]]) -> Plain:
    """All but the trainer's own words; ``at``: the state at the checkpoint, and the warnings up to it."""
    state, told = at
    parent = course.lineage.parent
    return {
        "number": row["manifest"],
        "time": row.get("time"),
        "previous": course.numbered[1],
        "parent": {"number": parent.manifest, "hash": parent.manifest_hash} if parent else course.parent,
        "gpu_hours": row.get("gpu_hours"),
        "ledger": {"row": (entry.number or 0) - 1, "head": entry.previous},
        "turn": _turn(course),
        "stages": _stages(course, state),
        "warnings": list(told),
        "accepted_data_changes": data_changes(course),
        "state": state,
        "uri": row.get("uri"),
        "hash": row.get("manifest_hash"),
        "where": entry.where,
        "terms": course.terms,
    }


def data_changes(course: Following) -> list[Plain]:
    """Every change of data accepted so far that counts."""
    own = [course.accepted[mark.entry.line] for mark in course.lineage.turns if mark.entry.kind == "data"]
    return [*course.changes, *own]


def _turn(course: Following) -> Plain:
    """The turn in force: its row, and the digest of what it is."""
    mark = course.lineage.turn
    row = course.text.row(mark.entry)
    return {**mark.pointer, "mark": hash_of([row.get(key) for key in _IDENTITY])}


def _stages(course: Following, state: State) -> Plain | None:
    """Tokens by stage, pool and kind; None where a row is missing before."""
    lineage = course.lineage
    if not lineage.is_whole or lineage.is_lost:
        return None
    begins = list(lineage.begins)
    names = lineage.names_until(state.step)
    if state.step > lineage.marks[-1].step and lineage.at is not None:
        begun, names = course.intent.enter(lineage.at), course.terms.names
        stage = course.intent.layouts[begun.stage].name
        if not begins or begins[-1].stage != stage:
            begins.append(Begin.of(stage, begun, names))
    totals: Plain = {}
    here = by_name(course.terms.names, state)
    for begin, after in zip(begins, (*begins[1:], None), strict=False):
        stop, known = (here, names) if after is None else (after.pools, lineage.names_until(after.step))
        if (state.step if after is None else after.step) > begin.step:
            totals[begin.stage] = gained(known, begin.pools, stop)
    return added(course.before, totals)
