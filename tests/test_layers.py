"""The rooms of the package, and who may import whom: downward only."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import recipe

PACKAGE = Path(recipe.__file__).parent
FOUNDATION = {"errors", "maths", "config", "pools"}
MAY_IMPORT = {
    "errors": set(),
    "maths": {"errors"},
    "config": {"errors", "maths"},
    "pools": {"errors", "maths", "config"},
    "text": FOUNDATION,
    "sequences": FOUNDATION,
    "mixing": FOUNDATION | {"sequences", "text"},
    "run": FOUNDATION | {"sequences", "mixing", "text"},
    "audit": FOUNDATION | {"sequences", "text", "run"},
    "report": FOUNDATION | {"sequences", "mixing", "text", "run", "audit"},
    "integrations": FOUNDATION | {"sequences", "mixing", "text", "run", "audit"},
}
"""The command line stands on top and may import every room."""

FORMATS_OF_RUN = {"recipe.run.canonical", "recipe.run.manifest", "recipe.run.shapes"}
"""What the audit shares with the room that writes runs: how bytes are read, not what they should be."""

HEAVY = (
    "numpy",
    "numba",
    "pandas",
    "pyarrow",
    "hydra",
    "omegaconf",
    "pydantic",
    "rich",
    "tokenizers",
    "torch",
)


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ".".join(path.relative_to(PACKAGE).with_suffix("").parts), path


def imported(path: Path) -> Iterator[str]:
    """Dotted names of everything a file imports, at its top or later; relative imports start with a dot."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            yield from (f"{source}.{name.name}" for name in node.names)


def room(dotted: str) -> str:
    return dotted.removeprefix("recipe.").split(".")[0]


@pytest.mark.parametrize(("name", "path"), [pytest.param(*item, id=item[0]) for item in modules()])
def test_a_room_imports_only_rooms_below_it(name, path):
    if room(name) in ("cli", "__init__", "__main__"):
        return
    own = room(name)
    for target in imported(path):
        assert not target.startswith("."), f"{name} imports {target} by a relative path"
        if target == "recipe" or target.startswith("recipe."):
            allowed = MAY_IMPORT[own] | {own}
            assert room(target) in allowed, f"{name} imports {target}: {own} may import {sorted(allowed)}"


def test_a_module_hands_on_no_name_of_another():
    """A name has one place that it is imported from: where it is defined, or the front of its package."""
    lists = [
        name for name, path in modules() if path.name != "__init__.py" and "__all__ =" in path.read_text()
    ]
    assert lists == []


def test_the_audit_takes_only_the_formats_from_the_room_that_writes_runs():
    for name, path in modules():
        if room(name) == "audit":
            for target in imported(path):
                module = ".".join(target.split(".")[:3])
                assert room(target) != "run" or module in FORMATS_OF_RUN, f"{name} imports {target}"


def test_the_audit_loads_nothing_of_the_loop_it_audits():
    code = (
        "import sys, recipe.audit\n"
        "print([m for m in sys.modules if m.startswith(('recipe.mixing', 'recipe.text', 'recipe.run.'))])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ast.literal_eval(seen.stdout)) <= FORMATS_OF_RUN


def test_torch_is_imported_in_its_integrations_only():
    users = {name for name, path in modules() if any(room(t) == "torch" for t in imported(path))}
    homes = ("integrations.torch.", "integrations.training.", "integrations.megatron.", "integrations.hf")
    others = ("integrations.lightning", "integrations.titan", "integrations.logging", "integrations.held_out")
    assert [name for name in users if not name.startswith((*homes, *others))] == []


@pytest.mark.parametrize("module", ["recipe", "recipe.cli.main", "recipe.errors"])
def test_the_edge_imports_nothing_heavy(module):
    code = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"
