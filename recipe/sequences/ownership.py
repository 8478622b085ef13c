"""Which documents of a block are somebody else's: several pools may read one folder in the same stage.

A rule names the pools that come before (``behind``). Their documents are left out of a block when it is
opened, and of what is left of it when a rule that names others arranges it anew; their tokens are dropped as
``elsewhere``. They are looked up in the pools themselves: pools that share no document have no say.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.pools import Pool
from recipe.pools.views import shared_with


def owned_elsewhere(pool: Pool, rule: Rule, documents: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """bool[n]: the documents that a pool before this one holds; None where there can be none."""
    found = None
    for name in rule.behind:
        held = pool.before[name].holds(documents)
        found = held if found is None else found | held
    return found


def rule_for(pool: Pool, rule: Rule) -> Rule:
    """The rule with only those pools before this one that hold any document of it.

    Rules that differ in others arrange every block alike.
    """
    if not rule.behind:
        return rule
    return replace(rule, behind=tuple(name for name in rule.behind if _shares(pool, name)))


def _shares(pool: Pool, name: str) -> bool:
    known = pool.shares.get(name)
    if known is None:
        known = pool.shares[name] = shared_with(pool, pool.before[name])
    return known
