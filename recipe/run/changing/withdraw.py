"""Withdrawals: documents that yield nothing from a step on, as after a take-down request.

The order of everything else stays. The documents are listed in a file of the run folder that the
ledger's row names by hash, so whoever audits the run later knows which ones they were, also when
their tokens were erased since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recipe.config.view import parent_name
from recipe.errors import RecipeError
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.opening import close_pools, open_pools
from recipe.mixing.turning import reopened
from recipe.mixing.withdrawals import Withdrawals, erased_and_served
from recipe.pools import Pool
from recipe.run.canonical import Plain, canonical, digest
from recipe.run.changing.discarded import discarded_manifests
from recipe.run.changing.naming import check_step
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.forgotten import refuse_forgotten_step
from recipe.run.head import read_head
from recipe.run.holdings import changed, known_paths, refuse_changed
from recipe.run.ledger import damaged
from recipe.run.opening import handle
from recipe.run.place import subject_of
from recipe.run.rows_of_kind import last_of_kind
from recipe.run.standing import Turning
from recipe.run.state import State
from recipe.run.statement import text_on_record
from recipe.run.taken_down import withdrawn_elsewhere
from recipe.run.tracing.documents import DocumentAt, chosen, find_ids, unknown_ids, ways_of
from recipe.run.words import words_at
from recipe.sequences.pieces import measure

FOLDER = "withdrawn"
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """A withdrawal worked out."""

    path: str
    step: int
    number: int
    """Of the run's withdrawals, from 1."""
    documents: Mapping[str, int]
    """By pool: documents that were not withdrawn before."""
    tokens: Mapping[str, int]
    """By pool: their body tokens, which no epoch from here on serves."""
    already: int
    """Documents named that an earlier withdrawal named."""
    discards: int
    """Steps on record that going on from ``step`` discards."""
    num_steps: int = 0
    """Of the run, which ends where it did."""
    discarded: tuple[Plain, ...] = ()
    """Manifests among them that have metrics, that a decision is about, or that a turn wrote."""
    manifest: int | None = None
    """Number of the manifest that put it on record."""

    def to_plain(self) -> Plain:
        """Plain values for ``recipe withdraw --json``."""
        return {
            "run": self.path,
            "step": self.step,
            "number": self.number,
            "documents": dict(self.documents),
            "tokens": dict(self.tokens),
            "already": self.already,
            "discards": self.discards,
            "discarded": list(self.discarded),
            "num_steps": self.num_steps,
            "manifest": self.manifest,
        }


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """Why documents are withdrawn."""

    reason: str
    ticket: str | None = None
    """Of the request, where there is one."""
    approved_by: str | None = None

    def to_plain(self) -> Plain:
        """As the row holds it.

        Raises:
            ValueError: a text that cannot be put on record.
        """
        others = {"ticket": self.ticket, "approved_by": self.approved_by}
        said = {key: None if value is None else text_on_record(key, value) for key, value in others.items()}
        return {"reason": text_on_record("reason", self.reason), **said}


def withdraw_run(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    documents: Sequence[str | int] = (),
    *,
    ticket: Ticket,
    pool: str | None = None,
    again: bool = False,
    erased: bool = False,
    at: int | None = None,
    pools_root: str | Path | None = None,
    confirm: Callable[[Withdrawal], bool] = lambda withdrawal: True,
) -> Withdrawal:
    """Withdraw documents from a checkpoint on: they yield nothing any more, the order stays.

    Args:
        path: the run's folder.
        documents: their ids; a text of digits is also looked for as a number.
        ticket: the reason.
        pool: where to look; default: every pool that has such an id.
        again: also all that the run withdrew at any time and would serve again from there on.
        erased: also all that was erased from its pools and is not withdrawn.
        at: a step with a checkpoint; default: the last one.
        pools_root: where the pools are on this machine.
        confirm: asked with the withdrawal worked out; nothing is written unless it says yes.

    Raises:
        RecipeError: an id that no pool has, documents that were all withdrawn before, no such checkpoint.
        ValueError: a step below zero.
    """
    folder = RunFolder(Path(path))
    folder.check()
    said = ticket.to_plain()
    check_step("at", at)
    place = find_place(folder, at, again=again)
    refuse_forgotten_step(folder, place.state.snapshot.step)
    state = place.state
    root = None if pools_root is None else Path(pools_root)
    pools = open_pools(state.recipe, known_paths(state.recipe, state.holdings, root))
    try:
        refuse_changed(changed(state.holdings, pools), fix="put the data back that the run was served from")
        found = _found(chosen(pools, pool), documents)
        found += _listed(withdrawn_elsewhere(folder, state.withdrawn) if again else {})
        lost = erased_and_served(state.recipe, pools, state.withdrawn) if erased else {}
        if erased and not lost and not found:
            raise _nothing_lost(folder, pools)
        found += _listed(lost)
        found = _each_once(state, found)
        withdrawal, after = _worked_out(folder, state.withdrawn, found, pools)
        withdrawal = replace(
            withdrawal,
            step=state.snapshot.step,
            discards=max(0, read_head(folder.ledger).reached.end_step - state.snapshot.step),
            num_steps=Curriculum.from_recipe(state.recipe).num_steps,
            discarded=discarded_manifests(folder, state.snapshot.step),
        )
        if not confirm(withdrawal):
            return withdrawal
        before = subject_of(place, pools)
        name, data = _file(folder, after, pools)
        body = {
            **said,
            "number": after.number,
            "file": name,
            "file_hash": digest(data),
            "documents": dict(withdrawal.documents),
        }
        turning = Turning(
            kind="withdraw",
            body=body,
            at=state.snapshot,
            base=reopened(state.snapshot, state.recipe),
            before=before,
            files={name: data},
        )
        run = handle(folder, place, replace(before, withdrawn=after), pools, turning)
        return replace(withdrawal, manifest=run.put_on_record(words_at(folder, state.snapshot.step)))
    finally:
        close_pools(pools.values())


def read_ids(path: Path) -> list[str]:
    """Ids in a file, one a line, with their spaces; lines without an id are left out.

    Raises:
        RecipeError: the file cannot be read, or holds none.
    """
    try:
        lines = path.read_bytes().decode().split("\n")
        ids = [line.removesuffix("\r") for line in lines if line.strip()]
        given: object = "no id"
    except (OSError, UnicodeDecodeError) as error:
        ids, given = [], getattr(error, "strerror", None) or error
    if not ids:
        fix = "give a file with an id a line, or name a document itself: --document ID"
        raise RecipeError.single(
            str(path), "documents", given=given, expected="ids of documents, one a line, in UTF-8", fix=fix
        )
    return ids


def _nothing_lost(folder: RunFolder, pools: Mapping[str, Pool]) -> RecipeError:
    """The folders that the run reads lack no document: what was erased stands in a new folder elsewhere."""
    places = [f"{name} ({pool.path})" for name, pool in pools.items()]
    more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
    return RecipeError.single(
        f"{folder.path}: nothing to withdraw",
        "--erased",
        given=f"pools that have lost nothing the run would serve: {', '.join(places[:_SHOWN])}{more}",
        expected="a pool of the run from which documents were erased",
        fix="put NEW, as recipe pools withdraw OLD NEW made it, in the place of OLD, and do this again; "
        f"or name the documents: recipe withdraw {folder.path} --documents FILE",
    )


def _listed(lists: Mapping[str, Iterable[int]]) -> list[DocumentAt]:
    """Documents by pool, as places."""
    return [DocumentAt(name, int(number)) for name, numbers in lists.items() for number in numbers]


def _found(pools: Mapping[str, Pool], documents: Sequence[str | int]) -> list[DocumentAt]:
    asked = [ways_of(one) for one in dict.fromkeys(documents)]
    found, unknown = find_ids(pools, asked)
    if unknown:
        raise unknown_ids(pools, unknown)
    return found


def _each_once(state: State, found: Sequence[DocumentAt]) -> list[DocumentAt]:
    """Documents of a folder that several pools read, once: under the pool that was first named with it."""
    named: dict[tuple[str, int], DocumentAt] = {}
    for name in state.withdrawn.pools if state.withdrawn.number else ():
        for number in state.withdrawn.documents(name).tolist():
            named.setdefault((parent_name(state.recipe.pools, name), number), DocumentAt(name, number))
    once = [
        named.setdefault((parent_name(state.recipe.pools, each.pool), each.number), each) for each in found
    ]
    return list(dict.fromkeys(once))


def _worked_out(
    folder: RunFolder, before: Withdrawals, found: Sequence[DocumentAt], pools: Mapping[str, Pool]
) -> tuple[Withdrawal, Withdrawals]:
    by_pool: dict[str, list[int]] = {}
    for document in found:
        by_pool.setdefault(document.pool, []).append(document.number)
    after = before.and_then(by_pool)
    new = {name: after.of(name).documents[after.of(name).numbers == after.number] for name in by_pool}
    new = {name: numbers for name, numbers in new.items() if len(numbers)}
    if not new:
        raise RecipeError.single(
            f"{folder.path}: nothing to withdraw",
            "documents",
            given=f"{len(found)} documents that were withdrawn before",
            expected="a document that is still served",
            fix="leave it: they yield nothing already",
        )
    withdrawal = Withdrawal(
        path=str(folder.path),
        step=0,
        number=after.number,
        documents={name: len(numbers) for name, numbers in new.items()},
        tokens={name: int(measure(pools[name], numbers).tokens.sum()) for name, numbers in new.items()},
        already=len(found) - sum(map(len, new.values())),
        discards=0,
    )
    return withdrawal, after


def _file(folder: RunFolder, after: Withdrawals, pools: Mapping[str, Pool]) -> tuple[str, bytes]:
    """Name and bytes of the list of a withdrawal; no name is given twice."""
    numbers = {
        name: after.of(name).documents[after.of(name).numbers == after.number].tolist()
        for name in after.pools
    }
    numbers = {name: held for name, held in numbers.items() if held}
    plain = {
        "number": after.number,
        "documents": numbers,
        "pools": {name: pools[name].ids(held) for name, held in numbers.items()},
    }
    return f"{FOLDER}/{_next_file(folder):04d}.json", canonical(plain) + b"\n"


def _next_file(folder: RunFolder) -> int:
    """One more than the last list that a row of the ledger names, discarded or not."""
    row = last_of_kind(folder.ledger, "withdraw")
    if row is None:
        return 1
    name = re.fullmatch(rf"{FOLDER}/([0-9]{{4,9}})\.json", str(row.data.get("file")))
    if name is None:
        raise damaged(
            folder.ledger, row.offset, f"file {row.data.get('file')!r:.80}", "a list of withdrawals"
        )
    return int(name[1]) + 1
