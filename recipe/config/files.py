"""Token files that somebody else made: what a recipe may say of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from recipe.config.partial import given_of, run_checks
from recipe.config.problems import Fault

if TYPE_CHECKING:
    from recipe.config.model import PoolConfig
    from recipe.config.recipe import Recipe

TokenType = Literal["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32"]
Delimiter = Literal["eos", "bos", "row", "file"]
Empty = Literal["error", "skip"]

READ_KEYS = ("eos", "bos", "dtype", "column", "documents", "boundaries")
"""Keys of a pool that decide which documents its files hold, and their marks."""
FILE_KEYS = ("dtype", "column", "documents", "boundaries", "empty")
"""Keys of a pool that say what its files do not."""


def file_faults(recipe: Recipe) -> Iterator[Fault]:
    """Words for files that contradict each other."""
    for name, pool in recipe.pools.items():
        for fault in run_checks([_has_files, _delimited_once, _knows_its_mark], pool):
            yield fault.below(("pools", name))


def _has_files(pool: PoolConfig) -> Iterator[Fault]:
    if given_of(pool, ("path",)) or given_of(pool, ("of",)):  # of: has a message of its own
        return
    for key in given_of(pool, FILE_KEYS):
        yield Fault((key,), getattr(pool, key), f"{key} beside a path", "add the path, or leave it out")


def _delimited_once(pool: PoolConfig) -> Iterator[Fault]:
    if given_of(pool, ("documents",)) and given_of(pool, ("boundaries",)):
        fix = "leave one out: the list says where documents end"
        yield Fault(("documents",), pool.documents, "documents or boundaries", fix)


def _knows_its_mark(pool: PoolConfig) -> Iterator[Fault]:
    for mark in ("eos", "bos"):
        if pool.documents == mark and not given_of(pool, (mark,)):
            yield Fault(("documents",), mark, f"the id of {mark}", f"write {mark}: ID beside it")
