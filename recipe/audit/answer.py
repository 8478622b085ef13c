"""The answer of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from recipe.audit.budget import Budget
from recipe.audit.coverage import Coverage
from recipe.audit.limits import limits
from recipe.audit.pool_reading import PoolReading
from recipe.pools import Finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The result of an audit."""

    run: str
    """Path of the run."""
    findings: tuple[Finding, ...]
    tokens: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By pool: body, overlap, special, padding, labels of the rows that no rewind discarded."""
    drift: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By stage and pool: spent less owed, in counted tokens, at the row end where it is largest."""
    largest_drift: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)
    """By stage and pool: the largest distance from its share after any sequence that was computed again."""
    reading: Mapping[str, PoolReading] = field(default_factory=dict)
    """By pool: distinct documents, how often each was read, tokens covered, dropped and discarded."""
    budget: Budget = field(default_factory=lambda: Budget({}))
    """By stage: positions consumed and left."""
    checked: Coverage = field(default_factory=Coverage)

    @property
    def ok(self) -> bool:
        """Whether nothing was found in what could be looked at; ``checked.unchecked`` is the rest."""
        return not self.findings

    @property
    def cannot_prove(self) -> tuple[str, ...]:
        """What this audit cannot prove, in sentences."""
        return limits(self.checked)

    def to_plain(self) -> dict[str, Any]:
        """What ``recipe audit --json`` prints."""
        return {
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
            "tokens": {pool: dict(kinds) for pool, kinds in self.tokens.items()},
            "drift": {stage: dict(pools) for stage, pools in self.drift.items()},
            "budget": self.budget.to_plain(),
            "reading": {pool: reading.to_plain() for pool, reading in self.reading.items()},
            "checked": self.checked.to_plain(),
            "unchecked": list(self.checked.unchecked),
            "cannot_prove": list(self.cannot_prove),
        }
