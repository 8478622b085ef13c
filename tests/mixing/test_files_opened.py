"""A recipe of many pools with many parts is opened by many processes: few files each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.files import start, together


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    scratch = tmp_path_factory.mktemp("files")
    run: Path = start(scratch, 3, 20)
    return together(run, scratch / "pools-of-20-parts", 3)


def test_at_most_three_files_a_pool_are_opened_before_the_first_batch(told: list[dict[str, float]]):
    assert len(told) == 3
    assert all(1 <= one["files"] <= 3 for one in told)


def test_parts_are_opened_only_as_rows_need_them(told: list[dict[str, float]]):
    """A first batch of 64 rows over three pools needs more parts than one, and says so."""
    assert all(one["files"] < one["files_with_first_batch"] <= 2 + 20 for one in told)
