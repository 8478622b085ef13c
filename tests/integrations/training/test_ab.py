"""The scripted comparison, at the size of a toy: pools held apart, a trunk, two branches, a figure."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.integrations.training.ab import POOLS, SMALL, Trial, make_pools, try_mixtures
from recipe.integrations.training.ab import main as ab
from recipe.pools import open_pool

TOY = (
    "stages.base.tokens=64Ki",
    "stages.base.chunk=16Ki",
    "trainer.layers=1",
    "trainer.heads=2",
    "trainer.width=16",
    "trainer.checkpoint_steps=4",
    "trainer.validation_sequences=2",
    "trainer.threads=1",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the trial ran, with three seeds."""
    path = tmp_path_factory.mktemp("ab")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        make_pools(POOLS)
        try_mixtures(Trial(runs=Path("runs/ab"), branch_step=4, overrides=TOY, say=lambda line: None))
    return path


@pytest.mark.parametrize("name", ["english", "chinese", "code", "maths"])
def test_no_document_is_held_out_and_trained_on(folder, name):
    ids = []
    for path in (folder / POOLS / name, folder / POOLS / "held" / name):
        with open_pool(path, name) as pool:
            assert pool.num_documents
            ids.append({str(row.id) for row in pool.rows(range(pool.num_documents))})
    assert not ids[0] & ids[1]


def test_E1_branches_differ_by_five_points_and_nothing_else(folder, monkeypatch):
    monkeypatch.chdir(folder)
    runs = [f"runs/ab/{name}-{seed}" for name in "AB" for seed in (1, 2, 3)]
    compared = recipe.compare_runs(runs)
    assert compared.controlled and [arm.name for arm in compared.arms] == ["A", "B"]
    assert {run.positions for run in compared.runs} == {64 * 1024}
    first, other = compared.runs[0], compared.runs[3]
    more = other.more(first)
    half = 32 * 1024
    assert more["english"] == pytest.approx(-0.05 * half, abs=1100)
    assert other.of_group("code_all") - first.of_group("code_all") == pytest.approx(0.05 * half, abs=1100)
    assert all(run.gpu_hours is not None for run in compared.runs)


def test_the_figure_shows_every_area_and_the_interval_of_every_mark(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    runs = [f"runs/ab/{name}-{seed}" for name in "AB" for seed in (1, 2, 3)]
    assert main(["compare", *runs, "--figure", "ab.svg"]) == 0
    root = ET.fromstring(Path("ab.svg").read_text())
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    titles = [element.text for element in root.iter() if element.tag.endswith("}title")]
    assert {"english.loss", "chinese.loss", "code.loss", "maths.loss"} <= set(texts)
    assert len(titles) == 4 and all("±" in title for title in titles)


def test_going_on_with_what_is_there_trains_nothing_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {file: file.stat().st_mtime_ns for file in Path("runs/ab").rglob("*.pt")}
    try_mixtures(Trial(runs=Path("runs/ab"), branch_step=4, overrides=TOY, say=lambda line: None))
    assert {file: file.stat().st_mtime_ns for file in Path("runs/ab").rglob("*.pt")} == before


def test_a_smaller_comparison_is_asked_for_and_the_usual_one_stays(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    usual = recipe.load_recipe("ab").stages["base"]
    assert (usual.tokens, recipe.load_recipe("ab", list(SMALL)).stages["base"].tokens) == (1 << 20, 1 << 17)
    assert ab(["--tokens", "16Ki", "--seeds", "7"]) == 0
    out = capsys.readouterr().out
    assert "recipe run ab stages.base.tokens=16Ki --name trunk --runs-dir runs/ab-16Ki    # to step 1" in out
    assert recipe.run_status("runs/ab-16Ki/B-7").positions == 16 * 1024


@pytest.mark.parametrize("tokens", ["8Ki", "16Kx"])
def test_a_comparison_without_a_half_way_is_refused_and_makes_nothing(tmp_path, monkeypatch, capsys, tokens):
    monkeypatch.chdir(tmp_path)
    assert ab(["--tokens", tokens]) == 2
    assert "fix" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
