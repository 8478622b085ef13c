"""Why a run is changed, and who said so."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.run.canonical import Plain
from recipe.run.statement import text_on_record


@dataclass(frozen=True, kw_only=True)
class Approval:
    """Why a run is changed, and who said so."""

    reason: str
    approved_by: str | None = None
    by: str = "user"
    """``user``, ``policy`` or ``adoption``."""
    evidence: str | None = None
    """Hash of what the decision rests on."""
    policy: Plain | None = None
    """Of an answer of a policy: its target and what it remembers."""

    def to_plain(self) -> Plain:
        """As an amendment's row holds it.

        Raises:
            ValueError: a reason or a name that cannot be put on record.
        """
        return {
            "reason": text_on_record("reason", self.reason),
            "approved_by": None
            if self.approved_by is None
            else text_on_record("approved_by", self.approved_by),
            "by": self.by,
            "evidence": self.evidence,
            "policy": self.policy,
        }
