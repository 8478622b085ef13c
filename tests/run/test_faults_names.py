"""Nothing leaves the runs folder: names, links, files that a record names; and YAML that is only data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.run.comparing.evidence import read_evidence
from recipe.run.folder import RunFolder
from recipe.run.manifest import unseal, yaml_value
from tests.run.cuts import patched, restore
from tests.run.every_kind import reading, resealed, rewritten, rich_run, writing
from tests.run.faulty import FaultyOs
from tests.run.operations import World, make_pools
from tests.run.test_damage_kinds import AUDITS, swapped, told

NO_NAMES = [
    "..",
    "../x",
    "a/b",
    "/x",
    "",
    ".hidden",
    " x",
    "x ",
    "-m",
    "a\0b",
    "a\nb",
    "a\x1b[31mb",
    "a\u202eb",
    "a\u200bb",
    "\udcff",
    "x" * 201,
    "é" * 101,
]
"""Steps out of the folder, hidden, of control characters, that look like another one, or too long."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("names")
    world = World(make_pools(folder / "pools"), folder / "runs")
    with patched(FaultyOs(None)):
        rich_run(world)
    shutil.copytree(world.runs, folder / "kept")
    return world


@pytest.fixture
def world(kept: World) -> World:
    restore(kept.runs.parent / "kept", kept.runs)
    return kept


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if "lease" not in path.parts}


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_none_is_refused_before_anything_is_written(world: World, name: str):
    before = everything(world.runs.parent)
    with pytest.raises(RecipeError, match=r"plain name"):
        branch_run(world.run, Wish(name=name))
    root = world.runs / name if name not in ("", "/x") else world.runs / "."
    if os.fspath(root).isprintable() and "/" not in name and name != "":
        with pytest.raises(RecipeError):
            recipe.start_run(world.recipe(), root).close()
    assert everything(world.runs.parent) == before


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_recipe_whose_name_is_none_is_no_recipe(world: World, name: str):
    with pytest.raises(RecipeError, match="name"):
        recipe_from_plain({**recipe_to_plain(world.recipe()), "name": name}, source="test")


@pytest.mark.parametrize("name", ["$(id)", "a;b", "C:x", "a\\b", "模型 1", "a@3", "ü"])
def test_odd_but_plain_names_are_one_folder(world: World, name: str, tmp_path: Path):
    (path,) = branch_run(world.run, Wish(name=name), root=tmp_path)
    assert path == tmp_path / name
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208 - as the system has it
    assert recipe.open_run(path).name == name


LINKED = ["ledger.jsonl", "run.yaml", "recipes", "manifests", "lease", "snapshots", "withdrawn", "evidence"]


@pytest.mark.parametrize("what", LINKED)
def test_links_in_place_of_files_of_a_run_are_not_followed(world: World, what: str, tmp_path: Path):
    """Neither read nor written through: what they lead to is not the run's."""
    outside = tmp_path / "outside"
    (world.run / what).rename(outside)
    (world.run / what).symlink_to(outside)
    before = everything(tmp_path)
    for key, verb in {**reading(world), **writing(world)}.items():
        if key not in (*AUDITS, "table"):
            message = told(verb)
            assert message is not None, key
            assert str(world.run / what) in message, (key, message)
    assert everything(tmp_path) == before


def test_a_branch_is_not_created_through_a_link(world: World, tmp_path: Path):
    (world.runs / "C").symlink_to(tmp_path)
    (world.runs / "D").symlink_to(tmp_path / "nowhere")
    for name in "CD":
        with pytest.raises(RecipeError):
            branch_run(world.run, Wish(name=name))
    assert list(tmp_path.iterdir()) == []


def forged(world: World, kind: str, **said: Any) -> None:
    """A ledger in which the rows of a kind say something else, chained on."""
    rewritten(world.run, lambda _, body: {**body, **said} if body["kind"] == kind else body)


@pytest.mark.parametrize("file", ["../../../etc/passwd", "/etc/passwd", "withdrawn/../../x", "a\0b", ""])
def test_a_row_that_names_a_file_elsewhere_is_damage(world: World, file: str):
    forged(world, "withdraw", file=file)
    with pytest.raises(RecipeError, match=r"damaged|withdrawn"):
        withdraw_run(world.run, [5], pool="a", ticket=Ticket(reason="x"))
    assert not (world.run / "withdrawn" / "0002.json").exists()


@pytest.mark.parametrize("version", [0, -1, 99_999, 10**30, "../../x", None, 1.0])
def test_a_recipe_version_that_is_none_is_one_message(world: World, version: Any):
    forged(world, "created", recipe=version)
    for step in (None, 0):
        with pytest.raises(RecipeError):
            recipe.open_run(world.run, step=step)


@pytest.mark.parametrize("mark", ["../../../etc/passwd", "/etc/passwd", "a\0b", "", "f" * 63, "x" * 5000])
def test_evidence_is_named_by_a_hash_alone(world: World, mark: str):
    with pytest.raises(RecipeError, match="not the evidence"):
        read_evidence(RunFolder(world.run), mark)


@pytest.mark.parametrize("path", ["/etc", "../../..", "a\0b", "x" * 5000, "/dev/zero", ""])
def test_a_parent_that_is_no_run_is_a_parent_that_is_not_there(world: World, path: str):
    branch = world.runs / "B"

    def change(_: int, body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] != "created":
            return body
        return {**body, "parent": {**body["parent"], "path": path, "run": path}}

    rewritten(branch, change)
    for verb in {**reading(world, "B"), **writing(world, "B")}.values():
        told(verb)


PYTHON = "!!python/object/apply:os.system ['touch pwned']"
BOMB = "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 40))
TEXTS = [
    PYTHON,
    f"a: {PYTHON}",
    f"b0: &b0 [x]\n{BOMB}",
    "a: &a {b: *a}",
    "[" * 100_000,
    "a: {" * 5000,
    "- a",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_yaml_of_a_record_is_data_and_bounded(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match="no manifest"):
        yaml_value(Path("manifest.yaml"), text.encode())
    assert list(tmp_path.iterdir()) == []


def test_addresses_with_asterisks_are_no_aliases():
    assert yaml_value(Path("x"), b"uri: s3://bucket/*?a=1&b=2\n") == {"uri": "s3://bucket/*?a=1&b=2"}


@pytest.mark.parametrize("file", ["manifests/000010.yaml", "recipes/0003.yaml", "run.yaml"])
def test_a_target_in_a_record_makes_nothing(
    world: World, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its hash is right, and the rows name that: a forgery."""
    monkeypatch.chdir(tmp_path)
    old = unseal(world.run / file, (world.run / file).read_bytes())["hash"]
    new = resealed(world.run / file, lambda plain: _with_target(plain))
    rewritten(world.run, lambda _, body: swapped(body, old, new))
    for verb in {**reading(world), **writing(world)}.values():
        told(verb)
    assert list(tmp_path.iterdir()) == []


def _with_target(value: Any) -> Any:
    """Every mapping wants something to be called."""
    if isinstance(value, dict):
        return {**{key: _with_target(inner) for key, inner in value.items()}, "_target_": "os.system"}
    return value


Words = Callable[[Path], list[str]]
RECIPE = """\
seed: 1
pools_root: {pools}
pools: {{a: {{path: a}}}}
stages: {{s: {{steps: 4, context: 16, batch: {{sequences: 2}}, quotas: {{a: 100%}}}}}}
"""
HOSTILE = [
    f"trainer: {PYTHON}",
    "trainer: {_target_: os.system}",
    "trainer: {a: [{_target_: os.system}]}",
    "_target_: os.system",
    "policy: {_target_: os.system, every: 32}",
    "policy: {_target_: recipe.maths.policies.np.load, every: 32}",
    f"trainer:\n  b0: &b0 [x]\n{BOMB.replace('b', '  b', 0)}",
    "trainer: " + "{a: " * 2000 + "1" + "}" * 2000,
    "name: ../../x",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_recipe_is_one_message_and_starts_nothing(
    world: World,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    Path("hostile.yaml").write_text(RECIPE.format(pools=world.pools) + text)
    assert main(["run", "hostile.yaml"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert os.listdir() == ["hostile.yaml"]  # noqa: PTH208 - as the system has it
