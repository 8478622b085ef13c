"""What a file of somebody else is, by its contents: hashed whole if it is small, sampled if it is large."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from recipe.pools.card import content_hash
from recipe.pools.mapped import cannot_open

_WHOLE_BYTES = 1 << 20
_SAMPLE_BYTES = 4096
SAMPLES = 256
"""Places of a pool that are looked at, over all its files."""
_KEY_SAMPLES, _KEY_BYTES = 8, 1 << 16
_KEY_LENGTH = 24


def samples_of(num_files: int) -> int:
    """Places that are looked at in each of so many files."""
    return max(2, SAMPLES // max(1, num_files))


def sampled_hash(path: Path, samples: int, *, whole_bytes: int = _WHOLE_BYTES) -> str:
    """Hash of a file's size and of its contents, or of ``samples`` places from its start to its end.

    Args:
        path: of the file.
        samples: places, if it has more than
        whole_bytes: else it is read whole.

    Raises:
        RecipeError: the file cannot be read.
    """
    digest = hashlib.blake2b(digest_size=32)
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            digest.update(size.to_bytes(8, "little"))
            if size <= whole_bytes:
                file.seek(0)
                digest.update(file.read())
                return digest.hexdigest()
            for index in range(samples):
                file.seek(index * (size - _SAMPLE_BYTES) // (samples - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise cannot_open(path, error) from error
    return digest.hexdigest()


def key_of(paths: tuple[Path, ...], rule: Sequence[object]) -> str:
    """The key under which what is derived from files is kept: with their size, time of change or content it
    changes, too.

    Args:
        paths: the files.
        rule: plain values.
    """
    states = [
        [
            path.stat().st_size,
            path.stat().st_mtime_ns,
            sampled_hash(path, _KEY_SAMPLES, whole_bytes=_KEY_BYTES),
        ]
        for path in paths
    ]
    return content_hash([list(rule), states])[:_KEY_LENGTH]
