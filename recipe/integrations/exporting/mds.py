"""MosaicML Streaming's MDS: what shards and their index say of the columns.

Source:
    mosaicml-streaming 0.13, ``MDSWriter.encode_joint_shard``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_BYTES = (1 << 32) - 1
"""Offsets of samples have 32 bits."""


def config_of(columns: Mapping[str, str], sizes: Mapping[str, int | None]) -> dict[str, Any]:
    """What a shard and the index say of the columns, in the order of their names; None: of any size."""
    names = sorted(columns)
    return {
        "version": 2, "format": "mds", "compression": None, "hashes": [], "size_limit": None,
        "column_names": names, "column_encodings": [columns[name] for name in names],
        "column_sizes": [sizes[name] for name in names],
    }  # fmt: skip


def entry_of(config: Mapping[str, Any], name: str, total: int, samples: int) -> dict[str, Any]:
    """A shard in ``index.json``."""
    raw = {"basename": name, "bytes": total, "hashes": {}}
    return {**config, "raw_data": raw, "zip_data": None, "samples": samples}
