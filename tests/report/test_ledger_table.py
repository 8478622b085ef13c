"""The ledger as a table: what a rewind discarded is not in it, and its sums are the run's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import recipe
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.skip import skip_run


def start(folder: Path) -> recipe.run.run.Run:  # type: ignore[name-defined]
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        recipe.write_pool(folder / name, [rng.integers(1, 99, 40) for _ in range(50)], vocab_size=100, eos=0)
    (folder / "r.yaml").write_text(
        f"""
        seed: 1
        pools: {{a: {{path: "{folder}/a"}}, b: {{path: "{folder}/b"}}}}
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


def dropped(run: Path) -> dict[str, int]:
    """By pool: what the status says was not served."""
    return {name: sum(pool.dropped.values()) for name, pool in recipe.run_status(run).pools.items()}


def test_what_turns_dropped_is_in_rows_of_their_own(tmp_path):
    """Sums over the table are the status': a skip and a branch of another seed drop in no chunk."""
    with start(tmp_path) as run:
        run.checkpoint(step=8)
        run.checkpoint(step=16)
    skip_run(tmp_path / "run", (16, 18), reason="a spike")
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(step=20)
    trunk = dropped(tmp_path / "run")
    branch_run(tmp_path / "run", Wish(name="B", overrides=("seed=2",)))
    for path in (tmp_path / "run", tmp_path / "B"):
        with recipe.open_run(path) as run:
            run.checkpoint(step=run.num_steps)
        table = recipe.ledger_table(path)
        earlier = trunk if path.name == "B" else dict.fromkeys(trunk, 0)
        sums = table.groupby("pool")["dropped"].sum().to_dict()
        assert {name: earlier[name] + tokens for name, tokens in sums.items()} == dropped(path)
        turns = table[table["kind"] == "turn"]
        assert turns["dropped"].min() > 0
        assert turns[["planned", "owed", "spent", "labels", "positions"]].sum().sum() == 0
        assert (turns["first_step"] == turns["stop_step"]).all()
        columns = ["owed", "spent"]
        chunks = table[table["kind"] == "chunk"]
        keys = ["stage", "pool"]
        assert table.groupby(keys)[columns].sum().equals(chunks.groupby(keys)[columns].sum())
