"""Whole documents as text: what was put together from pieces must decode to the text it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recipe.audit.verify import Check, Key, Readings, claim, open_claim
from recipe.errors import RecipeError
from recipe.pools import Finding
from recipe.run.tracing.courses import Course
from recipe.run.tracing.sources import Sources
from recipe.run.tracing.tokenizers import tokenizers
from recipe.text.tokenizers import Tokenizer


@dataclass(slots=True)
class _Tally:
    """Whole documents by what became of their texts."""

    pieces: int = 0
    exact: int = 0
    """The source's text came back."""
    normalised: int = 0
    """The tokenizer's own normalisation of the source's text did."""
    again: int = 0
    """The source is not here; the text gives the same ids again."""
    unclear: int = 0
    """The source is not here, and the text gives other ids: the tokenizer forgets something."""
    names: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)

    @property
    def documents(self) -> int:
        """All of them."""
        return self.exact + self.normalised + self.again + self.unclear + len(self.findings)


def check_text(
    readings: Readings, course: Course, given: str | Path | None, roots: Sequence[str | Path]
) -> Check:
    """Every piece decodes; whole documents give the source's text, or the tokenizer's normalisation (B7).

    Raises:
        RecipeError: the tokenizer that was asked for is not there, or is not the one of any pool.
    """
    tokenizer_of = tokenizers(course.stream.recipe, None if given is None else str(given))
    known = {name: tokenizer_of(pool) for name, pool in course.pools.items()}
    if given is not None and not any(known.values()):
        raise _another(given, course)
    tally, sources = _Tally(), Sources(tokenizer_of, roots)
    for key, joined in readings.joined().items():
        tokenizer = known.get(key[0])
        if tokenizer is not None:
            for held in readings.pieces(key):
                tokenizer.decode(held.ids)
                tally.pieces += 1
            tally.names.add(tokenizer.name)
            _compare(tally, tokenizer, key, joined.tokens.tolist(), _source(sources, course, key))
    return _said(tally, is_known=any(known.values()))


def _source(sources: Sources, course: Course, key: Key) -> str | None:
    """The text that a document was made from, where its file is here."""
    pool, _, document = key
    return sources.text(course.pools[pool], int(document))


def _compare(tally: _Tally, tokenizer: Tokenizer, key: Key, tokens: list[int], source: str | None) -> None:
    """Count one whole document."""
    text = tokenizer.decode(tokens)
    if source is None:
        [again] = tokenizer.encode_batch([text])
        same = again.tolist() == tokens
        tally.again, tally.unclear = tally.again + same, tally.unclear + (not same)
    elif text == source:
        tally.exact += 1
    elif text == tokenizer.normalise(source):
        tally.normalised += 1
    else:
        at = next((k for k, (a, b) in enumerate(zip(text, source, strict=False)) if a != b), len(text))
        place = f"pool {key[0]}, document {key[2]}: character {at}"
        tally.findings.append(Finding("text", place, repr(source[at : at + 40]), repr(text[at : at + 40])))


def _said(tally: _Tally, *, is_known: bool) -> Check:
    if not tally.documents:
        why = "no pool's tokenizer is here: name it with --tokenizer"
        if is_known:
            why = "no document was seen whole in the steps looked at: long ones, or ends come later"
        return open_claim("text", why)
    names = ", ".join(sorted(tally.names))
    said = f"{tally.pieces:,} pieces and {tally.documents:,} whole documents decode ({names})"
    parts = [
        (tally.exact, "are the text they were made from"),
        (tally.normalised, "are the tokenizer's own normalisation of the text they were made from"),
        (tally.again, "give the same ids again (their sources are not here)"),
        (tally.unclear, "give other ids, and their sources are not here to tell why"),
    ]
    said += ": " + ", ".join(f"{number:,} {what}" for number, what in parts if number)
    if tally.unclear and not tally.findings:
        return open_claim("text", said)
    return claim("text", said, tally.findings)


def _another(given: str | Path, course: Course) -> RecipeError:
    marks = sorted({str(pool.card.tokenizer) for pool in course.pools.values()})
    return RecipeError.single(
        "another tokenizer than the pools'",
        "--tokenizer",
        given=str(given),
        expected=f"the tokenizer with fingerprint {', '.join(marks)}",
        fix="name the tokenizer that the pools were prepared with",
    )
