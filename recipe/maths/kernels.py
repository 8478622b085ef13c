"""The decorator of compiled loops: compiled on their first call, cached where a cache can be written.

Numba takes a third of a second to import. What needs no loop (a status, a branch, a plan of few pools) does
not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from hashlib import blake2b
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop, when it is first called, to machine code that runs without the interpreter lock.

    The compiled code is cached beside the module or, in a read-only install, in the user's cache
    folder; where neither can be written it is compiled in each process.
    """
    return cast(F, _Kernel(function, forceinline=False))


def inlined(function: F) -> F:
    """A kernel that becomes part of the kernels that call it: for what runs many times a batch."""
    return cast(F, _Kernel(function, forceinline=True))


def imported(module: str, name: str) -> Any:
    """What kernels use of a module that is imported when the first of them is compiled."""
    return _Imported(module, name)


def load() -> None:
    """Import the compiler now: for a process that wants its first batch at once, later."""
    _size((1, 2))


class _Imported:
    """A global of kernels that is not there yet."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    @cached_property
    def compiled(self) -> Any:
        return getattr(import_module(self._module), self._name)


class _Kernel:
    """A function that its first call, or the compilation of a kernel that calls it, compiles."""

    def __init__(self, function: Callable[..., Any], *, forceinline: bool) -> None:
        update_wrapper(self, function)
        self._function, self._forceinline = cast(FunctionType, function), forceinline

    def __call__(self, *given: Any) -> Any:
        return self.compiled(*given)

    @cached_property
    def compiled(self) -> Any:
        """Numba's function, over a copy of the original that sees the other kernels as compiled, too."""
        import numba  # slow to import: see the module's docstring

        function = self._function
        found = {name: function.__globals__.get(name) for name in function.__code__.co_names}
        known = {name: it.compiled for name, it in found.items() if isinstance(it, _Kernel | _Imported)}
        copied = FunctionType(
            function.__code__,
            {**function.__globals__, **known},
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        copied.__module__, copied.__qualname__ = function.__module__, function.__qualname__
        options: dict[str, Any] = {"nogil": True, "forceinline": self._forceinline}
        try:
            cached = numba.njit(cache=True, **options)(copied)
        except RuntimeError:  # numba: no place for a cache
            return numba.njit(**options)(copied)
        cached._cache._cache_file = _FilesOfEachCode(cached._cache._cache_file, self.code)
        return cached

    @cached_property
    def code(self) -> bytes:
        """Digest of what is compiled: this function with the kernels and constants that it names."""
        of = self._function.__code__
        plain = [value for value in of.co_consts if not isinstance(value, CodeType)]
        digest = blake2b(of.co_code + repr(plain).encode(), digest_size=16)
        for name in of.co_names:
            value = self._function.__globals__.get(name)
            if isinstance(value, _Kernel):
                digest.update(value.code)
            elif isinstance(value, int | float | str | tuple):
                digest.update(repr((name, value)).encode())
        return digest.digest()


class _FilesOfEachCode:
    """Cached code in files that are named by what it was compiled from and for.

    Numba numbers its files. Processes that compile a kernel at once, for other types each, take the same
    number; what stays is an index of the one over code of the other, and every later call fails. And it
    looks at the file of a kernel alone: what the kernel calls, or names, may have changed in another.
    """

    def __init__(self, numbered: Any, code: bytes) -> None:
        self._numbered, self._code = numbered, code

    def save(self, key: Any, data: Any) -> None:
        self._named(key).save(key, data)

    def load(self, key: Any) -> Any:
        return self._named(key).load(key)

    def _named(self, key: Any) -> Any:
        """Numba's files of one signature: an index of one entry, and the code."""
        files = self._numbered
        code = repr((files._version, files._source_stamp, self._code, key)).encode()
        base = f"{files._index_name.removesuffix('.nbi')}-{blake2b(code, digest_size=8).hexdigest()}"
        return type(files)(files._cache_path, base, files._source_stamp)


@kernel
def _size(numbers: tuple[int, ...]) -> int:
    return len(numbers)
