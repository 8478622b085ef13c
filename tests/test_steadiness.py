"""What makes a test fail for the machine, its load or its neighbours is not written into one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = [path for path in sorted(TESTS.rglob("*.py")) if "benchmarks" not in path.parts]
LEAST_SECONDS = 60
"""A machine may be that slow; what never comes is told by the runner."""
NAMES = {
    "active_count": "threads of other tests end meanwhile: look at those begun since (threading.enumerate)",
    "cpu_count": "another machine has others",
    "suppress_health_check": "the profile of tests/conftest.py is that of all laws",
    "deadline": "the profile of tests/conftest.py is that of all laws",
}
CLOCKED = {"wait", "join", "result", "get", "acquire", "communicate", "run", "call", "check_output"}
"""Calls that take a timeout."""
LISTINGS = {"iterdir", "glob", "rglob", "listdir", "scandir"}
"""Calls that give names in the order of a file system."""
OWN = {"conftest.py", "test_steadiness.py"}


def faults(source: str) -> list[str]:
    """Line and reason."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword | ast.Attribute):
            name = node.arg if isinstance(node, ast.keyword) else node.attr
            if name in NAMES:
                found.append(f"{node.lineno}: {name}: {NAMES[name]}")
        if isinstance(node, ast.Call):
            found += [f"{node.lineno}: {reason}" for reason in faults_of_a_call(node)]
        if isinstance(node, ast.Compare) and is_ordered_as_listed(node):
            found.append(f"{node.lineno}: another file system lists a folder in another order")
    return found


def faults_of_a_call(call: ast.Call) -> list[str]:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "default_rng" and not (call.args or call.keywords):
        return ["default_rng() without a seed draws other numbers each time"]
    given = [word.value for word in call.keywords if word.arg == "timeout"]
    if name in CLOCKED and isinstance(function, ast.Attribute):
        given += [value for value in call.args[:1] if name != "get"]
    seconds = [value.value for value in given if isinstance(value, ast.Constant)]
    return [
        f"{name}() gives up after {value} seconds"
        for value in seconds
        if isinstance(value, int | float) and 0 < value < LEAST_SECONDS
    ]


def is_ordered_as_listed(node: ast.Compare) -> bool:
    """Whether a list of names, as they come, is compared with a list of several."""
    listed = isinstance(node.left, ast.ListComp) and isinstance(node.left.generators[0].iter, ast.Call)
    if not listed or not isinstance(node.comparators[0], ast.List):
        return False
    call = node.left.generators[0].iter.func
    return getattr(call, "attr", "") in LISTINGS and len(node.comparators[0].elts) > 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_looks_at_what_is_not_its_own(path: Path):
    if path.name not in OWN:
        assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "code",
    [
        "threading.active_count()",
        "thread.join(5)",
        "event.wait(timeout=1.5)",
        "subprocess.run(words, timeout=10)",
        "settings(max_examples=5, deadline=None)",
        "np.random.default_rng()",
        "assert [path.name for path in folder.iterdir()] == ['a', 'b']",
    ],
)
def test_such_a_line_is_found(code: str):
    assert faults(code)


@pytest.mark.parametrize(
    "code",
    [
        "thread.join()",
        "event.wait(600)",
        "held(path, wait=0)",
        "','.join(x)",
        "assert [path.name for path in folder.iterdir()] == ['a']",
    ],
)
def test_others_are_not(code: str):
    assert faults(code) == []
