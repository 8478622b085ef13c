"""Whether ids of several pools mean the same: what their cards say, and what their ids tell where none says.

A pool of token files that somebody else made names no tokenizer. Its ids are looked at in a sample: one
outside the vocabulary that another pool's tokenizer has is none of that tokenizer's. Files that we exported
ourselves lie beside a manifest that says it. Cards, and so what runs have on record, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recipe.errors import Problem, RecipeError
from recipe.pools.foreign.exported import EXPORTED, lists, manifest_of
from recipe.pools.pool import Pool

_BLOCKS, _BLOCK_TOKENS = 64, 1024
"""Of each file at most: spread evenly, from the first token to the last."""
_FILES = 16
_ADDED = 100
"""Fewer than one id in so many may be tokens that were added to a tokenizer, such as names of roles."""
_KINDS = 8
"""So few different ids may be, too, however often they stand: the mark of short documents, and its like."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A tokenizer that a pool says it was made with."""

    fingerprint: str | None
    vocab_size: int


def stated_by(pool: Pool) -> Stated:
    """What a pool's card says of its tokenizer, or the manifest that was exported with its files."""
    if pool.card.tokenizer is not None or pool.layout.table is not None:
        return Stated(pool.card.tokenizer, pool.card.vocab_size or 0)
    files = [pool.layout.part_path(part) for part in range(pool.num_parts)]
    manifests = {folder: manifest_of(folder) for folder in {file.parent for file in files}}
    found = {_exported(file, manifests[file.parent]) for file in files}
    return found.pop() if len(found) == 1 else Stated(None, 0)


def _exported(file: Path, said: Mapping[str, Any] | None) -> Stated:
    """By the manifest beside a token file, where that lists the file with as many bytes as it has."""
    try:
        if said is not None and lists(file, said) and isinstance(said["tokenizer"], str):
            return Stated(said["tokenizer"], int(said["vocab_size"] or 0))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or another program's
    return Stated(None, 0)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Ids of a pool outside a vocabulary, its marks left out."""

    most: int
    """The largest; -1 where none lies outside."""
    outside: int
    looked_at: int
    kinds: int
    """Different ones outside."""

    @property
    def is_another(self) -> bool:
        """Whether these are no tokens that were added to the tokenizer that has the vocabulary."""
        return self.kinds > _KINDS and self.outside * _ADDED > self.looked_at


def ids_outside(pool: Pool, limit: int) -> Sampled:
    """How many ids of a pool are ``limit`` or more, in a sample of at most a million tokens.

    Args:
        pool: whose tokens; small files are read whole.
        limit: size of the vocabulary.
    """
    marks = [mark for mark in (pool.bos, pool.eos) if mark is not None]
    kinds, outside, looked_at = np.empty(0, np.int64), 0, 0
    for part in np.unique(
        np.linspace(0, pool.num_parts - 1, min(_FILES, pool.num_parts)).astype(int)
    ).tolist():
        size = int(pool.part_offsets[part + 1] - pool.part_offsets[part])
        blocks = min(_BLOCKS, -(-size // _BLOCK_TOKENS))
        for block in range(blocks):
            start = 0 if blocks < 2 else block * max(0, size - _BLOCK_TOKENS) // (blocks - 1)
            tokens = np.asarray(pool.span(part, start, min(size, start + _BLOCK_TOKENS))).astype(np.int64)
            beyond = tokens[(tokens >= limit) & ~np.isin(tokens, marks)]
            kinds = np.union1d(kinds, beyond)
            outside, looked_at = outside + len(beyond), looked_at + len(tokens)
    return Sampled(int(kinds.max(initial=-1)), outside, looked_at, len(kinds))


def unstated(pools: Mapping[str, Pool]) -> tuple[str, ...]:
    """Names of the pools that say no tokenizer, where there are others to compare them with."""
    if len({(pool.layout.folder, pool.layout.part_names) for pool in pools.values()}) < 2:
        return ()  # one pool, and views of it
    return tuple(name for name, pool in pools.items() if stated_by(pool).fingerprint is None)


def doubts(pools: Mapping[str, Pool], said: Stated | None = None) -> tuple[list[Problem], list[str]]:
    """What exported files, and the ids of pools that say no tokenizer, tell beside a pool that says one.

    Args:
        pools: by name.
        said: the tokenizer that is said to have made those that say none.

    Returns:
        what is certainly another tokenizer's; and what to say of ids that may be added tokens.
    """
    stated = {name: one for name, pool in pools.items() if (one := stated_by(pool)).fingerprint is not None}
    if said is not None:
        stated |= dict.fromkeys([name for name in pools if name not in stated], said)
    if not stated:
        return [], []
    problems, told = _exported_otherwise(pools, stated), list[str]()
    sizes = {name: one.vocab_size for name, one in stated.items()}
    known = max(sizes, key=lambda name: sizes[name])
    if not sizes[known]:
        return problems, told
    for name in unstated(pools):
        found = ids_outside(pools[name], sizes[known])
        if found.is_another:
            problems.append(
                Problem(
                    f"pools.{name}",
                    f"ids up to {found.most}, {found.outside:,} of {found.looked_at:,} that were looked at "
                    f"above {sizes[known] - 1}",
                    f"ids below {sizes[known]}, as the tokenizer of pool {known} has them",
                    "prepare both with one tokenizer: these ids are another one's, and ids of different "
                    "tokenizers never mix",
                )
            )
        elif found.outside:
            told.append(
                f"pool {name!r} holds ids up to {found.most}, and the tokenizer of pool {known!r} ends at "
                f"{sizes[known] - 1}: tokens that were added to it, or another tokenizer"
            )
    return problems, told


def _exported_otherwise(pools: Mapping[str, Pool], stated: Mapping[str, Stated]) -> list[Problem]:
    """Pools whose manifest says another tokenizer than the card of another pool, or than another manifest."""
    first = next((name for name in stated if pools[name].card.tokenizer is not None), next(iter(stated)))
    return [
        Problem(
            f"pools.{name}",
            f"tokenizer {one.fingerprint}, as {_who_says(pools[name])} says",
            f"tokenizer {stated[first].fingerprint}, as pool {first}",
            "prepare all pools with one tokenizer: ids of different tokenizers never mix",
        )
        for name, one in stated.items()
        if pools[name].card.tokenizer is None and one.fingerprint != stated[first].fingerprint
    ]


def _who_says(pool: Pool) -> str:
    of_files = stated_by(pool).fingerprint is not None
    return f"the {EXPORTED} beside its files" if of_files else "--tokenizer, or tokenizer: in the recipe,"


def tokenizer_warnings(pools: Mapping[str, Pool]) -> list[str]:
    """What to say where pools are mixed, and some do not say their tokenizer."""
    problems, told = doubts(pools)
    refused = {problem.where for problem in problems}
    names = [name for name in unstated(pools) if f"pools.{name}" not in refused]
    if not names or _of_one_hand(pools):
        return []
    one = len(names) == 1
    who = f"pool{'' if one else 's'} {', '.join(map(repr, names))} {'does' if one else 'do'} not say"
    return [
        f"{who} {'its' if one else 'their'} tokenizer: ids are taken to be of the tokenizer of the other "
        "pools",
        *told,
    ]


def cannot_tell(pools: Mapping[str, Pool], said: Stated | None = None) -> tuple[str, ...]:
    """A sentence of each pool whose texts are compared with others' although nobody says that it can be.

    There is none where somebody says which tokenizer made those that do not say theirs, or all pools were
    written by one hand.

    >>> cannot_tell({})
    ()
    """
    if said is not None or _of_one_hand(pools):
        return ()
    return tuple(
        f"cannot tell: pool {name} does not say its tokenizer; compared as if it were the same"
        for name in unstated(pools)
    )


def _of_one_hand(pools: Mapping[str, Pool]) -> bool:
    """Whether all are pools of our own and none says a tokenizer: whoever wrote them gave none."""
    return all(pool.layout.table is not None for pool in pools.values()) and len(unstated(pools)) == len(
        pools
    )


def check_comparable(pools: Mapping[str, Pool] | Sequence[Pool], said: Stated | None = None) -> None:
    """Refuse pools whose tokens do not mean the same, as far as they say, or as their ids tell.

    ``said`` is the tokenizer that is said to have made those that say none: their ids are looked at as ever.

    Raises:
        RecipeError: naming each that has another tokenizer than the first one that states any.
    """
    named = pools if isinstance(pools, Mapping) else {pool.name: pool for pool in pools}
    stated = [pool for pool in named.values() if pool.card.tokenizer is not None]
    problems = [
        Problem(
            str(pool.path), f"tokenizer {pool.card.tokenizer}",
            f"{stated[0].card.tokenizer}, as in {stated[0].path}",
            "leave it out: equal tokens of two tokenizers are not equal texts",
        )
        for pool in stated
        if pool.card.tokenizer != stated[0].card.tokenizer
    ]  # fmt: skip
    if not problems:
        problems = [
            replace(one, where=str(named[one.where.removeprefix("pools.")].path))
            for one in doubts(named, said)[0]
        ]
    if problems:
        raise RecipeError("overlap", problems)
