"""Lists of where documents end, made by whoever wrote the tokens: they are believed, and nothing is scanned.

Read are numbers as ``.npy``, as raw int64 or as text, one a line: lengths, ends, or offsets (from 0 to the
number of tokens). And the ``.csv.gz`` (or ``.csv``) of first token, end and anything else that Dolma's
tokenizer writes and OLMo-core reads.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.pools.foreign.ends import ENDS, INT64, EndsWriter, read_ends
from recipe.pools.foreign.identity import key_of
from recipe.pools.foreign.sidecar import derived
from recipe.pools.foreign.token_file import Stretch, check_ends, refuse

_FORMAT = 1
_TEXT = frozenset(b"0123456789 \t\r\n")
_LINES = 1 << 16


def find_list(path: Path, ending: str) -> Path:
    """The list that belongs to a token file: its name with this ending, behind its own or in its place.

    Raises:
        RecipeError: there is none, or both are there.
    """
    wanted = {path.with_name(path.name + ending), path.with_name(path.stem + ending)} - {path}
    found = sorted(place for place in wanted if place.is_file())
    if len(found) == 1:
        return found[0]
    names = " or ".join(sorted(place.name for place in wanted))
    raise refuse(
        path, given=f"{'both' if found else 'no list of boundaries'}, with boundaries: {ending}",
        expected=f"{names}, one of them",
        fix="fetch the list, or correct boundaries" if not found else "move one of them out of the folder",
    )  # fmt: skip


def listed_ends(tokens: Stretch, path: Path) -> Callable[[], NDArray[np.int64]]:
    """Where documents end, as a list says; it is read once and kept.

    Raises:
        RecipeError: numbers that are not the tokens' boundaries.
    """

    def build(paths: tuple[Path, ...]) -> None:
        ends = _of_spans(path) if _is_spans(path) else _of_numbers(path, tokens.count)
        check_ends(ends, tokens.count, path)
        with paths[0].open("wb") as out:
            writer = EndsWriter(out)
            writer.write(ends)
            writer.close()

    kept = derived(path, key_of((path,), [_FORMAT, tokens.count]), [ENDS], build)[0]
    return lambda: read_ends(kept, tokens.count)


def ends_of(numbers: NDArray[np.int64], num_tokens: int) -> NDArray[np.int64]:
    """Ends of documents, from offsets, ends or lengths.

    >>> [ends_of(np.array(given), 12).tolist() for given in ([0, 4, 7, 12], [4, 7, 12], [4, 3, 5])]
    [[4, 7, 12], [4, 7, 12], [4, 7, 12]]
    """
    rises = not len(numbers) or (bool((np.diff(numbers) >= 0).all()) and int(numbers[-1]) == num_tokens)
    if rises:
        return numbers[1:] if len(numbers) and numbers[0] == 0 else numbers
    ends = np.cumsum(numbers, dtype=np.int64)
    return ends if int(ends[-1]) == num_tokens else numbers


def _of_numbers(path: Path, num_tokens: int) -> NDArray[np.int64]:
    data = path.read_bytes()
    if data.startswith(b"\x93NUMPY"):
        try:
            found = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise _unknown(path, f"a .npy file that cannot be read ({error})") from error
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise _unknown(path, f"{found.dtype}{list(found.shape)}")
        numbers = found.astype(np.int64)
    elif _TEXT.issuperset(data[:4096]):
        try:
            numbers = np.array(data.split(), np.int64)
        except ValueError as error:
            raise _unknown(path, f"text that is no number ({error})") from error
    elif len(data) % 8 == 0:
        numbers = np.frombuffer(data, INT64)
    else:
        raise _unknown(path, f"{len(data)} bytes of another kind")
    if len(numbers) and numbers.min() < 0:
        raise _unknown(path, f"{numbers.min()}, a negative number")
    return ends_of(numbers, num_tokens)


def _is_spans(path: Path) -> bool:
    return path.name.endswith((".csv", ".csv.gz"))


def _of_spans(path: Path) -> NDArray[np.int64]:
    """Ends of documents that are named by their first token and their end; there are no gaps between them."""
    pieces, line = [np.zeros(0, np.int64)], 0
    before = 0
    for lines in _lines(path):
        if lines:
            try:
                spans = np.array([row.split(b",", 2)[:2] for row in lines], np.int64).reshape(len(lines), 2)
            except ValueError as error:
                raise _unknown(path, f"lines {line}..{line + len(lines) - 1} ({error})") from error
            starts = np.concatenate([[before], spans[:-1, 1]])
            if len(wrong := np.flatnonzero(spans[:, 0] != starts)):
                at = int(wrong[0])
                raise _unknown(
                    path, f"line {line + at}: a document from token {spans[at, 0]}, {starts[at]} comes next"
                )
            pieces.append(spans[:, 1])
            before, line = int(spans[-1, 1]), line + len(lines)
    return np.concatenate(pieces)


def _lines(path: Path) -> Iterator[list[bytes]]:
    """Lines that are not blank, some at a time."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            while lines := file.readlines(_LINES * 32):
                yield [line for line in lines if line.strip()]
    except (OSError, EOFError, zlib.error) as error:
        raise _unknown(path, f"a file that cannot be read ({error})") from error


def _unknown(path: Path, given: str) -> Exception:
    return refuse(
        path, given=given,
        expected="lengths, ends or offsets (.npy, int64 or text), or spans (.csv, .csv.gz)",
        fix="correct boundaries, or leave it out and scan (documents: eos)",
    )  # fmt: skip
