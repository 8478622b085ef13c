"""Where documents end in a file of nothing but tokens: looked for once, kept beside it."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from recipe.pools.foreign.ends import ENDS, INT64, EndsWriter
from recipe.pools.foreign.identity import key_of
from recipe.pools.foreign.sidecar import LOG, derived
from recipe.pools.foreign.token_file import Stretch, refuse_negative
from recipe.pools.mapped import cannot_open, too_short

_FORMAT = 2
_CHUNK_BYTES = 1 << 23
_LARGE_BYTES = 1 << 30


def scanned_ends(tokens: Stretch, mark: int, *, begins: bool) -> Path:
    """The file of ends of documents, scanned for a mark if nobody has done it.

    Args:
        tokens: of one file.
        mark: that ends a document, and belongs to it; or
        begins: that begins one.

    Returns:
        a ``.npy`` file, int64[documents]; the last document ends with the tokens, mark or not.
    """
    rule = [_FORMAT, "bos" if begins else "eos", mark, tokens.dtype.name, tokens.start_byte, tokens.count]

    def build(paths: tuple[Path, ...]) -> None:
        if tokens.count * tokens.dtype.itemsize >= _LARGE_BYTES:
            LOG.warning("looking for the ends of documents in %s (%d tokens)", tokens.path, tokens.count)
        with paths[0].open("wb") as out:
            writer = EndsWriter(out)
            scan_into(writer, tokens, mark, begins=begins)
            writer.close()

    return derived(tokens.path, key_of((tokens.path,), rule), [ENDS], build)[0]


def scan_into(writer: EndsWriter, tokens: Stretch, mark: int, *, begins: bool) -> None:
    """Write the ends of documents of a stretch; a few megabytes are in memory at a time."""
    buffer = np.empty(_CHUNK_BYTES // tokens.dtype.itemsize, tokens.dtype)
    ends = MarkEnds(writer, mark, begins=begins)
    try:
        with tokens.path.open("rb", buffering=0) as file:
            file.seek(tokens.start_byte)
            while ends.seen < tokens.count:
                chunk = buffer[: min(len(buffer), tokens.count - ends.seen)]
                if _read_full(file, chunk.view(np.uint8).data) < chunk.nbytes:
                    size = tokens.path.stat().st_size
                    needed = tokens.start_byte + tokens.count * tokens.dtype.itemsize
                    raise too_short(tokens.path, size, needed)
                refuse_negative(tokens.path, chunk, ends.seen)
                ends.take(chunk)
    except OSError as error:
        raise cannot_open(tokens.path, error) from error
    ends.finish()


class MarkEnds:
    """Ends of documents in tokens that come in chunks, by a mark."""

    def __init__(self, writer: EndsWriter, mark: int, *, begins: bool) -> None:
        """``begins``: the mark begins a document; else it ends one."""
        self.seen = 0
        self._writer, self._mark, self._begins = writer, mark, begins
        self._last = 0

    def take(self, chunk: NDArray[np.integer]) -> None:
        """Look through tokens that follow those before."""
        at = np.flatnonzero(chunk == self._mark) + (self.seen + (not self._begins))
        if self._begins and len(at) and at[0] == 0:
            at = at[1:]
        if len(at):
            self._writer.write(at)
            self._last = int(at[-1])
        self.seen += len(chunk)

    def finish(self) -> None:
        """What is left behind the last mark is a document."""
        if self._last < self.seen:
            self._writer.write(np.array([self.seen], INT64))


def _read_full(file: BinaryIO, into: memoryview) -> int:
    done = 0
    while done < len(into):
        count = file.readinto(into[done:])  # type: ignore[attr-defined]
        if not count:
            break
        done += count
    return done
