"""Compiled code that several processes cache at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TOTAL = """\
from recipe.maths.kernels import inlined, kernel

@inlined
def _added(a, b):
    return a + b

@kernel
def total(numbers):
    found = numbers[0]
    for number in numbers[1:]:
        found = _added(found, number)
    return found
"""
CALL = "import sys, numpy, summing; print(summing.total(numpy.arange(5).astype(sys.argv[1])))"


def total(folder: Path, cache: Path, kind: str) -> str:
    """What a process of its own answers, that caches there."""
    done = subprocess.run(
        [sys.executable, "-c", CALL, kind], cwd=folder, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_processes_that_cache_a_kernel_at_once_for_other_types_do_not_mix_their_code(tmp_path: Path):
    """All files of the one are there, and those of the other in any part: the index before the code, say."""
    (tmp_path / "summing.py").write_text(TOTAL)
    one, other = tmp_path / "one", tmp_path / "other"
    assert total(tmp_path, one, "int32") == "10"
    assert total(tmp_path, other, "float64") == "10.0"
    assert list(other.rglob("*.nbi")) and list(other.rglob("*.nbc"))
    for kind in ("nbi", "nbc"):
        both = tmp_path / kind
        shutil.copytree(one, both)
        for file in other.rglob(f"*.{kind}"):
            shutil.copy(file, both / file.relative_to(other))
        assert [total(tmp_path, both, kind) for kind in ("float64", "int32")] == ["10.0", "10"]


def test_code_that_was_cached_is_not_compiled_again(tmp_path: Path):
    (tmp_path / "summing.py").write_text(TOTAL)
    assert total(tmp_path, tmp_path / "cache", "int32") == "10"
    before = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.nb?")}
    code = CALL + "; assert not summing.total.compiled.stats.cache_misses, summing.total.compiled.stats"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code, "int32"], cwd=tmp_path, env=environment, check=True)
    assert {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.nb?")} == before


def test_a_kernel_is_compiled_anew_once_what_it_calls_in_another_file_has_changed(tmp_path: Path):
    called = "from recipe.maths.kernels import inlined\n{}\n@inlined\ndef scaled(a):\n    return {} * a\n"
    caller = "from recipe.maths.kernels import kernel\nfrom scaling import scaled\n"
    (tmp_path / "summing.py").write_text(
        caller + "@kernel\ndef total(numbers):\n    return scaled(numbers[4])\n"
    )
    (tmp_path / "scaling.py").write_text(called.format("FACTOR = 2", "FACTOR"))
    assert total(tmp_path, tmp_path / "cache", "int32") == "8"
    (tmp_path / "scaling.py").write_text(called.format("FACTOR = 3", "FACTOR"))
    assert total(tmp_path, tmp_path / "cache", "int32") == "12"
    (tmp_path / "scaling.py").write_text(called.format("FACTOR = 3", "5"))
    assert total(tmp_path, tmp_path / "cache", "int32") == "20"
