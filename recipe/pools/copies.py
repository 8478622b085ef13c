"""What copies of a pool's documents say more, where they came too late to change the documents' tags.

A pool that is extended keeps its documents as they were, tags included: views of runs that read it depend on
them. Of new documents that equal old ones and are left out, what their tags say more stands beside the new
pool, in ``copies.jsonl``: by document, rising, a line of JSON with its number and its copies (id, source,
tags). Whoever makes another pool of the documents (`recipe.pools.copying`) joins them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.pools.beside import COPIES_NAME
from recipe.pools.pool import Pool
from recipe.pools.tags import joined_tags
from recipe.pools.workplace import written_durably


class Noted:
    """What copies say of the documents of a pool, asked for in the order of their numbers."""

    def __init__(self, pool: Pool) -> None:
        """Read along the file beside the pool, if there is one."""
        path = None if pool.layout.table is None else pool.layout.folder / COPIES_NAME
        self._lines = iter(()) if path is None else copies_in(path)
        self._line = next(self._lines, None)

    def joined(self, document: int, tags: Mapping[str, Any]) -> Mapping[str, Any]:
        """The tags of a document with those of its copies."""
        said = list[Mapping[str, Any]]()
        while self._line is not None and self._line["document"] <= document:
            if self._line["document"] == document:
                said += [copy["tags"] for copy in self._line["copies"]]
            self._line = next(self._lines, None)
        return joined_tags(tags, said) if said else tags

    def joined_text(self, document: int, tags: str | None) -> str | None:
        """As `joined`, of JSON; None: no tags."""
        own = json.loads(tags) if tags else {}
        joined = self.joined(document, own)
        return tags if joined is own else json.dumps(joined, ensure_ascii=False)


def copies_in(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of such a file, as plain values; none where it is not there.

    Raises:
        RecipeError: a line of something else.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            try:
                line = json.loads(data)
                yield {"document": int(line["document"]), "copies": list(line["copies"])}
            except (ValueError, KeyError, TypeError) as error:
                raise RecipeError.single(
                    str(path), f"line {number}", given=repr(data[:60]), expected="a document and its copies",
                    fix="copy the file again from where it is whole",
                ) from error  # fmt: skip


def extend_copies(path: Path, *of: Path) -> None:
    """Write what files of this kind say, of one pool, as one file; nothing where they say nothing."""
    lines = merge(*map(copies_in, of), key=itemgetter("document"))
    first = next(lines, None)
    if first is None:
        return
    with written_durably(path) as file:
        file.write(copy_line(first))
        file.writelines(map(copy_line, lines))


def copy_line(line: Mapping[str, Any]) -> bytes:
    """A line as it is stored."""
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"
