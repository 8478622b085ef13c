"""The ledger as a table: what a rewind discarded is not in it, and its sums are the run's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import recipe


def start(folder: Path) -> recipe.run.run.Run:  # type: ignore[name-defined]
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        recipe.write_pool(folder / name, [rng.integers(1, 99, 40) for _ in range(50)], vocab_size=100, eos=0)
    (folder / "r.yaml").write_text(
        f"""
        seed: 1
        pools: {{a: {{path: {folder}/a}}, b: {{path: {folder}/b}}}}
        stages:
          s: {{tokens: 4000, context: 32, batch: {{sequences: 4}}, chunk: 1k, weights: {{a: 3, b: 1}}}}
        """
    )
    return recipe.start_run(recipe.load_recipe(str(folder / "r.yaml")), folder / "run")


def test_sums_over_the_table_are_what_the_run_has_spent(tmp_path):
    with start(tmp_path) as run:
        run.checkpoint(step=run.num_steps)
    table = recipe.ledger_table(tmp_path / "run")
    audit = recipe.audit_run(tmp_path / "run")
    assert audit.ok
    assert table.groupby("pool")["labels"].sum().to_dict() == {
        p: n["labels"] for p, n in audit.tokens.items()
    }
    assert table["owed"].sum() == table["spent"].sum()
    assert table["first_step"].iloc[0] == 0
    assert table["stop_step"].iloc[-1] == run.num_steps


def test_discarded_chunks_are_left_out(tmp_path):
    with start(tmp_path) as run:
        run.checkpoint(step=8)
        run.checkpoint(step=run.num_steps)
    with recipe.open_run(tmp_path / "run", step=8) as run:
        run.checkpoint(step=9)
    assert recipe.ledger_table(tmp_path / "run")["stop_step"].max() == 8
