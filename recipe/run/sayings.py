"""Rows that only say something about a run: metrics that came later, decisions, openings, what was forgotten.

They hold no snapshot and change nothing of the run's course, so they may be written while handles of
the run are open: those go on after them. Metrics, decisions and what was forgotten are about a
manifest of the run and count as long as it does: no longer once a rewind discarded its checkpoint.
What was opened was seen, and stays.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable

from recipe.errors import RecipeError
from recipe.run import lease, writes
from recipe.run.canonical import Plain, canonical
from recipe.run.folder import RunFolder
from recipe.run.ledger import Tail, check_chain, read_tail, row_at
from recipe.run.lost import check_nothing_lost
from recipe.run.row import SAYING_KINDS, Row, chained, now
from recipe.run.surviving import surviving

_SHOWN = 8
_DECISION = b'"kind":"decision"'


def say(folder: RunFolder, compose: Callable[[Tail], Plain]) -> Row:
    """Append one such row; an unfinished last line is cut off first, as by every write.

    Args:
        folder: of the run.
        compose: gives the body of the row for the ledger's end as it stands; called while the lease is
            held, so that what it finds still holds when the row is written. What it raises ends it all.

    Raises:
        RecipeError: somebody else is writing, the record is damaged, or the system refuses; nothing was
            written then.
    """
    check_chain(folder.ledger)
    with lease.held(folder.lease) as held, writes.locked(folder.ledger) as append:
        check_nothing_lost(folder)
        tail = read_tail(folder.ledger)
        body = compose(tail)
        assert body["kind"] in SAYING_KINDS, body["kind"]
        row = chained(tail.last, [body], time=now())[0]
        held.check()
        data = (b"\n" if tail.unended else b"") + canonical(row) + b"\n"
        append(data, at=tail.end, size=tail.size)
        return Row(tail.end + int(tail.unended), row)


def counted_checkpoint(
    folder: RunFolder, tail: Tail, manifest: int | None = None, step: int | None = None
) -> Row:
    """The checkpoint row of a manifest, of a step (the last one there), or the run's last.

    Raises:
        RecipeError: there is none that counts; the last ones are named.
    """
    known: list[Row] = []
    for row in surviving(folder.ledger, tail):
        if row.kind != "checkpoint":
            continue
        is_tip = manifest is None and step is None and not row.data.get("late")
        if is_tip or row.data["manifest"] == manifest or (manifest is None and row.end_step == step):
            return row
        known.append(row)
    raise _no_checkpoint(folder, known[:_SHOWN], manifest, step)


def went_on_in(folder: RunFolder) -> Plain | None:
    """The last decision on record that another run goes on as the trunk of this one; None without any.

    The ledger is searched as bytes: it may be long, and such rows are rare.
    """
    own = row_at(folder.ledger, 0).data["id"]
    with folder.ledger.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = len(data)
        while (found := data.rfind(_DECISION, 0, end)) >= 0:
            end = data.rfind(b"\n", 0, found) + 1
            if data.find(b"\n", found) < 0:
                continue  # an append that was cut short
            row = row_at(folder.ledger, end).data
            if row["kind"] == "decision" and row["as"] == "trunk" and row["id"] != own:
                return row
    return None


def that_count(sayings: Iterable[Row], checkpoints: Iterable[tuple[int, str]], run_id: str) -> list[Row]:
    """The rows of these that count, given the number and hash of every manifest of the run that does.

    A decision that is about another run's manifest counts: only that run's record can tell.
    """
    manifests = set(checkpoints)
    return [
        row
        for row in sayings
        if row.kind == "opened" or row.data.get("id", run_id) != run_id or _about(row) in manifests
    ]


def _about(row: Row) -> tuple[object, object]:
    """The manifest that a row is about, and its hash."""
    return row.data.get("manifest"), row.data.get("manifest_hash")


def _no_checkpoint(
    folder: RunFolder, known: list[Row], manifest: int | None, step: int | None
) -> RecipeError:
    shown = ", ".join(f"{row.data['manifest']} at step {row.end_step}" for row in reversed(known))
    given = f"manifest {manifest}" if manifest is not None else f"step {step}"
    return RecipeError.single(
        f"{folder.path}: no such checkpoint",
        "manifest" if step is None else "step",
        given="a run without checkpoints" if manifest is None and step is None else given,
        expected=f"a manifest that counts; the last ones are {shown or 'none'}",
        fix="give one of these; one that a rewind discarded says nothing about the run any more",
    )
