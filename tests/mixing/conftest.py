from __future__ import annotations

import pytest

from tests.mixing.worlds import Bank, write_bank


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    """Pools that nobody writes to."""
    return write_bank(tmp_path_factory.mktemp("bank"))
