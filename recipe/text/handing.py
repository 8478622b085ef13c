"""Texts handed to tools that find near-duplicates, as JSON lines, and their answer: ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from recipe.errors import RecipeError
from recipe.pools.pool import Pool
from recipe.pools.workplace import Workplace, is_used
from recipe.text.kinds import kind_of
from recipe.text.pool_texts import text_of
from recipe.text.streams import open_bytes
from recipe.text.tokenizers import Tokenizer

FILE_DOCUMENTS = 50_000
"""Documents in one file: readers take whole files."""
_READ = 1 << 12


def write_texts(
    pool: Pool,
    tokenizer: Tokenizer,
    out: Path | str,
    *,
    file_documents: int = FILE_DOCUMENTS,
    tell: Callable[[int], None] = lambda done: None,
) -> list[Path]:
    """Write the texts of a pool as JSON lines ``{id, text, metadata}``, as datatrove's reader takes them.

    ``id`` is the document's, as text; ``metadata`` has its tags, and ``group`` where it has one. The text is
    what its tokens spell. Erased documents are left out.

    Args:
        pool: which.
        tokenizer: the one that made it.
        out: folder; it is there whole, or not at all.
        file_documents: documents in one file.
        tell: called with the documents written so far.

    Raises:
        RecipeError: something is at ``out``, or a tag is called as the group is.
    """
    folder = Path(out)
    if is_used(folder):
        raise RecipeError.single(
            "texts", str(folder), given="something that is there already", expected="a new folder",
            fix="choose another folder, or remove it first",
        )  # fmt: skip
    place = Workplace(folder)
    try:
        with place.disk_errors():
            _refuse_others(place)
            place.keep_only(set())
            names = _write(
                _lines(pool, tokenizer), place.folder, file_documents,
                lambda files: tell(min(files * file_documents, pool.num_documents)),
            )  # fmt: skip
            place.publish()
    finally:
        if place.held:
            place.release()
    return [folder / name for name in names]


def _write(
    lines: Iterator[bytes], folder: Path, file_documents: int, tell: Callable[[int], None]
) -> list[str]:
    """Names of the files that the lines are written into; ``tell`` is called with their number so far."""
    names = list[str]()
    while first := next(lines, None):
        names.append(f"texts-{len(names):05d}.jsonl")
        with (folder / names[-1]).open("wb") as file:
            file.write(first)
            file.writelines(islice(lines, file_documents - 1))
        tell(len(names))
    return names


def _refuse_others(place: Workplace) -> None:
    """What an interrupted call left is written over; anything else may be somebody's unfinished pool."""
    others = [path.name for path in place.folder.iterdir() if path.suffix not in (".jsonl", ".lock")]
    if others:
        raise RecipeError.single(
            "texts", str(place.folder), given=f"something else that was not finished ({others[0]})",
            expected="a folder where nothing is yet", fix="choose another folder, or finish what is there",
        )  # fmt: skip


def _lines(pool: Pool, tokenizer: Tokenizer) -> Iterator[bytes]:
    erased = set(pool.erased.tolist())
    for start in range(0, pool.num_numbers, _READ):
        numbers = np.arange(start, min(start + _READ, pool.num_numbers))
        for row in pool.rows(numbers[pool.holds(numbers)]):
            if row.document in erased:
                continue
            metadata: dict[str, Any] = dict(row.tags)
            if row.group is not None:
                if "group" in metadata:
                    raise RecipeError.single(
                        f"pool {pool.name}", f"document {row.id!r}", given="a tag that is called 'group'",
                        expected="another name, where documents have groups",
                        fix="prepare the pool with the tag under another name",
                    )  # fmt: skip
                metadata["group"] = row.group
            plain = {"id": str(row.id), "text": text_of(pool, tokenizer, row.document), "metadata": metadata}
            yield json.dumps(plain, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"


def read_ids(path: Path | str) -> Iterator[int | str]:
    """Ids from a file with one a line, from JSON lines that hold ``id``, or from a folder of the latter.

    Raises:
        RecipeError: there is no such file, or a line of JSON without an id.
    """
    place = Path(path)
    if place.is_dir():
        files = sorted(file for file in place.rglob("*") if file.is_file() and kind_of(file.name) == "jsonl")
    else:
        files = [place] if place.is_file() else []
    if not files:
        raise RecipeError.single(
            "ids", str(place), given="no such file, or a folder without JSON lines",
            expected="a file of ids, one a line, or JSON lines that hold an id", fix="correct the path",
        )  # fmt: skip
    for file in files:
        is_json = kind_of(file.name) == "jsonl"
        with open_bytes(file) as stream:
            for number, line in enumerate(stream, start=1):
                text = line.decode(errors="surrogateescape").rstrip("\r\n")
                if text.strip():
                    yield _id_of(text, file, number) if is_json else text


def _id_of(line: str, file: Path, number: int) -> int | str:
    try:
        found = json.loads(line)["id"]
    except (ValueError, KeyError, TypeError):
        found = None
    if isinstance(found, bool) or not isinstance(found, int | str):
        raise RecipeError.single(
            "ids", f"{file}:{number}", given=line[:80], expected="a JSON object with an id",
            fix="write the ids into a .txt file, one a line, or correct the line",
        )  # fmt: skip
    return found
