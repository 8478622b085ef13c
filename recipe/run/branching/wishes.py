"""Branches as they are asked for: changes of a recipe by name, from the command line and from files.

A branch file (``branch/NAME.yaml`` below ``--config-dir`` or the shipped ``conf/``, or any YAML file)
is a mapping of overrides: keys of the recipe, nested or dotted, and the words ``from``, ``data``,
``fresh``, ``end_stage`` and ``reason``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from recipe.config import expand_sweep, read_yaml
from recipe.config.problems import nearest
from recipe.config.shipped import shipped_conf, titled
from recipe.errors import Problem, RecipeError

Data = Literal["continue", "fresh"]
DATA: tuple[Data, ...] = ("continue", "fresh")
CHOICE = "branch="
_WORDS = ("from", "data", "fresh", "end_stage", "reason")
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One branch that is asked for."""

    name: str
    overrides: tuple[str, ...] = ()
    """``key=value`` as on the command line, of the recipe in force at the checkpoint."""
    from_pool: str | None = None
    """The pool that gives, or takes, the difference of a changed share."""
    data: Data = "continue"
    """``continue``: pools are read on; ``fresh``: each from its beginning."""
    fresh: tuple[str, ...] = ()
    """With ``continue``: pools that are read from their beginning all the same."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Pools that get another name, as pairs of old and new; their reading orders stay."""
    end_stage: str | Mapping[str, Any] | None = None
    """A last stage in place of what is left: a mapping, or its YAML text."""
    reason: str = ""


def read_wishes(
    name: str | None, words: Sequence[str], template: Wish, *, several: bool, config_dir: Path | None = None
) -> list[Wish]:
    """The branches that some words ask for.

    Args:
        name: of the branch; of several, what their names begin with.
        words: overrides; ``branch=NAME`` takes a branch file.
        template: holds what was said apart from overrides; that goes before what a branch file says.
        several: lists of values (``seed=1,2``) stand for a branch each.
        config_dir: a folder laid out like ``conf/``, searched first.

    Raises:
        RecipeError: no such branch file, one that is none, words that cannot be read, or no name.
    """
    jobs = expand_sweep(words) if several else [list(words)]
    labels = _labels(jobs)
    wishes = []
    for job, label in zip(jobs, labels, strict=True):
        choices = [word.removeprefix(CHOICE) for word in job if word.startswith(CHOICE)]
        wish = replace(template, overrides=tuple(word for word in job if not word.startswith(CHOICE)))
        for choice in choices:
            wish = _over(wish, read_branch_file(choice, config_dir))
        parts = [name, *(Path(choice).stem for choice in choices), label]
        wishes.append(replace(wish, name=_joined(parts)))
    return wishes


def _over(wish: Wish, file: Wish) -> Wish:
    """What was said on the command line over what a file says."""
    return replace(
        wish,
        overrides=(*file.overrides, *wish.overrides),
        from_pool=wish.from_pool or file.from_pool,
        data=wish.data if wish.data != "continue" else file.data,
        fresh=wish.fresh or file.fresh,
        end_stage=wish.end_stage if wish.end_stage is not None else file.end_stage,
        reason=wish.reason or file.reason,
    )


def _joined(parts: Sequence[str | None]) -> str:
    name = "-".join(part for part in parts if part)
    if not name:
        fix = "give one after the run: recipe branch RUN NAME key=value"
        raise RecipeError.single("recipe branch", "NAME", given="none", expected="a name", fix=fix)
    return name


def _labels(jobs: Sequence[Sequence[str]]) -> list[str]:
    """What tells the branches of a sweep apart, beside their files: ``seed1``, or whole keys where needed."""
    if len(jobs) < 2:
        return [""] * len(jobs)
    swept = [index for index in range(len(jobs[0])) if len({job[index] for job in jobs}) > 1]
    words = [[job[index] for index in swept if not job[index].startswith(CHOICE)] for job in jobs]
    files = [[word for word in job if word.startswith(CHOICE)] for job in jobs]
    for write in (_short, _long):
        labels = ["-".join(map(write, job)) for job in words]
        if len({(*file, label) for file, label in zip(files, labels, strict=True)}) == len(jobs):
            return labels
    return [f"{number:03d}" for number in range(len(jobs))]


def _short(word: str) -> str:
    key, _, value = word.partition("=")
    return _safe(f"{key.rpartition('.')[2]}{value}")


def _long(word: str) -> str:
    return _safe(word)


def _safe(text: str) -> str:
    return re.sub(r"[^\w=.,+%]+", "_", text).strip("._+")[:80]


def read_branch_file(choice: str, config_dir: Path | None = None) -> Wish:
    """A branch file, by its name in a folder ``branch/`` or by its path; its stem is the wish's name.

    Raises:
        RecipeError: there is none, or it is no mapping of overrides.
    """
    file = _found(choice, config_dir)
    title = titled(file)
    data = read_yaml(file, title)
    if not isinstance(data, Mapping):
        fix = "write keys of the recipe, such as stages.base.quotas.code: 20%"
        raise RecipeError.single(title, title, given=type(data).__name__, expected="a mapping", fix=fix)
    if problems := list(_problems(data)):
        raise RecipeError(title, problems)
    fresh = data.get("fresh", ())
    return Wish(
        name=file.stem,
        overrides=tuple(_overrides({key: value for key, value in data.items() if key not in _WORDS})),
        from_pool=data.get("from"),
        data=data.get("data", "continue"),
        fresh=(fresh,) if isinstance(fresh, str) else tuple(fresh),
        end_stage=data.get("end_stage"),
        reason=data.get("reason", ""),
    )


def _problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the words of a branch file that are no keys of the recipe."""
    for key, kinds, expected in (
        ("from", str, "the name of a pool"),
        ("end_stage", (str, Mapping), "a mapping of keys of a stage"),
        ("reason", str, "a text"),
        ("fresh", (str, list), "pools"),
    ):
        if key in data and not isinstance(data[key], kinds):
            yield Problem(key, str(data[key]), expected, "write it, or leave the line out")
    if data.get("data", "continue") not in DATA:
        yield Problem("data", str(data["data"]), "continue or fresh", "continue is the default")
    if "defaults" in data:
        yield Problem("defaults", str(data["defaults"]), "overrides", "write out what the branch changes")


def _found(choice: str, config_dir: Path | None) -> Path:
    roots = [folder / "branch" for folder in (config_dir, shipped_conf()) if folder is not None]
    path = Path(choice).expanduser()
    if path.suffix in _SUFFIXES and path.is_file():
        return path
    for root in roots:
        for suffix in _SUFFIXES:
            file = root / f"{choice}{suffix}"
            if choice and file.is_file() and file.resolve().is_relative_to(root.resolve()):
                return file
    names = sorted({file.stem for root in roots for file in root.glob("*.y*ml")})
    raise RecipeError.single(
        "recipe branch",
        "branch",
        given=choice or "nothing",
        expected=f"one of {', '.join(names) or 'none'}, or a YAML file",
        fix=nearest(choice, names, "name one of these, or give --config-dir DIR with DIR/branch/NAME.yaml"),
    )


def _overrides(data: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """A mapping as overrides, a line for every value; ``+`` or ``~`` before a key goes to the front."""
    for key, value in data.items():
        path = (*above, str(key))
        marks = [part[0] for part in path if part[:1] in ("+", "~")]
        dotted = "".join(marks[:1]) + ".".join(part.lstrip("+~") for part in path)
        if "~" in marks and value is None:
            yield dotted
        elif isinstance(value, Mapping) and value and not marks:
            yield from _overrides(value, path)
        else:
            yield f"{dotted}={override_value(value)}"


def override_value(value: Any) -> str:
    """A plain value as the text behind ``=`` of an override, which reads back as the same value.

    >>> override_value({"a": "5%", "b": [1, True, None]})
    "{a:'5%',b:[1,true,null]}"
    """
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{override_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(override_value, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = re.sub(r"(\\*)'", r"\1\1\\'", value)
        text = re.sub(r"(\\+)$", r"\1\1", text)
        return f"'{text}'"
    return str(value)
