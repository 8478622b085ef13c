"""The dispatcher: help at once, faults as exit codes, never a traceback for the user's fault."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from recipe.cli import main as cli
from recipe.cli.main import main
from recipe.cli.verbs import VERBS
from recipe.errors import RecipeError


def verb(monkeypatch: pytest.MonkeyPatch, execute) -> None:
    """Put a verb of our own in the place of ``plan``."""
    module = SimpleNamespace(add_arguments=lambda parser: None, execute=execute)
    monkeypatch.setattr(cli, "importlib", SimpleNamespace(import_module=lambda name: module))


def fail(error: BaseException):
    def execute(args: argparse.Namespace) -> int:
        raise error

    return execute


def test_help_names_every_verb_in_one_line(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    width = max(map(len, VERBS))
    for name, about in VERBS.items():
        assert f"  {name:<{width}}  {about.summary}" in lines
    assert max(map(len, lines)) <= 110


def test_no_word_is_help(capsys):
    assert main([]) == 0
    assert "usage: recipe VERB" in capsys.readouterr().out


@pytest.mark.parametrize(("word", "near"), [("pla", "plan"), ("statsu", "status"), ("audits", "audit")])
def test_an_unknown_verb_suggests_the_nearest(capsys, word, near):
    assert main([word]) == 2
    assert f"did you mean 'recipe {near}'?" in capsys.readouterr().err


def test_a_word_like_no_verb_points_to_help(capsys):
    assert main(["zzzz"]) == 2
    assert "`recipe --help`" in capsys.readouterr().err


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_is_there_and_its_help_has_an_example(capsys, name):
    importlib.import_module(VERBS[name].module)
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert f"  recipe {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_refuses_an_unknown_option_with_2(capsys, name):
    with pytest.raises(SystemExit) as stop:
        main([name, "--no-such-option"])
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_the_user_is_a_message_and_2(monkeypatch, capsys):
    error = RecipeError.single("demo.yaml", "seed", given=-1, expected="0..", fix="use 0")
    verb(monkeypatch, fail(error))
    assert main(["plan"]) == 2
    said = capsys.readouterr()
    assert said.err == f"{error}\n"
    assert said.out == ""


def test_an_interrupt_is_130(monkeypatch, capsys):
    verb(monkeypatch, fail(KeyboardInterrupt()))
    assert main(["plan"]) == 130


def test_a_full_disk_is_told_in_one_line(monkeypatch, capsys):
    verb(monkeypatch, fail(OSError(errno.ENOSPC, "No space left on device", "runs/demo/ledger.jsonl")))
    assert main(["plan"]) == 2
    assert capsys.readouterr().err == "recipe: No space left on device: runs/demo/ledger.jsonl\n"


@pytest.mark.parametrize(
    "error",
    [
        IsADirectoryError(errno.EISDIR, "Is a directory", "runs"),
        NotADirectoryError(errno.ENOTDIR, "Not a directory", "a.txt/b"),
        FileExistsError(errno.EEXIST, "File exists", "a.txt"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "gone"),
        OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b"),
        OSError("a reason without a number"),
        ValueError("embedded null byte"),
        UnicodeEncodeError("ascii", "中", 0, 1, "ordinal not in range(128)"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_the_system_refuses_is_one_line(monkeypatch, capsys, error):
    verb(monkeypatch, fail(error))
    assert main(["plan"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("recipe: ")
    assert said.count("\n") == 1
    assert str(getattr(error, "filename", None) or "") in said


def test_a_fault_of_the_caller_keeps_its_traceback(monkeypatch):
    verb(monkeypatch, fail(ValueError("step -1 is outside 0..9")))
    with pytest.raises(ValueError, match="step -1"):
        main(["plan"])


def test_a_bug_of_ours_keeps_its_traceback(monkeypatch):
    verb(monkeypatch, fail(AssertionError("debts do not sum to zero")))
    with pytest.raises(AssertionError):
        main(["plan"])


def test_a_check_that_failed_is_1(monkeypatch):
    verb(monkeypatch, lambda args: 1)
    assert main(["plan"]) == 1


def test_a_reader_that_stops_early_is_no_traceback():
    code = (
        "import sys; from recipe.cli import main as cli; from types import SimpleNamespace as N\n"
        "flood = lambda args: [print('x' * 100) for _ in range(10**5)] and 0\n"
        "module = N(add_arguments=lambda parser: None, execute=flood)\n"
        "cli.importlib = N(import_module=lambda name: module)\n"
        "sys.exit(cli.main(['plan']))"
    )
    line = f'{sys.executable} -c "$CODE" | head -n 1; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line], env={"CODE": code}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 141
    assert done.stderr == ""


def piped(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of bash; its exit code is that of the first command."""
    whole = f"{line}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", whole], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", ["plan small.yaml", "plan small.yaml --json", "schema", "audit runs/small"])
def test_a_reader_that_stops_early_is_141_for_every_verb(small, command_path, capsys, words):
    """It has stopped before the verb begins: who reads nothing may still end later than a short answer."""
    if words.startswith("audit"):
        assert main(["run", "small.yaml"]) == 0
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stopped:
        command = ["recipe", *words.split()]
        done = subprocess.run(command, cwd=small.parent, stdout=stopped, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 141
    assert done.stderr == b""


def test_a_terminal_without_the_signs_gets_escapes(small, command_path, capsys):
    assert main(["run", "small.yaml", "--name", "项目"]) == 0
    plain = "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"
    done = piped(f"{plain} recipe status runs/项目 | cat", small.parent)
    assert done.returncode == 0
    assert r"\u9879\u76ee" in done.stdout or r"\udce9" in done.stdout
    assert piped(f"{plain} recipe run small.yaml --name other | cat", small.parent).returncode == 0


def test_the_module_is_the_command(command_path):
    by_module = subprocess.run([sys.executable, "-m", "recipe", "--version"], capture_output=True, check=True)
    by_command = subprocess.run(["recipe", "--version"], capture_output=True, check=True)
    assert by_module.stdout == by_command.stdout
    assert by_module.stdout.startswith(b"recipe 0.")


@pytest.mark.parametrize("word", ["pools", "tokenizer"])
@pytest.mark.parametrize("rest", [["--help"], ["-h"], ["help"], []])
def test_a_family_of_verbs_lists_them_with_what_each_does(capsys, word, rest):
    assert main([word, *rest]) == (0 if rest else 2)
    told = "".join(capsys.readouterr())
    own = [name for name in VERBS if name.startswith(f"{word} ")]
    assert len(own) > 1
    for name in VERBS:
        assert any(line.startswith(f"  {name} ") for line in told.splitlines()) == (name in own)
    assert all(VERBS[name].summary in told for name in own)


def test_an_unknown_verb_of_a_family_suggests_the_nearest_of_it(capsys):
    assert main(["pools", "lst"]) == 2
    told = capsys.readouterr().err
    assert "did you mean 'recipe pools list'?" in told and "tokenizer train" not in told
    assert main(["tokenizer", "zzzzzzzz"]) == 2
    assert "`recipe tokenizer --help`" in capsys.readouterr().err
