"""Withdrawn documents as a run has them on record: a list a withdrawal, and all of them in one value."""

from __future__ import annotations

import json
from base64 import b85decode, b85encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.audit.state import LARGEST, Malformed, mapping, sequence, whole
from recipe.pools import Finding
from recipe.run.canonical import canonical, digest
from recipe.sequences.withdrawn import NOTHING, Withdrawn

Known = Mapping[str, Withdrawn]
"""By pool; pools of which nothing was withdrawn are left out."""


@dataclass(frozen=True, slots=True)
class TakenDown:
    """The list of one withdrawal."""

    name: str
    """Of its file, in the run's folder."""
    number: int
    documents: Mapping[str, NDArray[np.int64]]
    """By pool, rising numbers."""
    ids: Mapping[str, list[Any]]
    """By pool, what these documents are called."""


def read_list(
    folder: Path, name: str, hashed: object, said_by: str
) -> tuple[TakenDown | None, list[Finding]]:
    """A list that a row names; None where its file is lost or damaged."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        return None, [Finding("withdrawn", name, "a file that can be read", error.strerror or str(error))]
    if (found := digest(data)) != hashed:
        expected = f"contents with hash {hashed}, as {said_by} says"
        return None, [Finding("withdrawn", name, expected, f"contents with hash {found}")]
    try:
        value = json.loads(data)
        documents = mapping(mapping(value, name).get("documents"), "documents")
        ids = mapping(value.get("pools"), "pools")
        taken = TakenDown(
            name,
            whole(value.get("number"), "number"),
            {pool: _numbers(numbers, f"documents.{pool}") for pool, numbers in documents.items()},
            {pool: sequence(names, f"pools.{pool}") for pool, names in ids.items()},
        )
        if canonical(value) + b"\n" != data or {*value} != {"number", "documents", "pools"}:
            raise Malformed("", "number, documents and pools as one canonical text", sorted(value))
        if {name: len(held) for name, held in ids.items()} != {k: len(v) for k, v in documents.items()}:
            raise Malformed("pools", "an id for every document", sorted(ids))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return None, [Finding("withdrawn", name, "a list of documents", str(error))]
    except Malformed as error:
        return None, [Finding("withdrawn", f"{name}: {error.field}", error.expected, str(error.observed))]
    return taken, []


def _numbers(given: object, where: str) -> NDArray[np.int64]:
    numbers = [whole(number, where) for number in sequence(given, where)]
    if not numbers or sorted(set(numbers)) != numbers:
        raise Malformed(where, "rising numbers of documents", numbers[:8])
    return np.array(numbers, np.int64)


def and_then(known: Known, number: int, documents: Mapping[str, NDArray[np.int64]]) -> dict[str, Withdrawn]:
    """What is withdrawn after one more withdrawal; a document counts under the first one that names it."""
    after = dict(known)
    for name, given in documents.items():
        before = known.get(name, NOTHING)
        new = np.setdiff1d(given, before.documents)
        both = np.concatenate([before.documents, new])
        numbers = np.concatenate([before.numbers, np.full(len(new), number, np.int64)])
        order = np.argsort(both, kind="stable")
        if len(both):
            after[name] = Withdrawn(both[order], numbers[order])
    return after


def lacking(taken: Mapping[str, NDArray[np.int64]], known: Known) -> dict[str, int]:
    """By pool, how many of some documents are not withdrawn."""
    found = {
        name: np.setdiff1d(numbers, known.get(name, NOTHING).documents) for name, numbers in taken.items()
    }
    return {name: len(numbers) for name, numbers in found.items() if len(numbers)}


def to_plain(known: Known, number: int) -> dict[str, Any] | None:
    """All that is withdrawn, as manifests hold it; None where nothing ever was.

    >>> to_plain(and_then({}, 1, {"web": np.array([7, 300])}), 1)
    {'number': 1, 'pools': {'web': [[1, 2, '2LL4j']]}}
    """
    if not number:
        return None
    pools = {}
    for name in sorted(known):
        each = known[name]
        lists = {int(k): each.documents[each.numbers == k] for k in np.unique(each.numbers)}
        pools[name] = [[k, *_packed(documents)] for k, documents in lists.items()]
    return {"number": number, "pools": pools}


def _packed(documents: NDArray[np.int64]) -> tuple[int, str]:
    """Bytes of a number, and the differences of the numbers in base 85."""
    steps = [int(step) for step in np.diff(documents, prepend=0)]
    width = max(1, -(-max(steps).bit_length() // 8))
    return width, b85encode(b"".join(step.to_bytes(width, "little") for step in steps)).decode()


def from_plain(plain: object) -> tuple[dict[str, Withdrawn], int]:
    """What manifests and the first row of a branch hold, and the number of withdrawals.

    Raises:
        Malformed: it is none of what :func:`to_plain` gives.
    """
    if plain is None:
        return {}, 0
    fields = mapping(plain, "withdrawals")
    number, known = whole(fields.get("number"), "withdrawals.number"), dict[str, Withdrawn]()
    for name, lists in mapping(fields.get("pools"), "withdrawals.pools").items():
        where = f"withdrawals.pools.{name}"
        for entry in sequence(lists, where):
            try:
                k, width, text = entry
                documents = _unpacked(width, text)
            except (ValueError, TypeError) as error:
                raise Malformed(where, "numbers in base 85", str(error)) from error
            known = and_then(known, whole(k, where), {name: documents})
    if to_plain(known, number) != plain:
        raise Malformed("withdrawals", "every document once, under its withdrawal", "something else")
    return known, number


def _unpacked(width: int, text: str) -> NDArray[np.int64]:
    data = b85decode(text)
    steps = [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
    if sum(steps) > LARGEST:
        raise ValueError("a document beyond 64 bits")
    return np.cumsum(steps, dtype=np.int64)
