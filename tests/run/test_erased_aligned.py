"""Erased documents at whose texts cuts were aligned: what cannot be computed again is refused, no guess."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.pools import PoolWriter
from recipe.pools.erasing import erase_documents
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.text.tokenizers import load_tokenizer
from tests.run.conftest import served

GONE = list(range(0, 60, 5))
"""Some in every block of 16."""


def pool(root: Path) -> None:
    tokenizer, chance = load_tokenizer("bytes"), np.random.default_rng(1)
    made_by = {"tokenizer": tokenizer.fingerprint(), "tokenizer_name": "bytes"}
    with PoolWriter(root / "pools/web", vocab_size=257, eos=256, **made_by) as writer:
        for _ in range(60):
            numbers = chance.integers(0, 99_999, chance.integers(12, 60))
            text = " ".join(map(str, numbers.tolist())).replace("7 ", "7\n\n")
            writer.add(tokenizer.encode_batch([text])[0])
        writer.close()


def erase(root: Path) -> None:
    erase_documents(root / "pools/web", np.array(GONE), root / "new", reason="request 12")
    (root / "pools/web").rename(root / "whole")
    (root / "new").rename(root / "pools/web")


def begun(root: Path, align: str) -> recipe.Run:
    plain = {
        "seed": 1,
        "pools_root": str(root / "pools"),
        "pools": {"web": {"path": "web", "block_units": 16}},
        "max_epochs": 50,
        "stages": {
            "s": {
                "tokens": 19_200,
                "context": 32,
                "batch": {"sequences": 3},
                "slicing": {"align": align, "align_within": 8},
                "quotas": {"web": "100%"},
            }
        },
    }
    return recipe.start_run(recipe_from_plain(plain, source="test"), root / "run")


def block_of(run: recipe.Run, step: int) -> int:
    return run.stream().snapshot(step).pools[0].cursor.block


@pytest.mark.parametrize("align", ["word", "number", "paragraph"])
def test_a_block_that_was_arranged_with_their_text_is_not_read_on_without_it(tmp_path, align):
    pool(tmp_path)
    with begun(tmp_path, align) as run:
        run.checkpoint(7)
    withdraw_run(tmp_path / "run", GONE, ticket=Ticket(reason="request 12"))
    with recipe.open_run(tmp_path / "run") as run:
        before = served(run.stream(), 7)
        after = next(step for step in range(7, run.num_steps) if block_of(run, step) > block_of(run, 7))
    erase(tmp_path)
    with recipe.open_run(tmp_path / "run") as run, pytest.raises(RecipeError, match="aligned") as refused:
        run.stream().batch(7)
    assert "put the folder back" in refused.value.problems[0].fix
    # with the text until the block's end, and from there on without it
    (tmp_path / "pools/web").rename(tmp_path / "new")
    shutil.copytree(tmp_path / "whole", tmp_path / "pools/web")
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(after + 1)
    shutil.rmtree(tmp_path / "pools/web")
    (tmp_path / "new").rename(tmp_path / "pools/web")
    with recipe.open_run(tmp_path / "run") as run:
        assert served(run.stream(), after + 1) == before[after + 1 - 7 :]
        run.checkpoint(run.num_steps)
    audit = audit_run(tmp_path / "run", full=True)
    assert audit.ok and "audit with the folder that holds them" in audit.checked.pools["web"]
    assert "could not be computed again" in audit.checked.unchecked[0]
    audit = audit_run(tmp_path / "run", full=True, pools_root=moved(tmp_path))
    assert audit.ok and "nothing recomputed" not in audit.checked.pools["web"]


def moved(root: Path) -> Path:
    """A root under which the whole pool lies."""
    (root / "kept").mkdir()
    (root / "whole").rename(root / "kept/web")
    return root / "kept"


def test_a_run_that_began_without_them_is_computed_again_whole(tmp_path):
    pool(tmp_path)
    erase(tmp_path)
    with begun(tmp_path, "word") as run:
        run.checkpoint(30)
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
    audit = audit_run(tmp_path / "run", full=True)
    assert audit.ok, audit.findings
    assert "nothing recomputed" not in audit.checked.pools["web"]
