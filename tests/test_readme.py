"""What README shows is run here as a user would: its blocks, in order, in one empty folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
INSTALLS = re.compile(r"python3 -m venv \S+|\. \S+/activate|pip install .*|pytest")
"""Steps of a set-up command that have happened when a test runs."""


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks that are commands or programs."""
    return re.findall(r"^```(bash|python)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def as_run_here(code: str) -> str:
    """A block's commands without the installing ones."""
    lines = []
    for line in code.splitlines():
        steps = [step for step in line.split(" && ") if not INSTALLS.fullmatch(step)]
        lines.append(" && ".join(steps) if "&&" in line or INSTALLS.fullmatch(line) else line)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.mark.parametrize(
    ("language", "code"),
    [pytest.param(*block, id=f"{number}-{block[0]}") for number, block in enumerate(blocks(README))],
)
def test_a_block_of_the_readme_runs(folder, command_path, language, code):
    command = ["bash", "-euo", "pipefail", "-c", as_run_here(code)]
    if language == "python":
        command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{code}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def test_set_up_is_two_commands():
    """One installs and runs the main job, the other installs what tests need and runs them."""
    first, second = [code.strip() for _, code in blocks(README)[:2]]
    assert first == "python3 -m venv .venv && . .venv/bin/activate && pip install . && recipe run"
    assert second == 'pip install ".[dev]" && pytest'


def test_the_gate_runs_the_readmes_test_command():
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert '".[dev]"' in gate
    assert gate.rstrip().endswith("\npytest")


def test_the_chinese_readme_shows_the_same_commands():
    def commands(text: str) -> list[tuple[str, str]]:
        return [(language, re.sub(r"  # .*", "", code)) for language, code in blocks(text)]

    assert commands(CHINESE) == commands(README)


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / target).exists(), f"{name} links to {target}"
