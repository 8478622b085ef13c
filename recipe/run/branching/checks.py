"""What stands against a branch: data that is not its parent's, and changes of what lies behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote

from recipe.config import Recipe
from recipe.config.view import VIEW_KEYS
from recipe.errors import Problem, RecipeError
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.turning import behind_problems
from recipe.pools import Pool
from recipe.run.branching.origin import Origin
from recipe.run.branching.wishes import DATA, Wish
from recipe.run.files import SEQUENCES
from recipe.run.holdings import Holding, Holdings
from recipe.run.weights import is_marked_local, local_path, weights_fate

_PAST = "start another run to have it otherwise: what lies before the checkpoint is its parent's"


def last_seen(before: Holdings, old: Recipe, new: Recipe) -> Holdings:
    """Where the pools of a branch were last: those with a path of their own are looked for there."""
    kept = {}
    for name in new.pools:
        if name in before and old.folder(name) == new.folder(name) and old.pools_root == new.pools_root:
            kept[name] = before[name]
            continue
        if new.folder(name) is None:
            fix = "give it a path; a stock alone is enough for `recipe plan` only"
            given, expected = "no path", "the folder of the pool"
            raise RecipeError.single(
                "no data to run on", f"pools.{name}.path", given=given, expected=expected, fix=fix
            )
        kept[name] = Holding(path=str(new.pool_path(name).absolute()), fingerprint="")
    return kept


def is_other(held: Holding, pool: Pool) -> bool:
    """Whether a pool is not the one that a run held."""
    return pool.fingerprint != held.fingerprint


def data_problems(
    wish: Wish, before: Holdings, pools: Mapping[str, Pool], fresh: Sequence[str]
) -> list[Problem]:
    """Pools whose content changed must be read fresh, and this must be said."""
    known = ", ".join(pools)
    problems = [
        Problem("--fresh", name, f"a pool of the branch: {known}", "correct the name")
        for name in wish.fresh
        if name not in pools
    ]
    if wish.data not in DATA:
        problems.append(Problem("--data", wish.data, "continue or fresh", "continue is the default"))
    for name, pool in pools.items():
        if name not in before or name in fresh or not is_other(before[name], pool):
            continue
        was, becomes = before[name].tokenizer, pool.card.tokenizer
        what = f"fingerprint {pool.fingerprint}"
        if was != becomes:
            what += f", made with tokenizer {becomes or 'that it does not name'}"
        fix = f"put the parent's data back, or say that it is read from its beginning: --fresh {name}"
        if was != becomes:
            fix = "say that all data is read from its beginning: --data fresh"
        expected = f"fingerprint {before[name].fingerprint}, as its parent read it"
        problems.append(Problem(f"pools.{name}", what, expected, fix))
    return problems


def checkpoint_problems(origin: Origin) -> list[Problem]:
    """Weights that are no longer where the checkpoint says, though that place can be seen from here."""
    uri = origin.uri
    # Files of the stream are no weights: a branch does not read them.
    if uri is None or uri.startswith(f"{SEQUENCES}/") or weights_fate(origin.folder.path, uri) != "removed":
        return []
    fix = "bring it back from a copy, or branch from a checkpoint whose weights are there: "
    fix += f"`recipe status {quote(str(origin.folder.path))} --manifests all` lists them"
    given = f"manifest {origin.number} with weights {uri}, which is not there"
    return [Problem("RUN@MANIFEST", given, "a checkpoint whose weights are there", fix)]


def start_problems(old: Recipe, new: Recipe) -> list[Problem]:
    """Start weights that a branch names anew, by a path that is none."""
    start = new.start
    if start is None or start == old.start or not is_marked_local(start.weights):
        return []
    path = local_path(start.weights)
    if path is None or path.exists():
        return []
    fix = "correct the path; a name or an address of weights elsewhere is kept as it is written"
    return [Problem("start.weights", start.weights, "a file or folder that is there", fix)]


def past_problems(
    old: Recipe, new: Recipe, at: Snapshot, fresh: Sequence[str], pools: Mapping[str, Pool]
) -> list[Problem]:
    """What a branch changes of what lies behind it; what begins anew with it may change."""
    allowed = {"seed", "tokenizer", "start"}
    allowed |= {f"pools.{name}.{key}" for name in fresh for key in ("block_units", "eos", "bos", *VIEW_KEYS)}
    problems = []
    for problem in behind_problems(old, new, at, pools):
        if problem.where not in allowed:
            fix = problem.fix.replace("; or branch the run", "").replace(", or branch the run", "")
            problems.append(replace(problem, fix=_PAST if "branch the run" in fix else fix))
    return problems
