"""Tags of equal documents as those of one: nothing that was said of any copy is lost."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.card import canonical_json


def joined_tags(kept: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The tags of a document with those of its copies.

    What the document does not say, or says as null, is taken over. Where copies say something else, the tag
    becomes a list: the document's own values, then the others' in the order of their JSON, so that the order
    of the copies changes nothing. A condition of ``where:`` holds for a list where it holds for any of it.
    Mappings are joined key by key.

    >>> joined_tags({"lang": "en"}, [{"lang": "zh", "site": "b"}, {"lang": "de"}, {"site": "b"}])
    {'lang': ['en', 'de', 'zh'], 'site': 'b'}
    """
    copies = list(others)
    joined = dict(kept)
    for key in (*kept, *sorted({key for tags in copies for key in tags} - set(kept))):
        said = [tags[key] for tags in copies if key in tags]
        value = _joined(kept.get(key), said)
        if value is not None or key in kept:
            joined[key] = value
    return joined


def joined_texts(kept: str | None, others: Iterable[str]) -> dict[str, Any] | None:
    """As `joined_tags`, of JSON; None: they say nothing more.

    >>> joined_texts(None, ['{"a":1}']), joined_texts('{"a":1}', ['{"a":1}'])
    ({'a': 1}, None)
    """
    own = json.loads(kept) if kept else {}
    joined = joined_tags(own, (json.loads(text) for text in others))
    return None if joined == own else joined


def tag_values(text: str) -> Iterator[tuple[str, str]]:
    """Tags, as JSON, and their values as texts to count by: a text as it is, anything else as JSON.

    A list is a set: whatever the order of its values, it is one value.

    >>> list(tag_values('{"lang":["fr","en","fr"],"site":"b","stars":3}'))
    [('lang', '["en", "fr"]'), ('site', 'b'), ('stars', '3')]
    """
    tags = json.loads(text)
    for key, value in tags.items() if isinstance(tags, dict) else ():
        yield str(key), value if isinstance(value, str) else json.dumps(_in_order(value), ensure_ascii=False)


def _in_order(value: Any) -> Any:
    """A value with its lists sorted, each value once, and the keys of its mappings sorted."""
    if isinstance(value, list):
        found = {canonical_json(one): one for one in map(_in_order, value)}
        return sorted(found.values(), key=_place)
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return value


def _place(value: Any) -> tuple[bool, Any]:
    """Numbers by size, then everything else by its JSON."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return not is_number, value if is_number else canonical_json(value)


def _joined(own: Any, others: list[Any]) -> Any:
    said = [other for other in others if other is not None]
    if isinstance(own, Mapping | None) and said and all(isinstance(other, Mapping) for other in said):
        return joined_tags(own or {}, said)
    values = {canonical_json(value): value for value in _each(own)}
    mine = len(values)
    for value in sorted((value for other in said for value in _each(other)), key=canonical_json):
        values.setdefault(canonical_json(value), value)
    if len(values) == mine:
        return own
    found = list(values.values())
    return found[0] if len(found) == 1 and not any(isinstance(one, list) for one in (own, *said)) else found


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


class JoinedTags:
    """Tags that replace those of some documents, by their numbers; on disk, 24 bytes each in memory."""

    def __init__(self, file: Path | IO[bytes], places: NDArray[np.int64]) -> None:
        """What a `TagsWriter` wrote, and its places."""
        self._places = places
        self._data = np.memmap(file, np.uint8, "r") if len(places) else np.zeros(0, np.uint8)

    def of(self, number: int) -> dict[str, Any] | None:
        """The tags of a document; None: what it had."""
        at = bisect_left(self._places[:, 0], number)
        if at == len(self._places) or self._places[at, 0] != number:
            return None
        start, stop = self._places[at, 1:].tolist()
        tags: dict[str, Any] = json.loads(self._data[start:stop].tobytes())
        return tags


class TagsWriter:
    """Writes tags for `JoinedTags`, in any order."""

    def __init__(self, file: Path | IO[bytes]) -> None:
        """Begin the file at a path, or fill one that is open."""
        self._own = isinstance(file, Path)
        self._file = file.open("wb") if isinstance(file, Path) else file
        self._new = array("q")
        self._end = 0

    def add(self, number: int, tags: Mapping[str, Any]) -> None:
        """Note the tags of a document."""
        data = json.dumps(tags, ensure_ascii=False).encode()
        self._file.write(data)
        self._new.extend((number, self._end, self._end + len(data)))
        self._end += len(data)

    def places(self) -> NDArray[np.int64]:
        """int64[n, 3]: number, and first and last byte in the file, of each, by number; all is written."""
        if not self._file.closed:
            self._file.flush()
        places = np.array(self._new, np.int64).reshape(-1, 3)
        return places[np.argsort(places[:, 0])]

    def __enter__(self) -> TagsWriter:
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file, if it was opened here."""
        if self._own:
            self._file.close()
