"""Tags of equal documents as those of one: nothing that was said of any copy is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
