"""What every test stands on."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.environments import streaming_python  # noqa: F401  a fixture of several rooms

TIMED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
"""Checks of how long examples take or how many fit: they fail a law for the machine or for chance."""

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    suppress_health_check=[*TIMED, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.load_profile("ci")


HERE = "127.0.0.1,localhost"
for name in ("NO_PROXY", "no_proxy"):  # servers of tests are asked directly, where a machine has a proxy, too
    os.environ[name] = ",".join(filter(None, (os.environ.get(name), HERE)))


@pytest.fixture
def command_path(monkeypatch: pytest.MonkeyPatch) -> str:
    """A PATH on which ``recipe``, ``python`` and ``pip`` are those of the interpreter that runs the tests."""
    scripts = sysconfig.get_path("scripts")
    path = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    monkeypatch.setenv("PATH", path)
    return path


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is also the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
