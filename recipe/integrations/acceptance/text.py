"""Whole documents as text: what was put together from pieces must decode, and encode to itself again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from recipe.audit.findings import Finding
from recipe.audit.verify import Check, Readings, claim, open_claim
from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.text.tokenizers import Tokenizer, load_tokenizer


def check_text(
    readings: Readings, recipe: Recipe, pools: Mapping[str, Pool], given: str | Path | None
) -> Check:
    """Every document that was seen whole decodes, and its text gives the same ids again (B7).

    Raises:
        RecipeError: the tokenizer that was asked for is not there, or is not the one of any pool.
    """
    spec = given if given is not None else _declared(recipe)
    if spec is None:
        return open_claim("text", "no tokenizer is known: name one with --tokenizer")
    if given is None and spec != "bytes" and not Path(spec).expanduser().exists():
        return open_claim("text", f"the recipe's tokenizer is not here: {Path(spec).name}")
    known = {name: pool for name, pool in pools.items() if pool.card.tokenizer is not None}
    tokenizer = _loaded(spec, known)
    mark = tokenizer.fingerprint()
    fitting = {name for name, pool in known.items() if pool.card.tokenizer == mark}
    if given is not None and known and not fitting:
        raise _another(spec, mark, known)
    return _compared(readings, tokenizer, fitting)


def _declared(recipe: Recipe) -> str | None:
    return None if recipe.tokenizer is None else recipe.tokenizer.builtin or recipe.tokenizer.path


def _loaded(spec: str | Path, pools: Mapping[str, Pool]) -> Tokenizer:
    if str(spec) == "bytes":
        return load_tokenizer("bytes")
    ends = {pool.eos for pool in pools.values() if pool.eos is not None}
    return load_tokenizer(Path(spec).expanduser(), eos=min(ends, default=None))


def _another(spec: str | Path, mark: str, pools: Mapping[str, Pool]) -> RecipeError:
    marks = sorted({str(pool.card.tokenizer) for pool in pools.values()})
    return RecipeError.single(
        "another tokenizer than the pools'",
        "--tokenizer",
        given=f"{spec}, fingerprint {mark}",
        expected=f"fingerprint {', '.join(marks)}",
        fix="name the tokenizer that the pools were prepared with",
    )


def _compared(readings: Readings, tokenizer: Tokenizer, fitting: set[str]) -> Check:
    findings, same, other, pieces = list[Finding](), 0, 0, 0
    for key, joined in readings.joined().items():
        pool, _, document = key
        if pool not in fitting:
            continue
        for held in readings.pieces(key):
            tokenizer.decode(held.ids)
            pieces += 1
        text = tokenizer.decode(joined.tokens)
        [again] = tokenizer.encode_batch([text])
        if again.tolist() == joined.tokens.tolist():
            same += 1
            continue
        other += 1
        if tokenizer.name == "bytes":
            place = f"pool {pool}, document {document!r}"
            findings.append(Finding("text", place, "bytes of whole characters", f"{text[:40]!r}"))
    if not same + other:
        return open_claim(
            "text", f"no whole document of a pool whose card names the tokenizer {tokenizer.name}"
        )
    said = f"{pieces:,} pieces and {same + other:,} whole documents decode ({tokenizer.name})"
    if not other:
        return claim("text", f"{said}; each text gives the same ids again")
    said += f"; {same:,} texts give the same ids again, {other:,} do not: the tokenizer normalises them"
    return claim("text", said, findings) if findings else Check("text", None, said)
