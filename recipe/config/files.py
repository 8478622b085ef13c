"""Token files that somebody else made: what a recipe may say of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from recipe.config.partial import Model, given_of, run_checks
from recipe.config.problems import Fault
from recipe.config.values import Amount, Text

if TYPE_CHECKING:
    from recipe.config.recipe import Recipe

TokenType = Literal["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32"]
Delimiter = Literal["eos", "bos", "row", "file"]
Empty = Literal["error", "skip"]

READ_KEYS = ("eos", "bos", "dtype", "column", "documents", "boundaries")
"""Keys of a pool that decide which documents its files hold, and their marks."""
FILE_KEYS = ("dtype", "column", "documents", "boundaries", "empty")
"""Keys of a pool that say what its files do not."""


class FilesConfig(Model):
    """Where a pool is; of token files made elsewhere also what they do not say themselves."""

    path: str | None = None
    """Its folder, here or as a URL in a store; or token files made elsewhere: a folder, file, prefix or
    pattern. Relative to ``pools_root``, which may be a URL too."""
    eos: Amount | None = None
    """Id that ends a document, for files made elsewhere that do not say it."""
    bos: Amount | None = None
    """Id that starts a document, for files made elsewhere that do not say it."""
    dtype: TokenType | None = None
    """Type of the tokens in files made elsewhere that do not say it: raw files, columns of bytes."""
    column: Text | None = None
    """Column with the token ids, in tables and MDS samples made elsewhere that have several."""
    documents: Delimiter | None = None
    """What is a document in files made elsewhere: what ends with ``eos``, what begins with ``bos``, a ``row``
    (of tables and samples; their default), or the ``file``. Raw tokens: default ``eos``, looked for once."""
    boundaries: Text | None = None
    """Ending of the files beside raw token files that list where documents end, such as ``.csv.gz``: nothing
    is looked for then."""
    empty: Empty | None = None
    """Files made elsewhere without a token: ``error`` (default), or ``skip`` to leave them out."""


def file_faults(recipe: Recipe) -> Iterator[Fault]:
    """Words for files that contradict each other, of pools that are trained on or held out."""
    pools: list[tuple[tuple[str, ...], FilesConfig]] = [
        (("pools", name), pool) for name, pool in recipe.pools.items()
    ]
    if recipe.evaluation is not None:
        held = recipe.evaluation.pools
        pools += [(("evaluation", "pools", area), pool) for area, pool in held.items()]
    for place, pool in pools:
        for fault in run_checks([_has_files, _delimited_once, _knows_its_mark], pool):
            yield fault.below(place)


def _has_files(pool: FilesConfig) -> Iterator[Fault]:
    if any(given_of(pool, (key,)) for key in ("path", "of") if key in type(pool).model_fields):
        return  # of: has a message of its own
    for key in given_of(pool, FILE_KEYS):
        yield Fault((key,), getattr(pool, key), f"{key} beside a path", "add the path, or leave it out")


def _delimited_once(pool: FilesConfig) -> Iterator[Fault]:
    if given_of(pool, ("documents",)) and given_of(pool, ("boundaries",)):
        fix = "leave one out: the list says where documents end"
        yield Fault(("documents",), pool.documents, "documents or boundaries", fix)


def _knows_its_mark(pool: FilesConfig) -> Iterator[Fault]:
    for mark in ("eos", "bos"):
        if pool.documents == mark and not given_of(pool, (mark,)):
            yield Fault(("documents",), mark, f"the id of {mark}", f"write {mark}: ID beside it")
