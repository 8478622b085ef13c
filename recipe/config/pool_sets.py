"""Pool sets: one entry of ``pools`` that stands for a pool in every folder that its path matches.

``"lang_*": {path: multilingual/*}`` makes a pool of each folder in ``multilingual``: what the ``*`` of the
path matches stands for the ``*`` of the name. When a recipe is loaded a set is replaced by its pools, sorted
by what was matched; a recipe that is stored names pools alone. What is written for one of their names is laid
over what the set says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from recipe.config.folders import below, is_there, names_in
from recipe.config.model import PoolConfig
from recipe.config.naming import is_key
from recipe.config.problems import NOTHING, Fault, faults_of, nearest
from recipe.config.vocabulary import VOCABULARY

STAR = "*"
UNFINISHED = ".partial"
"""How a folder's name ends while a pool is written in it."""
_SHOWN = 10
_EXAMPLE = 'write it like "lang_*": {path: multilingual/*}'


def has_sets(data: Mapping[str, Any]) -> bool:
    """Whether any of the pools is a set."""
    return bool(sets_in(data))


def sets_in(data: Mapping[str, Any]) -> list[str]:
    """The names of pools that are sets."""
    pools = data.get("pools")
    return [str(name) for name in pools if STAR in str(name)] if isinstance(pools, Mapping) else []


def expand_pool_sets(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """A recipe's plain values with pools instead of sets; a set with faults is left out, and they are told.

    Folders are looked up below ``pools_root``, by name: nothing in them is opened.
    """
    if not has_sets(data):
        return dict(data), []
    root = data.get("pools_root")
    found, faults = dict[str, Any](), list[Fault]()
    written, makers = data["pools"], dict[str, str]()
    for key, own in written.items():
        if STAR not in str(key):
            found.setdefault(key, deepcopy(own))
            continue
        places, why = _places(key, own, root if isinstance(root, str) else None)
        faults += why
        for name, path in places.items():
            if name in makers:
                fix = "make the paths or the names differ, or name one of the pools by itself"
                given = f"{name}, which {makers[name]} makes too"
                faults.append(Fault(("pools", key), given, "names that no other set makes", fix))
                continue
            makers[name] = key
            found[name] = _laid_over({**deepcopy(own), "path": path}, written.get(name, {}))
    if not faults:
        faults += _nowhere(written, makers)
    ordered = {name: found[name] for name in _order(written, makers)}
    return {**data, "pools": ordered}, faults


def members(name: str, pattern: str, matched: Iterable[str]) -> dict[str, str]:
    """Paths of the pools that a set makes of the paths that were found, by their names; in sorted order.

    >>> members("lang_*", "multilingual/*", ["multilingual/no", "multilingual/en"])
    {'lang_en': 'multilingual/en', 'lang_no': 'multilingual/no'}
    >>> members("*_*", "*/dumps/web-*", ["y/dumps/web-1", "x/dumps/web-2"])
    {'x_2': 'x/dumps/web-2', 'y_1': 'y/dumps/web-1'}
    """
    stars = {path: found.groups() for path in matched if (found := matcher(pattern).fullmatch(path))}
    return {filled(name, stars[path]): path for path in sorted(stars, key=lambda path: (stars[path], path))}


def matcher(pattern: str) -> re.Pattern[str]:
    """What a pattern matches; a star is one or more characters of one name, as few as it can be."""
    return re.compile("([^/]+?)".join(re.escape(part) for part in pattern.split(STAR)))


def filled(name: str, stars: Iterable[str]) -> str:
    """A name with its stars replaced, in order."""
    values = iter(stars)
    return re.sub(re.escape(STAR), lambda _: next(values), name)


def _order(written: Mapping[str, Any], makers: Mapping[str, str]) -> Iterator[str]:
    """Pools where they are written; those of a set where the set is, also where more is said of them."""
    for key in written:
        if STAR in str(key):
            yield from (name for name, maker in makers.items() if maker == key)
        elif key not in makers:
            yield key


def _nowhere(written: Mapping[str, Any], makers: Mapping[str, str]) -> Iterator[Fault]:
    """Names of which something is said as of a set's pool, and that no set makes."""
    for name, own in written.items():
        if STAR in str(name) or name in makers or not isinstance(own, Mapping):
            continue
        if all(own.get(key) is None for key in ("path", "stock", "of")):
            expected = f"a path, or a name that a set makes: {', '.join(makers)}"
            given = "neither path nor stock, and no folder that makes it"
            yield Fault(
                ("pools", name, "path"), given, expected, nearest(name, makers, "write {path: FOLDER}")
            )


def _places(key: str, own: Any, root: str | None) -> tuple[dict[str, str], list[Fault]]:
    place = ("pools", key, "path")
    pattern = own.get("path") if isinstance(own, Mapping) else own
    if not isinstance(pattern, str):
        return {}, [Fault(place, NOTHING if pattern is None else pattern, "a path with as many *", _EXAMPLE)]
    if pattern.count(STAR) != key.count(STAR) or 2 * STAR in pattern:
        given = f"{pattern}, with {pattern.count(STAR)} *"
        expected = f"a path with {key.count(STAR)} *, as its name has, each for a part of one folder's name"
        return {}, [Fault(place, given, expected, _EXAMPLE)]
    try:
        PoolConfig.model_validate(own)
    except ValidationError as error:  # told once, where it is written
        return {}, faults_of(error, VOCABULARY, ("pools", key))
    pattern = pattern.rstrip("/")
    matched = list(_matched(root, pattern))
    if not matched:
        return {}, [_nothing(place, root, pattern)]
    found = members(key, pattern, matched)
    faults = [fault for name, path in found.items() for fault in _faults(key, name, path)]
    wrong = {fault.place[2] for fault in faults}
    return {name: path for name, path in found.items() if name not in wrong}, [
        Fault(place, fault.given, fault.expected, fault.fix) for fault in faults
    ]


def _faults(key: str, name: str, path: str) -> Iterator[Fault]:
    if path.endswith(UNFINISHED):
        fix = "finish it, or remove it: no pool is left out silently"
        yield Fault(("pools", key, name), path, "pools that are whole: this one is being written", fix)
    elif not is_key(name):
        fix = "rename the folder, or name its pool by itself and let the pattern match less"
        expected = f"folders that make names of letters, digits, _ and - with {key}"
        yield Fault(("pools", key, name), f"{path}, which makes {name}", expected, fix)


def _matched(root: str | None, pattern: str) -> Iterator[str]:
    """Paths that are there and match, written as the pattern is."""
    parts = pattern.split("/")
    first = next(number for number, part in enumerate(parts) if STAR in part)
    yield from _down(root, "/".join(parts[:first]), parts[first:], is_absolute=pattern.startswith("/"))


def _down(root: str | None, above: str, parts: list[str], *, is_absolute: bool) -> Iterator[str]:
    part, *rest = parts
    folder = below(root, "/" if is_absolute and not above else above)
    for name, is_folder in names_in(folder).items():
        if not (matcher(part).fullmatch(name) if STAR in part else name == part):
            continue
        if name.startswith(".") and not part.startswith("."):
            continue
        path = f"{above}/{name}" if above or is_absolute else name
        if not rest:
            # A file is meant where the pattern says what it ends in.
            if is_folder or "." in part.rpartition(STAR)[2]:
                yield path
        elif is_folder:
            yield from _down(root, path, rest, is_absolute=is_absolute)


def _nothing(place: tuple[str, ...], root: str | None, pattern: str) -> Fault:
    parts = pattern.split("/")
    first = next(number for number, part in enumerate(parts) if STAR in part)
    folder = below(root, "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ""))
    names = [name for name, is_folder in names_in(folder).items() if is_folder and name[0] != "."]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    there = f"{folder} has {', '.join(names[:_SHOWN])}{more}" if names else f"{folder} has none"
    if not is_there(folder):
        there = f"there is no folder {folder}"
    fix = "correct the path or pools_root, or prepare the pools first"
    return Fault(place, f"{pattern}, which nothing matches", f"folders that match; {there}", fix)


def _laid_over(under: Any, over: Any) -> Any:
    """What is written for one pool over what its set says: mappings merge, ``of`` replaces the path."""
    if not isinstance(over, Mapping):
        return over
    laid = {key: value for key, value in under.items() if key != "path" or "of" not in over}
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(laid.get(key), Mapping)
        laid[key] = _laid_over(laid[key], value) if both else deepcopy(value)
    return laid
