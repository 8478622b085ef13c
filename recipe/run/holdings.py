"""The pools of a run: where they lie, and that they are the ones the run was started with.

A pool's identity is its name and fingerprint. Its path is only where it was found last; it may be
moved, and be looked for below another ``pools_root``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.pools import Pool, open_pool
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
    without = [name for name, pool in recipe.pools.items() if pool.path is None]
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
        return {name: Path(holding.path) for name, holding in holdings.items()}
    root = pools_root.absolute()
    paths = {name: Path(pool.path or name) for name, pool in recipe.pools.items()}
    return {name: root / (path.name if path.is_absolute() else path) for name, path in paths.items()}


def open_pools(recipe: Recipe, paths: Mapping[str, Path]) -> dict[str, Pool]:
    """Every pool of the recipe, opened at its path.

    Raises:
        RecipeError: with the problems of all pools.
    """
    pools: dict[str, Pool] = {}
    problems: list[Problem] = []
    for name, pool in recipe.pools.items():
        try:
            pools[name] = open_pool(paths[name], name, eos=pool.eos, bos=pool.bos)
        except RecipeError as error:
            problems.extend(
                replace(problem, where=f"pools.{name}: {problem.where}") for problem in error.problems
            )
    if problems:
        close_pools(pools.values())
        raise RecipeError("pools that cannot be opened", problems)
    return pools


def close_pools(pools: Iterable[Pool]) -> None:
    """Let go of what they mapped."""
    for pool in pools:
        pool.close()


def check_pools(recipe: Recipe, pools: Mapping[str, Pool]) -> list[Problem]:
    """What forbids to train on these pools together: tokenizers that differ, ids the model has no row for."""
    problems = []
    made_by = {name: pool.card.tokenizer for name, pool in pools.items() if pool.card.tokenizer is not None}
    if len(set(made_by.values())) > 1:
        first = next(iter(made_by))
        problems += [
            Problem(
                f"pools.{name}",
                f"tokenizer {tokenizer}",
                f"tokenizer {made_by[first]}, as pool {first}",
                "prepare all pools with one tokenizer: ids of different tokenizers never mix",
            )
            for name, tokenizer in made_by.items()
            if tokenizer != made_by[first]
        ]
    limit = recipe.model.vocab_size if recipe.model is not None else None
    if limit is not None:
        problems += [problem for pool in pools.values() for problem in pool.check_ids(limit)]
    return problems


def changed(holdings: Holdings, pools: Mapping[str, Pool]) -> dict[str, tuple[str, str]]:
    """Pools that are not the ones of the run: fingerprint then, fingerprint now."""
    pairs = {name: (holdings[name].fingerprint, pool.fingerprint) for name, pool in pools.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def refuse_changed(differing: Mapping[str, tuple[str, str]], *, fix: str) -> None:
    """Raise RecipeError naming both fingerprints of every pool that changed, if one did."""
    if differing:
        problems = [
            Problem(f"pools.{name}", f"fingerprint {now}", f"fingerprint {then}, as in the run's record", fix)
            for name, (then, now) in differing.items()
        ]
        raise RecipeError("the data changed since the run was started", problems)
