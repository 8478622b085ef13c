"""datatrove's ``.ds`` files: tokens, an index of document ends, and metadata with the tokens' width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.config.files import TokenType
from recipe.pools.card import Marks
from recipe.pools.foreign.flat import read_flat
from recipe.pools.foreign.form import Form, token_type
from recipe.pools.foreign.token_file import Stretch, TokenFile, check_ends, refuse
from recipe.pools.mapped import cannot_open, map_array

_END = np.dtype("<u8")
_FIX = (
    "fetch both again; or write documents: eos and the id of the end mark, to look for it: files of shuffled "
    "chunks may end with a piece of a document that the index leaves out"
)
_WIDTHS: dict[int, TokenType] = {2: "uint16", 4: "uint32"}


def read_datatrove(path: Path, form: Form, marks: Marks) -> TokenFile:
    """A ``.ds`` file as a part.

    The width of its tokens is that of its ``.ds.metadata``, or follows from index and size.

    Raises:
        RecipeError: no index, a loss mask, or files that contradict each other.

    Source:
        datatrove 0.10, ``TokenizedFile``: little-endian uint16 or uint32; ``.index`` uint64 ends in tokens;
        ``.metadata`` ``tokenizer|width``, then the number of tokens.
    """
    index, mask = _beside(path, "index"), _beside(path, "loss")
    if mask.exists():
        raise refuse(
            mask, given="a mask of tokens that carry no loss", expected="tokens that are all trained on",
            fix="move it out of the folder if every token shall carry a label: the mask is not read",
        )  # fmt: skip
    width = _stated_width(path)
    if form.column is not None:
        raise refuse(path, given=f"column: {form.column}", expected="a table, or samples with columns",
                     fix="leave column out: the file holds nothing but tokens")  # fmt: skip
    if form.documents is not None or form.boundaries is not None or not index.is_file():
        if form.documents is None and form.boundaries is None:
            raise refuse(
                index, given="no file", expected=f"the index of {path.name}",
                fix="fetch it, or write documents: eos and the id of the end mark: it is looked for once",
            )  # fmt: skip
        known = form if width is None else _with_type(path, form, _WIDTHS[width])
        return read_flat(path, known, marks)
    return _indexed(path, index, form, width)


def _indexed(path: Path, index: Path, form: Form, width: int | None) -> TokenFile:
    try:
        size, index_size = path.stat().st_size, index.stat().st_size
    except OSError as error:
        raise cannot_open(path, error) from error
    if index_size % _END.itemsize:
        raise refuse(index, given=f"{index_size} bytes", expected="8 bytes for each document",
                     fix="fetch it again: it was cut short")  # fmt: skip
    count = index_size // _END.itemsize
    last = int(map_array(index, _END, count)[-1]) if count else 0
    fitting = [known for known in _WIDTHS if known * last == size]
    if width is None and form.dtype is None and size and not fitting:
        raise refuse(
            path, given=f"{size} bytes, with an index that ends at token {last}",
            expected="2 or 4 bytes for each token", fix=_FIX,
        )  # fmt: skip
    name = _with_type(path, form, _WIDTHS[width]).dtype if width else form.dtype
    dtype = token_type(name or _WIDTHS[fitting[0] if fitting else 2])
    if last * dtype.itemsize != size:
        raise refuse(
            path, given=f"{size} bytes", fix=_FIX,
            expected=f"{last * dtype.itemsize}: {last} tokens of {dtype.name}, as {index.name} says",
        )  # fmt: skip
    tokens = Stretch(path, 0, last, dtype)

    def ends() -> NDArray[np.int64]:
        found: NDArray[np.int64] = map_array(index, _END, count).view(np.int64)
        check_ends(found, last, index)
        return found

    beside = () if width is None else (_beside(path, "metadata"),)
    return TokenFile(files=(path, index), tokens=tokens, num_documents=count, ends=ends, beside=beside)


def _stated_width(path: Path) -> int | None:
    """Bytes of a token, as the metadata state it; older ones do not."""
    metadata = _beside(path, "metadata")
    if not metadata.is_file():
        return None
    first = metadata.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    width = first.rpartition("|")[2] if "|" in first else ""
    if not width.isdecimal():
        return None
    if int(width) not in _WIDTHS:
        raise refuse(metadata, given=f"tokens of {width} bytes", expected="2 or 4", fix="fetch it again")
    return int(width)


def _with_type(path: Path, form: Form, name: TokenType) -> Form:
    if form.dtype not in (None, name):
        raise refuse(path, given=f"dtype: {form.dtype}", expected=f"{name}, as its metadata say",
                     fix="leave dtype out")  # fmt: skip
    return replace(form, dtype=name)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")
