"""A pool as files for other programs: documents in stored order, whole or not there at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from recipe.errors import Problem, RecipeError
from recipe.integrations.exporting.formats import WouldLoseError
from recipe.integrations.exporting.pools_documents import (
    STRETCH_TOKENS,
    Documents,
    Kind,
    documents_of,
    kinds_of,
)
from recipe.integrations.exporting.pools_formats import (
    Facts,
    Ground,
    PoolFormat,
    Writer,
    beside,
    write_datatrove,
    write_megatron,
    write_npy,
    write_parquet,
)
from recipe.integrations.exporting.pools_losses import losses
from recipe.integrations.exporting.pools_mds import write_mds
from recipe.pools.pool import Pool
from recipe.pools.views import View
from recipe.pools.workplace import Workplace, unfinished_folder
from recipe.run.handover.staging import sha256_of

MANIFEST_NAME = "_manifest.json"
"""Readers of a folder of Parquet files pass over names that begin so. Written last."""
FORMAT_VERSION = 1
_MARK = "export.unfinished"
"""Tells what an interrupted export left from a pool that somebody goes on writing."""

WRITERS: dict[PoolFormat, Writer] = {
    "parquet": write_parquet,
    "megatron": write_megatron,
    "mds": write_mds,
    "npy": write_npy,
    "datatrove": write_datatrove,
}
TOKENS_PER_FILE: dict[PoolFormat, int] = {
    "parquet": 1 << 27, "megatron": 1 << 30, "mds": 1 << 24, "npy": 1 << 30, "datatrove": 1 << 30,
}  # fmt: skip
_READING: dict[PoolFormat, str] = {
    "parquet": "a row is a document; tags and source are JSON; input_ids are the stored tokens",
    "megatron": "document i of the pool is document i of the pairs in the order of their names",
    "mds": "a sample is a document; tokens are the stored tokens",
    "npy": "document i of tokens-N.npy is offsets[i] to offsets[i + 1] of tokens-N.offsets.npy",
    "datatrove": "an .index holds where documents end in its file, in tokens",
}
TOKENS_ALONE: tuple[PoolFormat, ...] = ("megatron", "npy", "datatrove")
"""Formats of token files: what is said of documents goes into a table beside them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolWanted:
    """What is asked for of a pool."""

    format: PoolFormat
    tokens_per_file: int | None = None
    """Stored tokens of a file at most, unless a document has more; default: what suits the format."""
    lossy: bool = False
    """Whether what the format cannot say may be left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolDone:
    """What the export of a pool left."""

    path: Path
    format: PoolFormat
    documents: int
    tokens: int
    """Stored tokens, marks included."""
    files: int
    bytes: int
    erased: int
    """Documents that were withdrawn and erased from the pool: they are left out."""
    copied: bool
    """Whether token files are the pool's own, byte by byte."""
    lost: dict[str, int] = field(default_factory=dict)
    sha256: str
    """Of the manifest, which answers for every byte."""

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"path": str(self.path)}


def export_pool(
    pool: Pool,
    folder: str | Path,
    wanted: PoolWanted,
    watch: Callable[[int, int], None] = lambda at, of: None,
) -> PoolDone:
    """Write a pool's documents, in stored order and with the marks that are stored, in another format.

    The files are written in ``FOLDER.partial``, which gets its name when all of them are whole.

    Args:
        pool: any that is open, also a view.
        folder: where; nothing may be there.
        wanted: the format, and whether what it cannot say may be lost.
        watch: called with documents done, and how many there are.

    Raises:
        RecipeError: something is at ``folder``, no room, ids that the format cannot hold, or it would lose
            something without ``lossy``; nothing is left behind.
    """
    kinds = kinds_of(pool)
    lost = losses(pool, kinds, as_text=wanted.format != "mds")
    if lost and not wanted.lossy:
        raise _would_lose(wanted.format, lost)
    target, count = Path(folder), _Count(pool.num_documents, watch)
    with _workplace(target) as place, place.disk_errors():
        facts = _write(pool, place.folder, wanted, kinds, count)
        manifest = _manifest(pool, wanted, facts, count, place.folder) | {"lost": lost}
        (place.folder / MANIFEST_NAME).write_bytes(
            json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"
        )
        (place.folder / _MARK).unlink()
        place.publish()
    files = manifest["files"].values()
    return PoolDone(
        path=target, format=wanted.format, documents=count.documents, tokens=count.tokens,
        files=len(files), bytes=sum(file["bytes"] for file in files), erased=manifest["erased"],
        copied=manifest["copied"], lost=lost,
        sha256=sha256_of(target / MANIFEST_NAME),
    )  # fmt: skip


def _write(pool: Pool, folder: Path, wanted: PoolWanted, kinds: tuple[Kind, Kind], count: _Count) -> Facts:
    most = wanted.tokens_per_file or TOKENS_PER_FILE[wanted.format]
    documents = count.passing(documents_of(pool, min(most, STRETCH_TOKENS)))
    if wanted.format in TOKENS_ALONE:
        documents = beside(folder, documents, kinds)
    if wanted.format == "megatron" and wanted.tokens_per_file is None and _copy_pairs(pool, folder):
        for _ in documents:  # for the table alone
            pass
        return {"dtype": pool.token_dtype.name, "copied": True}
    ground = Ground(
        card=pool.card,
        dtype=pool.token_dtype.newbyteorder("<"),
        most_id=lambda: None if (most := pool.max_id()) is None else most.id,
        kinds=kinds,
        tokens_per_file=most,
    )
    return {**WRITERS[wanted.format](folder, documents, ground), "copied": False}


def _copy_pairs(pool: Pool, folder: Path) -> bool:
    """Whether the pool is pairs already, all of which it holds: they are here now under other names.

    They are copies, no links: who changes an export in place does not change the pool.
    """
    layout = pool.layout
    paths = [layout.folder / name for name in layout.part_names]
    if isinstance(pool, View) or len(pool.erased) or not paths or layout.remote is not None:
        return False
    files = [(path.with_name(path.name + ".bin"), path.with_name(path.name + ".idx")) for path in paths]
    if not all(tokens.is_file() and index.is_file() for tokens, index in files):
        return False
    for number, pair in enumerate(files):
        for file in pair:
            shutil.copyfile(file, folder / f"tokens-{number:05d}{file.suffix}")
    return True


class _Count:
    """How much went by."""

    def __init__(self, total: int, watch: Callable[[int, int], None]) -> None:
        self._total, self._watch = total, watch
        self.documents = self.tokens = 0

    def passing(self, documents: Iterator[Documents]) -> Iterator[Documents]:
        """The same documents, counted."""
        for stretch in documents:
            self.documents += len(stretch.lengths)
            self.tokens += len(stretch.tokens)
            yield stretch
            self._watch(self.documents, self._total)


def _manifest(pool: Pool, wanted: PoolWanted, facts: Facts, count: _Count, folder: Path) -> dict[str, Any]:
    """What the files are; the others are there already, and are read for their digests."""
    card = pool.card
    return {
        "version": FORMAT_VERSION,
        "pool": pool.fingerprint,
        "filter": pool.filter.to_plain() if isinstance(pool, View) else None,
        "tokenizer": card.tokenizer,
        "tokenizer_name": card.tokenizer_name,
        "vocab_size": card.vocab_size,
        "marks": {
            "bos": card.bos,
            "eos": card.eos,
            "bos_stored": card.bos_stored,
            "eos_stored": card.eos_stored,
        },
        "format": wanted.format,
        "documents": count.documents,
        "tokens": count.tokens,
        "erased": int(pool.holds(pool.erased).sum()),
        "reading": _READING[wanted.format],
        **facts,
        "files": {
            path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
            for path in sorted(folder.iterdir())
            if path.name not in (_MARK, "writer.lock")
        },
    }


@contextmanager
def _workplace(target: Path) -> Iterator[Workplace]:
    """The folder the files are written in; given up with all it holds when it ends badly.

    Raises:
        RecipeError: something is there, or another process is writing it.
    """
    place = Workplace(target)
    left = [file.name for file in place.folder.iterdir() if file.name != "writer.lock"]
    if left and not {_MARK, MANIFEST_NAME} & set(left):
        place.release()
        raise RecipeError.single(
            str(target), str(unfinished_folder(target)), given="something else that was not finished",
            expected="a path where nothing is yet", fix="choose another --out, or finish what is there",
        )  # fmt: skip
    try:
        place.keep_only({_MARK})
        (place.folder / _MARK).touch()
        yield place
    finally:
        if place.held:
            place.discard()


def _would_lose(format: str, lost: dict[str, int]) -> WouldLoseError:
    told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in lost.items())
    fix = "add --lossy to leave that out; or train from the pool itself"
    problem = Problem("--format", f"{format}; the pool has {told}", "a pool that the format holds whole", fix)
    return WouldLoseError("recipe export", [problem])
