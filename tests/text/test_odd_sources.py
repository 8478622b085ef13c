"""Files among the sources that are not what a person may take them for: told, or refused."""

from argparse import Namespace

import pytest

from recipe.cli.as_options import as_options
from recipe.errors import RecipeError
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions, list_sources
from recipe.text.tokenizers import load_tokenizer

BYTES = load_tokenizer("bytes")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "texts"
    path.mkdir()
    for name in ("a.py", "b.md", "c.csv", "d.csv", "e.json"):
        (path / name).write_text("x")
    return path


def notes(sources, out, **read):
    said = []
    options = PrepareOptions(workers=1, read=ReadOptions(**read))
    prepare_pool(sources, out, BYTES, options, progress=said.append)
    return " ".join(event.text for event in said if event.phase == "note")


def problem(sources, **read):
    with pytest.raises(RecipeError) as caught:
        list_sources(sources, ReadOptions(**read))
    (found,) = caught.value.problems
    return found


def test_tables_that_are_read_as_one_text_are_counted_by_suffix(tmp_path, folder):
    assert ": 2 .csv, 1 .json (" in notes([folder], tmp_path / "pool")


def test_a_table_that_is_named_is_told_too(tmp_path, folder):
    assert ": 1 .csv (" in notes([folder / "c.csv"], tmp_path / "pool")


def test_who_says_text_or_names_other_files_is_told_nothing(tmp_path, folder):
    assert "one text a file" not in notes([folder], tmp_path / "one", format="text")
    assert "one text a file" not in notes([folder], tmp_path / "two", include=("*.py", "*.md"))


@pytest.mark.parametrize("target", ["missing.txt", "link.txt"])
def test_a_link_to_nothing_is_refused_and_may_be_left_out(folder, target):
    (folder / "link.txt").symlink_to(target)
    found = problem([folder])
    assert found.where == str(folder / "link.txt")
    assert (found.given, "--exclude" in found.fix) == ("a link to nothing", True)
    files = list_sources([folder], ReadOptions(exclude=("link*",)))
    assert [file.name for file in files] == ["a.py", "b.md", "c.csv", "d.csv", "e.json"]


def test_a_link_to_a_file_is_read(folder):
    (folder / "link.txt").symlink_to("a.py")
    assert "link.txt" in [file.name for file in list_sources([folder], ReadOptions())]


@pytest.mark.parametrize("read", [{"include": ("*.md",)}, {"exclude": ("*.py",)}])
def test_a_named_file_that_the_globs_leave_out_is_refused(folder, read):
    found = problem([folder / "a.py"], **read)
    assert "left out by --include or --exclude" in found.given
    assert list_sources([folder / "b.md"], ReadOptions(**read))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tok.npy", "{path: PLACE, eos: ID}"),
        ("raw.bin", "{path: PLACE, dtype: uint16, eos: ID}"),
        ("pair.idx", "{path: STEM}"),
    ],
)
def test_token_ids_need_not_be_prepared_and_the_refusal_says_how_they_are_read(folder, name, said):
    file = folder / name
    file.write_bytes(b"1234")
    with pytest.raises(RecipeError) as caught:
        list_sources([folder], ReadOptions())
    (problem,) = caught.value.problems
    said = said.replace("PLACE", str(file)).replace("STEM", str(file.with_suffix("")))
    assert f"in a recipe: pools: {{NAME: {said}}}, or leave it out with --exclude" in problem.fix
    assert as_options(caught.value, Namespace()).problems[0].fix == problem.fix
