"""What an amendment, a skip or a withdrawal changes, for a person: before it is put on record."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from rich.console import Group

from recipe.report.outlooks import outlook_tables
from recipe.report.tables import table

Plain = dict[str, Any]

_NOTHING = "(nothing)"
_UNSAID = ("block_units", "packing")
"""Keys of a new pool or stage that go without saying, where they are as in any other."""
_TURNS = {
    "adoption": "the amendment that adopts a branch",
    "amend": "an amendment",
    "skip": "a skip",
    "withdraw": "a withdrawal",
    "data": "accepted data",
}


def amendment_tables(plain: Plain) -> Iterator[Group]:
    """Tables of an amendment in the plain form that ``--json`` prints."""
    yield from outlook_tables(plain["step"], [("before", plain["before"]), ("after", plain["after"])])


def amendment_lines(plain: Plain) -> Iterator[str]:
    """What changes, line by line, and what is to be known about it."""
    for change in change_lines(plain["changes"], plain["after"]["pools"], plain.get("said", ())):
        yield f"  {change}"
    rest = plain["rest"]
    if rest is not None:
        hours = "" if rest["seconds"] is None else f", {rest['seconds'] / 3600:,.1f} hours by the clock"
        first, last = rest["measured"]["steps"]
        needs = f"{rest['gpu_hours']:,.1f} device-hours{hours}"
        yield f"the rest takes {needs}, as steps {first:,} to {last:,} did"
    for warning in plain["after"]["warnings"]:
        yield f"warning: {warning}"
    yield from discard_lines(plain)


def change_lines(changes: Sequence[str], pools: Collection[str], said: Sequence[str] = ()) -> Iterator[str]:
    """The changes as a person reads them: what goes without saying is left out, a group that went is named.

    Args:
        changes: ``key: old → new``, a line each.
        pools: the names of all pools; other names with a share are groups.
        said: what was typed; all of it is shown.
    """
    keys = {key for key, _, change in map(_split, changes) if change.startswith(_NOTHING)}
    for line in changes:
        key, parts, change = _split(line)
        if change.startswith(_NOTHING) and _goes_without_saying(parts, keys, said):
            continue
        is_share = len(parts) == 4 and parts[0] == "stages"
        if is_share and change.endswith(f"→ {_NOTHING}") and parts[3] not in pools:
            above = key.removesuffix(parts[3])
            inside = [name for name in pools if f"{above}{name}" in keys]
            if inside:
                group = f"group {parts[3]} ({change.split(' → ')[0]})"
                yield f"stages.{parts[1]}: {group} is replaced by its pools: {', '.join(inside)}"
                continue
        yield line


def _split(line: str) -> tuple[str, list[str], str]:
    key, _, change = line.partition(": ")
    return key, key.split("."), change


def _goes_without_saying(parts: Sequence[str], keys: Collection[str], said: Sequence[str]) -> bool:
    """Whether a key that is new belongs to a pool or stage that is new too, and nobody typed it."""
    if len(parts) < 3 or parts[2] not in _UNSAID or any(parts[2] in words for words in said):
        return False
    new = {"pools": "path", "stages": "context"}.get(parts[0])
    return new is not None and f"{parts[0]}.{parts[1]}.{new}" in keys


def skip_lines(plain: Plain) -> Iterator[str]:
    """Which steps are left out, and how the run goes on."""
    first, stop = plain["steps"]
    after = plain["after"]
    what = "served later, before their pool's epoch turns" if plain["returned"] else "dropped"
    yield f"{plain['run']}: the data of steps {first:,} to {stop - 1:,} is left out; it is {what}"
    yield f"  the run goes on at step {first:,} with what was to come from step {stop:,} on"
    yield f"  it ends at step {after['num_steps']:,}, position {after['end_positions']:,}, as before"
    for warning in after["warnings"]:
        yield f"warning: {warning}"


def skip_tables(plain: Plain) -> Iterator[Group]:
    """What is left out by pool, and how often each is read with and without it."""
    how = "returned to the pools" if plain["returned"] else "dropped"
    before, after = plain["before"]["pools"], plain["after"]["pools"]
    rows = [
        (
            name,
            f"{sequences:,}",
            f"{plain['tokens'][name]:,}",
            f"{before[name]['epochs_at_end']:.4g}",
            f"{after[name]['epochs_at_end']:.4g}",
            str(after[name]["max_epochs"]),
        )
        for name, sequences in plain["sequences"].items()
    ]
    columns = ("pool", "sequences", "fresh tokens", "read at the end", "with the skip", "allowed")
    yield table(f"left out, {how}", columns, rows)


def withdrawal_tables(plain: Plain) -> Iterator[Group]:
    """What is withdrawn, by pool."""
    rows = [(name, f"{n:,}", f"{plain['tokens'][name]:,}") for name, n in plain["documents"].items()]
    yield table(f"withdrawn from step {plain['step']:,} on", ("pool", "documents", "body tokens"), rows)


def withdrawal_lines(plain: Plain) -> Iterator[str]:
    """How the run goes on without the documents."""
    if plain["already"]:
        yield f"{plain['already']:,} of the documents named were withdrawn before"
    if plain["step"] < plain["num_steps"]:
        yield (
            f"the run goes on at step {plain['step']:,} without them: the order of the others stays, and it "
            f"ends at step {plain['num_steps']:,} as before"
        )
    else:
        yield "no step is left that would serve them; whoever goes on from here does so without them"
    yield "what was served of them before stays on record; `recipe trace` finds it"


def discard_lines(plain: Plain) -> Iterator[str]:
    """What going on from the step discards."""
    if not plain["discards"]:
        return
    yield f"{plain['discards']:,} steps on record after it are discarded: load the weights of that step"
    for lost in plain["discarded"]:
        what = ["adopted"] * bool(lost["decisions"])
        what += [_TURNS.get(kind, kind) for kind in lost["turns"]]
        if lost["metrics"]:
            what.append(f"metrics {', '.join(lost['metrics'])}")
        yield f"warning: discards manifest {lost['manifest']} (step {lost['step']:,}): {'; '.join(what)}"
