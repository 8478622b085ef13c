"""One value, one text, one hash: what the ledger, manifests and states are hashed over."""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

Plain = dict[str, Any]
"""A mapping of text to JSON values."""


def canonical(value: object) -> bytes:
    """The one JSON text of a value, in UTF-8: keys sorted, no blanks.

    Raises:
        ValueError: a number is not finite (see :func:`plain_number`).

    >>> canonical({"b": 1, "a": "ü"}).decode()
    '{"a":"ü","b":1}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def digest(data: bytes) -> str:
    """blake2b-256 of some bytes, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def hash_of(value: object) -> str:
    """Hash of a value's canonical text: equal values have equal hashes, whatever the order of keys."""
    return digest(canonical(value))


def plain_number(value: object) -> int | float | str:
    """A number from a trainer (Python, NumPy, a torch scalar) as JSON can hold it.

    What is not finite becomes the text ``nan``, ``inf`` or ``-inf``: a diverged loss is worth
    recording and must not stop a checkpoint.

    Raises:
        ValueError: it is no number, or a whole one beyond 64 bits.

    >>> [plain_number(x) for x in (3, 2.5, float("nan"))]
    [3, 2.5, 'nan']
    """
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise ValueError(f"{value!r} is no number")
    with suppress(TypeError):
        whole = operator.index(value)  # type: ignore[arg-type]
        if not -(1 << 63) <= whole < 1 << 63:
            raise ValueError(f"a whole number of {whole.bit_length()} bits is too large to put on record")
        return whole
    try:
        number = float(value)
    except (TypeError, OverflowError, RuntimeError) as error:
        raise ValueError(f"a {type(value).__name__} is no number: {error}") from error
    return number if math.isfinite(number) else str(number)


def plain_value(value: object) -> Any:
    """A value with tuples as lists and keys as text, as it comes back from JSON or YAML.

    >>> plain_value({"a": (1, 2)})
    {'a': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain_value(item) for item in value]
    return value
