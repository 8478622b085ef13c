"""Faults found in a recipe: from pydantic's errors, or our own, to the problems a person reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from recipe.errors import Problem

Place = tuple[str, ...]
"""Keys from the top of the recipe down; joined with dots it is the override that repairs the fault."""

NOTHING = "nothing"
TARGET = "_target_"
"""Names what is made from a mapping; a key of ``policy`` alone."""
_FAULTS = "recipe_faults"
_LONGEST_GIVEN = 120
_EXPECTED = {
    "missing": "a value",
    "bool_type": "true or false",
    "string_type": "text",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "list_type": "a list",
}


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A value that stands for another that does not exist: told already, and of no type."""

    text: str

    def __repr__(self) -> str:
        """As it is written."""
        return self.text


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault and its place, before the place is turned into a dotted key."""

    place: Place
    given: object
    expected: str
    fix: str
    is_absence: bool = False
    """Whether the fault is that something is not there."""

    def below(self, place: Place) -> Fault:
        """The same fault seen from further up."""
        return replace(self, place=(*place, *self.place))

    def problem(self) -> Problem:
        """What a person reads."""
        given = NOTHING if self.given is None else shown(self.given)
        return Problem(".".join(self.place) or "the recipe", given, self.expected, self.fix)


def problem(key: str, *, given: object, expected: str, fix: str) -> PydanticCustomError:
    """An error for a pydantic validator to raise; ``key`` is relative to what is validated ("" is itself)."""
    return faults([Fault(tuple(key.split(".")) if key else (), given, expected, fix)])


def faults(found: Sequence[Fault]) -> PydanticCustomError:
    """Several faults as one error for a pydantic validator to raise."""
    return PydanticCustomError(_FAULTS, "faults in the recipe", {"faults": list(found)})


def faults_of(error: ValidationError, vocabulary: Vocabulary, place: Place = ()) -> list[Fault]:
    """Every fault that a validation found, below ``place``."""
    return [fault for detail in error.errors() for fault in faults_of_detail(detail, vocabulary, place)]


def faults_of_detail(detail: ErrorDetails, vocabulary: Vocabulary, place: Place) -> list[Fault]:
    """The faults in one error of a validation, below ``place``."""
    where = (*place, *(str(part) for part in detail["loc"] if part != "[key]"))
    if detail["type"] == _FAULTS:
        own = [fault for fault in detail["ctx"]["faults"] if not isinstance(fault.given, Unresolved)]
        return [fault.below(where) for fault in own]
    if detail["type"] == "extra_forbidden":
        return [vocabulary.unknown_key(where, detail["input"])]
    if isinstance(detail["input"], Unresolved):
        return []
    given = NOTHING if detail["type"] == "missing" or detail["input"] is None else detail["input"]
    if detail["type"] == "literal_error":
        choices = [
            choice.strip("' ") for choice in detail["ctx"]["expected"].replace(" or ", ", ").split(",")
        ]
        fix = vocabulary.later_value(where, given) or nearest(given, choices)
        return [Fault(where, given, f"one of {', '.join(choices)}", fix)]
    expected = _EXPECTED.get(detail["type"], detail["msg"])
    if detail["type"] == "missing" and (keys := vocabulary.keys_at(where)) is not None:
        expected = f"a mapping with one of {', '.join(keys)}"
    if detail["type"] == "bool_type":
        return [
            Fault(where, given, expected, "write true or false: any other word is text, and 0 and 1 numbers")
        ]
    is_absence = detail["type"] == "missing"
    return [Fault(where, given, expected, vocabulary.how_to_write(where), is_absence=is_absence)]


class Vocabulary:
    """The keys that a recipe knows at each place, for unknown keys and the nearest right one."""

    def __init__(
        self,
        keys: Mapping[Place, Sequence[str]],
        later: Mapping[Place, Mapping[str, str]],
        later_values: Mapping[str, Mapping[str, str]],
        examples: Mapping[Place, str],
    ) -> None:
        """Places may hold ``*`` for a name; ``later`` names keys, and values by key, of later versions."""
        self._keys, self._later, self._later_values, self._examples = keys, later, later_values, examples

    def keys_at(self, place: Place) -> Sequence[str] | None:
        """The keys of a mapping; None where names are free or the place is a value."""
        found = _matching(self._keys, place)
        return None if found is None else self._keys[found]

    def is_known(self, place: Place) -> bool:
        """Whether a key or name may stand here, as far as keys are fixed."""
        if not place:
            return True
        keys = self.keys_at(place[:-1])
        return self.is_known(place[:-1]) and (keys is None or place[-1] in keys)

    def unknown_key(self, where: Place, given: object) -> Fault:
        """The fault of a key that is not known here, with the nearest one that is."""
        *above, key = where
        keys = sorted(self.keys_at(tuple(above)) or ())
        expected = f"one of {', '.join(keys)}"
        if key == TARGET:
            fix = f"remove it: only a policy is made from a name, under policy.{TARGET}"
            return Fault(where, given, expected, fix)
        pattern = _matching(self._later, tuple(above))
        if pattern is not None and key in self._later[pattern]:
            return Fault(
                where, given, expected, f"not available in this version: {self._later[pattern][key]}"
            )
        here = {**self._below(tuple(above)), **dict(zip(keys, keys, strict=True))}
        if close := get_close_matches(key, here, n=1, cutoff=0.6):
            return Fault(where, given, expected, f"did you mean {here[close[0]]!r}?")
        elsewhere = {other: place for place, others in self._keys.items() for other in others}
        if close := get_close_matches(key, elsewhere, n=1, cutoff=0.6):
            full = ".".join((*elsewhere[close[0]], close[0])).replace("*", "NAME")
            return Fault(where, given, expected, f"did you mean '{full}'? it is no key of this place")
        return Fault(where, given, expected, "remove it, or use one of these keys")

    def _below(self, place: Place) -> dict[str, str]:
        """Keys of the fixed mappings in the one at a place, with their dotted keys from there."""
        found = dict[str, str]()
        for pattern, keys in self._keys.items():
            inner = pattern[len(place) :]
            if inner and "*" not in inner and _matching([pattern[: len(place)]], place) is not None:
                found.update({key: ".".join((*inner, key)) for key in keys})
        return found

    def later_value(self, where: Place, given: object) -> str | None:
        """What to do instead of a value that a later version will know; None for any other."""
        instead = self._later_values.get(where[-1], {}).get(str(given))
        return f"not available in this version: {instead}" if instead else None

    def how_to_write(self, where: Place) -> str:
        """How a value at this place is written."""
        pattern = _matching(self._examples, where)
        return f"write {self._examples[pattern]}" if pattern is not None else "write it as expected"


def _matching(table: Iterable[Place], place: Place) -> Place | None:
    """The pattern of a table that a place fits, an exact name before ``*``."""
    fitting = [
        pattern
        for pattern in table
        if len(pattern) == len(place) and all(p in ("*", key) for p, key in zip(pattern, place, strict=True))
    ]
    return min(fitting, key=lambda pattern: pattern.count("*"), default=None)


def nearest(given: object, choices: Iterable[str], otherwise: str = "use one of these") -> str:
    """A suggestion: the nearest of the choices, or ``otherwise``.

    >>> nearest("quotta", ["quotas", "batch"])
    "did you mean 'quotas'?"
    """
    close = get_close_matches(str(given), list(choices), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else otherwise


def shown(given: object) -> str:
    """A given value, short enough for a line."""
    text = repr(given) if not isinstance(given, str) or not given.strip() else given
    text = " ".join(text.split()) or repr(given)
    return text if len(text) <= _LONGEST_GIVEN else f"{text[: _LONGEST_GIVEN - 3]}..."


def unique(found: Iterable[Fault]) -> list[Fault]:
    """The faults without repeats, in order."""
    seen: dict[Any, Fault] = {}
    for fault in found:
        seen.setdefault((fault.place, shown(fault.given), fault.expected, fault.fix), fault)
    return list(seen.values())
