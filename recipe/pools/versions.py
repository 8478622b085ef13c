"""Folders that are versions of one pool, and pools that are held-out sides of a split: what cards say of it.

A pool that extends another, or was copied from it (deduplicated, split), names its fingerprint; one that was
cut otherwise, or lost withdrawn documents, has the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from recipe.pools.adopting import EXTENDS
from recipe.pools.card import CARD_NAME, Card
from recipe.pools.copying import COPIED
from recipe.pools.pool import Pool
from recipe.pools.splits import SPLIT

_TRAINING = ("train", "training")
_MEASURED = (
    "held",
    "heldout",
    "holdout",
    "val",
    "valid",
    "validation",
    "dev",
    "test",
    "eval",
    "evaluation",
    "exam",
)


def held_out_side(source: Mapping[str, Any]) -> str | None:
    """The name of the split that a pool is, where it is not the one to train on; else None.

    To train on is the one called train, and the largest of those not called held, test or the like, unless
    that of train is as large.

    >>> shares = {"train": "1/2", "validation": "1/2"}
    >>> [held_out_side({"split": {"name": name, "shares": shares}}) for name in shares]
    [None, 'validation']
    """
    said = source.get(SPLIT)
    if not isinstance(said, Mapping) or said.get("name") not in said.get("shares", ()):
        return None
    name, shares = str(said["name"]), {key: Fraction(share) for key, share in said["shares"].items()}
    called = {key for key in shares if key.lower() in _TRAINING}
    others = {key for key in shares if key.lower().replace("_", "").replace("-", "") not in _MEASURED}
    most = max(shares[key] for key in others or shares)
    largest = {key for key in others or shares if shares[key] == most}
    trains = called if called & largest else called | largest
    return None if name in trains else name


def superseded(pools: Mapping[str, Pool]) -> dict[str, str]:
    """Of pools that are versions of one, the older ones: each with a newest one, by name.

    Newer is what was made of the other; of several such ones the one that lost most withdrawn documents, then
    the one whose card was written last. Sides of one split are no versions of each other.
    """
    own = {name: pool for name, pool in pools.items() if pool.layout.table is not None}
    found: dict[str, str] = {}
    for family in _families({name: _lineage(pool.card) for name, pool in own.items()}):
        heads = [name for name in family if not any(_is_made_of(own[k], own[name]) for k in family)]
        newest = max(heads, key=lambda name: _age(own[name]))
        kept = {newest, *_other_sides(newest, heads, own)}
        found |= {name: newest for name in family if name not in kept}
    return found


def _lineage(card: Card) -> frozenset[str]:
    """Fingerprints of a pool and of those that it was made of."""
    copied = card.source.get(COPIED, {}).get("fingerprint")
    extended = (entry["fingerprint"] for entry in card.source.get(EXTENDS, ()))
    return frozenset([card.fingerprint, *extended, *([copied] if copied else [])])


def _is_made_of(new: Pool, old: Pool) -> bool:
    return new.fingerprint != old.fingerprint and old.fingerprint in _lineage(new.card)


def _families(lineages: Mapping[str, frozenset[str]]) -> Iterable[list[str]]:
    """Names whose lineages meet, directly or by others."""
    families: list[tuple[list[str], frozenset[str]]] = []
    for name, lineage in lineages.items():
        meeting = [family for family in families if family[1] & lineage]
        families = [family for family in families if not family[1] & lineage]
        names = [each for family, _ in meeting for each in family]
        families.append(([*names, name], lineage.union(*(seen for _, seen in meeting))))
    return [sorted(names) for names, _ in families]


def _age(pool: Pool) -> tuple[int, int, str]:
    """Larger is newer."""
    gone = 0 if pool.card.withdrawn is None else int(pool.card.withdrawn["documents"])
    return gone, (pool.path / CARD_NAME).stat().st_mtime_ns, str(pool.path)


def _other_sides(newest: str, heads: Iterable[str], pools: Mapping[str, Pool]) -> list[str]:
    """The newest of each other side of the split that the newest pool is one of."""
    split = _split_of(pools[newest])
    if split is None:
        return []
    sides: dict[str, str] = {}
    for name in sorted(heads, key=lambda head: _age(pools[head])):
        other = _split_of(pools[name])
        if other is not None and other[0] == split[0] and other[1] != split[1]:
            sides[other[1]] = name
    return list(sides.values())


def _split_of(pool: Pool) -> tuple[object, str] | None:
    """The split that a pool is of, and the name of its side."""
    said = pool.card.source.get(SPLIT)
    if said is None:
        return None
    return (said.get("salt"), sorted(said["shares"].items())), str(said["name"])
