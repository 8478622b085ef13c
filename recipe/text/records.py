"""One stored record (a line of JSON, a row, members of an archive, a file) → a document or a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recipe.pools.sections import Section
from recipe.text.documents import Document, Refusal, TagValue, place_of
from recipe.text.kinds import TABLES
from recipe.text.long_lines import load_long
from recipe.text.sources import ReadOptions, SourceFile
from recipe.text.widths import check_values, check_width

#: Rules by which bytes become text; part of every key under which tokens are kept. A change of
#: anything in this module that changes a text bumps it.
CLEANING_VERSION = 1

EXCERPT_CHARACTERS = 120
#: Keys of a record that are named where one is missing.
MOST_KEYS = 10
SIGNATURE = b"\xef\xbb\xbf"
MOST_SAID = 1 << 20
"""Characters of an id, a group, or all tags of a document: they are in memory many times, and in tables."""
LONG_LINE = 16 << 20
"""Bytes of a line that is read in parts."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Raw:
    """A record as it is stored."""

    file: int
    """Index into the sources."""
    line: int | None
    data: bytes
    fault: str | None = None
    """Reason why the bytes are not the whole record: ``too_long``, ``truncated``."""
    detail: str = ""
    member: str | None = None
    """Stem of the members that are the record."""
    fields: Mapping[str, Any] | bytes | None = None
    """Where ``data`` is the text alone: what else there is, by key; as bytes it is JSON."""


class _BadError(Exception):
    """(reason, what was expected): turned into a refusal."""


def parse(raw: Raw, file: SourceFile, options: ReadOptions) -> Document | Refusal:
    """The document of a record, or why there is none. An empty text is a document here."""
    try:
        if raw.fault is not None:
            raise _BadError(raw.fault, raw.detail)
        if file.kind == "text":
            return _whole_file(raw, file, options)
        return _record(raw, file, options)
    except _BadError as bad:
        reason, detail = bad.args
        excerpt = raw.data[: 4 * EXCERPT_CHARACTERS].decode("utf-8", errors="replace")
        excerpt = excerpt[:EXCERPT_CHARACTERS].rstrip("\n")
        return Refusal(
            source=file.name,
            line=raw.line,
            reason=reason,
            detail=detail,
            excerpt=excerpt,
            member=raw.member,
            unit="row" if file.kind in TABLES else "line",
        )


def _whole_file(raw: Raw, file: SourceFile, options: ReadOptions) -> Document:
    text, repaired = _decode(raw.data.removeprefix(SIGNATURE), options)
    return Document(id=file.name, text=text, source=file.name, group=file.group, repaired=repaired)


def _record(raw: Raw, file: SourceFile, options: ReadOptions) -> Document:
    """The document of a record that has keys."""
    begins_file = raw.line == 1 if file.kind == "jsonl" else raw.member is not None
    data = raw.data.removeprefix(SIGNATURE) if begins_file else raw.data
    record: Mapping[str, Any]
    if raw.fields is None:
        record, repaired = _loaded(data, options)
        body = _text(record, options)
    else:
        body, repaired = _decode(data, options)
        if isinstance(raw.fields, bytes):
            record, mended = _loaded(raw.fields.removeprefix(SIGNATURE), options)
            repaired = repaired or mended
        else:
            record = raw.fields
    return Document(
        id=_id(record, place_of(file.name, raw.line, raw.member), options),
        text=body,
        source=file.name,
        line=raw.line,
        member=raw.member,
        group=_group(record, file, options),
        tags=_tags(record, options),
        sections=_sections(record, len(body), options),
        repaired=repaired,
    )


def _loaded(data: bytes, options: ReadOptions) -> tuple[dict[str, Any], bool]:
    """A JSON object, and whether characters were replaced."""
    if many := check_values(data, options.max_line_bytes):
        raise _BadError("too_long", many)
    record, repaired = None, False
    if len(data) > LONG_LINE and not check_width(data, options.max_line_bytes):
        record = load_long(data)
    if record is None:
        text, repaired = _decode(data, options)
        record = _load(text)
    if b"\\u" in data:
        record, mended = _mend(record, options)
        repaired = repaired or mended
    return record, repaired


def _decode(data: bytes, options: ReadOptions) -> tuple[str, bool]:
    if wide := check_width(data, options.max_line_bytes):
        raise _BadError("too_long", wide)
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError as error:
        if options.on_bad == "replace":
            return data.decode("utf-8", errors="replace"), True
        detail = f"UTF-8 text; byte {error.start} is 0x{data[error.start]:02x}"
        raise _BadError("invalid_utf8", detail) from None


def _load(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _BadError("invalid_json", f"a JSON object; {_fault(error)}") from None
    if not isinstance(record, dict):
        raise _BadError("not_an_object", f"a JSON object, not {_name_of(record)}")
    return record


def _fault(error: Exception) -> str:
    """What is wrong with the JSON, and where; line 1 of the record goes unsaid, for its file has another."""
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno} of the record, " if error.lineno > 1 else ""
        return f"{error.msg}: {line}column {error.colno}"
    return str(error)


def _mend(value: Any, options: ReadOptions) -> tuple[Any, bool]:
    """Replace lone surrogates in every string of a record, or refuse them."""
    if isinstance(value, str):
        if not _SURROGATE.search(value):
            return value, False
        if options.on_bad != "replace":
            raise _BadError("lone_surrogate", "text without lone surrogates (half of a \\ud8xx pair)")
        return _SURROGATE.sub("\ufffd", value), True
    if isinstance(value, list):
        pairs = [_mend(item, options) for item in value]
        return [item for item, _ in pairs], any(mended for _, mended in pairs)
    if isinstance(value, dict):
        keys = [_mend(key, options) for key in value]
        values = [_mend(item, options) for item in value.values()]
        mended = any(mended for _, mended in keys + values)
        return {key: item for (key, _), (item, _) in zip(keys, values, strict=True)}, mended
    return value, False


_MISSING = object()


def _find(record: Mapping[str, Any], key: str) -> Any:
    """The value of a key; ``a.b`` is that key, or ``b`` inside ``a``."""
    if key in record:
        return record[key]
    head, dot, rest = key.partition(".")
    inner = record.get(head, _MISSING)
    return _find(inner, rest) if dot and isinstance(inner, dict) else _MISSING


def listed_keys(found: Iterable[str], before: str = "", what: str = "keys") -> str:
    """The first of the keys that were found, as they are named.

    >>> listed_keys(["body", "id"], "page.")
    "keys found: 'page.body', 'page.id'"
    """
    keys = list(islice(found, MOST_KEYS + 1))
    told = ", ".join(repr(f"{before}{key}") for key in keys[:MOST_KEYS]) or "none"
    return f"{what} found: {told}{', …' if len(keys) > MOST_KEYS else ''}"


def _keys_at(record: Mapping[str, Any], key: str) -> str:
    """Keys beside one that is missing: those inside ``a`` for ``a.b``, where there is an ``a``."""
    before, inner = "", record
    for head in key.split(".")[:-1]:
        if not isinstance(below := inner.get(head), dict):
            break
        before, inner = f"{before}{head}.", below
    return listed_keys(inner, before)


def _text(record: Mapping[str, Any], options: ReadOptions) -> str:
    text = _find(record, options.text_key)
    if text is _MISSING:
        raise _BadError("text_missing", f"a key {options.text_key!r}; {_keys_at(record, options.text_key)}")
    if not isinstance(text, str):
        inside = f"; {listed_keys(text, f'{options.text_key}.')}" if isinstance(text, dict) else ""
        raise _BadError("text_not_text", f"text in {options.text_key!r}, not {_name_of(text)}{inside}")
    return text


def _id(record: Mapping[str, Any], place: str, options: ReadOptions) -> str | int:
    if options.place_ids:
        return place
    value = _find(record, options.id_key or "id")
    if options.id_key is None and (value is _MISSING or value is None):
        return place
    if value is _MISSING:
        assert options.id_key is not None
        raise _BadError("bad_id", f"a key {options.id_key!r}; {_keys_at(record, options.id_key)}")
    return _name(value, "id", options.id_key or "id")


def _group(record: Mapping[str, Any], file: SourceFile, options: ReadOptions) -> str | int | None:
    if options.group_key is None:
        return file.group
    value = _find(record, options.group_key)
    if value is _MISSING or value is None:
        return None
    return _name(value, "group", options.group_key)


def _sections(record: Mapping[str, Any], length: int, options: ReadOptions) -> tuple[Section, ...] | None:
    """Sections that a record states; none where it lacks the key."""
    if options.units_key is None:
        return None
    value = _find(record, options.units_key)
    if value is _MISSING or value is None:
        return ()
    where = repr(options.units_key)
    if not isinstance(value, list):
        raise _BadError("bad_sections", f"a list of objects in {where}, not {_name_of(value)}")
    found: list[Section] = []
    for item in value:
        least = found[-1].start + 1 if found else 0
        if not isinstance(item, dict) or set(item) - {"start", "id", "needs"}:
            raise _BadError("bad_sections", f"objects of start, id and needs in {where}, not {item!r:.60}")
        start, needs = item.get("start"), item.get("needs") or []
        if isinstance(start, bool) or not isinstance(start, int) or not least <= start < max(1, length):
            expected = f"starts that rise, in {least}..{length - 1}, in {where}"
            raise _BadError("bad_sections", f"{expected}, not {start!r}")
        if not isinstance(needs, list):
            raise _BadError("bad_sections", f"a list of ids in 'needs', not {_name_of(needs)}")
        id = None if item.get("id") is None else _name(item["id"], "sections", "id")
        found.append(Section(start, id, tuple(_name(need, "sections", "needs") for need in needs)))
    return tuple(found)


def _name(value: Any, what: str, key: str) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        given = "nothing" if value is _MISSING else _name_of(value)
        raise _BadError(f"bad_{what}", f"text or a whole number in {key!r}, not {given}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _BadError(f"bad_{what}", f"a whole number of 64 bits in {key!r}; write it as text")
    if isinstance(value, str) and len(value) > MOST_SAID:
        raise _BadError(f"bad_{what}", f"at most {MOST_SAID:,} characters in {key!r}, not {len(value):,}")
    return value


def _tags(record: Mapping[str, Any], options: ReadOptions) -> dict[str, TagValue]:
    """Values of the tag keys, or lists of them; a mapping gives its own keys; missing ones give none."""
    tags: dict[str, TagValue] = {}
    for key in options.tag_keys:
        value = _find(record, key)
        if value is _MISSING:
            continue
        for name, item in value.items() if isinstance(value, dict) else [(key, value)]:
            items = item if isinstance(item, list) and item else [item]
            if not all(isinstance(one, str | int | float | bool | None) for one in items):
                raise _BadError("bad_tag", f"text, numbers, true, false or null in {name!r}")
            tags[name] = item
    if (size := sum(map(_length, [*tags, *tags.values()]))) > MOST_SAID:
        raise _BadError("bad_tag", f"at most {MOST_SAID:,} characters in all tags of a record, not {size:,}")
    return tags


def _length(value: TagValue) -> int:
    """Characters of a tag, roughly: of a list, those of its items."""
    return (
        sum(map(_length, value)) if isinstance(value, list) else len(value) if isinstance(value, str) else 8
    )


def _name_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    other = (
        f"a number ({value})" if isinstance(value, int | float) else f"{type(value).__name__} ({value!r:.60})"
    )
    return names.get(type(value), other)
