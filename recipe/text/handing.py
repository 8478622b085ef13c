"""Texts handed to tools that find near-duplicates, as JSON lines, and their answer: ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from recipe.errors import ContentError, RecipeError
from recipe.pools.card import canonical_json, json_object
from recipe.pools.pool import Pool
from recipe.pools.settings import SETTINGS_NAME
from recipe.pools.workplace import Workplace, is_used, write_durably, written_durably
from recipe.text.kinds import kind_of
from recipe.text.pool_texts import text_of
from recipe.text.streams import open_bytes
from recipe.text.tokenizers import Tokenizer

FILE_DOCUMENTS = 50_000
"""Documents in one file: readers take whole files."""
_READ = 1 << 12
_MARK = "texts"
"""Key of the settings beside unfinished files: they are texts, and of which pool."""


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
    what its tokens spell. Erased documents are left out. Interrupted, the same call goes on behind the last
    file that was whole.

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
            done = _begun(place, pool, tokenizer, file_documents)
            files = [place.folder / _name(number) for number in range(done)]
            numbers = islice(_numbers(pool), done * file_documents, None)
            for first in numbers:
                files.append(place.folder / _name(len(files)))
                with written_durably(files[-1]) as file:
                    file.writelines(
                        _lines(pool, tokenizer, chain([first], islice(numbers, file_documents - 1)))
                    )
                tell(min(len(files) * file_documents, pool.num_documents))
            (place.folder / SETTINGS_NAME).unlink()
            place.publish()
    except ContentError:
        place.discard()
        raise
    finally:
        if place.held:
            place.release()
    return [folder / file.name for file in files]


def _begun(place: Workplace, pool: Pool, tokenizer: Tokenizer, file_documents: int) -> int:
    """Files that an interrupted call for the same left; what one for something else left is removed.

    Raises:
        RecipeError: what is there may be somebody's unfinished pool.
    """
    settings = {_MARK: [pool.fingerprint, tokenizer.fingerprint(), file_documents, len(pool.erased)]}
    path = place.folder / SETTINGS_NAME
    said = json_object(path)
    others = [
        file.name for file in place.folder.iterdir()
        if file.suffix not in (".jsonl", ".lock", ".tmp") and not (file == path and _MARK in said)
    ]  # fmt: skip
    if others:
        raise RecipeError.single(
            "texts", str(place.folder), given=f"something else that was not finished ({others[0]})",
            expected="a folder where nothing is yet", fix="choose another folder, or finish what is there",
        )  # fmt: skip
    done = 0
    while said == settings and (place.folder / _name(done)).is_file():
        done += 1
    place.keep_only({SETTINGS_NAME, *map(_name, range(done))})
    write_durably(path, canonical_json(settings))
    return done


def _name(number: int) -> str:
    return f"texts-{number:05d}.jsonl"


def _numbers(pool: Pool) -> Iterator[int]:
    """The documents whose texts are handed out."""
    for start in range(0, pool.num_numbers, _READ):
        numbers = np.arange(start, min(start + _READ, pool.num_numbers))
        yield from numbers[pool.holds(numbers) & ~np.isin(numbers, pool.erased)].tolist()


def _lines(pool: Pool, tokenizer: Tokenizer, numbers: Iterator[int]) -> Iterator[bytes]:
    while some := list(islice(numbers, _READ)):
        for row in pool.rows(np.array(some)):
            metadata: dict[str, Any] = dict(row.tags)
            if row.group is not None:
                if "group" in metadata:
                    raise ContentError.single(
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
