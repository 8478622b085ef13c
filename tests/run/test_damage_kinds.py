"""Rows and files of every kind that somebody changed: one message where they are used, or as before.

`recipe audit` names every fault (tests/audit). Here: no verb goes on with what is damaged, none writes
after it, and none ends in a traceback.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.errors import RecipeError
from recipe.run import lease
from recipe.run.ledger import read_rows
from recipe.run.shapes import SHAPES
from tests.run.cuts import patched, restore
from tests.run.every_kind import reading, resealed, rewritten, rich_run, writing
from tests.run.faulty import FaultyOs
from tests.run.operations import World, make_pools
from tests.run.test_damage import EDITS, Edit, dropped, edit

KINDS = set(SHAPES) - {"warning", "data"}
"""Of the rows of the run that is damaged here; the others are in test_damage and test_new_data."""
AUDITS = ("audit", "seal")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A run with rows of every kind, and a branch of it."""
    folder = tmp_path_factory.mktemp("kinds")
    world = World(make_pools(folder / "pools"), folder / "runs")
    with patched(FaultyOs(None)):
        rich_run(world)
    shutil.copytree(world.runs, folder / "kept")
    return world


@pytest.fixture
def world(kept: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """At the very place where it was made: branches know the place of their parents."""
    monkeypatch.setattr(lease, "WAIT_SECONDS", 0.0)
    restore(kept.runs.parent / "kept", kept.runs)
    return kept


def told(verb: Callable[[], object]) -> str | None:
    """The one message of a verb that refuses; None where it goes on."""
    try:
        with patched(FaultyOs(None)):
            verb()
    except RecipeError as error:
        return str(error)
    return None


def ledger(world: World, name: str = "run") -> bytes:
    return (world.runs / name / "ledger.jsonl").read_bytes()


def rows(world: World, name: str = "run") -> list[Any]:
    return list(read_rows(world.runs / name / "ledger.jsonl"))


def test_the_run_has_rows_of_every_kind(world: World):
    assert {row.kind for name in ("run", "B") for row in rows(world, name)} == KINDS


def flipped(lines: list[bytes], at: int) -> list[bytes]:
    """One letter of a row differs."""
    middle = len(lines[at]) // 2
    changed = lines[at][:middle] + bytes([lines[at][middle] ^ 1]) + lines[at][middle + 1 :]
    return [*lines[:at], changed, *lines[at + 1 :]]


@pytest.mark.parametrize("change", [*EDITS, flipped])
def test_invariant_10_rows_of_every_kind_are_where_and_what_they_were(world: World, change: Edit):
    for at in range(len(rows(world))):
        restore(world.runs.parent / "kept", world.runs)
        is_tail = change is dropped and at == len(rows(world)) - 1  # of what was cut off nothing tells
        if is_tail or not edit(world.run, change, at):
            continue
        before = ledger(world)
        some = ("open", "status", "compare", "amend", "skip", "withdraw", "attach", "branch at 4", "forget")
        verbs = {**reading(world), **writing(world)}
        for name in some:
            message = told(verbs[name])
            assert message is not None, (at, name)
            assert "recipe audit" in message, (at, name, message)
        assert ledger(world) == before


def test_a_row_of_another_shape_is_refused_although_its_hash_is_right(world: World):
    """Each key of each kind, with a value that it never has; the rest of the ledger is chained on."""
    first = {row.kind: row.number for row in reversed(rows(world))}
    for kind, number in first.items():
        for key in SHAPES[kind]:
            restore(world.runs.parent / "kept", world.runs)
            rewritten(world.run, lambda n, body, at=number, k=key: {**body, k: [-1]} if n == at else body)
            for name in ("status", "amend", "branch"):
                message = told({**reading(world), **writing(world)}[name])
                assert message is not None, (kind, key, name)
                assert f"{kind} row {number}: {key}" in message, (kind, key, message)


def files(world: World) -> list[str]:
    """The files of the record, by their path below the runs; of the manifests some, the late one too."""
    inner = [path for path in world.runs.rglob("*") if path.is_file() and "lease" not in path.parts]
    names = [path.relative_to(world.runs).as_posix() for path in inner]
    some = [f"run/manifests/{number:06d}.yaml" for number in (2, 3, 4, 5, 8)]
    return sorted(name for name in names if not name.endswith("ledger.jsonl") and name not in some)


def truths(world: World, name: str) -> dict[str, object]:
    """What the verbs that only read say of a whole record."""
    return {key: verb() for key, verb in reading(world, name).items() if key in ("status", "serve")}


@pytest.mark.parametrize("how", ["missing", "edited", "empty", "folder"])
def test_files_of_every_kind_are_refused_where_they_are_used(world: World, how: str):
    """Missing, edited, empty, or a folder: each verb refuses, or says what it says of a whole record."""
    whole = {name: truths(world, name) for name in ("run", "B")}
    for file in files(world):
        restore(world.runs.parent / "kept", world.runs)
        damage(world.runs / file, how)
        name = file.split("/")[0]
        for key, verb in reading(world, name).items():
            if key in AUDITS and how != "missing":
                continue
            try:
                said = verb()
            except RecipeError:
                continue
            assert key not in whole[name] or said == whole[name][key], (file, key)
        for verb in writing(world, name).values():
            before = ledger(world, name)
            if told(verb) is not None:
                assert ledger(world, name) == before, (file, verb)


def damage(path: Path, how: str) -> None:
    """Change a file."""
    data = path.read_bytes()
    path.unlink()
    if how == "edited":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif how == "empty":
        path.touch()
    elif how == "folder":
        path.mkdir()


@pytest.mark.parametrize("file", ["recipes/0002.yaml", "parent.yaml", "manifests/000001.yaml", "run.yaml"])
def test_what_is_missing_is_named_by_who_needs_it(world: World, file: str):
    name = "B" if file == "parent.yaml" else "run"
    (world.runs / name / file).unlink()
    verbs = {**reading(world, name), **writing(world, name)}
    messages = [told(verb) for key, verb in verbs.items() if key not in AUDITS]
    named = [message for message in messages if message is not None and file.split("/")[-1] in message]
    assert named or file.startswith("manifests"), messages
    assert recipe.audit_run(world.runs / name, workers=1).findings if file != "run.yaml" else True


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_damaged_lease_stops_who_writes_and_nobody_else(world: World, text: str):
    (world.run / "lease" / "0000000999.json").write_text(text)
    assert "lease cannot be read" in str(recipe.run_status(world.run).writer)
    for key, verb in reading(world).items():
        assert key.startswith("open at") or told(verb) is None, key
    before = ledger(world)
    for key, verb in writing(world).items():
        if key not in ("branch", "branch at 4", "forget"):
            assert "0000000999.json: no lease" in str(told(verb)), key
    assert ledger(world) == before


FORGED: list[tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = [
    ("manifests/000010.yaml", lambda told: {**told, "pools": {}}),
    ("manifests/000010.yaml", lambda told: {**told, "snapshot": {**told["snapshot"], "pools": []}}),
    ("manifests/000010.yaml", lambda told: {**told, "recipe": {**told["recipe"], "resolved": {}}}),
    ("manifests/000010.yaml", lambda told: {**told, "turn": {"row": "../..", "offset": 0}}),
    ("manifests/000010.yaml", lambda told: {**told, "withdrawals": {"number": 1, "pools": {"a": [[9]]}}}),
    ("manifests/000010.yaml", lambda told: {**told, "format": 99}),
    ("recipes/0001.yaml", lambda told: {**told, "recipe": {"seed": "x"}}),
    ("recipes/0003.yaml", lambda told: {**told, "version": None}),
    ("run.yaml", lambda told: {**told, "id": {}}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(FORGED)))
def test_a_sealed_file_of_another_shape_is_one_message(world: World, number: int):
    """Its own hash is right, and the ledger's rows name that: a forgery."""
    file, change = FORGED[number]
    path = world.run / file
    old = path.read_bytes().rpartition(b"hash: ")[2].decode().strip()
    new = resealed(path, change)
    rewritten(world.run, lambda _, body: swapped(body, old, new))
    verbs = {**reading(world), **writing(world)}
    messages = {key: told(verb) for key, verb in verbs.items() if key not in AUDITS}
    assert any(messages.values()), messages


def swapped(value: Any, old: str, new: str) -> Any:
    """A value with one text in place of another wherever it occurs."""
    if isinstance(value, dict):
        return {key: swapped(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [swapped(inner, old, new) for inner in value]
    return new if value == old else value
