"""What ``recipe --help`` does not wait for."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "hydra",
    "omegaconf",
    "pydantic",
    "tokenizers",
    "rich",
    "torch",
)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["pla"]])
def test_help_version_and_a_misspelt_verb_load_nothing_heavy(words: list[str]):
    code = (
        "import sys; from recipe.cli.main import main; main(sys.argv[1:]); "
        f"sys.exit(str([m for m in {HEAVY!r} if m in sys.modules] or '') or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module", ["recipe.cli.status", "recipe.run.start", "recipe.cli.run", "recipe.cli.plan"]
)
def test_a_run_is_opened_without_the_libraries_that_make_pools(module: str):
    """Compiled tokenizers, and readers of texts in stores and archives."""
    of_pools = ("tokenizers", "fsspec", "recipe.text.found", "recipe.text.prepare")
    code = f"import sys, {module}; print([m for m in {of_pools!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
