"""What ``state_dict`` gave, looked at before anything is made of it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch.utils.data import get_worker_info

from recipe.run.state import State

FORMAT = 1
_KEYS = ("format", "step", "state")


@dataclass(frozen=True, slots=True)
class Saved:
    """A state that can be gone on from."""

    step: int
    """First step that was not taken."""
    state: bytes


def read_saved(given: object) -> Saved:
    """The state that a mapping holds.

    Raises:
        ValueError: it is none: other keys, another format, a step that is not the state's, or a worker's own
            state where the trainer's is wanted.
        RecipeError: the bytes in it are damaged.
    """
    if not isinstance(given, Mapping) or not set(_KEYS) <= given.keys():
        keys = f"keys {', '.join(map(str, given)) or 'none'}" if isinstance(given, Mapping) else repr(given)
        raise ValueError(
            f"no state: {keys:.200}; expected what state_dict() gave, a mapping with {', '.join(_KEYS)}"
        )
    if given["format"] != FORMAT:
        raise ValueError(f"state of format {given['format']!r}; this version reads format {FORMAT}")
    step, of_worker = whole_step(given["step"]), bool(given.get("worker", False))
    stands = State.from_bytes(given["state"]).snapshot.step
    if stands > step or (stands != step and not of_worker):
        raise ValueError(
            f"step {step} beside a state of step {stands}; expected both as state_dict() gave them"
        )
    if of_worker and get_worker_info() is None:
        raise ValueError(
            "the state of a loader's worker; expected the trainer's: the loader's own load_state_dict deals "
            "states to workers"
        )
    return Saved(step, given["state"])


def whole_step(given: Any) -> int:
    """A number of steps.

    Raises:
        ValueError: it is none.
    """
    try:
        step = -1 if isinstance(given, bool) else operator.index(given)
    except TypeError:
        step = -1
    if step < 0:
        raise ValueError(f"step {given!r:.200}; expected a whole number of steps, 0 or more")
    return step
