"""Megatron blends: weights and prefixes read into token shares."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePosixPath

from recipe.config.problems import shown
from recipe.errors import Problem, RecipeError
from recipe.maths.shares import parse_weight

_FORMS = "'weight prefix weight prefix …' or 'prefix prefix …'"
_SUFFIXES = ("_text_document", "_text_sentence", "_document")
_ENDINGS = (".bin", ".idx")


@dataclass(frozen=True, slots=True)
class Blend:
    """What a blend says: data sets by name, and their weights if it has any."""

    prefixes: dict[str, str]
    """Prefix of the ``.bin``/``.idx`` pair by pool name, in the order of the blend."""
    weights: dict[str, Fraction] | None
    """Samples in proportion to these; None takes everything there is, in proportion to size."""
    repeated: tuple[str, ...] = ()
    """Pools whose prefix the blend names more than once; their weights were added."""
    other_splits: tuple[str, ...] = ()
    """Splits of their own blend beside ``train``: not part of the recipe."""


def read_blend(text: str, title: str) -> Blend:
    """The blend of a file: what would follow ``--data-path``, or the JSON of ``--per-split-data-args-path``.

    Line ends, ``\\``, quotes, ``#`` comments and the words ``--data-path`` are passed over.

    Raises:
        RecipeError: neither form; with every problem.

    >>> read_blend("30 data/web_text_document 70 data/code_text_document", "blend.txt").weights
    {'web': Fraction(30, 1), 'code': Fraction(70, 1)}
    """
    words, other_splits = _words(text, title)
    if not words:
        raise RecipeError.single(
            title, title, given="nothing", expected=_FORMS, fix="write weights and prefixes"
        )
    pairs = _pairs(words, title)
    prefixes = list(dict.fromkeys(prefix for _, prefix in pairs))
    names = dict(zip(prefixes, names_of(prefixes), strict=True))
    repeated = [names[prefix] for prefix in prefixes if sum(other == prefix for _, other in pairs) > 1]
    weights = _weights(pairs, names, title)
    by_name = {name: prefix for prefix, name in names.items()}
    return Blend(by_name, weights, tuple(repeated), other_splits)


def _words(text: str, title: str) -> tuple[list[str], tuple[str, ...]]:
    """The blend as words, and the names of splits that have their own."""
    if text.lstrip().startswith("{"):
        return _json_words(text, title)
    text = re.sub(r"\\\s*\n", "\n", text)
    text = re.sub(r"--(?:train-)?data-path[\s=]", " ", text)
    text = re.sub(r"(?m)^\s*(?:export\s+)?\w+=\(?(?=[\"'\s\d/.])", " ", text)
    try:
        words = shlex.split(text.replace("(", " ").replace(")", " "), comments=True)
    except ValueError as error:
        fix = f"{error}: close the quotes"
        raise RecipeError.single(title, title, given=shown(text), expected=_FORMS, fix=fix) from None
    return [word for part in words for word in part.split()], ()


def _json_words(text: str, title: str) -> tuple[list[str], tuple[str, ...]]:
    expected = 'JSON such as {"train": ["30", "web", "70", "code"], "valid": [...]}'
    try:
        splits = json.loads(text)
    except ValueError as error:
        raise RecipeError.single(
            title, title, given=shown(str(error)), expected=expected, fix="correct it"
        ) from None
    train = splits.get("train")
    if isinstance(train, str):
        train = train.split()
    if not isinstance(train, list):
        given = f"keys {', '.join(splits)}"
        raise RecipeError.single(title, "train", given=given, expected=expected, fix="add a blend for train")
    return [str(word) for word in train], tuple(name for name in splits if name != "train" and splits[name])


def _pairs(words: Sequence[str], title: str) -> list[tuple[Fraction | None, str]]:
    """Weights and prefixes; an odd number of words, or no number among the first, means prefixes alone."""
    numbers = [_number(word) for word in words]
    alone: list[tuple[Fraction | None, str]] = [(None, word.strip()) for word in words]
    if not any(number is not None for number in numbers):
        return alone
    problems = []
    if len(words) % 2:
        given = f"{len(words)} words, of which {sum(number is not None for number in numbers)} are numbers"
        problems.append(
            Problem(title, given, "a weight before every prefix", "add the weight or prefix that is missing")
        )
    for index, (word, number) in enumerate(zip(words, numbers, strict=True)):
        is_weight = index % 2 == 0
        if (number is not None) != is_weight and not problems:
            kind = "a weight" if is_weight else "a prefix"
            problems.append(Problem(f"word {index + 1}", word, kind, "write weight and prefix in turn"))
    if problems:
        raise RecipeError(title, problems)
    return list(zip(numbers[::2], words[1::2], strict=True))


def _number(word: str) -> Fraction | None:
    try:
        return parse_weight(word)
    except ValueError:
        return None


def _weights(
    pairs: Sequence[tuple[Fraction | None, str]], names: Mapping[str, str], title: str
) -> dict[str, Fraction] | None:
    if pairs[0][0] is None:
        return None
    weights = dict.fromkeys(names.values(), Fraction(0))
    problems = []
    for weight, prefix in pairs:
        assert weight is not None, "weights and prefixes come in pairs"
        weights[names[prefix]] += weight
        if weight < 0:
            problems.append(Problem(prefix, float(weight), "a weight of 0 or more", "correct the weight"))
    if not problems and not any(weights.values()):
        problems.append(Problem(title, "weights that are all 0", "one weight above 0", "correct the weights"))
    if problems:
        raise RecipeError(title, problems)
    return weights


def names_of(prefixes: Sequence[str]) -> list[str]:
    """A short name for each prefix, all different: its last part, with folders before it where needed.

    >>> names_of(["data/web/part0_text_document", "data/code/part0_text_document", "data/zh.v2"])
    ['web_part0', 'code_part0', 'zh_v2']
    """
    parts = [_parts(prefix) for prefix in prefixes]
    depths = [1] * len(parts)
    while True:
        names = ["_".join(part[-depth:]) for part, depth in zip(parts, depths, strict=True)]
        clashing = [index for index, name in enumerate(names) if names.count(name) > 1]
        deeper = [index for index in clashing if depths[index] < len(parts[index])]
        if not deeper:
            break
        for index in deeper:
            depths[index] += 1
    return [name if names.count(name) == 1 else f"{name}_{index + 1}" for index, name in enumerate(names)]


def _parts(prefix: str) -> list[str]:
    path = PurePosixPath(prefix)
    last = path.name
    for ending in (*_ENDINGS, *_SUFFIXES):
        last = last.removesuffix(ending) or last
    words = [re.sub(r"[^\w-]+", "_", part).strip("_-") for part in (*path.parts[:-1], last)]
    return [word for word in words if word] or ["pool"]
