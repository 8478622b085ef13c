"""The audit: a run's record held against its recipe, its pools and itself, by code of its own."""

from recipe.audit.answer import Audit
from recipe.audit.auditing import audit_run
from recipe.audit.coverage import Coverage
from recipe.audit.seal import Seal, seal_run
from recipe.pools import Finding

__all__ = ["Audit", "Coverage", "Finding", "Seal", "audit_run", "seal_run"]
