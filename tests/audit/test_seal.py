"""The head that is published, and what it proves later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe
from recipe.audit.seal import Seal, read_published, seal_run
from recipe.errors import RecipeError
from tests.audit.runs import forge, read_rows, write_rows

HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
SEALS = st.builds(
    Seal,
    run=st.from_regex(r"[a-z]([a-z ]{0,8}[a-z])?", fullmatch=True),
    id=st.none() | st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
    row=st.integers(0, 10**9),
    head=HEX,
    manifest=st.just(3),
    manifest_hash=HEX,
    step=st.integers(0, 10**12),
    time=st.just("2026-01-02T03:04:05Z"),
)


def heads(audit):
    return [finding for finding in audit.findings if finding.check == "head"]


@given(seal=SEALS)
def test_a_line_is_read_as_it_was_printed_however_it_was_wrapped(seal):
    expected = replace(seal, run=" ".join(seal.run.split()))
    assert read_published(seal.line().replace(" ", "\n ", 3)).seal == expected


def test_a_seal_names_the_last_row_and_the_last_manifest(recorded):
    last = read_rows(recorded)[-1]
    seal = seal_run(recorded)
    assert (seal.row, seal.head, seal.step, seal.time) == (
        last["row"],
        last["hash"],
        last["step"],
        last["time"],
    )
    assert (seal.manifest, seal.manifest_hash) == (last["manifest"], last["manifest_hash"])
    assert (seal.run, seal.id) == ("run", read_rows(recorded)[0]["id"])
    assert "\n" not in seal.line() and json.loads(json.dumps(seal.to_plain()))["line"] == seal.line()


def test_sealing_writes_nothing(recorded):
    before = {path: path.stat().st_mtime_ns for path in recorded.rglob("*")}
    seal_run(recorded)
    assert {path: path.stat().st_mtime_ns for path in recorded.rglob("*")} == before


def test_a_run_without_a_checkpoint_is_sealed(recorded, changed, tmp_path):
    changed(lambda run: write_rows(run, read_rows(run)[:1]), chain_only=True)
    seal = seal_run(tmp_path / "run")
    assert (seal.row, seal.manifest, seal.step) == (0, None, 0)
    assert read_published(seal.line()).seal == seal


def test_a_broken_chain_has_no_head_to_publish(recorded, changed, tmp_path):
    rows = read_rows(recorded)
    changed(lambda run: write_rows(run, [*rows[:3], *rows[4:]]), chain_only=True)
    with pytest.raises(RecipeError, match="broken"):
        seal_run(tmp_path / "run")


@pytest.mark.parametrize("chain_only", [True, False])
def test_what_was_published_is_proved_and_rows_may_come_later(recorded, chain_only):
    rows = read_rows(recorded)
    for row in (rows[0], rows[3], rows[-1]):
        audit = recipe.audit_run(
            recorded, head=row["hash"], chain_only=chain_only, sample=1 if not chain_only else None
        )
        assert audit.ok and f"as row {row['row']}" in audit.checked.head
        assert f"{len(rows) - 1 - row['row']} rows came later" in audit.checked.head


def test_the_hash_of_a_manifest_will_do(recorded):
    row = next(row for row in read_rows(recorded) if row["kind"] == "checkpoint")
    audit = recipe.audit_run(recorded, head=row["manifest_hash"], chain_only=True)
    assert audit.ok and "the manifest that was published" in audit.checked.head


def test_a_whole_line_will_do_and_all_that_it_says_is_compared(recorded):
    seal = seal_run(recorded)
    assert recipe.audit_run(recorded, head=seal.line(), chain_only=True).ok
    other = replace(seal, step=seal.step + 1, run="another")
    audit = recipe.audit_run(recorded, head=other.line(), chain_only=True)
    assert {finding.where.rpartition(": ")[2] for finding in heads(audit)} == {"step", "run"}


def test_a_tail_that_was_cut_off_is_found(recorded, changed):
    """With its manifests: without what was published, nothing in the folder tells."""
    seal = seal_run(recorded)

    def cut(run: Path) -> None:
        rows = read_rows(run)
        last = max(row["row"] for row in rows[:-1] if row["kind"] == "checkpoint")
        write_rows(run, rows[: last + 1])
        for row in rows[last + 1 :]:
            if row["kind"] == "checkpoint":
                (run / "manifests" / f"{row['manifest']:06d}.yaml").unlink()
        name = f"{rows[last]['manifest']:06d}.yaml"
        (run / "manifests/latest.yaml").write_bytes((run / "manifests" / name).read_bytes())

    assert changed(cut).ok
    for words in (seal.head, seal.line()):
        (finding,) = heads(changed(cut, head=words))
        assert seal.head in finding.expected and "cut off" in finding.observed


def test_a_history_written_anew_is_found(recorded, changed):
    seal = seal_run(recorded)
    audit = changed(lambda run: forge(run, lambda rows: rows[3].update(time="later")), head=seal.line())
    (finding,) = heads(audit)
    assert finding.where == f"ledger.jsonl row {seal.row}" and "written anew" in finding.observed


def test_a_chain_that_is_broken_before_what_was_published_proves_nothing(recorded, changed):
    rows = read_rows(recorded)
    audit = changed(
        lambda run: write_rows(run, [*rows[:2], *rows[3:]]), head=rows[-1]["hash"], chain_only=True
    )
    assert heads(audit) and audit.checked.head == ""


@pytest.mark.parametrize("words", ["", "ab", "recipe-seal/1 head=ab", "g" * 64])
def test_half_a_hash_is_refused(recorded, words):
    with pytest.raises(RecipeError, match="64 hexadecimal digits"):
        recipe.audit_run(recorded, head=words)


def test_the_answer_says_what_a_published_hash_leaves_open(recorded):
    without = recipe.audit_run(recorded, chain_only=True)
    seal = seal_run(recorded)
    proved = recipe.audit_run(recorded, chain_only=True, head=seal.head)
    assert any("recipe seal" in line and "another history" in line for line in without.cannot_prove)
    assert any("Rows after the published one" in line for line in proved.cannot_prove)
