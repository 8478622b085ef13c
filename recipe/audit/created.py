"""The first row of a ledger: a run that starts, or that branches from another one."""

from __future__ import annotations

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.following import Following
from recipe.audit.lineage import Mark
from recipe.audit.state import mapping
from recipe.audit.terms import Terms


def follow(course: Following, entry: Entry, row: Plain) -> None:
    """A run's creation."""
    if entry.line:
        course.say(entry, "lineage", "kind", "one row of this kind, the first", "created")
        return
    intent = course.first
    course.created = row
    pools = mapping(row.get("pools"), "pools")
    holdings = {name: dict(mapping(pools.get(name), f"pools.{name}")) for name in intent.names}
    course.stated = {name: (entry.where, holding) for name, holding in holdings.items()}
    course.lineage.begin(Mark(entry, 0, 0, 0, Terms(intent, holdings)), intent.start())
    expected = {"step": 0, "snapshot": intent.start().to_plain()}
    course.compare(entry, "lineage", expected, {key: row.get(key) for key in expected})
