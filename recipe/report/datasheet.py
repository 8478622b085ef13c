"""The datasheet of a run: what was spent, by where it comes from.

Every number of tokens is one of the ledger: chunk rows, added up and held against the run's last checkpoint.
Where texts come from is what the cards of the pools say; what no card says is not guessed. Tokens of a pool
whose documents have tags of their own are shared out over these in proportion, and marked as shared out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recipe.audit import audit_run
from recipe.config import Recipe
from recipe.config.problems import nearest
from recipe.errors import Problem, RecipeError
from recipe.maths.rounding import largest_remainder
from recipe.mixing.epochs import epochs_read
from recipe.mixing.opening import open_named
from recipe.mixing.simulated import part_of
from recipe.mixing.snapshot import PoolState
from recipe.pools.about import SYNTHETIC
from recipe.pools.pool import Pool
from recipe.pools.sheet import left_out
from recipe.pools.tag_counts import Tag, tag_counts
from recipe.report.datasheet_lineage import lineage_of
from recipe.report.pools import NOT_STATED, said
from recipe.run.comparing.history import History, read_history
from recipe.run.comparing.lineage_tree import totals_of
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.holdings import Holding, known_paths
from recipe.run.state import State
from recipe.run.statement import prior_of

FORMAT = 1
STOCK, READ, NONE = "stock", "read", "none"
"""How tokens of a pool are shared out over its documents' tags: as the pool holds them, as far as they were
read at least once (walked by the audit's own reading), or not at all."""
LANGUAGE_TAGS, LICENCE_TAGS = ("language", "languages", "lang"), ("licence", "license")
TAGS = (
    *LANGUAGE_TAGS,
    *LICENCE_TAGS,
    "kind",
    "domain",
    "site",
    "host",
    "source",
    "year",
    "date",
    "generator",
)
"""Tags that are told of unless others are asked for."""
MOST_VALUES = 20
WITHOUT, OTHERS, NOT_SYNTHETIC = "(without this tag)", "(other values)", "not synthetic"
BY = {
    "kind": ("kind", ()),
    "licence": ("licence", LICENCE_TAGS),
    "languages": ("languages", LANGUAGE_TAGS),
    "collected": ("collected", ()),
    "generator": ("generator", ()),
    "provider": ("provider", ()),
}
"""What tokens are added up by: the key of a card's ``about``, and tags that say it of a document."""


def datasheet_of(
    path: Path,
    *,
    pools_root: Path | None = None,
    share: str = STOCK,
    tags: Sequence[str] = (),
    about: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """What a run spent by its last checkpoint, by pool and by what their cards say; plain values.

    Args:
        path: of the run.
        pools_root: where the pools are on this machine.
        share: how tokens are shared out over tags: ``stock``, ``read`` or ``none``.
        tags: those to tell of; default: `TAGS`.
        about: what is said of pools whose cards say nothing: of files made elsewhere, which have none.

    Raises:
        RecipeError: no run, a damaged record, or one whose rows do not add up to its checkpoint; or something
            said of a pool that is not the run's, or whose card says it.
    """
    folder = RunFolder(path)
    folder.check()
    state = find_place(folder).state
    history = read_history(path)
    if history.points:
        totals_of(history, max(history.points, key=lambda point: (point.step, point.row)))
    audited = audit_run(path, sample=1, seed=0, pools_root=pools_root).to_plain() if share == READ else None
    paths = known_paths(state.recipe, state.holdings, pools_root)
    wanted = () if share == NONE else tuple(tags) or TAGS
    pools = {}
    for name, given in zip(state.recipe.pools, state.snapshot.pools, strict=True):
        reading = None if audited is None else audited["reading"].get(name, {})
        pools[name] = _pool(state, name, paths[name], given, (wanted, reading))
        pools[name] |= _told_beside(pools[name], None if about is None else about.get(name))
    _refuse_beside(pools, about or {})
    total: Counter[str] = Counter()
    for one in pools.values():
        total.update({kind: one[kind] for kind in _KINDS})
    return {
        "format": FORMAT,
        "run": _run(history, state),
        "total": dict(total),
        "pools": pools,
        "by": {name: _by(pools, *keys) for name, keys in BY.items()},
        "shared_out": share,
        "dropped": dict(sorted(_summed(one["dropped"] for one in pools.values()).items())),
        "lineage": list(lineage_of(history, total["spent"], total["body"])),
        "prior": prior_of(state.recipe),
        "not_stated": {name: missing for name, one in pools.items() if (missing := _missing(one["about"]))},
    }


def _pool(
    state: State, name: str, path: Path, given: PoolState, by: tuple[Sequence[str], Mapping[str, Any] | None]
) -> dict[str, Any]:
    """What one pool gave; ``by``: tags that are told of, and the audit's account where they go by that."""
    pool, known = _opened(state.recipe, name, path, state.holdings[name])
    own = {**_spent(state.recipe, given, state.holdings[name].stock), **known, "tags": {}}
    own["withdrawn"] = len(state.withdrawn.documents(name))
    if pool is not None:
        own["tags"] = _tags(pool, own, by[1], by[0]) if by[0] else {}
        pool.close()
    return own


_KINDS = ("spent", "body", "fresh", "overlap", "special", "labels", "sequences")


def _told_beside(own: Mapping[str, Any], about: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is said of a pool beside its card; ``stated_in`` says where what is said of it is from."""
    if own["about"] or about is None:
        return {"stated_in": "card" if own["about"] else None}
    return {"about": dict(about), "stated_in": "beside"}


def _refuse_beside(pools: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """What is said of no pool of the run, or of one that says it itself."""
    problems = []
    for name in about:
        if name not in pools:
            expected, fix = f"a pool of the run: {', '.join(pools)}", nearest(name, pools)
            problems.append(Problem(name, "not a pool of the run", expected, fix))
        elif pools[name]["stated_in"] == "card":
            fix = "leave it out, or correct the card: recipe pools describe"
            problems.append(Problem(name, "said beside its card", "what the card says, alone", fix))
    if problems:
        raise RecipeError("--about", problems)


def _run(history: History, state: State) -> dict[str, Any]:
    last = history.manifest(max(history.points, key=lambda p: (p.step, p.row))) if history.points else {}
    return {
        "name": history.name,
        "id": history.id,
        "created": history.created.data["time"],
        "step": state.snapshot.step,
        "positions": state.snapshot.positions,
        "complete": history.is_complete,
        "count": state.recipe.count,
        "seed": state.recipe.seed,
        "recipe_version": state.version,
        "tokenizers": sorted({held.tokenizer for held in state.holdings.values() if held.tokenizer}),
        "checkpoint": last.get("checkpoint", {}),
        "head": history.created.data["hash"] if not last else last["hash"],
        "data_changes": last.get("accepted_data_changes", []),
    }


def _spent(recipe: Recipe, given: PoolState, stock: int) -> dict[str, Any]:
    """What the ledger says a pool gave."""
    fresh = given.body - given.overlap
    epochs = epochs_read(recipe, stock, fresh, given.dropped)
    return {
        "spent": given.spent,
        "body": given.body,
        "fresh": fresh,
        "overlap": given.overlap,
        "special": given.special,
        "labels": given.labels,
        "sequences": given.sequences,
        "documents_begun": given.documents,
        "stock": part_of(recipe, stock),
        "epochs": None if epochs is None else float(epochs),
        "dropped": dict(given.dropped),
    }


def _opened(recipe: Recipe, name: str, path: Path, held: Holding) -> tuple[Pool | None, dict[str, Any]]:
    """A pool of the run as it is now, and what its card says; nothing where it is another, or not here."""
    told: dict[str, Any] = {"about": {}, "note": "", "left_out": None, "has_card": None}
    told |= {"documents": held.documents, "fingerprint": held.fingerprint}
    try:
        pool = open_named(recipe, name, path)
    except RecipeError:
        return None, {**told, "note": "the pool is not here, or cannot be opened"}
    if pool.fingerprint != held.fingerprint:
        pool.close()
        return None, {**told, "note": "another pool is there now: what its card says is not of this run"}
    told["has_card"] = pool.layout.table is not None
    return pool, {**told, "about": dict(pool.card.about or {}), "left_out": left_out(pool.card)}


def _tags(
    pool: Pool, spent: Mapping[str, Any], reading: Mapping[str, Any] | None, wanted: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """The tokens that a pool gave, shared out over the values of each tag; whole numbers that sum to them."""
    if reading is not None:
        found = {
            key: [(value, one["documents"], one["covered"]) for value, one in values.items()]
            for key, values in reading.get("tags", {}).items()
        }
        whole = reading.get("covered", 0)
    else:
        counted = tag_counts(pool, MOST_VALUES)
        found = {
            key: [*((one.value, one.documents, one.tokens) for one in tag.top), *_others(tag)]
            for key, tag in counted.items()
        }
        whole = pool.stock
    documents = pool.num_documents
    return {key: _shared(found[key], (documents, whole), spent) for key in found if key in wanted and whole}


def _others(tag: Tag) -> Iterator[tuple[str, int, int]]:
    """The values that are not told apart, together."""
    documents = tag.documents - sum(one.documents for one in tag.top)
    if documents:
        yield OTHERS, documents, tag.tokens - sum(one.tokens for one in tag.top)


def _shared(
    values: list[tuple[str, int, int]], whole: tuple[int, int], spent: Mapping[str, Any]
) -> list[dict[str, Any]]:
    documents, tokens = whole
    missing = (documents - sum(one[1] for one in values), tokens - sum(one[2] for one in values))
    rows = [*values, *([(WITHOUT, *missing)] if missing[0] or missing[1] else [])]
    shares = {
        kind: largest_remainder([row[2] for row in rows], tokens, spent[kind]) for kind in ("spent", "fresh")
    }
    return [
        {"value": value, "documents": documents, "tokens": tokens, "spent": s, "fresh": f}
        for (value, documents, tokens), s, f in zip(rows, shares["spent"], shares["fresh"], strict=True)
    ]


def _by(pools: Mapping[str, Any], key: str, tags: Sequence[str]) -> list[dict[str, Any]]:
    """Tokens by one thing that cards say; where documents say it themselves, by their tags.

    ``stated`` are whole pools, exact; ``shared`` is shared out over documents' tags. A document without the
    tag is what its pool's card says.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name, pool in pools.items():
        own = _own(pool["about"], key)
        tag = next((tag for tag in tags if tag in pool["tags"]), None)
        parts = [(own, "stated", pool)] if tag is None else []
        for one in pool["tags"][tag] if tag is not None else ():
            parts.append((own if one["value"] == WITHOUT else one["value"], "shared", one))
        for value, how, numbers in parts:
            row = rows.setdefault(
                value, {"value": value, "pools": [], "spent": 0, "fresh": 0, "stated": 0, "shared": 0}
            )
            row["pools"] += [name] if name not in row["pools"] else []
            row["spent"] += numbers["spent"]
            row["fresh"] += numbers["fresh"]
            row[how] += numbers["spent"]
    last = (NOT_SYNTHETIC, NOT_STATED)
    return sorted(rows.values(), key=lambda row: (row["value"] in last, -row["spent"], row["value"]))


def _own(about: Mapping[str, Any], key: str) -> str:
    """What a card says of one thing; only synthetic text has a generator."""
    if key == "generator" and about.get("kind") not in (None, SYNTHETIC):
        return NOT_SYNTHETIC
    return said(about[key]) if key in about else NOT_STATED


def _summed(parts: Iterator[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def _missing(about: Mapping[str, Any]) -> list[str]:
    """What a public summary asks of a pool and its card does not say."""
    wanted = ["kind", "licence", "languages", "collected"]
    return [key for key in wanted if key not in about]
