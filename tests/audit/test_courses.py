"""Laws over runs of every kind: an honest one has no findings, whatever is changed is found and named."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.audit.chain import read_text
from recipe.audit.course import Course as Followed
from recipe.audit.quick import Quick
from recipe.audit.record import read_recipe
from tests.audit.courses import Course, wild_branch, wild_run
from tests.audit.runs import forge, leaves, read_rows

UNPROVABLE = {"time", "uri", "gpu_hours", "previous", "hash", "row", "format", "manifest_hash", "path"}
"""The trainer's own words and the clock, where pools lie, and what a forger makes to fit."""
SAID = {"reason", "approved_by", "ticket", "metrics"}
"""What somebody said, and no other file repeats."""

some = settings(max_examples=6)
seeds = st.integers(0, 10**9)


def of_every_kind(root: Path, seed: int, num: int = 6) -> list[Course]:
    chance = random.Random(seed)
    course = wild_run(root, chance, num)
    branch = None if course is None else wild_branch(course, "branch", num // 2)
    return [found for found in (course, branch) if found is not None]


@some
@given(seeds)
def test_invariant_9_an_honest_run_of_any_course_has_no_findings(tmp_path_factory, seed):
    for course in of_every_kind(tmp_path_factory.mktemp("honest"), seed):
        audit = recipe.audit_run(course.path, full=True, workers=1)
        assert audit.findings == (), course.done
        assert audit.checked.unavailable == 0 or "grow" in course.done, course.done


@some
@given(seeds)
def test_a_quick_look_sees_what_a_full_comparison_does(tmp_path_factory, seed):
    for course in of_every_kind(tmp_path_factory.mktemp("quick"), seed):
        text, _ = read_text(course.path / "ledger.jsonl")
        intent, _ = read_recipe(course.path, text.row(text.entries[0]))
        assert intent is not None
        quick, full = (Followed(text, intent, course.path) for _ in range(2))
        quick.follow()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Quick, "take", lambda *_: 0)
            full.follow()
        for name in ("findings", "numbers", "versions", "stated"):
            assert getattr(quick, name) == getattr(full, name)
        pairs = zip(quick.lineage.marks, full.lineage.marks, strict=True)
        assert all((a.entry, a.planned_to, a.drift) == (b.entry, b.planned_to, b.drift) for a, b in pairs)
        pairs = zip(quick.segments, full.segments, strict=True)
        assert all((a.stops, a.positions, a.drawn) == (b.stops, b.positions, b.drawn) for a, b in pairs)


@pytest.fixture(scope="module")
def turned(tmp_path_factory) -> list[Path]:
    """Runs in which every kind of row occurs."""
    paths: list[Path] = []
    lacking = {"amend", "skip", "withdraw", "rewind", "metrics", "checkpoint", "chunk", "created"}
    for seed in range(40):
        for course in of_every_kind(tmp_path_factory.mktemp("turned"), seed, 8):
            kinds = {row["kind"] for row in read_rows(course.path)}
            if kinds & lacking or (course.path / "parent.yaml").is_file():
                paths.append(course.path)
                lacking -= kinds
        if not lacking and any((path / "parent.yaml").is_file() for path in paths):
            return paths
    raise AssertionError(lacking)


def altered(value: Any, more: int) -> Any:
    if isinstance(value, bool):
        return not value
    return value + more if isinstance(value, int) else f"{value}x"


@settings(max_examples=30)
@given(data=st.data())
def test_invariant_10_a_rechained_forgery_of_any_row_is_found(turned, data):
    """Numbers of amendments, skips, withdrawals and branches too, whatever fits together afterwards."""
    run = data.draw(st.sampled_from(turned))
    rows = read_rows(run)
    kind = data.draw(st.sampled_from(sorted({row["kind"] for row in rows})))
    number = data.draw(st.sampled_from([row["row"] for row in rows if row["kind"] == kind]))
    known = [p for p, _ in leaves(rows[number]) if not {p[0], p[-1]} & UNPROVABLE and p[0] not in SAID]
    path = data.draw(st.sampled_from(known))
    more = data.draw(st.sampled_from([1, -1, 1000, 10**13]))

    def change(rows):
        inner = rows[number]
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = altered(inner[path[-1]], more)

    copy = run.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    try:
        forge(copy, change)
    except FileNotFoundError:  # the number of a manifest that is not there
        return
    assert not recipe.audit_run(copy, full=True, workers=1).ok, path


@settings(max_examples=30)
@given(data=st.data())
def test_invariant_10_any_flipped_bit_is_found_and_its_file_named(turned, data):
    """Also of recipe versions, lists of withdrawn documents, and a branch's copy of its parent's manifest."""
    run = data.draw(st.sampled_from(turned))
    folders = ("*.yaml", "recipes/*", "manifests/*", "withdrawn/*", "ledger.jsonl")
    places = {folder: sorted(run.glob(folder)) for folder in folders}
    folder = data.draw(st.sampled_from([folder for folder in folders if places[folder]]))
    file = data.draw(st.sampled_from(places[folder])).relative_to(run)
    copy = run.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    content = bytearray((copy / file).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    (copy / file).write_bytes(content)
    found = recipe.audit_run(copy, workers=1).findings
    assert any(finding.where.startswith(str(file)) for finding in found)
