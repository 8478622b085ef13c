"""Data recipes for pre-training: token quotas, exact mixing, and a ledger that can be audited to the token.

What is named here is imported when it is first used, so that ``import recipe`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recipe.audit import audit_run, seal_run
    from recipe.config import load_recipe
    from recipe.errors import RecipeError
    from recipe.integrations.acceptance import verify_package, verify_program, verify_run
    from recipe.mixing.plan import make_plan
    from recipe.pools import extend_pool, write_pool
    from recipe.report.ledger_table import ledger_table
    from recipe.run.branching.branch import branch_run
    from recipe.run.branching.wishes import Wish
    from recipe.run.changing.amend import amend_run
    from recipe.run.changing.approval import Approval
    from recipe.run.changing.skip import skip_run
    from recipe.run.changing.totals import Goal
    from recipe.run.changing.withdraw import Ticket, withdraw_run
    from recipe.run.comparing.attach import attach_metrics
    from recipe.run.comparing.compare import compare_runs
    from recipe.run.digests import BatchDigests
    from recipe.run.handover import hand_over_run
    from recipe.run.manifests import run_manifests
    from recipe.run.opening import open_run
    from recipe.run.start import resume_or_start, start_run
    from recipe.run.state import stream_from
    from recipe.run.status import run_status
    from recipe.run.tracing.rows import trace_row
    from recipe.run.tracing.trace import trace_document, trace_documents

__all__ = [
    "Approval",
    "BatchDigests",
    "Goal",
    "RecipeError",
    "Ticket",
    "Wish",
    "__version__",
    "amend_run",
    "attach_metrics",
    "audit_run",
    "branch_run",
    "compare_runs",
    "extend_pool",
    "hand_over_run",
    "ledger_table",
    "load_recipe",
    "make_plan",
    "open_run",
    "resume_or_start",
    "run_manifests",
    "run_status",
    "seal_run",
    "skip_run",
    "start_run",
    "stream_from",
    "trace_document",
    "trace_documents",
    "trace_row",
    "verify_package",
    "verify_program",
    "verify_run",
    "withdraw_run",
    "write_pool",
]

_HOMES = {
    "Approval": "recipe.run.changing.amend",
    "BatchDigests": "recipe.run.digests",
    "Goal": "recipe.run.changing.amend",
    "RecipeError": "recipe.errors",
    "Ticket": "recipe.run.changing.withdraw",
    "Wish": "recipe.run.branching.wishes",
    "amend_run": "recipe.run.changing.amend",
    "attach_metrics": "recipe.run.comparing.attach",
    "audit_run": "recipe.audit",
    "branch_run": "recipe.run.branching.branch",
    "compare_runs": "recipe.run.comparing.compare",
    "extend_pool": "recipe.pools",
    "hand_over_run": "recipe.run.handover",
    "ledger_table": "recipe.report.ledger_table",
    "load_recipe": "recipe.config",
    "make_plan": "recipe.mixing.plan",
    "open_run": "recipe.run.opening",
    "resume_or_start": "recipe.run.start",
    "run_manifests": "recipe.run.manifests",
    "run_status": "recipe.run.status",
    "seal_run": "recipe.audit",
    "skip_run": "recipe.run.changing.skip",
    "start_run": "recipe.run.start",
    "stream_from": "recipe.run.state",
    "trace_document": "recipe.run.tracing.trace",
    "trace_documents": "recipe.run.tracing.trace",
    "trace_row": "recipe.run.tracing.rows",
    "verify_package": "recipe.integrations.acceptance",
    "verify_program": "recipe.integrations.acceptance",
    "verify_run": "recipe.integrations.acceptance",
    "withdraw_run": "recipe.run.changing.withdraw",
    "write_pool": "recipe.pools",
}


def __getattr__(name: str) -> object:
    """A public name, imported from where it lives."""
    if name == "__version__":
        return import_module("importlib.metadata").version("token-recipe")
    if name not in _HOMES:
        raise AttributeError(f"module 'recipe' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
