"""Free parts of a recipe: plain mappings whose keys are somebody else's, kept exactly as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Annotated, Any

from pydantic import BeforeValidator

from recipe.config.problems import TARGET, Fault, Place, Unresolved
from recipe.config.strict_yaml import DEEPEST

TRAINER_SETTINGS = (
    "layers",
    "heads",
    "width",
    "learning_rate",
    "warmup_steps",
    "decay",
    "final_rate",
    "decay_share",
    "weight_decay",
    "betas",
    "clip",
    "micro_batch",
    "init_seed",
    "device",
    "threads",
    "checkpoint_steps",
    "keep",
    "validation",
    "final",
    "validation_sequences",
)
"""The keys that the reference trainer reads of ``trainer:``; each has a default."""


def exact(value: Any) -> Any:
    """The same with floats as their shortest decimal text (YAML gives that), and lists for tuples."""
    if isinstance(value, float) and isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {key: exact(below) for key, below in value.items()}
    return [exact(item) for item in value] if isinstance(value, list | tuple) else value


FreeMapping = Annotated[dict[str, Any], BeforeValidator(exact)]
"""A mapping of plain values; that they are plain is checked by `free_faults`."""


def free_faults(value: Any, place: Place = ()) -> Iterator[Fault]:
    """Faults of a free part: values that could not be written down and read again, or a `_target_`."""
    if len(place) > DEEPEST:
        yield Fault(place, "a mapping or list", f"at most {DEEPEST} levels", "nest less")
    elif isinstance(value, Mapping):
        for key, below in value.items():
            if key == TARGET:
                expected, fix = (
                    f"no {TARGET}: nothing is made from it here",
                    "rename the key, or leave it out",
                )
                yield Fault((*place, key), below, expected, fix)
            else:
                yield from free_faults(below, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from free_faults(item, (*place, str(index)))
    elif value is not None and not isinstance(value, str | int | Unresolved):
        expected = "text, a whole number, true, false, null, or a list or mapping of these"
        yield Fault(place, value, expected, "write it as text, in quotes")
