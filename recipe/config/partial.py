"""What every config model has in common, and as much of a model as is sound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from recipe.config.problems import Fault

_M = TypeVar("_M", bound="Model")


class UnsoundError(Exception):
    """A check touched a value that is faulty in itself: the check has nothing to say."""


@dataclass(frozen=True, slots=True)
class Faulty:
    """In a mapping or list that was read partly: an entry that is faulty in itself."""

    given: object


@dataclass(frozen=True, slots=True)
class Leniently:
    """Note on a field's type: how to read as much of its value as is sound, or raise `UnsoundError`."""

    read: Callable[[Any], Any]


class Model(BaseModel):
    """Frozen and strict: no unknown keys, no silent conversions.

    A model states the shape of its own values. What must hold between values is a check
    (`recipe.config.checks`), so that one fault never hides another.
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True, validate_by_name=False
    )

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """What is written, shorthand as the mapping it stands for."""
        return given

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, given: Any) -> Any:
        return cls.spelled_out(given)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A field that is not there: only where the model was read partly."""
            if name in type(self).model_fields:
                raise UnsoundError(name)
            return super().__getattr__(name)


def read_partly(kind: type[_M], given: Any) -> _M:
    """As much of a model as is sound; touching any other field raises `UnsoundError`.

    Of a sound value it is the whole model, of a value that is no mapping nothing at all.
    """
    try:
        given = kind.spelled_out(given)
    except PydanticCustomError:
        given = None
    if isinstance(given, kind):
        return given
    values, present = dict[str, Any](), set[str]()
    for name, field in kind.model_fields.items() if isinstance(given, Mapping) else ():
        key = field.alias or name
        if key in given:
            present.add(name)
            try:
                values[name] = _read_field(kind, name, given[key])
            except UnsoundError:
                continue
        elif not field.is_required():
            values[name] = field.get_default(call_default_factory=True)
    return _of_values(kind, values, present)


def _of_values(kind: type[_M], values: Mapping[str, Any], present: set[str]) -> _M:
    part = kind.model_construct(_fields_set=present)
    part.__dict__.clear()
    part.__dict__.update(values)
    return part


def _read_field(kind: type[Model], name: str, given: Any) -> Any:
    field = kind.model_fields[name]
    shape, notes = _bare(field.annotation)
    if given is None and field.default is None:
        return None
    if _is_model(shape):
        part = read_partly(shape, given)
        if not part.__dict__:
            raise UnsoundError(name)
        return part
    if get_origin(shape) is dict and _is_model(get_args(shape)[1]):
        if not isinstance(given, Mapping):
            raise UnsoundError(name)
        return {key: read_partly(get_args(shape)[1], value) for key, value in given.items()}
    try:
        return _adapter(kind, name).validate_python(given, strict=True)
    except ValidationError:
        lenient = [note for note in (*notes, *field.metadata) if isinstance(note, Leniently)]
        if not lenient:
            raise UnsoundError(name) from None
        return lenient[0].read(given)


def _is_model(shape: Any) -> bool:
    return isinstance(shape, type) and issubclass(shape, Model)


def _bare(annotation: Any) -> tuple[Any, Sequence[Any]]:
    """A type without ``| None`` and notes, and the notes."""
    notes = list[Any]()
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            notes += more
        elif get_origin(annotation) in (Union, UnionType):
            options = [option for option in get_args(annotation) if option is not NoneType]
            if len(options) > 1:
                return annotation, notes
            annotation = options[0]
        else:
            return annotation, notes


@cache
def _adapter(kind: type[Model], name: str) -> TypeAdapter[Any]:
    """The validator of one field that holds no model."""
    field = kind.model_fields[name]
    annotation: Any = field.annotation
    if field.metadata:
        noted: Any = Annotated
        annotation = noted[(annotation, *field.metadata)]
    return TypeAdapter(annotation)


def overlay(over: _M, under: _M) -> _M:
    """A model with what it leaves out (None) taken from another; what is unsound stays so."""
    values = dict[str, Any]()
    for name in type(over).model_fields:
        try:
            own = getattr(over, name)
            values[name] = own if own is not None else getattr(under, name)
        except UnsoundError:
            continue
    return _of_values(type(over), values, over.model_fields_set | under.model_fields_set)


def is_given(model: Model, key: str) -> bool:
    """Whether a value is stated, sound or not.

    Raises:
        UnsoundError: nothing of the model could be read.
    """
    if key in model.__dict__:
        return model.__dict__[key] is not None
    if key in model.model_fields_set:
        return True
    raise UnsoundError(key)


def given_of(model: Model, keys: Sequence[str]) -> list[str]:
    """Those of some keys that are stated, sound or not."""
    return [key for key in keys if is_given(model, key)]


def entries(read: Callable[[object], object]) -> Leniently:
    """A mapping read value by value: those that cannot be read become `Faulty`."""

    def read_entries(given: Any) -> dict[str, object]:
        if not isinstance(given, Mapping):
            raise UnsoundError
        return {name: _entry(read, value) for name, value in given.items()}

    return Leniently(read_entries)


def _entry(read: Callable[[object], object], given: object) -> object:
    try:
        return read(given)
    except PydanticCustomError:
        return Faulty(given)


def run_checks(checks: Iterable[Callable[..., Iterable[Fault]]], *values: Any) -> list[Fault]:
    """What every check finds in some values; a check ends where it touches what is unsound."""
    found = list[Fault]()
    for check in checks:
        try:
            for fault in check(*values):
                found.append(fault)
        except UnsoundError:
            continue
    return found
