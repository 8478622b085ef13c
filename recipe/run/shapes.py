"""What rows of each kind, and sealed files, must hold, so that whoever reads one need not ask.

They are written by this program and their hashes are checked; one that lacks something, or holds a text
where a number belongs, was written by something else, and is refused where it is read. What the values
mean is checked by `recipe audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]
_LARGEST = 1 << 63


def is_count(value: Any) -> bool:
    """A whole number from 0 on that fits 64 bits."""
    return type(value) is int and 0 <= value < _LARGEST


def _is_whole(value: Any) -> bool:
    return type(value) is int and -1 <= value < _LARGEST


def _is_first(value: Any) -> bool:
    return is_count(value) and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """A number as :func:`recipe.run.canonical.plain_number` gives it."""
    return type(value) in (int, float) or value in ("nan", "inf", "-inf")


def _is_span(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_count, value)) and value[0] <= value[1]


def _is_metrics(value: Any) -> bool:
    return _is_mapping(value) and all(
        _is_mapping(numbers) and all(map(_is_number, numbers.values())) for numbers in value.values()
    )


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _holds(**checks: Check) -> Check:
    return lambda value: (
        _is_mapping(value) and all(key in value and check(value[key]) for key, check in checks.items())
    )


def _each(check: Check) -> Check:
    return lambda value: _is_mapping(value) and all(map(check, value.values()))


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_holding(value: Any) -> bool:
    """Where a pool is, and what it held."""
    return (
        _is_mapping(value)
        and all(isinstance(value.get(key), str) for key in ("path", "fingerprint"))
        and (value.get("tokenizer") is None or isinstance(value["tokenizer"], str))
        and all(is_count(value.get(key, 0)) for key in ("stock", "documents"))
    )


_COUNTS = (
    "owed",
    "spent",
    "body",
    "overlap",
    "special",
    "padding",
    "labels",
    "sequences",
    "documents",
    "distinct",
)


def _is_account(value: Any) -> bool:
    """What a pool gave in a chunk."""
    try:
        counted = all(type(value[key]) is int for key in ("planned", "debt", *_COUNTS))
        return counted and all(type(tokens) is int for tokens in value["dropped"].values())
    except (LookupError, TypeError, AttributeError):
        return False


def _is_total(value: Any) -> bool:
    """What a pool gave so far."""
    return _is_mapping(value) and all(type(value.get(key)) is int for key in _COUNTS)


_WEIGHTS = _list_of(_holds(step=is_count, pools=_each(_is_text)))
"""What labels count in the loss, each from which step on."""
_POINTER = _holds(row=is_count, offset=is_count, step=is_count)
_PARENT = _holds(
    run=_is_text, id=_is_text, path=_is_text, manifest=_is_first, hash=_is_text, step=is_count, data=_is_text
)
_ABOUT: Mapping[str, Check] = {"manifest": _is_first, "manifest_hash": _is_text}
_TURN: Mapping[str, Check] = {
    "step": is_count,
    "stage": _is_text,
    "grid": _is_span,
    "turn": _POINTER,
    "recipe": _is_first,
    "recipe_hash": _is_text,
    "snapshot": _is_mapping,
}
_SAID: Mapping[str, Check] = {"reason": _is_text, "approved_by": _maybe(_is_text)}

SHAPES: Mapping[str, Mapping[str, Check]] = {
    "created": {
        "step": is_count,
        "run": _is_text,
        "id": _is_text,
        "run_hash": _is_text,
        "recipe": _is_first,
        "recipe_hash": _is_text,
        "pools": _each(_is_holding),
        "snapshot": _is_mapping,
    },
    "chunk": {
        "recipe": _is_first,
        "stage": _is_text,
        "chunk": is_count,
        "steps": _is_span,
        "grid": _is_span,
        "positions": is_count,
        "counted": is_count,
        "pools": _each(_is_account),
        "groups": _is_mapping,
        "snapshot": _is_mapping,
    },
    "checkpoint": {
        "step": is_count,
        "recipe": _is_first,
        **_ABOUT,
        "uri": _maybe(_is_text),
        "gpu_hours": _maybe(_is_number),
        "positions": is_count,
        "cumulative": _each(_is_total),
        "closing": _holds(row=is_count, offset=is_count),
        "turn": _POINTER,
        "lineage": _holds(depth=is_count, parent=_maybe(is_count), skip=_maybe(is_count)),
        "snapshot": _is_mapping,
    },
    "rewind": {
        "from_step": is_count,
        "to_step": is_count,
        "manifest": _maybe(_is_first),
        "discarded": _is_mapping,
    },
    "warning": {"step": is_count, "pool": _is_text, "what": _is_text},
    "data": {**_TURN, "pools": _each(_holds(before=_is_text, after=_is_text))},
    "amend": {**_TURN, **_SAID, "by": _is_text, "pools": _each(_is_holding), "policy": _maybe(_is_mapping)},
    "skip": {**_TURN, **_SAID, "steps": _is_span, "returned": _is_flag, "sequences": _is_mapping},
    "withdraw": {
        **_TURN,
        **_SAID,
        "number": _is_first,
        "file": _is_text,
        "file_hash": _is_text,
        "documents": _is_mapping,
    },
    "metrics": {**_ABOUT, "metrics": _is_metrics},
    "opened": {"sets": _list_of(_is_text), "manifest": _is_first, "by": _is_text, "reason": _is_text},
    "decision": {
        **_ABOUT,
        "as": _is_text,
        "run": _is_text,
        "id": _is_text,
        "evidence": _is_text,
        "approved_by": _is_text,
        "reason": _is_text,
    },
    "forgotten": {**_ABOUT, "step": is_count, "reason": _is_text},
}
"""By kind: the keys that it has, and what each must be."""
_BY_POOL = {"created": "pools", "chunk": "pools", "checkpoint": "cumulative"}
"""By kind: what it holds of every pool of its snapshot."""
_EVERY: Mapping[str, Check] = {
    "row": is_count,
    "time": _is_text,
    "kind": lambda value: isinstance(value, str) and value in SHAPES,
}
_OFTEN: Mapping[str, Mapping[str, Check]] = {
    "created": {"parent": _PARENT, "withdrawals": _is_mapping, "grid": _is_span, "stage": _is_text},
    "chunk": {"loss_weights": _WEIGHTS},
    "checkpoint": {"late": _is_flag},
    "rewind": {"turn": is_count},
    "amend": {"grown": _each(_holds(before=_is_text))},
}
"""By kind: keys that are not always there."""

MANIFEST: Mapping[str, Check] = {
    "run": _is_text,
    "number": _is_first,
    "time": _is_text,
    "checkpoint": _holds(step=is_count, uri=_maybe(_is_text), digest=_maybe(_is_text)),
    "positions": is_count,
    "gpu_hours": _maybe(_is_number),
    "metrics": _is_metrics,
    "pools": _each(_is_holding),
    "stages": _each(_each(_each(is_count))),
    "warnings": _list_of(_is_mapping),
    "accepted_data_changes": _list_of(_is_mapping),
    "ledger": _is_mapping,
    "turn": _holds(row=_is_whole, offset=_is_whole, step=is_count, mark=_is_text),
    "recipe": _holds(version=_is_first, hash=_is_text, resolved=_is_mapping),
    "snapshot": _is_mapping,
}
"""What a manifest must hold."""
VERSION: Mapping[str, Check] = {
    "version": _is_first,
    "step": is_count,
    "reason": _is_text,
    "approved_by": _maybe(_is_text),
    "recipe": _is_mapping,
}
"""What a stored recipe version must hold."""
WITHDRAWN: Mapping[str, Check] = {
    "number": _is_first,
    "documents": _each(_list_of(is_count)),
    "pools": _each(_list_of(lambda value: isinstance(value, str | int))),
}
"""What a list of withdrawn documents must hold."""
IDENTITY: Mapping[str, Check] = {"name": _is_text, "id": _is_text, "created": _is_text}
"""What run.yaml must hold."""


def lacking(value: Mapping[str, Any], shape: Mapping[str, Check]) -> str | None:
    """The first key of a shape that is missing, or holds something else than it must."""
    if not _is_mapping(value):
        return next(iter(shape))
    for key, check in shape.items():
        if key not in value or not check(value[key]):
            return key
    return None


def fault_of(row: Mapping[str, Any]) -> str | None:
    """The key of a row that is missing or holds something else than it must; None where all is well.

    >>> fault_of({"row": 3, "time": "t", "kind": "rewind", "from_step": 9, "to_step": "5"})
    'to_step'
    """
    if (key := lacking(row, _EVERY)) is not None:
        return key
    kind = str(row["kind"])
    if (key := lacking(row, SHAPES[kind])) is not None:
        return key
    for often, check in _OFTEN.get(kind, {}).items():
        if often in row and not check(row[often]):
            return often
    by_pool = row.get(_BY_POOL.get(kind, ""))
    if by_pool is None:
        return None
    places = row["snapshot"].get("pools")
    return None if isinstance(places, list) and len(places) == len(by_pool) else "snapshot"
