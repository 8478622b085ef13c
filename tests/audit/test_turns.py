"""Turns of a run held against what came before them: amendments, skips, withdrawals, branches, late saves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import recipe
from recipe.audit import Audit
from recipe.config import fingerprint, recipe_from_plain
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.canonical import canonical, digest
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.comparing.attach import attach_metrics
from recipe.run.manifest import seal_of, sealed
from tests.audit.runs import TWO_STAGES, Plain, forge, read_rows, start, write_pools

RAMP: Plain = {**TWO_STAGES["long"], "quota_ramp": {"over": 4_000, "steps": 5}}


@pytest.fixture(scope="session")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a ramp that was amended twice, rewound, skipped, withdrawn from, and saved late."""
    root = tmp_path_factory.mktemp("turned")
    write_pools(root, {"web": 120, "code": 90, "maths": 40, "books": 50})
    with start(root, {**TWO_STAGES, "long": RAMP}) as run:
        pending = run.begin_checkpoint(9)
        run.checkpoint(11, uri="ckpt/11")
        pending.commit("late")
        run.checkpoint(30)
    path, because = root / "run", Approval(reason="more code", approved_by="Ada")
    amend_run(path, ["stages.short.quotas.code=45%"], approval=because, at=11, from_pool="web")
    with recipe.open_run(path) as run:
        run.checkpoint(16)
        run.amend(["+pools.books={path: pools/books, block_units: 32}"], reason="books", step=20)
        run.amend(["stages.short.quotas.books=10%"], reason="used", step=22, from_pool="web")
        run.checkpoint(24)
    skip_run(path, (24, 27), reason="a spike", returned=True)
    with recipe.open_run(path) as run:
        run.checkpoint(30)
    skip_run(path, (30, 31), reason="another")
    withdraw_run(path, [3, 17], ticket=Ticket(reason="asked for"), pool="web")
    attach_metrics(path, {"code": {"loss": 2.5}})
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps)
    return path


@pytest.fixture
def changed(turned: Path, tmp_path: Path) -> Callable[..., Audit]:
    """Audit a copy of the run after something was done to it."""

    def audit(change: Callable[[Path], object], **options: Any) -> Audit:
        copy = tmp_path / "run"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(turned, copy)
        change(copy)
        return recipe.audit_run(copy, workers=1, **options)

    return audit


def wheres(audit: Audit) -> list[str]:
    return [finding.where for finding in audit.findings]


def number_of(run: Path, kind: str, index: int = 0) -> int:
    return [row["row"] for row in read_rows(run) if row["kind"] == kind][index]


def test_every_row_of_a_run_with_turns_is_computed_again(turned):
    audit = recipe.audit_run(turned, full=True)
    assert audit.findings == ()
    assert audit.checked.unavailable == 0
    skips = [number_of(turned, "skip", index) for index in (0, 1)]
    assert set(skips) <= set(audit.checked.replayed)
    assert list(audit.drift) == ["short", "long"] and "books" in audit.drift["short"]


@pytest.mark.parametrize("workers", [2, 5])
def test_workers_change_nothing(turned, workers):
    found = recipe.audit_run(turned, workers=workers, seed=1)
    assert (found.findings, found.checked.replayed) == ((), recipe.audit_run(turned, seed=1).checked.replayed)


def test_a_lost_version_is_named_and_manifests_repeat_it(turned, changed):
    audit = changed(lambda run: (run / "recipes/0002.yaml").unlink(), full=True)
    row = number_of(turned, "amend")
    assert set(wheres(audit)) == {f"ledger.jsonl row {row}: recipe", "recipes/0002.yaml"}
    assert len(audit.checked.replayed) == len(recipe.audit_run(turned, full=True).checked.replayed)


def test_behind_a_version_that_nobody_repeats_the_record_is_followed_again(turned, changed):
    """No manifest has version 3: its steps are not computed; those before and after are."""
    audit = changed(lambda run: (run / "recipes/0003.yaml").unlink(), full=True)
    row = number_of(turned, "amend", 1)
    assert set(wheres(audit)) == {f"ledger.jsonl row {row}: recipe", "recipes/0003.yaml"}
    assert {1, number_of(turned, "skip"), len(read_rows(turned)) - 1} <= set(audit.checked.replayed)


def reseal(path: Path, change: Callable[[Plain], object]) -> str:
    value = yaml.safe_load(path.read_bytes())
    del value["hash"]
    change(value)
    path.write_bytes(sealed(value))
    return seal_of(path.read_bytes())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", 8),
        ("labels", "inputs"),
        ("stages.short.context", 96),
        ("stages.short.chunk", 2_500),
        ("stages.short.slicing.stride", 40),
        ("stages.short.batch.ramp", {0: 4, 1000: 6}),
        ("pools.code.block_units", 64),
    ],
)
def test_what_a_version_changes_behind_its_step_is_named(turned, changed, key, value):
    """Re-sealed and re-chained: the hashes fit, the change of what was served does not."""

    def change(run: Path) -> None:
        def set_key(recipe_file):
            inner = recipe_file["recipe"]
            for part in key.split(".")[:-1]:
                inner = inner[part]
            inner[key.split(".")[-1]] = value
            mark = fingerprint(recipe_from_plain(recipe_file["recipe"], source="test"))
            recipe_file["fingerprint"] = said["recipe_fingerprint"] = mark

        said: Plain = {}
        said["recipe_hash"] = reseal(run / "recipes/0002.yaml", set_key)
        row = number_of(run, "amend")
        forge(run, lambda rows: rows[row].update(said))

    audit = changed(change)
    behind = [finding.where for finding in audit.findings if finding.check == "behind"]
    top = key.split(".")[0] if "." not in key else ".".join(key.split(".")[:2])
    assert any(f"recipe 2: {top}" in where for where in behind), wheres(audit)


@pytest.mark.parametrize("field", ["step", "reason", "approved_by", "version"])
def test_what_a_recipe_file_says_of_itself_is_compared_with_its_row(changed, field):
    audit = changed(lambda run: reseal(run / "recipes/0002.yaml", lambda value: value.update({field: 7})))
    assert "recipes/0002.yaml" in {where.split(":")[0] for where in wheres(audit)}


@pytest.mark.parametrize(
    ("file", "check"),
    [
        ("recipes/0005.yaml", "unfinished"),
        ("recipes/0009.yaml", "recipe"),
        ("withdrawn/0002.json", "unfinished"),
        ("withdrawn/0007.json", "withdrawn"),
        ("evidence/x.json", "unfinished"),
        ("parent.yaml", "parent"),
    ],
)
def test_files_that_no_row_names_are_told(changed, file, check):
    def add(run: Path) -> None:
        (run / file).parent.mkdir(exist_ok=True)
        (run / file).write_bytes(b"{}\n")

    assert [(f.check, f.where) for f in changed(add).findings] == [(check, file)]


def test_another_document_in_a_list_is_found(turned, changed):
    """The list, its hash in the row and all hashes behind it are made to fit."""

    def change(run: Path) -> None:
        path = run / "withdrawn/0001.json"
        value = json.loads(path.read_bytes())
        value["documents"]["web"][0] += 1
        path.write_bytes(canonical(value) + b"\n")
        row = number_of(run, "withdraw")
        forge(run, lambda rows: rows[row].update(file_hash=digest(path.read_bytes())))

    found = wheres(changed(change, full=True))
    assert "withdrawn/0001.json: pools.web.0" in found
    assert any(where.startswith("manifests/") and "withdrawals" in where for where in found)


@pytest.mark.parametrize("kind", ["amend", "skip", "withdraw"])
def test_a_turn_dropped_before_rechaining_is_missed(turned, changed, kind):
    at = number_of(turned, kind)
    audit = changed(lambda run: forge(run, lambda rows: rows.pop(at)))
    assert not audit.ok and not any(finding.check == "chain" for finding in audit.findings)


def test_a_burnt_skip_called_returned_is_named(turned, changed):
    row = number_of(turned, "skip", 1)
    audit = changed(lambda run: forge(run, lambda rows: rows[row].update(returned=True)), full=True)
    assert any(where.startswith(f"ledger.jsonl row {row}: snapshot.pools.") for where in wheres(audit))


def test_metrics_of_a_manifest_that_is_not_there_are_named(turned, changed):
    row = number_of(turned, "metrics")
    said = {"manifest": 77, "manifest_hash": "0" * 64, "metrics": {"code": {"loss": 2.5}}, "more": 1}
    audit = changed(lambda run: forge(run, lambda rows: rows[row].update(said)))
    assert {f"ledger.jsonl row {row}: manifest", f"ledger.jsonl row {row}: more"} <= set(wheres(audit))


@pytest.fixture
def branch(turned: Path, tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    shutil.copytree(turned, root / "trunk")
    wish = Wish(name="other", overrides=("stages.long.weights.code=2", "seed=9"))
    (path,) = branch_run(f"{root / 'trunk'}@step:30", wish)
    with recipe.open_run(path) as run:
        run.checkpoint(min(run.num_steps, run.step + 9))
    return path


def test_a_branch_under_another_seed_is_computed_from_its_parents_manifest(branch):
    audit = recipe.audit_run(branch, full=True)
    assert audit.findings == () and 0 in audit.checked.replayed
    assert any("is in the ledger of" in line for line in audit.checked.lines())


@pytest.mark.parametrize("step", [9, 11, 24, 30])
def test_a_branch_goes_on_from_wherever_its_parent_turned(turned, tmp_path, step):
    """From a late checkpoint, behind a rewind, right behind a skip, and behind a withdrawal."""
    shutil.copytree(turned, tmp_path / "trunk")
    (path,) = branch_run(f"{tmp_path / 'trunk'}@step:{step}", Wish(name="same"))
    with recipe.open_run(path) as run:
        run.checkpoint(min(run.num_steps, step + 7))
    assert recipe.audit_run(path, full=True).findings == ()


def test_a_parent_that_is_not_here_is_said_and_no_finding(branch):
    shutil.move(branch.parent / "trunk", branch.parent / "elsewhere")
    audit = recipe.audit_run(branch)
    assert audit.findings == ()
    assert any("its ledger was not looked at" in line for line in audit.checked.lines())
    assert audit.checked.is_parent_gone and len(audit.checked.unchecked) == 1


def test_a_parent_in_a_folder_of_any_name_was_looked_at(branch):
    elsewhere = branch.parent.rename(branch.parent.with_name("not here"))
    audit = recipe.audit_run(elsewhere / branch.name)
    assert "not here" in audit.checked.parent
    assert not audit.checked.is_parent_gone and audit.checked.unchecked == ()


def test_another_parents_manifest_is_named(branch):
    copy = branch / "parent.yaml"
    copy.write_bytes((branch.parent / "trunk/manifests/000001.yaml").read_bytes())
    assert any(finding.where == "parent.yaml" for finding in recipe.audit_run(branch).findings)


def test_a_branch_that_hides_a_difference_is_not_controlled(branch):
    """E1: what differs is listed, and must be what was named."""

    def hide(rows: list[Plain]) -> None:
        rows[0]["parent"]["differs"] = rows[0]["parent"]["differs"][:-1]

    forge(branch, hide)
    assert any("parent.differs" in finding.where for finding in recipe.audit_run(branch).findings)


def test_a_branch_without_its_parents_checkpoint_is_named(branch):
    trunk = branch.parent / "trunk"
    rows = (trunk / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (trunk / "ledger.jsonl").write_bytes(b"".join(rows[:5]))
    assert "ledger.jsonl row 0: parent.manifest" in wheres(recipe.audit_run(branch))
