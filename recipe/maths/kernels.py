"""The decorator of compiled loops: cached where a cache can be written, compiled anew elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop to machine code that runs without the interpreter lock.

    The compiled code is cached beside the module or, in a read-only install, in the user's cache
    folder; where neither can be written it is compiled in each process.
    """
    return _compiled(function, forceinline=False)


def inlined(function: F) -> F:
    """A kernel that becomes part of the kernels that call it: for what runs many times a batch."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool) -> F:
    options: dict[str, Any] = {"nogil": True, "forceinline": forceinline}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba: no place for a cache
        return cast(F, numba.njit(**options)(function))


@kernel
def _size(numbers: NDArray[np.int64]) -> int:
    return len(numbers)


# Numba loads most of itself with the first kernel; that is part of importing it, not of the first batch.
_size(np.empty(0, np.int64))
