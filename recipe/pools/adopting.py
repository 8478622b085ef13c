"""Parts of a finished pool as the first parts of a new one: linked where the disk can, copied elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.errors import Problem, RecipeError
from recipe.pools.blocks import num_blocks
from recipe.pools.card import ALL, CARD_NAME, HASHES_NAME, Card
from recipe.pools.lengths import histogram
from recipe.pools.opening import open_pool
from recipe.pools.part import FinishedPart, leads_path, rows_path
from recipe.pools.pool import Pool
from recipe.pools.settings import PoolSettings, differences
from recipe.pools.table import open_rows, row_groups
from recipe.pools.workplace import write_durably

_OWN_ENDINGS = (".bin", ".idx", ".npy", ".parquet", ".tmp", ".lock")
EXTENDS = "extends"
"""Key of a card's ``source``: the pools that it extends, each by the next one, oldest first."""


def extended_source(old: Pool, source: Mapping[str, Any]) -> dict[str, Any]:
    """The source of a pool that extends another: its own, and what it extends."""
    before = dict(old.card.source)
    chain = list(before.pop(EXTENDS, []))
    entry = {
        "fingerprint": old.fingerprint,
        "parts": len(old.card.written_parts),
        "units": old.num_units,
        "extent_units": old.extent_units,
        "source": before,
    }
    return {**source, EXTENDS: [*chain, entry]}


def refuse_pairs(old: Pool, path: Path) -> None:
    """Raise RecipeError where a pool is no folder of our own."""
    if old.layout.table is None:
        raise RecipeError.single(
            str(path), str(old.path), given="token files without a card", expected="a pool of our own",
            fix="add the new pair to its folder, under a name that sorts behind the others",
        )  # fmt: skip


def refuse_stored(old: Pool, path: Path) -> None:
    """Raise RecipeError where the token files of a pool lie in a store: they cannot be linked."""
    if old.layout.remote is not None:
        raise RecipeError.single(
            str(path), str(old.path), given="a pool in a store", expected="a folder of this machine",
            fix="copy the pool to a disk first, and the new one back",
        )  # fmt: skip


def whole_folder(pool: Pool | Path | str, out: Path) -> Pool:
    """All of the folder that a pool or view is of, if its files can be linked into a new one.

    Raises:
        RecipeError: token files that somebody else made, or a pool in a store.
    """
    path, name = (pool.path, pool.name) if isinstance(pool, Pool) else (pool, Path(pool).name)
    whole = open_pool(path, name)
    refuse_pairs(whole, out)
    refuse_stored(whole, out)
    return whole


def link_beside(old: Pool, folder: Path, *, but: Collection[str]) -> None:
    """Link the files beside the parts that a card names, ``but`` some, and copy what stands beside them."""
    source, named = old.layout.folder, old.card.files
    for name in named:
        if name not in but:
            link_file(source / name, folder / name)
    for path in source.iterdir():
        is_beside = path.name not in (*named, CARD_NAME) and not path.name.endswith(_OWN_ENDINGS)
        if is_beside and path.is_file():
            shutil.copyfile(path, folder / path.name)


def check_extends(old: Pool, settings: PoolSettings, path: Path) -> None:
    """Refuse to extend a pool by documents of another kind.

    Raises:
        RecipeError: the pool is not one of our own, or has other ids, marks or another tokenizer.
    """
    refuse_pairs(old, path)
    refuse_stored(old, path)
    fix = "prepare the new documents as the old ones were, or make a pool of their own of them"
    problems = [
        Problem(name, str(becomes), f"{was}, as in {old.path}", fix)
        for name, becomes, was in differences(settings, old.card)
    ]
    if problems:
        raise RecipeError(str(path), problems)


def adopt_parts(old: Pool, folder: Path, begin: int) -> Iterator[FinishedPart]:
    """Make the parts of a pool from number ``begin`` on parts of the pool written in ``folder``."""
    card = old.card
    digests: NDArray[np.uint8] = np.load(old.layout.folder / HASHES_NAME)
    ends = np.cumsum([num_blocks(part.bytes, card.block_bytes) for part in card.parts])
    tables = _rows_of_parts(old)
    for number, (part, end, rows) in enumerate(zip(card.parts, ends.tolist(), tables, strict=True)):
        if number < begin:
            continue
        for ending in ("bin", "idx"):
            link_file(old.layout.folder / f"{part.name}.{ending}", folder / f"{part.name}.{ending}")
        with open_rows(rows_path(folder, part.name)) as writer:
            for table in rows:
                writer.write_table(table, row_group_size=table.num_rows)
        blocks = digests[end - num_blocks(part.bytes, card.block_bytes) : end]
        has_leads = _adopt_leads(old, folder, number)
        hashes = tuple(block.tobytes().hex() for block in blocks)
        finished = replace(_finished(card, number, rows, hashes), has_leads=has_leads)
        write_durably(folder / f"{part.name}.json", finished.to_json())
        yield finished


def _adopt_leads(old: Pool, folder: Path, number: int) -> bool:
    """Keep what a part says of special tokens in front of its documents."""
    if old.leads is None:
        return False
    leads = old.leads[int(old.part_documents[number]) : int(old.part_documents[number + 1])]
    if not (leads > (old.card.bos_stored == ALL)).any():
        return False
    write_durably(leads_path(folder, old.card.parts[number].name), leads.astype("<u4").tobytes())
    return True


def _rows_of_parts(old: Pool) -> Iterator[list[pa.Table]]:
    """The rows of the document table, part by part."""
    assert old.layout.table is not None
    groups, waiting = row_groups(old.layout.table), list[pa.Table]()
    for part in old.card.parts:
        rows, left = list[pa.Table](), part.documents
        while left:
            table = waiting.pop() if waiting else next(groups)
            rows.append(table.slice(0, left))
            if table.num_rows > left:
                waiting.append(table.slice(left))
            left -= rows[-1].num_rows
        yield rows


def _finished(card: Card, number: int, rows: list[pa.Table], blocks: tuple[str, ...]) -> FinishedPart:
    part = card.parts[number]
    tokens = [np.asarray(table["tokens"].to_numpy(), np.int64) for table in rows]
    lengths = np.concatenate([*tokens, np.zeros(0, np.int64)])
    most = card.max_id
    holds_most = most is not None and most.part == f"{part.name}.bin"
    return FinishedPart(
        record=part,
        body_tokens=int(lengths.sum()),
        max_document_tokens=int(lengths.max(initial=0)),
        length_histogram=tuple(histogram(lengths).tolist()),
        max_id=most.id if most is not None and holds_most else -1,
        max_id_position=most.position if most is not None and holds_most else 0,
        blocks=blocks,
    )


def link_file(source: Path, target: Path) -> None:
    """The same file under another name, or a copy of it."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links: the copy tells what is wrong
        shutil.copyfile(source, target)
