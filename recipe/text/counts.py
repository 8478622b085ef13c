"""What was read, and how much of it each pool of a preparation holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recipe.pools.reasons import DUPLICATE, EMPTY, OTHER_SPLIT, added
from recipe.pools.splits import SPLIT
from recipe.text.documents import Tally
from recipe.text.duplicates import AS_DUPLICATE, AS_OTHER_SPLIT, Placed, Rule
from recipe.text.targets import Target


@dataclass(frozen=True, slots=True)
class Counted:
    """What was read, and where it goes."""

    tally: Tally
    placed: Placed | None

    def split_of(self, rule: Rule, target: Target) -> dict[str, Any]:
        """What the card says of the split that the pool is."""
        if rule.split is None or self.placed is None:
            return {}
        documents = {name: self.placed.count(index) for index, name in enumerate(rule.split.names)}
        return {SPLIT: {**target.settings[SPLIT], "documents": documents}}

    def dropped(self, target: Target) -> dict[str, int]:
        """Records left out, by reason, of the pool that is extended too; of a split, what would be in it."""
        tally, placed, found = self.tally, self.placed, dict[str, int]()
        if tally.other_split is None:
            found = {EMPTY: tally.empty, **dict(sorted(tally.quarantined.items()))}
        if placed is not None:
            found[DUPLICATE] = placed.count(target.split, AS_DUPLICATE)
            found[OTHER_SPLIT] = placed.count(target.split, AS_OTHER_SPLIT)
        found = {reason: count for reason, count in found.items() if count}
        before = {} if target.extends is None else target.extends.card.dropped
        return added(before, found)
