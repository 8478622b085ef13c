"""The tree of runs that compared runs come from, and the proof that its stretches add up.

What a run read by itself is added up from its ledger's chunk rows; with what was read before it
branched that must be the cumulative total of its checkpoint, and where it begins must be where its
parent's manifest ends. A record in which that is not so is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.mixing.snapshot import Snapshot
from recipe.run.accounts import STAGE_COUNTS
from recipe.run.canonical import Plain
from recipe.run.comparing.history import History, Point, counted_chunks, read_history
from recipe.run.folder import RunFolder, read_identity, read_version
from recipe.run.head import snapshot_of
from recipe.run.ledger import row_at
from recipe.run.manifest import read_manifest

Totals = dict[str, dict[str, int]]
"""Pool, kind: tokens."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A run in the tree, up to a step."""

    name: str
    id: str
    parent: str | None
    """Id of the run it branched from."""
    depth: int
    """Branches between it and the root."""
    first: int
    """Step it began at."""
    last: int
    """Step it is shown up to: the compared one, or the last at which a run of the tree branched off."""
    own: dict[str, int] | None
    """Counted tokens by pool of these steps; None where the run's folder is not there."""
    total: dict[str, int]
    """Counted tokens by pool at the end, what was read before it branched included."""
    compared: bool


@dataclass(frozen=True)
class _Use:
    """A run of the tree and how far it is needed."""

    history: History
    point: Point | None
    total: Totals
    """At that point, or as the child that branched there has it on record."""


def lineage_tree(compared: Sequence[tuple[History, Point]]) -> tuple[Node, ...]:
    """Every compared run and its ancestors, root first, each followed by its branches.

    Raises:
        RecipeError: the stretches of a run do not add up to its cumulative total.
    """
    uses: dict[str, _Use] = {}
    lost: dict[str, Node] = {}
    for history, point in compared:
        _use(uses, _Use(history, point, totals_of(history, point)))
    for history, _ in compared:
        for child, parent in ancestry(history):
            stated = _check_begins(child)
            if parent is None:
                made = _unread(child, stated)
                lost[made.id] = made
            else:
                _use(uses, _ancestor(parent, child, stated))
    ids = [history.id for history, _ in compared]
    nodes = {id: _node(use, compared=id in ids) for id, use in uses.items()}
    return tuple(_in_order({**lost, **nodes}))


def ancestry(history: History) -> Iterator[tuple[History, History | None]]:
    """A run and its parent, the parent and its own, … up to the root or a run whose folder is not there."""
    while history.parent is not None:
        parent = find_parent(history)
        yield history, parent
        if parent is None:
            return
        history = parent


def find_parent(history: History) -> History | None:
    """The record of the run that a run branched from: where it was, or beside the branch; None: not there."""
    parent = history.parent
    if parent is None:
        return None
    places = [Path(str(parent["path"])), history.folder.path.absolute().parent / str(parent["run"])]
    for path in places:
        folder = RunFolder(path)
        if folder.identity.is_file() and folder.ledger.is_file():
            found = read_identity(folder)
            if found.get("id") == parent["id"]:
                return read_history(path)
    return None


def branched_at(parent: History, child: History) -> Point | None:
    """The checkpoint that a run branched from; None if its parent discarded it since."""
    stated = child.parent or {}
    return next((point for point in parent.points if point.manifest_hash == stated.get("hash")), None)


def totals_of(history: History, point: Point) -> Totals:
    """Cumulative tokens at a checkpoint, by pool and kind, once the rows that lead there add up to them.

    Raises:
        RecipeError: they do not.
    """
    row = history.row(point)
    recipe = read_version(history.folder, point.version).recipe
    closing = row_at(history.folder.ledger, int(row.data["closing"]["offset"]))
    begun = _begun(history)
    summed: Counter[tuple[str, str]] = Counter()
    for chunk in counted_chunks(history, point.step):
        if chunk.number <= closing.number:
            summed.update({(n, k): int(v[k]) for n, v in chunk.data["pools"].items() for k in STAGE_COUNTS})
    stated = named_totals(snapshot_of(closing), recipe)
    for name, kinds in stated.items():
        for kind in STAGE_COUNTS:
            made = begun.get(name, {}).get(kind, 0) + summed[name, kind]
            if made != kinds[kind]:
                where = f"row {closing.number}, pool {name}, {kind}"
                raise _disagree(
                    history, where, f"{kinds[kind]:,}", f"{made:,}, the sum of the rows before it"
                )
    cumulative: Totals = row.data["cumulative"]
    return cumulative


def named_totals(snapshot: Snapshot, recipe: Recipe) -> Totals:
    """What a snapshot counts, by the names of a recipe's pools."""
    if len(snapshot.pools) != len(recipe.pools):
        raise ValueError(f"{len(snapshot.pools)} pools in a snapshot, {len(recipe.pools)} in the recipe")
    return {
        name: {kind: int(getattr(pool, kind)) for kind in STAGE_COUNTS}
        for name, pool in zip(recipe.pools, snapshot.pools, strict=True)
    }


def _begun(history: History) -> Totals:
    """The totals that a run began with."""
    return named_totals(snapshot_of(history.created), _first_recipe(history))


def _first_recipe(history: History) -> Recipe:
    return read_version(history.folder, int(history.created.data["recipe"])).recipe


def _check_begins(child: History) -> Totals:
    """The totals of the manifest that a run branched from; it must begin with them.

    With another tokenizer it begins at zero: what came before is counted in other tokens.

    Raises:
        RecipeError: it does not, or its copy of the manifest is not what it was.
    """
    assert child.parent is not None, child.name
    manifest = read_manifest(child.folder.path / "parent.yaml", str(child.parent["hash"]))
    stated: Totals = {
        name: pool["tokens"] | {"sequences": pool["sequences"]} for name, pool in manifest["pools"].items()
    }
    names = {new: old for old, new in child.parent.get("renamed", {}).items()}
    for name, kinds in _begun(child).items():
        origin = {} if child.parent.get("retokenised") else stated.get(names.get(name, name), {})
        for kind in STAGE_COUNTS:
            if kinds[kind] != origin.get(kind, 0):
                where = f"row 0, pool {name}, {kind}"
                raise _disagree(
                    child, where, f"{kinds[kind]:,}", f"{origin.get(kind, 0):,}, as in parent.yaml"
                )
    return stated


def _ancestor(parent: History, child: History, stated: Totals) -> _Use:
    point = branched_at(parent, child)
    return _Use(parent, point, stated if point is None else totals_of(parent, point))


def _use(uses: dict[str, _Use], use: _Use) -> None:
    """Keep the furthest use of a run."""
    known = uses.get(use.history.id)
    if known is None or known.point is None or (use.point is not None and use.point.step > known.point.step):
        uses[use.history.id] = use


def _node(use: _Use, *, compared: bool) -> Node:
    history = use.history
    begun = _begun(history)
    total = {name: kinds["spent"] for name, kinds in use.total.items()}
    own = {name: spent - begun.get(name, {}).get("spent", 0) for name, spent in total.items()}
    return Node(
        name=history.name,
        id=history.id,
        parent=None if history.parent is None else str(history.parent["id"]),
        depth=0,
        first=history.base,
        last=history.base if use.point is None else use.point.step,
        own=None if use.point is None else own,
        total=total,
        compared=compared,
    )


def _unread(child: History, stated: Totals) -> Node:
    """A run that is known from a branch of it alone."""
    parent: Plain = child.parent or {}
    return Node(
        name=str(parent["run"]),
        id=str(parent["id"]),
        parent=None,
        depth=0,
        first=0,
        last=int(parent["step"]),
        own=None,
        total={name: kinds["spent"] for name, kinds in stated.items()},
        compared=False,
    )


def _in_order(nodes: Mapping[str, Node]) -> Iterator[Node]:
    def below(parents: Iterable[Node], depth: int) -> Iterator[Node]:
        for node in parents:
            yield Node(**{name: getattr(node, name) for name in Node.__dataclass_fields__} | {"depth": depth})
            yield from below((child for child in nodes.values() if child.parent == node.id), depth + 1)

    yield from below((node for node in nodes.values() if node.parent not in nodes), 0)


def _disagree(history: History, where: str, given: str, expected: str) -> RecipeError:
    return RecipeError.single(
        f"{history.folder.path}: a record that does not add up",
        f"{history.folder.ledger}, {where}",
        given=given,
        expected=expected,
        fix="`recipe audit` names every fault; take the run's folder from a copy",
    )
