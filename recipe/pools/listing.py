"""Every pool below a folder: what each says of itself, at the cost of its card."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.pools.card import CARD_NAME
from recipe.pools.opening import OWN_FILES, open_pool
from recipe.pools.pool import Pool

PARTIAL, PREPARING = ".partial", ".prepare"


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A pool in a list, or what stands where one could be."""

    name: str
    path: str
    own: bool
    """Has a card; else files made elsewhere, read as they are."""
    documents: int | None = None
    erased: int | None = None
    """Of the documents, those whose text was withdrawn and whose tokens are zeros."""
    units: int | None = None
    tokens: int | None = None
    """Body tokens."""
    special: int | None = None
    counted: str | None = None
    tokenizer: str | None = None
    """What it is called."""
    tokenizer_fingerprint: str | None = None
    vocab_size: int | None = None
    dtype: str | None = None
    parts: int | None = None
    bytes: int | None = None
    """Of all files in its folder."""
    shuffled: bool | None = None
    kind: str | None = None
    """As its card says of its source."""
    licence: str | None = None
    fingerprint: str | None = None
    problem: str | None = None
    """What is wrong with it, in a line; the other numbers are not known then."""

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def list_folder(root: Path) -> Iterator[Listed]:
    """The pools below a folder, and the folder itself if it is one, in the order of their paths.

    A folder with a card, or with token files of others, is one pool: nothing is looked for inside it. What
    was never finished, or lost its card, is listed with what is wrong. Links are followed, once.

    Raises:
        RecipeError: there is no such folder.
    """
    if not root.is_dir():
        raise RecipeError.single(
            "pools list", str(root), given="no such folder", expected="a folder that holds pools",
            fix="give the folder that pools are in, or a recipe; `recipe prepare` makes pools",
        )  # fmt: skip
    seen: set[Path] = set()
    for folder, inner, files in os.walk(root, followlinks=True):
        inner.sort()
        here = Path(folder)
        if (real := here.resolve()) in seen:  # a link back, or a second one to the same
            inner.clear()
            continue
        seen.add(real)
        if here.name.endswith(PREPARING) and here.name.startswith("."):
            inner.clear()
            yield unfinished(here, here.name[1 : -len(PREPARING)])
        elif here.name.endswith(PARTIAL):
            inner.clear()
            yield unfinished(here, here.name.removesuffix(PARTIAL))
        elif CARD_NAME in files or any(name in files for name in OWN_FILES) or _has_pairs(files):
            inner.clear()
            yield listed_at(here, here.name or str(here))


def _has_pairs(files: list[str]) -> bool:
    return any(name.endswith(".idx") for name in files)


def unfinished(path: Path, name: str) -> Listed:
    """A pool that is being made, or whose making was interrupted."""
    what = (
        "never finished, or being made now: the same `recipe prepare` goes on with it; where nobody wants "
        f"it any more, it can be removed: rm -r {shlex.quote(str(path))}"
    )
    return Listed(name=name, path=str(path), own=True, bytes=size_of(path), problem=what)


def listed_at(path: Path, name: str) -> Listed:
    """The pool at a path, or what is wrong with it."""
    try:
        with open_pool(path, name) as pool:
            return listed(pool)
    except RecipeError as error:
        return wrong(path, name, error)


def wrong(path: Path, name: str, error: RecipeError) -> Listed:
    """A pool that cannot be opened, and why."""
    first = error.problems[0]
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    told = f"{first.given}; expected {first.expected}{more}"
    if Path(first.where) != path:
        told = f"{Path(first.where).name}: {told}"
    own = (path / CARD_NAME).exists() or any((path / file).exists() for file in OWN_FILES)
    if own and not (path / CARD_NAME).exists():
        told += f"; to make its card again: recipe pools refingerprint {shlex.quote(str(path))} --write"
    return Listed(name=name, path=str(path), own=own, bytes=size_of(path), problem=told)


def listed(pool: Pool) -> Listed:
    """A pool that is open."""
    card, about = pool.card, pool.card.about or {}
    return Listed(
        name=pool.name,
        path=str(pool.path),
        own=pool.layout.table is not None,
        documents=card.num_documents,
        erased=int(pool.holds(pool.erased).sum()),
        units=card.num_units,
        tokens=card.body_tokens,
        special=card.special_tokens,
        counted=card.counted,
        tokenizer=card.tokenizer_name,
        tokenizer_fingerprint=card.tokenizer,
        vocab_size=card.vocab_size,
        dtype=card.token_dtype,
        parts=pool.num_parts,
        bytes=size_of(pool.path),
        shuffled=card.shuffled,
        kind=about.get("kind"),
        licence=about.get("licence"),
        fingerprint=pool.fingerprint,
    )


def size_of(path: Path) -> int | None:
    """Bytes of the files in a folder and below it; None where it is no folder, as a prefix of pairs."""
    if not path.is_dir():
        return None
    places = (Path(folder) / name for folder, _, names in os.walk(path) for name in names)
    return sum(place.stat().st_size for place in places if place.is_file())
