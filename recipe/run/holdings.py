"""The pools of a run: where they lie, and that they are the ones the run was started with.

A pool's identity is its name and fingerprint. Its path is only where it was found last; it may be
moved, and be looked for below another ``pools_root``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from recipe.config import Recipe
from recipe.config.places import place
from recipe.errors import Problem, RecipeError
from recipe.pools import Pool
from recipe.run.canonical import Plain


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """A pool as a run knows it."""

    path: str
    fingerprint: str
    tokenizer: str | None = None
    """Content fingerprint of the tokenizer."""
    stock: int = 0
    """Body tokens."""
    documents: int = 0

    def to_plain(self) -> Plain:
        """As rows and manifests hold it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> Holding:
        """From what :meth:`to_plain` gave, with or without further keys."""
        return cls(**{name: plain[name] for name in cls.__slots__ if name in plain})  # type: ignore[arg-type]

    @classmethod
    def of(cls, pool: Pool) -> Holding:
        """What an open pool says of itself."""
        return cls(
            path=str(pool.path.absolute()),
            fingerprint=pool.fingerprint,
            tokenizer=pool.card.tokenizer,
            stock=pool.stock,
            documents=pool.num_documents,
        )


Holdings = dict[str, Holding]


def declared_paths(recipe: Recipe) -> dict[str, Path]:
    """Where the recipe says its pools are, from the root of the file system.

    Raises:
        RecipeError: a pool has only a stock.
    """
    without = [name for name in recipe.pools if recipe.folder(name) is None]
    if without:
        fix = "give it a path; a stock alone is enough for `recipe plan` only"
        raise RecipeError(
            "no data to run on",
            [Problem(f"pools.{name}.path", "no path", "the folder of the pool", fix) for name in without],
        )
    return {name: recipe.pool_path(name).absolute() for name in recipe.pools}


def known_paths(recipe: Recipe, holdings: Holdings, pools_root: Path | None) -> dict[str, Path]:
    """Where the pools of a run are now: where they were, or below another root.

    Below ``pools_root`` a pool that the recipe names by a relative path is looked for at that
    path, one with an absolute path by its last component.
    """
    if pools_root is None:
        return {name: place(holding.path) for name, holding in holdings.items()}
    root = place(pools_root).absolute()
    paths = {name: place(recipe.folder(name) or name) for name in recipe.pools}
    return {name: root / (path.name if path.is_absolute() else path) for name, path in paths.items()}


def tokenizers(holdings: Holdings) -> frozenset[str]:
    """Fingerprints of the tokenizers that pools were made with, as far as they say."""
    return frozenset(held.tokenizer for held in holdings.values() if held.tokenizer is not None)


def changed(holdings: Holdings, pools: Mapping[str, Pool]) -> dict[str, tuple[str, str]]:
    """Pools that are not the ones of the run: fingerprint then, fingerprint now."""
    pairs = {name: (holdings[name].fingerprint, pool.fingerprint) for name, pool in pools.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def refuse_retokenised(holdings: Holdings, pools: Mapping[str, Pool], run: str) -> None:
    """Raise RecipeError naming pools that are made with another tokenizer now; nothing makes up for that.

    What a run read so far was counted, and its weights were trained, in ids of the old one.
    """
    fix = (
        f"put that pool back; to go on with the others, branch with all of it read anew (recipe branch {run} "
        "--data fresh …), or start a run from the weights (start:); ids of two tokenizers never mix"
    )
    problems = []
    for name, pool in pools.items():
        was, becomes = holdings[name].tokenizer if name in holdings else None, pool.card.tokenizer
        if None not in (was, becomes) and was != becomes:
            expected = f"tokenizer {was}, as the pool that the run read"
            problems.append(Problem(f"pools.{name}", f"tokenizer {becomes}", expected, fix))
    if problems:
        raise RecipeError(f"{run}: pools made with another tokenizer", problems)


def refuse_changed(differing: Mapping[str, tuple[str, str]], *, fix: str) -> None:
    """Raise RecipeError naming both fingerprints of every pool that changed, if one did."""
    if differing:
        problems = [
            Problem(f"pools.{name}", f"fingerprint {now}", f"fingerprint {then}, as in the run's record", fix)
            for name, (then, now) in differing.items()
        ]
        raise RecipeError("the data changed since the run was started", problems)
