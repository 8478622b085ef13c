"""The chain alone: every byte of the record, no number."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from tests.audit.runs import forge, read_rows, write_rows


def named(audit):
    return [(finding.check, finding.where) for finding in audit.findings]


def test_a_run_as_it_was_written_passes(recorded):
    audit = recipe.audit_run(recorded, chain_only=True)
    rows = read_rows(recorded)
    assert audit.ok and audit.checked.rows == len(rows) and audit.checked.chain_only
    assert audit.checked.named == 2 + sum(row["kind"] == "checkpoint" for row in rows)
    assert audit.tokens == {} and any("Numbers were not looked at" in line for line in audit.cannot_prove)


def test_no_pool_is_needed(recorded, changed):
    audit = changed(lambda run: None, chain_only=True)
    assert audit.ok and audit.checked.pools == {}


@settings(max_examples=60)
@given(data=st.data())
def test_invariant_10_any_flipped_bit_of_the_record_is_found(recorded, changed, data):
    files = [*recorded.glob("*.yaml"), *recorded.glob("recipes/*"), *recorded.glob("manifests/*")]
    file = data.draw(st.sampled_from(sorted([*files, recorded / "ledger.jsonl"]))).relative_to(recorded)
    at = data.draw(st.integers(0, (recorded / file).stat().st_size - 1))
    bit = data.draw(st.integers(0, 7))

    def flip(run: Path) -> None:
        content = bytearray((run / file).read_bytes())
        content[at] ^= 1 << bit
        (run / file).write_bytes(content)

    audit = changed(flip, chain_only=True)
    assert any(finding.where.startswith(str(file)) for finding in audit.findings)


@pytest.mark.parametrize("kind", ["chunk", "checkpoint", "rewind"])
def test_invariant_10_dropped_swapped_and_repeated_rows_are_found(recorded, changed, kind):
    rows = read_rows(recorded)
    at = next(row["row"] for row in rows if row["kind"] == kind)
    orders = (
        [*rows[:at], *rows[at + 1 :]],
        [*rows[:at], rows[at + 1], rows[at], *rows[at + 2 :]],
        [*rows[:at], rows[at], *rows[at:]],
    )
    for order in orders:
        audit = changed(lambda run, order=order: write_rows(run, order), chain_only=True)
        assert any(finding.check == "chain" for finding in audit.findings)


def test_missing_strange_and_swapped_manifests_are_named(recorded, changed):
    first, second = "manifests/000001.yaml", "manifests/000002.yaml"
    assert named(changed(lambda run: (run / first).unlink(), chain_only=True)) == [("manifest", first)]
    audit = changed(lambda run: shutil.copy(run / first, run / "manifests/000017.yaml"), chain_only=True)
    assert named(audit) == [("manifest", "manifests/000017.yaml")]

    def swap(run: Path) -> None:
        one, other = (run / first).read_bytes(), (run / second).read_bytes()
        (run / first).write_bytes(other)
        (run / second).write_bytes(one)

    assert {first, second} <= {where for _, where in named(changed(swap, chain_only=True))}


def test_manifests_without_their_folder_are_named_each(recorded, changed):
    def away(run: Path) -> None:
        shutil.rmtree(run / "manifests")
        (run / "manifests").write_text("a file in its place")

    found = named(changed(away, chain_only=True))
    assert ("manifest", "manifests") in found and ("manifest", "manifests/000001.yaml") in found


def test_a_manifest_that_is_left_of_a_checkpoint_cut_short_is_unfinished(recorded, changed):
    audit = changed(lambda run: write_rows(run, read_rows(run)[:-1]), chain_only=True)
    last = read_rows(recorded)[-1]["manifest"]
    assert ("unfinished", f"manifests/{last:06d}.yaml") in named(audit)


def test_a_rechained_forgery_passes_and_the_answer_says_so(recorded, changed):
    def change(rows):
        rows[2]["pools"]["web"]["spent"] += 1

    audit = changed(lambda run: forge(run, change), chain_only=True)
    assert audit.ok and any("passes a check of the chain" in line for line in audit.cannot_prove)


@pytest.mark.parametrize("options", [{"full": True}, {"since": 3}, {"sample": 2}, {"metadata_only": True}])
def test_options_about_rows_do_not_go_with_it(recorded, options):
    with pytest.raises(ValueError, match="computes no row"):
        recipe.audit_run(recorded, chain_only=True, **options)


def test_a_ledger_that_is_no_file_is_a_finding(recorded, changed):
    def folder(run: Path) -> None:
        (run / "ledger.jsonl").unlink()
        (run / "ledger.jsonl").mkdir()

    for options in ({"chain_only": True}, {}):
        assert named(changed(folder, **options)) == [("chain", "ledger.jsonl")]


def test_the_files_of_every_turn_are_compared(tmp_path):
    """A branch's parent, its recipes, lists of withdrawn documents: each by its hash in a row."""
    from recipe.run.branching.branch import branch_run
    from recipe.run.branching.wishes import Wish
    from recipe.run.changing.amend import amend_run
    from recipe.run.changing.approval import Approval
    from recipe.run.changing.withdraw import Ticket, withdraw_run
    from tests.audit.runs import start, write_pools

    write_pools(tmp_path, {"web": 60, "code": 40, "maths": 30})
    with start(tmp_path) as run:
        run.checkpoint(20)
    (branch,) = branch_run(tmp_path / "run", Wish(name="other", overrides=("stages.long.weights.code=2",)))
    with recipe.open_run(branch) as run:
        run.checkpoint(30)
    amend_run(branch, ["stages.long.weights.code=3"], approval=Approval(reason="more"))
    withdraw_run(branch, [3], pool="web", ticket=Ticket(reason="take-down"))
    audit = recipe.audit_run(branch, chain_only=True)
    assert audit.ok and audit.checked.named == 8
    for name in ("parent.yaml", "recipes/0001.yaml", "recipes/0002.yaml", "withdrawn/0001.json"):
        data = (branch / name).read_bytes()
        (branch / name).write_bytes(data.replace(b"1", b"2", 1))
        assert [where.split(":")[0] for _, where in named(recipe.audit_run(branch, chain_only=True))] == [
            name
        ]
        (branch / name).write_bytes(data)
