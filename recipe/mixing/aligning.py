"""What alignment has to know of a recipe's pools: what their tokens spell, and whether they have sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path

from recipe.config import Recipe
from recipe.config.drawing import drawing_stages
from recipe.errors import Problem, RecipeError
from recipe.pools import Pool
from recipe.sequences.boundaries import edge_table
from recipe.sequences.duplicates import known_repeats
from recipe.sequences.near_cuts import edges_of
from recipe.sequences.spelling import Edges


def give_edges(recipe: Recipe, pool: Pool, spec: str | None = None) -> None:
    """Let a pool say where its texts may be cut; its tokenizer is loaded when it is asked.

    Args:
        recipe: whose tokenizer it is.
        pool: that is told.
        spec: the tokenizer, where it is not where the recipe says.
    """
    declared = recipe.tokenizer
    named = None if declared is None else declared.builtin or declared.path
    pool.edges = partial(text_edges, spec or named, pool)


def reads_text(recipe: Recipe, name: str) -> bool:
    """Whether blocks of a pool are planned from its tokens: where cuts are aligned at texts."""
    rules = (recipe.rule(stage.name, name) for stage in drawing_stages(recipe, name))
    return any(rule.align not in ("none", "section") for rule in rules)


def text_edges(spec: str | None, pool: Pool) -> Edges:
    """The table of a pool's tokenizer.

    Args:
        spec: the recipe's tokenizer; None: the one that needs no files, if it made the pool.
        pool: whose tokens.

    Raises:
        RecipeError: there is no tokenizer, or it is not the pool's.
    """
    made_by = pool.card.tokenizer
    edges, fingerprint = _table(spec or "bytes", None if spec in (None, "bytes") else pool.eos)
    if fingerprint == made_by or (spec is not None and made_by is None):
        return edges
    raise RecipeError.single(
        f"pool {pool.name}",
        "tokenizer",
        given="nothing" if spec is None else f"{spec}: tokenizer {fingerprint}",
        expected=f"{made_by or 'the one, which it does not say,'} that made the pool: its cuts are aligned",
        fix="write tokenizer: {path: FOLDER}, or leave out align",
    )


@cache
def _table(spec: str, eos: int | None) -> tuple[Edges, str]:
    # compiled libraries, which only cuts aligned at texts have a use for
    from recipe.text.tokenizers import load_tokenizer
    from recipe.text.vocabulary import token_bytes

    tokenizer = load_tokenizer(spec if spec == "bytes" else Path(spec).expanduser(), eos=eos)
    return edge_table(token_bytes(tokenizer)), tokenizer.fingerprint()


def slicing_problems(recipe: Recipe, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """Pools that lack what their slicing needs: places to cut at, what repeats, ids of marks."""
    for name, pool in pools.items():
        rules = [recipe.rule(stage.name, name) for stage in drawing_stages(recipe, name)]
        for rule in {rule.align: rule for rule in rules if rule.align != "none"}.values():
            give_edges(recipe, pool)
            try:
                edges_of(pool, rule)
            except RecipeError as error:
                yield from error.problems
        if any(rule.duplicates is not None for rule in rules):
            try:
                known_repeats(pool)
            except RecipeError as error:
                yield from error.problems
        lacking = [mark for mark, id in (("bos", pool.bos), ("eos", pool.eos)) if id is None]
        if lacking and any(rule.specials == "window" for rule in rules):
            fix = "prepare the pool with both marks, or use specials: document"
            expected = "ids of BOS and EOS: they stand round every window (specials: window)"
            yield Problem(f"pools.{name}", f"no {' and no '.join(lacking)}", expected, fix)
