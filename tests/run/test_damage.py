"""A run folder somebody changed: one message that names the audit, never a traceback, never a row more."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import recipe
from recipe import RecipeError
from recipe.config import recipe_from_plain
from recipe.run import ledger, writes
from recipe.run.canonical import canonical
from recipe.run.ledger import read_rows, read_tail
from recipe.run.row import sealed_row
from tests.run import faulty

NUM_ROWS = 8


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, pools_root: Path) -> Path:
    """An unfinished run with chunks, checkpoints and a rewind on record."""
    path = tmp_path_factory.mktemp("damage") / "run"
    for operation in (faulty.start, faulty.first, faulty.second, faulty.rewound):
        operation(path, pools_root)
    assert len(list(read_rows(path / "ledger.jsonl"))) >= NUM_ROWS
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "run")


def dropped(lines: list[bytes], at: int) -> list[bytes]:
    return lines[:at] + lines[at + 1 :]


def swapped(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *lines[at : at + 2][::-1], *lines[at + 2 :]]


def repeated(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[: at + 1], lines[at], *lines[at + 1 :]]


def first_to_the_end(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *lines[at + 1 :], lines[at]]


Edit = Callable[[list[bytes], int], list[bytes]]
EDITS = [dropped, swapped, repeated, first_to_the_end]


def edit(path: Path, change: Edit, at: int) -> bool:
    """Change the order of the rows; False where that changes nothing."""
    file = path / "ledger.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(change(lines, at)))
    return change(lines, at) != lines


def reopened(path: Path, pools_root: Path) -> list[Callable[[], object]]:
    wanted = recipe_from_plain(faulty.plain_recipe(pools_root), source="test")
    return [
        lambda: recipe.open_run(path),
        lambda: recipe.open_run(path, step=5),
        lambda: recipe.open_run(path, step=0),
        lambda: recipe.resume_or_start(wanted, path),
        lambda: recipe.run_status(path),
    ]


def refused(work: Callable[[], object]) -> None:
    with pytest.raises(RecipeError) as caught:
        work()
    assert "recipe audit" in str(caught.value)


@pytest.mark.parametrize("change", EDITS)
@pytest.mark.parametrize("at", range(NUM_ROWS))
def test_invariant_10_dropped_swapped_and_repeated_rows_are_refused(
    path: Path, pools_root: Path, change: Edit, at: int
):
    if edit(path, change, at):
        for work in reopened(path, pools_root):
            refused(work)


@pytest.mark.parametrize("change", EDITS)
@pytest.mark.parametrize("at", range(NUM_ROWS))
def test_of_a_large_ledger_what_is_used_is_checked(
    path: Path, pools_root: Path, change: Edit, at: int, monkeypatch: pytest.MonkeyPatch
):
    """Opened at its end every edit of length shows: the last checkpoint's pointers miss their rows."""
    monkeypatch.setattr(ledger, "CHAIN_BYTES", 0)
    monkeypatch.setattr(ledger, "CHAIN_ROWS", 3)
    step = recipe.open_run(path).step
    if not edit(path, change, at):
        return
    for work in reopened(path, pools_root):
        try:
            opened = work()
        except RecipeError as error:
            assert "recipe audit" in str(error)
        else:
            assert opened.step in (step, 5, 0)  # type: ignore[attr-defined]
    if change is not swapped:
        refused(lambda: recipe.open_run(path))


@pytest.mark.parametrize("change", EDITS)
@pytest.mark.parametrize("at", range(NUM_ROWS))
def test_nothing_is_added_to_a_ledger_that_changed_behind_the_handle(path: Path, change: Edit, at: int):
    with recipe.open_run(path) as run:
        run.checkpoint(run.step + 1)
        size = (path / "ledger.jsonl").stat().st_size
        edit(path, change, at)
        edited = (path / "ledger.jsonl").read_bytes()
        if len(edited) == size:
            return
        refused(lambda: run.checkpoint(run.step + 1))
        assert (path / "ledger.jsonl").read_bytes() == edited


def test_a_file_of_another_size_is_not_added_to(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"abcd")
    with writes.locked(tmp_path / "file") as append:
        refused(lambda: append(b"e", at=3, size=3))
        assert (tmp_path / "file").read_bytes() == b"abcd"
        append(b"e", at=3, size=4)
    assert (tmp_path / "file").read_bytes() == b"abce"


BROKEN = [
    {"closing": {"row": 1, "offset": 0}},
    {"closing": {"row": 0, "offset": 3}},
    {"closing": {"row": 0, "offset": 10**30}},
    {"closing": {"row": 0, "offset": -1}},
    {"closing": {"row": 0, "offset": "0"}},
    {"closing": None},
    {"lineage": {"depth": 1, "parent": 0, "skip": 0}},
    {"lineage": {"depth": 1, "parent": 7, "skip": None}},
    {"lineage": {"depth": None, "parent": None, "skip": None}},
    {"lineage": []},
    {"snapshot": {"format": 1}},
    {"step": "x"},
    {"steps": []},
    {"kind": "chunk"},
    {"kind": "chunk", "steps": 3},
    {"kind": "rewind"},
    {"kind": "created"},
    {"kind": 3},
]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("change", BROKEN)
def test_a_last_row_whose_hash_is_right_is_not_trusted_for_that(
    path: Path, pools_root: Path, change: dict, local: bool, monkeypatch: pytest.MonkeyPatch
):
    """What a row points to is checked against what is there; only RecipeError ever comes of it."""
    if local:
        monkeypatch.setattr(ledger, "CHAIN_BYTES", 0)
    last = read_tail(path / "ledger.jsonl").last
    body = {k: v for k, v in last.data.items() if k not in ("format", "row", "time", "previous", "hash")}
    if change == {"steps": []}:
        change = {"kind": "chunk", "steps": []}
    row = sealed_row(
        {**body, **change}, number=last.number, previous=last.data["previous"], time=last.data["time"]
    )
    with (path / "ledger.jsonl").open("r+b") as file:
        file.truncate(last.offset)
        file.seek(last.offset)
        file.write(canonical(row) + b"\n")
    for work in [*reopened(path, pools_root), lambda: recipe.open_run(path).checkpoint(12)]:
        try:
            work()
        except RecipeError as error:
            assert "recipe audit" in str(error)


def replaced(path: Path, what: str, by: str) -> None:
    target = path / what
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    if by == "folder":
        target.mkdir()
    if by == "file":
        target.touch()
    if by == "link":
        target.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("what", "by"),
    [
        ("manifests/latest.yaml", "folder"),
        ("manifests", "file"),
        ("ledger.jsonl", "folder"),
        ("ledger.jsonl", "nothing"),
        ("ledger.jsonl", "link"),
        ("run.yaml", "folder"),
        ("run.yaml", "nothing"),
    ],
)
def test_a_file_that_is_none_is_one_message(path: Path, pools_root: Path, what: str, by: str):
    replaced(path, what, by)
    for work in reopened(path, pools_root):
        refused(work)


@pytest.mark.parametrize("name", ["manifests/000003.yaml", "recipes/0001.yaml"])
def test_a_sealed_file_that_is_a_folder_is_one_message(path: Path, name: str):
    replaced(path, name, "folder")
    with pytest.raises(RecipeError, match=name):
        recipe.open_run(path, step=0 if "recipes" in name else None)
