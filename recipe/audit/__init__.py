"""The audit: a run's record held against its recipe, its pools and itself, by code of its own."""

from recipe.audit.auditing import audit_run
from recipe.audit.findings import Audit, Coverage, Finding

__all__ = ["Audit", "Coverage", "Finding", "audit_run"]
