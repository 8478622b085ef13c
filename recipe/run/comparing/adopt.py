"""Adopting a branch: the work goes on from its checkpoint, or its changes amend the trunk.

Either is a decision on record with the hash of the comparison it rests on. *As the trunk*: a row in the
branch, and one in its parent, where that is there and has steps left, so that ``recipe status`` and
``recipe run`` say where the trunk went on; the parent is not locked, for what it goes on to do may be
wanted. *As an amendment*: what the branch changed, merged over the trunk's recipe in force, becomes an
amendment at the trunk's last checkpoint (``by: adoption``), after a decision row in both: what a crash
leaves between them is a decision that was not carried out, and the same command carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from recipe.config import Recipe, recipe_from_plain
from recipe.errors import Problem, RecipeError
from recipe.run.branching.origin import Origin, find_origin, split_place
from recipe.run.canonical import Plain, hash_of
from recipe.run.changing.amend import amend_run
from recipe.run.changing.amending import Amendment
from recipe.run.changing.approval import Approval
from recipe.run.comparing.compare import compared, read_histories
from recipe.run.comparing.comparison import Comparison, Question
from recipe.run.comparing.decisions import Word, say_decision
from recipe.run.comparing.evidence import store_evidence
from recipe.run.comparing.history import History, common_steps, read_history
from recipe.run.comparing.lineage_tree import find_parent
from recipe.run.comparing.merged_recipe import left_out, merged_recipe
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.manifest import read_manifest

How = Literal["trunk", "amend"]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """An adoption worked out, before anything is written."""

    how: How
    branch: Origin
    """The checkpoint of the branch that is adopted."""
    trunk: History | None
    """The run it branched from; None where its folder is not there."""
    evidence: Comparison
    amendment: Amendment | None = None
    """With ``amend``: what changes."""
    left_out: tuple[str, ...] = ()
    """What of the branch is not taken over."""


@dataclass(frozen=True, kw_only=True)
class Adoption:
    """An adoption on record."""

    how: How
    run: str
    """Folder that the work goes on in: the branch's, or the trunk's."""
    manifest: int
    """Its manifest to go on from."""
    uri: str | None
    """Where the weights there are."""
    evidence: str
    """Hash of the comparison, kept in ``evidence/``."""
    told: tuple[str, ...]
    """Runs that have the decision on record."""
    untold: str | None
    """Why the parent has it not, where it should."""
    left_out: tuple[str, ...]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe adopt --json``."""
        plain = asdict(self)
        return {"as": plain.pop("how"), **plain, "told": list(self.told), "left_out": list(self.left_out)}


def adopt_run(
    branch: str | Path,
    how: How = "trunk",
    *,
    word: Word,
    evidence: Sequence[str | Path] = (),
    confirm: Callable[[Proposal], bool] = lambda proposal: True,
) -> Adoption | None:
    """Adopt a branch, and put on record what that rests on.

    Args:
        branch: its folder, and the checkpoint: ``RUN@MANIFEST`` or ``RUN@step:N``; default: the last one.
        how: ``trunk``: go on from its checkpoint; ``amend``: amend its parent with what it changed.
        word: who approved it, and why.
        evidence: runs that it was compared with; default: its parent, where they have a common step.
        confirm: asked with the adoption worked out; nothing is written unless it says yes.

    Returns:
        the adoption; None when it was not confirmed.

    Raises:
        RecipeError: no branch, a checkpoint whose weights are gone, changes that the trunk cannot take,
            a damaged record, somebody else is writing.
    """
    word.check("--approved-by")
    origin = find_origin(*split_place(str(branch)))
    history = read_history(origin.folder.path)
    if history.parent is None:
        raise _no_branch(history)
    trunk = find_parent(history)
    made = _compared(history, trunk, evidence)
    proposal = Proposal(how=how, branch=origin, trunk=trunk, evidence=made)
    if how == "amend":
        return _as_amendment(proposal, word, confirm)
    return _as_trunk(proposal, word) if confirm(proposal) else None


def _compared(history: History, trunk: History | None, paths: Sequence[str | Path]) -> Comparison:
    """What the decision rests on: the branch against the named runs, its parent, or alone."""
    others = read_histories(paths) if paths else []
    if not paths and trunk is not None and common_steps([trunk, history]):
        others = [trunk]
    whole = others if any(other.id == history.id for other in others) else [*others, history]
    return compared(whole, Question())


def _as_trunk(proposal: Proposal, word: Word) -> Adoption:
    origin, trunk = proposal.branch, proposal.trunk
    told, untold = [], None
    mark = _decide(origin.folder, proposal, word, own=True)
    told.append(str(origin.folder.path))
    if trunk is not None and not trunk.is_complete:
        try:
            _decide(trunk.folder, proposal, word, own=False)
            told.append(str(trunk.folder.path))
        except RecipeError as error:
            untold = str(error)
    return Adoption(
        how="trunk",
        run=str(origin.folder.path),
        manifest=origin.number,
        uri=origin.uri,
        evidence=mark,
        told=tuple(told),
        untold=untold,
        left_out=(),
    )


def _as_amendment(proposal: Proposal, word: Word, confirm: Callable[[Proposal], bool]) -> Adoption | None:
    origin, trunk = proposal.branch, proposal.trunk
    history = read_history(origin.folder.path)
    if trunk is None:
        raise _no_trunk(history)
    if problems := list(_against_amending(origin, history, trunk)):
        raise RecipeError(f"{origin.folder.path}: no amendment of its trunk", problems)
    recipe, dropped = _amended(origin, history, trunk)
    evidence = proposal.evidence.to_plain()

    def agreed(amendment: Amendment) -> bool:
        whole = replace(proposal, amendment=amendment, left_out=tuple(dropped))
        if not confirm(whole):
            return False
        for folder, own in ((origin.folder, True), (trunk.folder, False)):
            _decide(folder, proposal, word, own=own)
        return True

    approval = Approval(reason=word.reason, approved_by=word.by, by="adoption", evidence=hash_of(evidence))
    amendment = amend_run(trunk.folder.path, recipe, approval=approval, confirm=agreed)
    if amendment.manifest is None:
        return None
    return Adoption(
        how="amend",
        run=str(trunk.folder.path),
        manifest=amendment.manifest,
        uri=find_origin(trunk.folder.path, amendment.manifest).uri,
        evidence=hash_of(evidence),
        told=(str(origin.folder.path), str(trunk.folder.path)),
        untold=None,
        left_out=tuple(dropped),
    )


def _decide(folder: RunFolder, proposal: Proposal, word: Word, *, own: bool) -> str:
    """Keep the evidence, then append the row; the hash of the evidence."""
    mark = store_evidence(folder, proposal.evidence.to_plain())
    origin = proposal.branch
    body: Plain = {
        "kind": "decision",
        "as": proposal.how,
        "run": origin.state.run,
        "id": origin.identity["id"],
        "manifest": origin.number,
        "manifest_hash": origin.manifest["hash"],
        "evidence": mark,
        "approved_by": word.by,
        "reason": word.reason,
    }
    say_decision(folder, body, own=own)
    return mark


def _amended(origin: Origin, history: History, trunk: History) -> tuple[Recipe, list[str]]:
    """The trunk's recipe in force with what the branch changed, and what was left out."""
    parent = history.parent or {}
    copy = history.folder.path / "parent.yaml"
    plain = read_manifest(copy, str(parent["hash"]))
    base = recipe_from_plain(plain["recipe"]["resolved"], source=str(copy))
    theirs = origin.state.recipe
    ours = find_place(trunk.folder).state.recipe
    paths = {name: held.path for name, held in origin.state.holdings.items()}
    dropped = left_out(base, theirs)
    if parent.get("data") == "fresh" or parent.get("fresh"):
        dropped.append("pools that were read from their beginning: the trunk reads on")
    words = {"skip": "skipped steps", "withdraw": "withdrawn documents", "data": "accepted data"}
    dropped += [f"{words[turn.kind]} at step {turn.step:,}" for turn in history.turns if turn.kind in words]
    return merged_recipe(base, theirs, ours, paths), dropped


def _against_amending(origin: Origin, history: History, trunk: History) -> Iterator[Problem]:
    """What of a branch no amendment can bring to its trunk."""
    fix = "adopt it as the trunk: recipe adopt … --as trunk"
    parent = history.parent or {}
    if parent.get("retokenised"):
        yield Problem("tokenizer", "another one", "the trunk's: a change of it is a new branch", fix)
    if parent.get("renamed"):
        given = ", ".join(f"{old} → {new}" for old, new in parent["renamed"].items())
        yield Problem("pools", given, "pools called as in the trunk", fix)
    if trunk.is_complete:
        yield Problem(str(trunk.folder.path), "a run that is complete", "steps that are left", fix)
    held = find_place(trunk.folder).state.holdings
    for name, mine in origin.state.holdings.items():
        if name in held and held[name].fingerprint != mine.fingerprint and not parent.get("retokenised"):
            given, expected = f"fingerprint {mine.fingerprint}", f"{held[name].fingerprint}, as in the trunk"
            yield Problem(f"pools.{name}", given, expected, fix)


def _no_branch(history: History) -> RecipeError:
    path = history.folder.path
    return RecipeError.single(
        f"{path}: nothing to adopt",
        "BRANCH",
        given="a run that is no branch: it has no trunk whose place it could take",
        expected="a branch, as `recipe branch` makes it",
        fix=f"put a choice between runs on record instead: recipe compare RUN … --decide {path}",
    )


def _no_trunk(history: History) -> RecipeError:
    parent = history.parent or {}
    return RecipeError.single(
        f"{history.folder.path}: no trunk to amend",
        "RUN",
        given=f"no run {parent.get('run')} at {parent.get('path')}",
        expected="a branch whose parent's folder is there",
        fix="put the parent's folder beside the branch, or adopt the branch as the trunk (--as trunk)",
    )
