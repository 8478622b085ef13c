"""Documents of a pool drawn by chance, as text that a terminal can show."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.pool import Pool
from recipe.text.spelling import spelled

if TYPE_CHECKING:
    from recipe.text.tokenizers import Tokenizer

SHOWN_TOKENS = 200
"""Of a sample, unless somebody says otherwise."""
_CHARACTER = 4
"""Tokens of a character, at most."""
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def samples_of(
    pool: Pool, count: int, seed: int, tokenizer: Tokenizer | None, most: int = SHOWN_TOKENS
) -> list[dict[str, Any]]:
    """``count`` documents drawn evenly, as their rows and the text that their first ``most`` tokens spell.

    Without a tokenizer the ids stand in place of the text. Another seed draws other documents.
    """
    rows = []
    for number in _drawn(pool, count, seed):
        body = pool.tokens(number)
        [row] = pool.rows([number])
        if tokenizer is not None:
            spelled(pool, tokenizer, number, body[: most + _CHARACTER])  # what is not its own is told here
        first = body[: _whole(body, most, tokenizer)]
        rows.append(
            {
                "document": number,
                "id": row.id,
                "group": row.group,
                "tags": dict(row.tags),
                "source": row.source,
                "tokens": len(body),
                "shown": len(first),
                "text": None if tokenizer is None else tokenizer.decode(first),
                "ids": first.tolist() if tokenizer is None else None,
            }
        )
    return rows


def _whole(body: NDArray[Any], most: int, tokenizer: Tokenizer | None) -> int:
    """``most``, or a few tokens more that end a character."""
    if tokenizer is not None:
        for count in range(most, min(most + _CHARACTER, len(body))):
            if not tokenizer.decode(body[:count]).endswith("\ufffd"):
                return count
    return most


def visible(text: str) -> str:
    """A text in which nothing moves a cursor, hides or reorders: such characters are named.

    >>> visible("a\\x1b[31m b\\u202e\\n\\tc")
    'a⟨U+001B⟩[31m b⟨U+202E⟩\\n\\tc'
    """
    return "".join(
        f"⟨U+{ord(sign):04X}⟩" if sign not in "\n\t" and unicodedata.category(sign) in _HIDDEN else sign
        for sign in text
    )


def _drawn(pool: Pool, count: int, seed: int) -> list[int]:
    """Different documents, each as likely as any other, in the order they were drawn."""
    members = _members(pool)
    found: dict[int, None] = {}
    draw = 0
    while len(found) < min(count, len(members)):
        digest = blake2b(f"sample {seed} {draw}".encode(), digest_size=8).digest()
        found[int(members[int.from_bytes(digest) * len(members) >> 64])] = None
        draw += 1
    return list(found)


def _members(pool: Pool) -> range | NDArray[np.int64]:
    """The numbers of its documents, but for those that were erased."""
    if pool.members is None and not len(pool.erased):
        return range(pool.num_numbers)
    numbers = np.delete(np.arange(pool.num_numbers), pool.erased)
    return numbers[pool.holds(numbers)]
