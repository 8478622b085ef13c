"""Where texts of a run's pools may be cut, told to the pools anew: from the tokenizer that the run names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

from recipe.config import Recipe
from recipe.config.drawing import drawing_stages
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.sequences.boundaries import edge_table
from recipe.sequences.near_cuts import edges_of
from recipe.sequences.spelling import Edges


def lacks_edges(pool: Pool, recipes: Iterable[Recipe], tokenizer: str | None = None) -> str | None:
    """Why a pool's cuts cannot be recomputed; None where they can, or nothing of it is aligned.

    Args:
        pool: that is told where its texts may be cut.
        recipes: of the run.
        tokenizer: where the tokenizer is here; default: where each recipe says.
    """
    for recipe in recipes:
        if pool.name not in recipe.pools:
            continue
        pool.edges = partial(_text_edges, recipe, pool, tokenizer)
        for rule in {recipe.rule(stage.name, pool.name) for stage in drawing_stages(recipe, pool.name)}:
            if rule.align == "none":
                continue
            try:
                edges_of(pool, rule)
            except RecipeError as error:
                return "; ".join(f"{problem.given}, not {problem.expected}" for problem in error.problems)
    return None


def _text_edges(recipe: Recipe, pool: Pool, tokenizer: str | None) -> Edges:
    declared, made_by = recipe.tokenizer, pool.card.tokenizer
    spec = tokenizer or (None if declared is None else declared.builtin or declared.path) or "bytes"
    edges, fingerprint = _table(spec, None if spec == "bytes" else pool.eos)
    if made_by not in (None, fingerprint):
        where, given = f"pool {pool.name}", f"tokenizer {fingerprint}"
        fix = "put the tokenizer back that made the pool"
        raise RecipeError.single(where, "tokenizer", given=given, expected=str(made_by), fix=fix)
    return edges


@cache
def _table(spec: str, eos: int | None) -> tuple[Edges, str]:
    from recipe.text.tokenizers import load_tokenizer  # only where cuts are aligned
    from recipe.text.vocabulary import token_bytes

    tokenizer = load_tokenizer(spec if spec == "bytes" else Path(spec).expanduser(), eos=eos)
    return edge_table(token_bytes(tokenizer)), tokenizer.fingerprint()
