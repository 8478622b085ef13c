"""What is wrong: findings, and what they show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recipe.pools import Finding
from recipe.run.canonical import canonical

_LONGEST = 200


def differences(expected: Any, observed: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ: the key of the innermost value, and both sides.

    Values of different types differ: ``1``, ``1.0`` and ``True`` are not the same.

    >>> list(differences({"a": {"b": [1, 2]}, "c": 0}, {"a": {"b": [1, 3]}}))
    [('a.b.1', 2, 3), ('c', 0, Missing)]
    """
    if isinstance(expected, dict) and isinstance(observed, dict):
        for key in [*expected, *(key for key in observed if key not in expected)]:
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(expected.get(key, MISSING), observed.get(key, MISSING), inner)
    elif isinstance(expected, list) and isinstance(observed, list) and len(expected) == len(observed):
        for index, (a, b) in enumerate(zip(expected, observed, strict=True)):
            yield from differences(a, b, f"{path}.{index}" if path else str(index))
    elif type(expected) is not type(observed) or expected != observed:
        yield path, expected, observed


class _Missing:
    """Stands for a key that is not there."""

    def __repr__(self) -> str:
        return "Missing"

    __str__ = __repr__


MISSING = _Missing()


def shown(value: object) -> str:
    """A value as a finding shows it: what is not there is called nothing, long texts are cut.

    >>> shown(MISSING), shown("x"), shown(3)
    ('nothing', "'x'", '3')
    """
    if value is MISSING:
        return "nothing"
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def compared(check: str, where: str, expected: object, observed: object) -> list[Finding]:
    """A finding for every innermost value that differs; ``where`` names what both are."""
    if _are_same(expected, observed):
        return []
    found = []
    for path, a, b in differences(expected, observed):
        place = f"{where}: {path}" if path else where
        found.append(Finding(check, place, shown(a), shown(b)))
    return found


def _are_same(expected: object, observed: object) -> bool:
    """Whether both have one text: quick, where :func:`differences` is thorough."""
    try:
        return canonical(expected) == canonical(observed)
    except (TypeError, ValueError):  # a date or a key of YAML that JSON has no form for
        return False


def once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in order, each once."""
    return tuple(dict.fromkeys(findings))
