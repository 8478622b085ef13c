"""Facts B1 and B2 from a Markdown file to an audited run, and aligned runs away from their tokenizer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.audit import audit_run
from recipe.cli.main import main
from recipe.config import recipe_from_plain
from recipe.integrations.acceptance import verify_package, verify_run
from recipe.run.handover import Wanted, hand_over_run
from recipe.run.run import Run
from recipe.run.tracing.looking import look_at_rows
from recipe.run.tracing.rows import trace_row
from recipe.run.tracing.trace import trace_document
from tests.audit.runs import plain_recipe
from tests.text.small_tokenizers import LINES, byte_level

CHAPTERS = (3000, 3500, 3000, 2500)
ALIGNED = {"align": "section", "align_within": 1000}
STEPS = 12
"""Two tutorials of four chapters are eight rows: one epoch and a half."""


def chapter(number: int, size: int) -> str:
    """A heading, prose, and a program that its last two thirds are."""
    text = f"# Chapter {number}\n\nWhat follows is a program.\n\n```python\n"
    line = "# no heading, but a comment of it\n"
    text += line * ((size - len(text) - 5) // len(line))
    return text + "." * (size - len(text) - 5) + "\n```\n"


def prepared(root: Path) -> None:
    """Two tutorials of 12,000 bytes, read by ``recipe prepare``."""
    (root / "texts").mkdir()
    for name in ("one.md", "two.md"):
        text = "".join(chapter(number, size) for number, size in enumerate(CHAPTERS, 1))
        assert len(text) == 12_000
        (root / "texts" / name).write_text(text, encoding="utf-8")
    given = ["prepare", str(root / "pools" / "web"), str(root / "texts"), "--include", "*.md"]
    assert main([*given, "--sections", "markdown", "--tokenizer", "bytes"]) == 0


def wanted(root: Path, slicing: dict[str, Any]) -> Any:
    stage = {"context": 4000, "steps": STEPS, "batch": {"sequences": 1}, "packing": "none", "chunk": 12_000}
    stages = {"one": {**stage, "quotas": {"web": "100%"}, "slicing": {"window": 4000, **slicing}}}
    plain = plain_recipe(root, stages, pools={"web": {}}, tokenizer="bytes")
    return recipe_from_plain(plain, source="test")


def served(stream: Any, steps: range) -> list[tuple[Any, ...]]:
    """(document, start, stop, fresh) of the one piece of each step."""
    rows = [stream.provenance(step, 0) for step in steps]
    assert all(len(row) == 1 for row in rows)
    return [(row[0].document, row[0].start, row[0].stop, row[0].fresh) for row in rows]


@pytest.mark.parametrize(
    ("slicing", "lengths"), [({}, [4000, 4000, 4000]), (ALIGNED, list(CHAPTERS))], ids=["B1", "B2"]
)
def test_B1_B2_a_tutorial_is_cut_into_its_chapters_or_through_them(
    tmp_path: Path, slicing: Any, lengths: Any
):
    prepared(tmp_path)
    drawn = wanted(tmp_path, slicing)
    epoch = recipe.make_plan(drawn).stages["one"].pools["web"].epoch
    assert epoch["sequences"] == 2 * len(lengths)
    if slicing:
        assert (epoch["align_moved"], epoch["align_unaligned"], epoch["align_pieces"]) == (6, 0, 2)
    with recipe.start_run(drawn, tmp_path / "run") as run:
        for step in (5, STEPS):
            run.checkpoint(step)
        pieces = served(run.stream(), range(2 * len(lengths)))
    ends = np.cumsum(lengths).tolist()
    expected = sorted(
        (name, b - n, b, b - n) for name in ("one.md", "two.md") for n, b in zip(lengths, ends, strict=True)
    )
    assert sorted(pieces) == expected
    report = audit_run(tmp_path / "run", full=True)
    assert report.ok, report.findings
    accepted = verify_run(tmp_path / "run", sources=[tmp_path / "texts"])
    assert accepted.ok, accepted


def test_B2_a_trace_names_the_chapters_and_their_lines(tmp_path: Path):
    prepared(tmp_path)
    with recipe.start_run(wanted(tmp_path, ALIGNED), tmp_path / "run") as run:
        run.checkpoint(8)
    readings = trace_document(tmp_path / "run", "one.md", pool="web")
    assert sorted((r.start, r.stop, r.fresh) for r in readings) == [
        (0, 3000, 0), (3000, 6500, 3000), (6500, 9500, 6500), (9500, 12_000, 9500),
    ]  # fmt: skip
    text = (tmp_path / "texts/one.md").read_text(encoding="utf-8")
    for reading in readings:
        (piece,) = trace_row(tmp_path / "run", reading.step, reading.row, sources=[tmp_path / "texts"])
        assert piece.source.characters == (piece.start, piece.stop)
        assert piece.source.text is not None and text[piece.start :].startswith(piece.source.text[:80])
        assert text[piece.start :].startswith("# Chapter")
    (look,) = look_at_rows(tmp_path / "run", [(readings[0].step, readings[0].row)])
    assert look.to_plain()["pieces"][0]["region"] == readings_region(readings[0])


def readings_region(reading: Any) -> str:
    """A document of three windows: the head is its first half."""
    return "head" if 2 * reading.fresh < 12_000 else "tail"


def test_B2_a_run_resumes_at_every_step(tmp_path: Path):
    prepared(tmp_path)
    drawn = wanted(tmp_path, ALIGNED)
    with recipe.start_run(drawn, tmp_path / "run") as run:
        whole = [run.stream().batch(step)["input_ids"].copy() for step in range(STEPS)]
        for step in range(STEPS + 1):
            run.checkpoint(step)
    for step in range(STEPS):
        with recipe.open_run(tmp_path / "run", step=step) as run:
            stream, state = run.stream(), run.state(step)
            other = recipe.stream_from(state, pools_root=tmp_path)
            for later in range(step, STEPS):
                assert np.array_equal(stream.batch(later)["input_ids"], whole[later])
                assert np.array_equal(other.batch(later)["input_ids"], whole[later])


def start_away(root: Path) -> Run:
    """A run that is aligned at words of a tokenizer that lies in a folder."""
    (root / "tok").mkdir()
    byte_level(root / "tok")
    (root / "texts").mkdir()
    for number in range(40):
        (root / "texts" / f"{number}.txt").write_text("\n".join(LINES * (1 + number % 3)), encoding="utf-8")
    assert (
        main(["prepare", str(root / "pools/web"), str(root / "texts"), "--tokenizer", str(root / "tok")]) == 0
    )
    stage = {"context": 64, "steps": 12, "batch": {"sequences": 2}, "chunk": 400, "quotas": {"web": "100%"}}
    stages = {"one": {**stage, "slicing": {"align": "sentence"}}}
    plain = plain_recipe(root, stages, pools={"web": {}}, tokenizer={"path": str(root / "tok")})
    run = recipe.start_run(recipe_from_plain(plain, source="test"), root / "run")
    run.checkpoint(12)
    return run


def test_G1_a_package_brings_the_tokenizer_that_its_cuts_go_by(tmp_path: Path):
    start_away(tmp_path).close()
    package = hand_over_run(tmp_path / "run", tmp_path / "package", Wanted(archive="none")).path
    shutil.rmtree(tmp_path / "tok")
    accepted = verify_package(package, pools_root=tmp_path)
    assert accepted.ok, accepted
    (audited,) = [check for check in accepted.checks if check.name == "audit"]
    assert "1,536 positions computed again" in str(audited)


def test_an_audit_is_told_where_the_tokenizer_is_now(tmp_path: Path):
    start_away(tmp_path).close()
    (tmp_path / "tok").rename(tmp_path / "moved")
    bare = audit_run(tmp_path / "run", full=True)
    assert "its cuts are aligned, nothing recomputed" in bare.checked.pools["web"]
    told = audit_run(tmp_path / "run", full=True, tokenizer=tmp_path / "moved")
    assert told.ok, told.findings
    assert told.checked.positions == 12 * 2 * 64
    assert main(["audit", str(tmp_path / "run"), "--tokenizer", str(tmp_path / "moved")]) == 0
    (tmp_path / "other").mkdir()
    byte_level(tmp_path / "other", size=500)
    other = audit_run(tmp_path / "run", full=True, tokenizer=tmp_path / "other")
    assert "nothing recomputed" in other.checked.pools["web"]
