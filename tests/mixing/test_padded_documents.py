"""`packing.document_multiple` in whole runs: its cost in the plan, re-cut across stages, audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import recipe as product
from recipe.config import recipe_from_plain
from recipe.mixing.plan import make_plan
from tests.mixing.build import stage, write


def plain(root: Path, **more: Any) -> dict[str, Any]:
    """Two stages that pad documents differently."""
    first = stage(32, {"a": 1}, batch=4, steps=4, packing={"document_multiple": "2*cp"})
    second = stage(32, {"a": 1}, batch=4, steps=4, packing={"document_multiple": 8})
    stages = {"one": first, "two": second}
    pools = {"a": {"path": "a", "max_epochs": 99}}
    return {
        "seed": 1,
        "pools_root": str(root),
        "pools": pools,
        "parallel": {"cp": 2},
        "stages": stages,
    } | more


def test_the_plan_shows_what_the_multiple_costs_in_padding(tmp_path: Path):
    write(tmp_path / "a", [n * n % 31 + 1 for n in range(300)], eos=True)
    recipe = recipe_from_plain(plain(tmp_path), source="test")
    plan = make_plan(recipe)
    costs = plan.stages["one"].packing
    assert list(costs) == ["best_fit, document_multiple 4", "best_fit without it"]
    with_it, without = costs.values()
    assert with_it.padding > without.padding
    assert plan.recipe.stages["one"].packing.document_multiple == 4
    assert not plan.warnings


def test_the_plan_says_what_a_parallelism_cannot_split(tmp_path: Path):
    write(tmp_path / "a", [9] * 300)
    given = plain(tmp_path, parallel={"cp": 2, "pp": 8})
    del given["stages"]["one"]["packing"]
    warnings = make_plan(recipe_from_plain(given, source="test")).warnings
    assert [w.partition(":")[0] for w in warnings] == ["stage 'one'", "stage 'one'", "stage 'two'"]


def test_F4_invariant_10_a_run_is_audited_and_its_rows_are_those_of_its_documents(tmp_path: Path):
    write(tmp_path / "a", [n * n % 31 + 1 for n in range(100)], eos=True, bos=True)
    recipe = recipe_from_plain(plain(tmp_path, deal="balanced"), source="test")
    with product.start_run(recipe, tmp_path / "run") as run:
        run.checkpoint(8, uri="x")
        stream = run.stream()
        rows = [stream.provenance(step, row) for step in range(8) for row in range(4)]
    assert all((piece.column - 1) % 4 == 0 for row in rows for piece in row if piece.fresh == 0)
    assert product.audit_run(tmp_path / "run").ok
    answer = product.verify_run(tmp_path / "run")
    assert answer.ok, answer
