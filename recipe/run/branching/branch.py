"""Branches of a run: other runs that start from one of its checkpoints and differ by what was named.

A branch is planned whole before anything is written: its recipe, the state it begins with, how it
differs from its parent, and what it will read. Then its folder appears at once, beside its parent by
default. Nothing is ever written to the parent. Without a change it is a control: the parent's stream,
byte for byte.

Branches draw the same documents in the same order from every pool, however their shares differ, up to
the first place where a rule of slicing or packing changes, and the same blocks always; another seed, or
data that is read fresh, is the exception (see :mod:`recipe.run.branching.beginning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.mixing.opening import close_pools, open_pools, pool_problems, settle_with
from recipe.mixing.outlook import Outlook, YieldCache, outlook
from recipe.mixing.trial import changed_policy_problems
from recipe.mixing.withdrawals import refuse_erased
from recipe.run import writes
from recipe.run.birth import Birth, first_files
from recipe.run.branching.beginning import beginning, renamed_withdrawals, uncounted
from recipe.run.branching.checks import (
    checkpoint_problems,
    data_problems,
    is_other,
    last_seen,
    past_problems,
    start_problems,
)
from recipe.run.branching.controlled import Control
from recipe.run.branching.origin import Origin, find_origin, split_place
from recipe.run.branching.recipes import branch_recipe, parent_recipe, start_from
from recipe.run.branching.record import Planned, control_of, notes, parent_record, policy_record
from recipe.run.branching.wishes import Wish
from recipe.run.folder import FOLDERS, RecipeVersion, RunFolder, check_name
from recipe.run.holdings import Holding, known_paths, tokenizers
from recipe.run.opening import ERASED
from recipe.run.start import refuse_taken, taken
from recipe.run.statement import text_on_record
from recipe.run.ways_back import with_ways_back


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A branch that can be created."""

    wish: Wish
    path: Path
    birth: Birth
    parent_copy: bytes
    """The parent's manifest, byte for byte."""
    control: Control
    outlook: Outlook
    trunk: Outlook | None
    """The parent from the same step on, where its pools are still what it read."""
    notes: tuple[str, ...]
    """What should be known before it is created."""

    @property
    def recipe(self) -> Recipe:
        """Settled."""
        return self.birth.version.recipe

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe branch --json``."""
        return {
            "name": self.wish.name,
            "run": str(self.path),
            "parent": self.birth.parent,
            **self.control.to_plain(),
            "notes": list(self.notes),
            "before": None if self.trunk is None else self.trunk.to_plain(),
            "after": self.outlook.to_plain(),
        }


def branch_run(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    wishes: Wish | Sequence[Wish],
    *,
    root: str | Path | None = None,
    pools_root: str | Path | None = None,
    approved_by: str | None = None,
    allow_targets: Sequence[str] = (),
) -> list[Path]:
    """Create branches of a run: all of them, or none.

    Args:
        path: the run's folder, and the checkpoint to start from: ``RUN@MANIFEST`` or ``RUN@step:N``;
            default: the last one. Nothing is written there.
        wishes: what each differs by.
        root: where the new folders go; default: beside the run's.
        pools_root: where the pools are on this machine; default: where they were.
        approved_by: who wanted it.
        allow_targets: dotted names that a changed ``policy._target_`` may have beside the shipped ones.

    Returns:
        Their folders, in order; ``open_run`` opens them.

    Raises:
        RecipeError: no such checkpoint, or one whose weights are gone; a name that is taken or none; a
            change of what lies behind; pools that are missing, changed, or run out for certain. With the
            problems of all branches at once; nothing was written.
    """
    origin = find_origin(*split_place(str(path)))
    asked = [wishes] if isinstance(wishes, Wish) else list(wishes)
    roots = (None if root is None else Path(root), None if pools_root is None else Path(pools_root))
    return create_branches(
        plan_branches(origin, asked, *roots, approved_by=approved_by, allow_targets=allow_targets)
    )


def plan_branches(  # noqa: PLR0913 - the options of the verb
    origin: Origin,
    wishes: Sequence[Wish],
    root: Path | None = None,
    pools_root: Path | None = None,
    *,
    approved_by: str | None = None,
    allow_targets: Sequence[str] = (),
) -> list[Branch]:
    """Everything about some branches but their folders; every problem of all of them is told at once.

    Raises:
        RecipeError: as :func:`branch_run`.
    """
    own = origin.folder.path
    own = own if own.name not in ("", "..") else own.resolve()
    folder = own.parent if root is None else root
    branches, problems = [], checkpoint_problems(origin)
    yields: YieldCache = {}
    for wish in wishes:
        try:
            check_name(wish.name, "NAME")
            refuse_taken(RunFolder(folder / wish.name))
            planned = _plan(origin, wish, pools_root, yields, allow_targets)
            branches.append(_described(origin, planned, folder / wish.name, approved_by))
        except RecipeError as error:
            where = "" if len(wishes) == 1 else f"{wish.name}: "
            told = with_ways_back(
                origin.folder.ledger,
                origin.state.recipe,
                origin.state.snapshot,
                error.problems,
                f"{origin.folder.path}@step:{{step}}",
            )
            problems += [replace(problem, where=f"{where}{problem.where}") for problem in told]
    problems += _texts(wishes, approved_by)
    problems += _same_names([wish.name for wish in wishes])
    if problems:
        raise RecipeError(f"{origin.folder.path}: not branched", problems)
    return branches


def create_branches(branches: Iterable[Branch]) -> list[Path]:
    """Create the folders, all or none.

    Raises:
        RecipeError: a name was taken meanwhile, or the system refuses.
    """
    wanted = {
        branch.path: {**first_files(branch.birth), "parent.yaml": branch.parent_copy} for branch in branches
    }
    for folder in dict.fromkeys(path.parent for path in wanted):
        writes.make_folder(folder)
    if (path := writes.create_folders(wanted, FOLDERS)) is not None:
        raise taken(RunFolder(path))
    return list(wanted)


def _plan(
    origin: Origin, wish: Wish, pools_root: Path | None, yields: YieldCache, allow: Sequence[str]
) -> Planned:
    names = dict(wish.renamed)
    at, old = origin.state.snapshot, parent_recipe(origin, wish)
    before = {names.get(name, name): held for name, held in origin.state.holdings.items()}
    declared = branch_recipe(origin, wish, old)
    problems = start_problems(old, declared)
    paths = known_paths(declared, last_seen(before, old, declared), pools_root)
    pools = open_pools(declared, paths)
    try:
        holdings = {name: Holding.of(pool) for name, pool in pools.items()}
        retokenised = tokenizers(before) != tokenizers(holdings)
        fresh = tuple(pools) if wish.data == "fresh" else wish.fresh
        if retokenised and declared.start == old.start:
            declared = declared.model_copy(update={"start": start_from(origin, old)})
        recipe = settle_with(declared, pools)
        problems += [*data_problems(wish, before, pools, fresh), *pool_problems(recipe, pools)]
        problems += past_problems(old, recipe, at, fresh, pools)
        problems += changed_policy_problems(old, recipe, allow)
        if problems:
            raise RecipeError(wish.name, problems)
        others = {name for name in before if name in pools and is_other(before[name], pools[name])}
        taken_from = {names.get(name, name) for name in origin.state.withdrawn.pools}
        withdrawn = renamed_withdrawals(origin.state.withdrawn, names, others)
        refuse_erased(recipe, pools, withdrawn, wish.name, ERASED.format(run=origin.folder.path))
        base = beginning(at, (old, recipe), pools, fresh, withdrawn)
        base = uncounted(base) if retokenised else base
        ahead = outlook(recipe, pools, base, yields)
        mine = {name: pools[name] for name in old.pools if name not in others}
        trunk = outlook(old, mine, at, yields) if len(mine) == len(old.pools) else None
        if ahead.problems:
            raise RecipeError(wish.name, list(ahead.problems))
    finally:
        close_pools(pools.values())
    return Planned(
        wish=wish,
        old=old,
        declared=declared,
        recipe=recipe,
        before=before,
        holdings=holdings,
        fresh=fresh,
        is_retokenised=retokenised,
        lapsed=tuple(name for name in sorted(others) if name in taken_from),
        withdrawn=withdrawn,
        base=base,
        outlook=ahead,
        trunk=trunk,
    )


def _described(origin: Origin, planned: Planned, path: Path, approved_by: str | None) -> Branch:
    """The branch with all that is put on record of it."""
    wish = planned.wish
    control = control_of(origin, planned)
    version = RecipeVersion(
        version=1,
        step=origin.step,
        reason=wish.reason or f"branch {wish.name} of {origin.state.run}",
        approved_by=approved_by,
        recipe=planned.recipe,
        declared=planned.declared,
    )
    birth = Birth(
        name=wish.name,
        version=version,
        holdings=planned.holdings,
        snapshot=planned.base,
        turn={"stage": origin.stage, "grid": [origin.planned_to, origin.planned_to]},
        withdrawn=planned.withdrawn,
        policy=policy_record(origin, planned),
        parent=parent_record(origin, planned, control),
    )
    return Branch(
        wish=wish,
        path=path,
        birth=birth,
        parent_copy=origin.data,
        control=control,
        outlook=planned.outlook,
        trunk=planned.trunk,
        notes=tuple(notes(origin, planned)),
    )


def _texts(wishes: Sequence[Wish], approved_by: str | None) -> list[Problem]:
    """Texts that cannot be put on record."""
    texts = {("--reason", wish.reason) for wish in wishes} | {("--approved-by", approved_by or "")}
    problems = []
    for where, text in sorted(texts):
        try:
            text_on_record(where, text)
        except ValueError as error:
            problems.append(Problem(where, str(error), "a text of one line", "write it in one line"))
    return problems


def _same_names(names: Sequence[str]) -> list[Problem]:
    return [
        Problem("NAME", f"{name} {names.count(name)} times", "names that differ", "name each branch once")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
