"""Part 1: the tokenizer that made the pools: its files where they are at hand, and its fingerprint."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.handover.staging import Staging, sha256_of
from recipe.text.tokenizers import SPECIALS, Tokenizer, load_tokenizer, tokenizer_path

FORMAT = 1
FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "tiktoken.model",
    "spiece.model",
    "chat_template.jinja",
)
"""Files of a tokenizer's folder; nothing else in it is copied."""


def tokenizer_spec(recipe: Recipe, given: str | Path | None) -> str | None:
    """What loads the tokenizer: as asked, or as the recipe says; None where neither does."""
    if given is not None:
        return str(given)
    declared = recipe.tokenizer
    return None if declared is None else (declared.builtin or declared.path)


def is_built_in(marks: Collection[str | None]) -> bool:
    """Whether pools with these fingerprints were all made with the tokenizer that needs no files."""
    return set(marks) == {load_tokenizer("bytes").fingerprint()}


def put_tokenizer(
    staging: Staging, folder: str, recipe: Recipe, pools: Mapping[str, Pool], given: str | Path | None
) -> Plain:
    """Copy the files and say whose they are.

    Raises:
        RecipeError: the tokenizer that was asked for is not there, or is not the pools'.
    """
    spec = tokenizer_spec(recipe, given)
    marks = {name: pool.card.tokenizer for name, pool in pools.items()}
    plain: Plain = {
        "format": FORMAT,
        "fingerprint": next((mark for mark in marks.values() if mark is not None), None),
        "name": next((pool.card.tokenizer_name for pool in pools.values() if pool.card.tokenizer_name), None),
        "pools": marks,
        "kind": None,
        "files": {},
        "library": {"tokenizers": version("tokenizers")},
    }
    if spec is None and is_built_in(marks.values()):
        spec = "bytes"
    if spec is None or (given is None and spec != "bytes" and not tokenizer_path(spec).expanduser().exists()):
        return {**plain, "note": "no files: the recipe names none, or they are not on the machine"}
    tokenizer = _checked(spec, pools, marks)
    plain |= {"vocab_size": tokenizer.vocab_size, "eos": tokenizer.eos}
    if spec == "bytes":
        return {**plain, "kind": "bytes", "note": "built in: ids 0..255 are UTF-8 bytes, 256 ends a document"}
    for path in _files(tokenizer_path(spec).expanduser(), tokenizer):
        staging.copy(f"{folder}/{path.name}", path.resolve())
        plain["files"][path.name] = sha256_of(path)
    asked = {"special_tokens": "ids"} if spec.endswith(SPECIALS) else {}
    return {**plain, "kind": tokenizer.kind, **asked}


def _checked(spec: str, pools: Mapping[str, Pool], marks: Mapping[str, str | None]) -> Tokenizer:
    """The tokenizer, if it is the one of every pool that says which it has."""
    ends = sorted(
        {pool.eos for name, pool in pools.items() if marks[name] is not None and pool.eos is not None}
    )
    place = spec if spec == "bytes" else Path(spec).expanduser()
    tokenizer = load_tokenizer(place, eos=ends[0] if ends and spec != "bytes" else None)
    found = tokenizer.fingerprint()
    problems = [
        Problem(
            f"pools.{name}",
            f"tokenizer {mark}",
            f"tokenizer {found}, which is {Path(spec).name}",
            "name the tokenizer that the pools were prepared with (--with-tokenizer)",
        )
        for name, mark in marks.items()
        if mark is not None and mark != found
    ]
    if problems:
        raise RecipeError("not the tokenizer of the pools", problems)
    return tokenizer


def _files(place: Path, tokenizer: Tokenizer) -> list[Path]:
    """What it was read from, the file to name first, and what else of the kind is beside it."""
    read = list(tokenizer.files)
    alone = not place.is_dir() and place.name != "tokenizer.json"
    beside = [] if alone else [read[0].with_name(name) for name in FILES]
    return list(dict.fromkeys([*read, *(path for path in beside if path.is_file())]))
