"""Megatron pairs as a pool: nothing is copied or converted, boundaries come from the index."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.blocks import BLOCK_BYTES
from recipe.pools.card import NONE, SOME, Card, PartRecord, content_hash, extent_units
from recipe.pools.foreign.identity import sampled_hash, samples_of
from recipe.pools.layout import Layout
from recipe.pools.lengths import histogram
from recipe.pools.megatron import Index, read_index
from recipe.pools.pool import Pool

_EXACT_DOCUMENTS = 1 << 20
_SAMPLED_DOCUMENTS = 1 << 16
_SHOWN = 10
"""Pools of a folder that are named."""


def find_pairs(place: Path) -> list[Path]:
    """The ``.idx`` files that a prefix, folder or pattern means, in sorted order of their paths."""
    if place.is_dir():
        _refuse_other_pools(place)
        found = list(place.rglob("*.idx"))
        _refuse_lone_tokens(place, found)
    elif place.suffix in (".bin", ".idx") and place.is_file():
        found = [place.with_suffix(".idx")] if _is_indexed(place) else []
    elif (index := place.with_name(place.name + ".idx")).is_file():
        found = [index]
    elif glob.has_magic(str(place)):
        plain = next(parent for parent in place.parents if not glob.has_magic(str(parent)))
        pattern = str(place.relative_to(plain))
        found = [path.with_suffix(".idx") for path in plain.glob(pattern) if _is_indexed(path)]
        found += plain.glob(pattern + ".idx")
    else:
        found = []
    return sorted(set(found), key=lambda path: path.parts)


def _is_indexed(path: Path) -> bool:
    """Whether a file is an index, or tokens that have one; a ``.bin`` without one may be raw tokens."""
    return path.suffix == ".idx" or (path.suffix == ".bin" and path.with_suffix(".idx").is_file())


def open_pairs(
    path: Path, pairs: Sequence[Path], *, eos: int | None, bos: int | None, reopen: Callable[..., Pool]
) -> Layout:
    """The layout of pairs read as one pool.

    Raises:
        RecipeError: an index is damaged, or the pairs hold tokens of different types.
    """
    indices = [read_index(pair) for pair in pairs]
    if other := [index for index in indices if index.dtype != indices[0].dtype]:
        raise RecipeError.single(
            str(path), str(other[0].path), given=f"tokens of type {other[0].dtype}",
            expected=f"{indices[0].dtype}, as in {indices[0].path}",
            fix="name the pairs of each type as a pool of their own, or write them again with one type",
        )  # fmt: skip
    folder = path if path.is_dir() else common_folder(pairs)
    part_documents = np.cumsum([0, *(index.num_documents for index in indices)], dtype=np.int64)
    part_offsets = np.cumsum([0, *(index.num_tokens for index in indices)], dtype=np.int64)
    num_documents, num_tokens = int(part_documents[-1]), int(part_offsets[-1])
    fingerprint, hashes = _fingerprint(indices)
    names = tuple(pair.relative_to(folder).with_suffix("").as_posix() for pair in pairs)
    return Layout(
        fingerprint=fingerprint,
        token_dtype=indices[0].dtype,
        folder=folder,
        part_names=names,
        part_documents=part_documents,
        part_offsets=part_offsets,
        num_units=num_documents,
        extent_units=extent_units(num_tokens, num_documents),
        bos=bos,
        eos=eos,
        bos_stored=NONE if bos is None else SOME,
        eos_stored=NONE if eos is None else SOME,
        load_card=card_loader(
            {"megatron": len(indices)},
            lambda: [_part_record(*part) for part in zip(names, indices, hashes, strict=True)],
        ),
        load_offsets=lambda: _joined_offsets(indices, part_offsets),
        load_units=None,
        table=None,
        ids_are_numbers=True,
        reopen=reopen,
        declared=(eos, bos),
        prefix=lambda first, end: pairs_fingerprint(pairs[first:end]),
    )


def pairs_fingerprint(pairs: Sequence[Path]) -> str:
    """The fingerprint of the pool that pairs are together, in this order."""
    return _fingerprint([read_index(pair) for pair in pairs])[0]


def _joined_offsets(indices: Sequence[Index], part_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    pieces = [index.offsets()[:-1] + start for index, start in zip(indices, part_offsets[:-1], strict=True)]
    return np.concatenate([*pieces, part_offsets[-1:]])


def card_loader(
    source: Mapping[str, object], records: Callable[[], Sequence[PartRecord]]
) -> Callable[[Pool], Card]:
    """What makes the card of an imported pool: from its boundaries, and a look at its marks."""

    def load(pool: Pool) -> Card:
        lengths, special = _body_lengths(pool)
        exact = pool.num_documents <= _EXACT_DOCUMENTS or special == 0 or _is_constant(pool)
        layout = pool.layout
        return Card(
            vocab_size=None,
            token_dtype=pool.token_dtype.name,
            bos=layout.bos,
            eos=layout.eos,
            bos_stored=layout.bos_stored,
            eos_stored=layout.eos_stored,
            tokenizer=None,
            tokenizer_name=None,
            num_documents=pool.num_documents,
            num_units=pool.num_units,
            body_tokens=pool.num_tokens - special,
            special_tokens=special,
            counted="exact" if exact else "sampled",
            max_document_tokens=int(lengths.max(initial=0)),
            length_histogram=tuple(histogram(lengths).tolist()),
            max_id=None,
            extent_units=pool.extent_units,
            block_bytes=BLOCK_BYTES,
            shuffled=False,
            seed=None,
            ids="number",
            dropped={},
            source=dict(source),
            parts=tuple(records()),
        )

    return load


def _part_record(name: str, index: Index, hashes: tuple[str, str]) -> PartRecord:
    return PartRecord(
        name=name,
        documents=index.num_documents,
        tokens=index.num_tokens,
        bytes=index.num_tokens * index.dtype.itemsize,
        hash=hashes[0],
        index_bytes=index.path.stat().st_size,
        index_hash=hashes[1],
        rows_hash="",
    )


def _body_lengths(pool: Pool) -> tuple[NDArray[np.int64], int]:
    """Body tokens of each document and stored marks in all; marks of large pools come from a sample."""
    lengths = np.diff(pool.offsets)
    if pool.layout.bos is None and pool.layout.eos is None:
        return lengths, 0
    if pool.num_documents <= _EXACT_DOCUMENTS or _is_constant(pool):
        has_bos, has_eos = pool.stored_marks(np.arange(pool.num_documents))
        marks = has_bos.astype(np.int64) + has_eos
        return lengths - marks, int(marks.sum())
    sample = np.arange(_SAMPLED_DOCUMENTS) * pool.num_documents // _SAMPLED_DOCUMENTS
    found = sum(int(marks.sum()) for marks in pool.stored_marks(sample))
    return lengths, found * pool.num_documents // _SAMPLED_DOCUMENTS


def _is_constant(pool: Pool) -> bool:
    """Whether no document has to be looked at to know its marks."""
    return SOME not in (pool.layout.bos_stored, pool.layout.eos_stored)


def _fingerprint(indices: Sequence[Index]) -> tuple[str, list[tuple[str, str]]]:
    """Hash of sizes, types and contents: whole small files, evenly spaced samples of large ones."""
    samples = samples_of(len(indices))
    hashes = [
        (sampled_hash(index.path.with_suffix(".bin"), samples), sampled_hash(index.path, samples))
        for index in indices
    ]
    identity = [
        [index.dtype.name, index.num_documents, index.num_tokens, *pair]
        for index, pair in zip(indices, hashes, strict=True)
    ]
    return content_hash(["megatron", identity]), hashes


def common_folder(pairs: Sequence[Path]) -> Path:
    """The folder that holds all of these files."""
    folder = pairs[0].parent
    while not all(pair.is_relative_to(folder) for pair in pairs):
        folder = folder.parent
    return folder


def _refuse_other_pools(place: Path) -> None:
    """Several pools are no pool; what each is called is told, and how a pool set names them all."""
    inner = sorted(card.parent for card in place.rglob("card.json"))
    if inner:
        names = [str(pool.relative_to(place)) for pool in inner]
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        fix = f"name the pool itself: {inner[0]}"
        if len(names) > 1:
            fix += f"; or in a recipe all of them, as a set: 'NAME_*': {{path: {place}/*}}"
        what = f"the {len(names):,} pools" if len(names) > 1 else "the pool"
        raise RecipeError.single(
            str(place), str(place), given=f"a folder that holds {what} {', '.join(names[:_SHOWN])}{more}",
            expected="one pool", fix=fix,
        )  # fmt: skip


def _refuse_lone_tokens(place: Path, found: Sequence[Path]) -> None:
    """A token file without its index would be missing from the pool without a word."""
    known = set(found)
    if not known:
        return  # no pairs: files of tokens of another kind
    for path in sorted(place.rglob("*.bin")):
        if path.with_suffix(".idx") not in known:
            raise RecipeError.single(
                str(place), str(path), given="a token file without its .idx",
                expected="pairs of .bin and .idx",
                fix="add the index, or move the file out of the folder",
            )  # fmt: skip
