"""Overrides as text: Hydra's grammar, read so that names and numbers keep what was written.

Hydra turns ``695e0514`` into infinity and ``1_000`` into 1000; here both stay text, as in a YAML file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, product
from math import prod
from typing import Any

from antlr4 import CommonTokenStream, InputStream  # type: ignore[import-untyped]
from hydra.core.override_parser.overrides_parser import create_functions
from hydra.core.override_parser.overrides_visitor import HydraErrorListener, HydraOverrideVisitor
from hydra.core.override_parser.types import (
    ChoiceSweep,
    Glob,
    Override,
    OverrideType,
    QuotedString,
    RangeSweep,
    Sweep,
    ValueType,
)
from hydra.errors import HydraException
from hydra.grammar.gen.OverrideLexer import OverrideLexer
from hydra.grammar.gen.OverrideParser import OverrideParser

from recipe.config.change import Change, Kind
from recipe.config.problems import Fault, Place, faults, problem, shown
from recipe.config.strict_yaml import DEEPEST, ONCE, parse_yaml
from recipe.errors import RecipeError

MOST_JOBS = 1000
"""A sweep over more is refused: each is a run."""

_PREFIXES: tuple[tuple[str, Kind], ...] = (("++", "force"), ("+", "add"), ("~", "delete"), ("", "set"))
_PLAIN_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_KEY = re.compile(r"[^\s=,{}\[\]()'\"]+")
_FUNCTIONS = create_functions()


class _WrittenFloat(float):
    text: str

    def __str__(self) -> str:
        return self.text


class _WrittenInt(int):
    text: str

    def __str__(self) -> str:
        return self.text


class _Repeating(dict[str, Any]):
    """A mapping in which a key was given twice."""

    twice: list[tuple[str, Any, Any]]
    """Key, and both of its values."""


class _StrictVisitor(HydraOverrideVisitor):
    """Hydra's visitor, but numbers remember their text, keys stay text, and a key given twice is not lost."""

    def visitDictContainer(self, ctx: Any) -> dict[str, Any]:  # noqa: N802
        found, twice = dict[str, Any](), list[tuple[str, Any, Any]]()
        for index in range(1, ctx.getChildCount() - 1, 2):
            key, value = self.visitDictKeyValuePair(ctx.getChild(index))
            if key in found:
                twice.append((key, found[key], value))
            found.setdefault(key, value)
        if not twice:
            return found
        repeating = _Repeating(found)
        repeating.twice = twice
        return repeating

    def _createPrimitive(self, ctx: Any) -> Any:  # noqa: N802
        value = super()._createPrimitive(ctx)
        text = ctx.getText().strip()
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        if isinstance(value, int) and _PLAIN_INTEGER.fullmatch(text):
            return value
        written = _WrittenInt(value) if isinstance(value, int) else _WrittenFloat(value)
        written.text = text
        return written

    def visitDictKey(self, ctx: Any) -> str:  # noqa: N802
        value = self._createPrimitive(ctx)
        return value if isinstance(value, str) else str(ctx.getText().strip())


def _parse_value(text: str) -> Any:
    """What stands behind ``=``: plain values, quoted strings, or a sweep.

    Raises:
        HydraException: the text does not follow the grammar.
    """
    if not text:
        return ""
    listener = HydraErrorListener()
    lexer = OverrideLexer(InputStream(f"k={text}"))
    lexer.removeErrorListeners()
    lexer.addErrorListener(listener)
    parser = OverrideParser(CommonTokenStream(lexer))
    parser.removeErrorListeners()
    parser.addErrorListener(listener)
    parsed = _StrictVisitor(_FUNCTIONS).visit(parser.override())  # type: ignore[no-untyped-call]
    return parsed._value


def read_override(text: str) -> Change:
    """One override; a sweep is refused.

    Raises:
        PydanticCustomError: see `problem`; the place is the override itself.
    """
    kind, key, value_text = _split(text)
    if value_text is None:
        return Change(text, kind, key, has_value=False)
    value = _value_of(text, value_text)
    if isinstance(value, Sweep | Glob):
        fix = f"add -m to start one run per value, or quote one value: {key}='{value_text}'"
        raise problem("", given=text, expected="one value", fix=fix)
    return Change(text, kind, key, _plain(value))


def _split(text: str) -> tuple[Kind, str, str | None]:
    head, equals, value = text.partition("=")
    prefix, kind = next(pair for pair in _PREFIXES if head.startswith(pair[0]))
    key = head[len(prefix) :].strip()
    if not _KEY.fullmatch(key) or "" in key.split(".") or (not equals and kind != "delete"):
        expected = "key=value, +key=value, ++key=value or ~key"
        raise problem("", given=text, expected=expected, fix="write it like seed=7 or stages.short.tokens=2M")
    return kind, key, value if equals else None


def _value_of(text: str, value_text: str) -> Any:
    levels = accumulate((sign in "[{(") - (sign in ")}]") for sign in value_text)
    if max(levels, default=0) > DEEPEST:
        expected = f"at most {DEEPEST} levels of lists and mappings"
        raise problem("", given=text, expected=expected, fix="nest less")
    try:
        value = _parse_value(value_text)
    except (HydraException, ValueError) as error:
        if not value_text.isascii():
            try:
                return parse_yaml(value_text, text)
            except RecipeError as refusal:
                if found := [
                    _twice(each.where, each.given) for each in refusal.problems if each.expected == ONCE
                ]:
                    raise faults(found) from None
        message = str(error).splitlines()[0] if str(error) else "cannot be read"
        fix = f"{message}; quote a value that holds special characters: key='value'"
        raise problem("", given=text, expected="a value in Hydra's override grammar", fix=fix) from None
    if found := list(_repeated(value, ())):
        raise faults(found)
    return value


def _repeated(value: Any, place: Place) -> Iterator[Fault]:
    """Keys that are given twice, as in a file (`parse_yaml`)."""
    if isinstance(value, _Repeating):
        for key, one, other in value.twice:
            yield _twice(".".join((*place, key)), f"{_in_short(one)} and {_in_short(other)}")
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _repeated(below, (*place, key))
    elif isinstance(value, list | ChoiceSweep):
        below_it = value if isinstance(value, list) else value.list
        for index, below in enumerate(below_it):
            yield from _repeated(below, (*place, str(index)) if below_it is value else place)


def _twice(key: str, given: object) -> Fault:
    return Fault((), f"{key}: {given}", ONCE, "remove one of them")


def _in_short(value: Any) -> str:
    plain = _plain(value)
    if isinstance(plain, dict | list):
        return "a mapping" if isinstance(plain, dict) else "a list"
    return "null" if plain is None else shown(str(plain).lower() if isinstance(plain, bool) else str(plain))


def _plain(value: Any) -> Any:
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, _WrittenFloat | _WrittenInt):
        return value.text
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


def expand_sweep(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of every job of a sweep: ``seed=1,2`` stands for two, in Hydra's order.

    ``range(1,4)`` and ``choice(a,b)`` work as in Hydra. Without a sweep there is one job.

    Raises:
        RecipeError: an override cannot be read or is a sweep without an end, two jobs would be equal, or
            they are more than ``MOST_JOBS``.

    >>> expand_sweep(["seed=1,2", "count=body"])
    [['seed=1', 'count=body'], ['seed=2', 'count=body']]
    """
    alternatives = [_alternatives(text) for text in overrides]
    if prod(map(len, alternatives)) > MOST_JOBS:
        raise _too_many(" ".join(overrides))
    _refuse_equal_jobs(overrides, alternatives)
    return [list(job) for job in product(*alternatives)]


def _refuse_equal_jobs(overrides: Sequence[str], alternatives: Sequence[Sequence[str]]) -> None:
    """Raise RecipeError where two jobs would be equal: a value given twice, or a key swept and set again."""
    swept = set[str]()
    for text, jobs in zip(overrides, alternatives, strict=True):
        key = text.partition("=")[0].lstrip("+")
        twice = [job for job in dict.fromkeys(jobs) if jobs.count(job) > 1]
        if twice:
            given, fix = f"{', '.join(twice)} more than once", "write each value once: equal jobs are one run"
            raise RecipeError.single(text, key, given=given, expected="jobs that differ", fix=fix)
        if key in swept:
            fix = f"give {key} once: the last one counts, so jobs would be equal"
            raise RecipeError.single(
                text, key, given=f"{text} after a sweep", expected="jobs that differ", fix=fix
            )
        if len(jobs) > 1:
            swept.add(key)


def sweep_labels(jobs: Sequence[Sequence[str]]) -> list[str]:
    """A folder-safe name for every job: the overrides that differ between jobs; "" where there is one job.

    >>> sweep_labels(expand_sweep(["seed=1,2", "count=body"]))
    ['seed=1', 'seed=2']
    """
    if len(jobs) < 2:
        return ["" for _ in jobs]
    swept = [index for index in range(len(jobs[0])) if len({job[index] for job in jobs}) > 1]
    labels = [_folder_safe(",".join(job[index].lstrip("+") for index in swept)) for job in jobs]
    width = len(str(len(jobs) - 1))
    if len(set(labels)) < len(labels):
        return [f"{number:0{width}d},{label}" for number, label in enumerate(labels)]
    return labels


def _folder_safe(label: str) -> str:
    return re.sub(r"[^\w=.,+%-]+", "_", label).strip("._")[:120] or "job"


def _alternatives(text: str) -> list[str]:
    try:
        _, _, value_text = _split(text)
        value = _value_of(text, value_text) if value_text is not None else None
        if not isinstance(value, Sweep | Glob):
            return [text]
        if not isinstance(value, ChoiceSweep | RangeSweep):
            fix = "use a list of values (1,2), range(1,4) or choice(a,b)"
            raise problem("", given=text, expected="a sweep over listed values", fix=fix)
    except Exception as error:
        raise _as_recipe_error(text, error) from None
    form = ValueType.RANGE_SWEEP if isinstance(value, RangeSweep) else ValueType.CHOICE_SWEEP
    sweep = Override(type=OverrideType.CHANGE, key_or_group="k", value_type=form, _value=value)
    if isinstance(value, RangeSweep) and next(islice(value.range(), MOST_JOBS, None), None) is not None:
        raise _too_many(text)  # a shuffled range is made whole before its first value
    return [f"{text.partition('=')[0]}={item}" for item in sweep.sweep_string_iterator()]


def _too_many(given: str) -> RecipeError:
    fix = "sweep over fewer values; several commands make more"
    expected = f"at most {MOST_JOBS:,} jobs: each is a run"
    return RecipeError.single("sweep", "KEY=VALUE", given=given, expected=expected, fix=fix)


def _as_recipe_error(text: str, error: Exception) -> Exception:
    found = getattr(error, "context", None)
    if not found:
        return error
    return RecipeError(text, [fault.problem() for fault in found["faults"]])
