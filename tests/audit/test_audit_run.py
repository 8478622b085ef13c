"""Audits of whole runs: what is right has no findings, whatever is changed is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.run.manifest import seal_of, sealed
from tests.audit.runs import forge, leaves, read_rows, write_rows

UNPROVABLE = ("time", "uri", "gpu_hours", "previous", "hash", "row", "format", "manifest_hash")
"""The trainer's own words and the clock, which nothing else tells; and what a forger makes to fit."""

again = settings(max_examples=40)


def wheres(audit):
    return [finding.where for finding in audit.findings]


def files(run: Path) -> list[Path]:
    """Every file of the record, in order; hints and the lease are none of it."""
    kept = [*run.glob("*.yaml"), *run.glob("recipes/*"), *run.glob("manifests/*"), run / "ledger.jsonl"]
    return sorted(path.relative_to(run) for path in kept)


def test_a_run_as_it_was_written_has_no_findings(recorded):
    audit = recipe.audit_run(recorded, full=True)
    assert audit.findings == () and audit.ok
    assert audit.checked.replayable == len(audit.checked.replayed) == len(read_rows(recorded)) - 2
    assert audit.checked.blocks > 5 and audit.checked.sample_seed is None


def test_A03_tokens_are_those_of_the_rows_no_rewind_discarded(recorded):
    """budget audit: the counter neither restarts on resume nor counts discarded steps."""
    audit = recipe.audit_run(recorded)
    last = read_rows(recorded)[-1]["cumulative"]
    kinds = ("body", "overlap", "special", "padding", "labels")
    assert audit.tokens == {pool: {kind: last[pool][kind] for kind in kinds} for pool in last}
    positions = sum(pool[kind] for pool in audit.tokens.values() for kind in ("body", "special", "padding"))
    assert positions == read_rows(recorded)[-1]["positions"]


def test_drift_is_below_one_context_in_every_stage(recorded):
    audit = recipe.audit_run(recorded)
    assert list(audit.drift) == ["short", "long"] and list(audit.drift["short"]) == ["web", "code", "maths"]
    for stage, context in (("short", 64), ("long", 128)):
        assert all(abs(tokens) < context for tokens in audit.drift[stage].values())
        assert all(0 < tokens < context for tokens in audit.largest_drift[stage].values())


def test_the_json_of_the_contract(recorded):
    plain = json.loads(json.dumps(recipe.audit_run(recorded).to_plain()))
    assert list(plain)[:4] == ["ok", "findings", "tokens", "drift"]
    assert plain["checked"]["rows"] == len(read_rows(recorded)) and plain["cannot_prove"]


def test_an_audit_writes_nothing_and_needs_no_lock(recorded):
    before = {path: path.stat().st_mtime_ns for path in recorded.rglob("*")}
    recipe.audit_run(recorded)
    assert {path: path.stat().st_mtime_ns for path in recorded.rglob("*")} == before


def test_a_run_without_a_checkpoint_is_audited(recorded, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(recorded, run)
    shutil.rmtree(run / "manifests")
    write_rows(run, read_rows(run)[:1])
    audit = recipe.audit_run(run)
    assert audit.ok and audit.tokens["web"]["body"] == 0 and audit.drift == {}


@again
@given(data=st.data())
def test_invariant_10_any_flipped_bit_is_found_and_its_file_named(recorded, changed, data):
    file = data.draw(st.sampled_from(files(recorded)))
    at = data.draw(st.integers(0, (recorded / file).stat().st_size - 1))
    bit = data.draw(st.integers(0, 7))

    def flip(run: Path) -> None:
        content = bytearray((run / file).read_bytes())
        content[at] ^= 1 << bit
        (run / file).write_bytes(content)

    assert any(where.startswith(str(file)) for where in wheres(changed(flip)))


@again
@given(data=st.data())
def test_invariant_10_a_rechained_forgery_of_any_value_is_found_and_named(recorded, changed, data):
    """Rows and manifests are written anew with hashes that fit: only the numbers themselves give it away."""
    rows = read_rows(recorded)
    number = data.draw(st.integers(0, len(rows) - 1))
    known = [leaf for leaf in leaves(rows[number]) if not {leaf[0][0], leaf[0][-1]} & {*UNPROVABLE, "path"}]
    path, value = data.draw(st.sampled_from(known))
    more = data.draw(st.sampled_from([1, -1, 1000, 10**13, 10**20]))

    def forged(value):
        if isinstance(value, bool):
            return not value
        return value + more if isinstance(value, int) else f"{value}x"

    def change(rows):
        inner = rows[number]
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = forged(value)

    try:
        audit = changed(lambda run: forge(run, change))
    except FileNotFoundError:  # the number of a manifest that is not there
        return
    dotted, row = ".".join(map(str, path)), f"ledger.jsonl row {number}: "
    named = [where.removeprefix(row) for where in wheres(audit) if where.startswith(row)]
    assert any(dotted.startswith(field) for field in named), (dotted, wheres(audit))


def test_a_forgery_tells_both_values_and_only_the_row_that_was_changed(recorded, changed):
    """Tokens moved from one pool to another, everywhere in a row: only a recomputation can tell."""

    def change(rows):
        row = next(row for row in rows if row["kind"] == "chunk" and row["steps"][0] > 0)
        for name, tokens in (("web", 10), ("code", -10)):
            row["pools"][name]["spent"] += tokens
            row["pools"][name]["body"] += tokens

    audit = changed(lambda run: forge(run, change))
    number = next(r["row"] for r in read_rows(recorded) if r["kind"] == "chunk" and r["steps"][0] > 0)
    row = read_rows(recorded)[number]
    where = f"ledger.jsonl row {number}: pools.web.spent"
    (finding,) = [finding for finding in audit.findings if finding.where == where]
    spent = row["pools"]["web"]["spent"]
    assert (finding.check, finding.expected, finding.observed) == ("replay", str(spent), str(spent + 10))
    of_rows = {where.split(":")[0] for where in wheres(audit) if where.startswith("ledger.jsonl row")}
    assert of_rows == {f"ledger.jsonl row {number}"}


def test_a_forged_snapshot_does_not_put_the_blame_on_the_row_after_it(recorded, changed):
    def change(rows):
        rows[4]["snapshot"]["pools"][0]["cursor"][3] += 1

    audit = changed(lambda run: forge(run, change))
    assert read_rows(recorded)[4]["kind"] == "chunk"
    assert [finding.where for finding in audit.findings if finding.check == "replay"] == [
        "ledger.jsonl row 4: snapshot.pools.0.cursor.3"
    ]


@pytest.mark.parametrize("kind", ["chunk", "checkpoint", "rewind"])
def test_invariant_10_dropped_swapped_and_repeated_rows_are_named(recorded, changed, kind):
    rows = read_rows(recorded)
    at = next(row["row"] for row in rows if row["kind"] == kind)
    orders = {
        "dropped": [*rows[:at], *rows[at + 1 :]],
        "swapped": [*rows[:at], rows[at + 1], rows[at], *rows[at + 2 :]],
        "repeated": [*rows[:at], rows[at], *rows[at:]],
    }
    for order in orders.values():
        audit = changed(lambda run, order=order: write_rows(run, order))
        assert any(f"row {at}" in where or f"row {at + 1}" in where for where in wheres(audit))
        assert {finding.check for finding in audit.findings} >= {"chain"}


@pytest.mark.parametrize("kind", ["chunk", "checkpoint", "rewind"])
def test_invariant_10_rows_dropped_before_rechaining_are_missed(recorded, changed, kind):
    at = next(row["row"] for row in read_rows(recorded) if row["kind"] == kind)
    audit = changed(lambda run: forge(run, lambda rows: rows.pop(at)))
    assert not audit.ok and not any(finding.check == "chain" for finding in audit.findings)


def test_a_torn_last_line_is_called_unfinished(recorded, changed):
    def cut(run: Path) -> None:
        data = (run / "ledger.jsonl").read_bytes()
        (run / "ledger.jsonl").write_bytes(data[:-40])

    audit = changed(cut)
    last = len(read_rows(recorded)) - 1
    assert [f"ledger.jsonl line {last}"] == [f.where for f in audit.findings if "ledger" in f.where]
    assert {finding.check for finding in audit.findings} <= {"unfinished", "manifest"}


def test_a_cut_tail_is_seen_by_the_manifest_that_is_left(recorded, changed):
    audit = changed(lambda run: write_rows(run, read_rows(run)[:-1]))
    assert any(f.where.startswith("manifests/") and f.check == "unfinished" for f in audit.findings)


def test_manifests_and_rows_are_compared_in_both_directions(recorded, changed):
    audit = changed(lambda run: (run / "manifests" / "000002.yaml").unlink())
    assert wheres(audit) == ["manifests/000002.yaml"]

    audit = changed(lambda run: shutil.copy(run / "manifests/000002.yaml", run / "manifests/000017.yaml"))
    assert wheres(audit) == ["manifests/000017.yaml"]


def test_manifests_that_changed_places_are_named(recorded, changed):
    def swap(run: Path) -> None:
        one, two = run / "manifests/000001.yaml", run / "manifests/000002.yaml"
        first = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(first)

    assert {"manifests/000001.yaml", "manifests/000002.yaml"} <= set(wheres(changed(swap)))


def test_the_copy_of_the_last_manifest_may_only_be_one_behind(recorded, changed):
    numbers = sorted(path.name for path in (recorded / "manifests").glob("0*.yaml"))
    for name, check in ((numbers[-2], "unfinished"), (numbers[0], "manifest")):
        audit = changed(
            lambda run, name=name: shutil.copy(run / "manifests" / name, run / "manifests/latest.yaml")
        )
        assert [(f.check, f.where) for f in audit.findings] == [(check, "manifests/latest.yaml")]


def test_a_missing_recipe_is_named_and_the_manifests_repeat_it(recorded, changed):
    audit = changed(lambda run: (run / "recipes/0001.yaml").unlink())
    assert set(wheres(audit)) == {"ledger.jsonl row 0: recipe", "recipes/0001.yaml"}
    assert len(audit.checked.replayed) == audit.checked.replayable > 0


def test_a_quota_changed_in_a_resealed_recipe_is_named(recorded, changed):
    def change(run: Path) -> None:
        path = run / "recipes/0001.yaml"
        text = path.read_text().replace("code: 30%", "code: 20%").replace("web: 50%", "web: 60%")
        value = yaml.safe_load(text)
        del value["hash"]
        path.write_bytes(sealed(value))
        forge(run, lambda rows: rows[0].update(recipe_hash=seal_of(path.read_bytes())))

    audit = changed(change)
    assert "recipes/0001.yaml: recipe: stages.short.quotas.code" in wheres(audit)


def test_an_unknown_recipe_version_or_file_is_named(recorded, changed):
    audit = changed(lambda run: shutil.copy(run / "recipes/0001.yaml", run / "recipes/0002.yaml"))
    assert wheres(audit) == ["recipes/0002.yaml"]


def test_a_sample_is_seeded_and_says_which_rows_it_took(recorded):
    audits = [recipe.audit_run(recorded, sample=3, seed=seed) for seed in (1, 1, 2)]
    assert audits[0].checked == audits[1].checked != audits[2].checked
    assert audits[0].checked.sample_seed == 1
    assert 3 <= len(audits[0].checked.replayed) < audits[0].checked.replayable
    assert any("sample, seed 1" in line for line in audits[0].checked.lines())


def test_workers_change_nothing(recorded):
    assert recipe.audit_run(recorded, workers=3, seed=1) == recipe.audit_run(recorded, workers=1, seed=1)


def test_progress_is_told(recorded):
    told: list[tuple[int, int]] = []
    audit = recipe.audit_run(recorded, workers=2, progress=lambda done, whole: told.append((done, whole)))
    assert told[-1] == (audit.checked.positions, audit.checked.positions) and len(told) > 1


@pytest.mark.parametrize("options", [{"sample": 0}, {"sample": 1.5}, {"workers": 0}])
def test_impossible_options_are_the_callers_fault(recorded, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        recipe.audit_run(recorded, **options)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(recipe.RecipeError, match="no run"):
        recipe.audit_run(tmp_path)
    with pytest.raises(recipe.RecipeError, match="no such folder"):
        recipe.audit_run(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ["run.yaml", "ledger.jsonl"])
@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe", b"{}\n", b"[1]\n", b"null\n"])
def test_a_run_that_lost_a_file_is_a_finding_not_a_fault(changed, file, content):
    def lose(run: Path) -> None:
        (run / file).unlink() if content is None else (run / file).write_bytes(content)

    assert any(where.startswith(file) for where in wheres(changed(lose)))
