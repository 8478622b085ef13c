"""Files of nothing but tokens: ``.npy`` with its header, or raw, whatever they are called."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from recipe.config.files import TokenType
from recipe.pools.card import Marks
from recipe.pools.foreign.ends import map_ends, read_ends
from recipe.pools.foreign.form import TOKEN_TYPES, Form, token_type
from recipe.pools.foreign.lists import find_list, listed_ends
from recipe.pools.foreign.scanning import scanned_ends
from recipe.pools.foreign.token_file import Stretch, TokenFile, refuse
from recipe.pools.mapped import cannot_open, too_short

_MAGIC = b"\x93NUMPY"
_READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
NAMED_TYPES: dict[str, TokenType] = {
    **{f".{name}": name for name in TOKEN_TYPES},
    ".u8": "uint8", ".u16": "uint16", ".u32": "uint32", ".i32": "int32", ".i64": "int64",
}  # fmt: skip
"""Endings of raw files that say what type the tokens have."""
ENDINGS = (".npy", ".bin", ".raw", *NAMED_TYPES)


def read_flat(path: Path, form: Form, marks: Marks) -> TokenFile:
    """A file of tokens as a part.

    Args:
        path: of the file.
        form: what the recipe says of it.
        marks: eos and bos.

    Raises:
        RecipeError: its type or its documents are not known, or it contradicts what is said of it.
    """
    if form.column is not None:
        raise refuse(path, given=f"column: {form.column}", expected="a table, or samples with columns",
                     fix="leave column out: the file holds nothing but tokens")  # fmt: skip
    tokens, row = _tokens(path, form)
    if form.boundaries is not None:
        return listed(tokens, find_list(path, form.boundaries))
    kind = form.documents or ("row" if row is not None else "eos" if marks[0] is not None else None)
    if kind == "row":
        if row is None:
            raise refuse(path, given="documents: row", expected="an array of two dimensions, or a table",
                         fix="write documents: eos, or documents: file")  # fmt: skip
        count = tokens.count // row
        ends: Callable[[], NDArray[np.int64]] = lambda: np.arange(1, count + 1, dtype=np.int64) * row  # noqa: E731
        return TokenFile(files=(path,), tokens=tokens, num_documents=count, ends=ends)
    if kind == "file":
        whole = np.array([tokens.count] if tokens.count else [], np.int64)
        return TokenFile(files=(path,), tokens=tokens, num_documents=len(whole), ends=lambda: whole)
    if kind is None:
        raise refuse(
            path, given="tokens, and nothing that says where a document ends",
            expected="the id that ends documents, a list of boundaries, or one document a file",
            fix="write eos: ID (it is looked for once), boundaries: ENDING, or documents: file",
        )  # fmt: skip
    return _by_mark(path, tokens, kind == "bos", marks)


def _by_mark(path: Path, tokens: Stretch, begins: bool, marks: Marks) -> TokenFile:
    mark, name = (marks[1], "bos") if begins else (marks[0], "eos")
    if mark is None:
        raise refuse(
            path, given=f"documents: {name}", expected="the id of that mark", fix=f"write {name}: ID"
        )
    if tokens.count == 0:
        return TokenFile(files=(path,), tokens=tokens, num_documents=0, ends=lambda: np.empty(0, np.int64))
    kept = scanned_ends(tokens, mark, begins=begins)
    ends = map_ends(kept, tokens.count)
    first, last = int(tokens.map()[0]), int(tokens.map()[-1])
    marked = (first if begins else last) == mark
    if len(ends) == 1 and not marked:
        raise refuse(
            path, given=f"no token {mark} in its {tokens.count} tokens",
            expected=f"documents that have {name}",
            fix=f"correct {name} (or dtype), or write documents: file if it is one document",
        )  # fmt: skip
    return TokenFile(
        files=(path,),
        tokens=tokens,
        num_documents=len(ends),
        ends=lambda: read_ends(kept, tokens.count),
        unended=int(not marked),
    )


def listed(tokens: Stretch, path: Path) -> TokenFile:
    """A part whose documents end where a list says."""
    ends = listed_ends(tokens, path)
    return TokenFile(files=(tokens.path, path), tokens=tokens, num_documents=len(ends()), ends=ends)


def _tokens(path: Path, form: Form) -> tuple[Stretch, int | None]:
    """The tokens of a file, and how long its rows are if it has rows."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return raw_tokens(path, size, form), None
            file.seek(0)
            return _npy_tokens(path, file, size, form)
    except OSError as error:
        raise cannot_open(path, error) from error


def raw_tokens(path: Path, size: int, form: Form) -> Stretch:
    """All of a file without a header, in the type that the recipe or its ending says."""
    named = NAMED_TYPES.get(path.suffix)
    if form.dtype is not None and named is not None and form.dtype != named:
        raise refuse(path, given=f"dtype: {form.dtype}", expected=f"{named}, as its ending says",
                     fix=f"correct dtype, or rename the file: {path.suffix} is {named}")  # fmt: skip
    name = form.dtype or named
    if name is None:
        index = "; or add its .idx, if it is Megatron's" if path.suffix == ".bin" else ""
        raise refuse(
            path, given="no header that says the type of its tokens",
            expected="the header of .npy, or dtype in the recipe",
            fix=f"write dtype: uint16, or what its raw tokens are ({', '.join(TOKEN_TYPES)}){index}",
        )  # fmt: skip
    dtype = token_type(name)
    if size % dtype.itemsize:
        raise refuse(path, given=f"{size} bytes", expected=f"whole tokens of {dtype.itemsize} bytes ({name})",
                     fix="correct dtype, or fetch the file again: it may be cut short")  # fmt: skip
    return Stretch(path, 0, size // dtype.itemsize, dtype)


def _npy_tokens(path: Path, file: BinaryIO, size: int, form: Form) -> tuple[Stretch, int | None]:
    try:
        version = npy_format.read_magic(file)
        shape, fortran, dtype = _READERS[version](file)
    except (ValueError, KeyError) as error:
        raise refuse(path, given=f"a .npy header that cannot be read ({error})",
                     expected="version 1.0 or 2.0",
                     fix="write it again with numpy.save") from error  # fmt: skip
    fix = "write it again as integers, little-endian, one after another (numpy.save)"
    if dtype.name not in TOKEN_TYPES or dtype != token_type(dtype.name) or (fortran and len(shape) > 1):
        raise refuse(path, given=f"{dtype}{list(shape)}{', columns first' if fortran else ''}",
                     expected=f"{', '.join(TOKEN_TYPES)}; little-endian, rows first", fix=fix)  # fmt: skip
    if form.dtype not in (None, dtype.name):
        raise refuse(path, given=f"dtype: {form.dtype}", expected=f"{dtype.name}, as its header says",
                     fix="leave dtype out: a header is never read as data")  # fmt: skip
    if len(shape) not in (1, 2):
        raise refuse(path, given=f"an array of {len(shape)} dimensions", expected="one or two", fix=fix)
    count = prod(shape)
    if size != (needed := file.tell() + count * dtype.itemsize):
        if size < needed:
            raise too_short(path, size, needed)
        raise refuse(path, given=f"{size} bytes", expected=f"{needed}, as its header says",
                     fix="fetch the file again: something was written behind its end")  # fmt: skip
    tokens = Stretch(path, file.tell(), count, token_type(dtype.name))
    return tokens, shape[1] if len(shape) == 2 and count else None
