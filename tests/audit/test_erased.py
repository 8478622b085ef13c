"""Documents that were withdrawn and erased: told, and no finding; whatever else differs is corrupt."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.pools import open_pool
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.withdraw import Ticket, withdraw_run
from tests.audit.runs import start, write_pools

DOCUMENTS = [3, 4, 17]


@pytest.fixture
def withdrawn(tmp_path) -> Path:
    """A run of which documents were withdrawn after some steps."""
    write_pools(tmp_path, {"web": 60, "code": 40, "maths": 30})
    with start(tmp_path) as run:
        run.checkpoint(20)
    withdraw_run(tmp_path / "run", DOCUMENTS, pool="web", ticket=Ticket(reason="take-down"))
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(40)
    return tmp_path / "run"


def erase(run: Path, documents: list[int], value: int = 0) -> None:
    pool = open_pool(run.parent / "pools/web", "web")
    path = pool.layout.part_path(0)
    stored = np.fromfile(path, pool.token_dtype)
    for document in documents:
        start, stop = pool.offsets[document : document + 2].tolist()
        stored[start:stop] = value
    stored.tofile(path)


def test_erased_documents_are_told_and_every_row_is_still_computed_again(withdrawn):
    whole = recipe.audit_run(withdrawn, full=True)
    erase(withdrawn, DOCUMENTS[:2])
    audit = recipe.audit_run(withdrawn, full=True)
    assert audit.ok and "erased: 2 documents" in audit.checked.pools["web"]
    assert audit.checked.replayed == whole.checked.replayed and audit.reading == whole.reading
    assert "erased" not in audit.checked.pools["code"]


@pytest.mark.parametrize(("documents", "value"), [([3, 5], 0), ([3], 9), ([6], 0)])
def test_anything_else_that_differs_is_corrupt(withdrawn, documents, value):
    erase(withdrawn, documents, value)
    audit = recipe.audit_run(withdrawn, full=True)
    assert any("part-00000.bin block 0" in finding.where for finding in audit.findings)


def test_without_a_withdrawal_on_record_zeros_are_corrupt(withdrawn, tmp_path):
    write_pools(tmp_path / "other", {"web": 60, "code": 40, "maths": 30})
    with start(tmp_path / "other") as run:
        run.checkpoint(20)
    erase(tmp_path / "other/run", [3])
    assert not recipe.audit_run(tmp_path / "other/run").ok


def test_a_branch_knows_what_its_parent_withdrew(withdrawn):
    (branch,) = branch_run(withdrawn, Wish(name="other", overrides=("stages.long.weights.code=2",)))
    with recipe.open_run(branch) as run:
        run.checkpoint(50)
    erase(withdrawn, DOCUMENTS)
    shutil.rmtree(withdrawn)
    audit = recipe.audit_run(branch, full=True)
    assert "erased: 3 documents" in audit.checked.pools["web"]
    assert not [finding for finding in audit.findings if finding.check == "pools"]


def test_a_list_of_documents_that_was_changed_excuses_nothing(withdrawn):
    erase(withdrawn, DOCUMENTS)
    file = withdrawn / "withdrawn/0001.json"
    file.write_text(file.read_text().replace("[3,4,17]", "[3,4,18]"))
    audit = recipe.audit_run(withdrawn, full=True)
    wheres = {finding.where.split(":")[0] for finding in audit.findings}
    assert "withdrawn/0001.json" in wheres and "pools.web" in wheres
    chain = recipe.audit_run(withdrawn, chain_only=True)
    assert [finding.where for finding in chain.findings] == ["withdrawn/0001.json"]
