"""The global document order: every unit's key is a hash of the seed and its own name."""

from __future__ import annotations

import json
from hashlib import blake2b

from recipe.text.documents import Document

#: A change of the keys bumps it.
SHUFFLE_VERSION = 1


def unit_key(seed: int, document: Document) -> tuple[int, int]:
    """128 bits by which units are sorted; documents of one group share theirs.

    The key is a function of the seed and of the group, or else the id, alone: with ids of their own,
    documents come in the same order however they are spread over files.

    >>> [one, two] = [Document(id=i, text="", source="a", group="g") for i in (1, 2)]
    >>> unit_key(0, one) == unit_key(0, two) != unit_key(1, one)
    True
    """
    unit = ["document", document.id] if document.group is None else ["group", document.group]
    name = json.dumps(["recipe.prepare", SHUFFLE_VERSION, seed, *unit], ensure_ascii=False)
    digest = blake2b(name.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
