"""What steps are served under between two turns of a run: recipe, pools, withdrawn documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recipe.audit.account import Plain
from recipe.audit.intent import Intent
from recipe.audit.state import Malformed, mapping, whole
from recipe.sequences.withdrawn import Withdrawn

HOLDING = ("path", "fingerprint", "tokenizer", "stock", "documents")
"""What rows and manifests know of a pool."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A turn gives new ones; a rewind brings back those of an earlier turn."""

    intent: Intent
    holdings: Mapping[str, Plain] = field(default_factory=dict)
    """The pools as rows state them."""
    withdrawn: Mapping[str, Withdrawn] = field(default_factory=dict)
    """By pool; pools of which nothing was withdrawn are left out."""
    withdrawals: int = 0
    is_known: bool = True
    """Whether this is the recipe in force; else its file is lost, and this is the one before."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the pools."""
        return self.intent.names


def holding(pools: Mapping[str, Any], name: str) -> Plain:
    """What a row says of a pool that it brings.

    Raises:
        Malformed: it says not enough to know the pool by.
    """
    stated = mapping(pools.get(name), f"pools.{name}")
    for key in ("path", "fingerprint"):
        if not isinstance(stated.get(key), str):
            raise Malformed(f"pools.{name}.{key}", "a text", stated.get(key))
    for key in ("stock", "documents"):
        whole(stated.get(key), f"pools.{name}.{key}")
    return {key: stated.get(key) for key in HOLDING}
