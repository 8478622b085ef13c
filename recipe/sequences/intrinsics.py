"""What the copying loop asks of the processor and numba has no word for; imported with the compiler."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def pointer(_context: Any, _address: Any = None) -> Any:
    """An address as a pointer (an intrinsic: numba has no cast of its own)."""

    def generate(_inner: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.uint64), generate


@intrinsic
def fetch(_context: Any, _address: Any = None) -> Any:
    """Ask the processor for a line of memory that will be read soon."""

    def generate(inner: Any, builder: Any, _signature: Any, args: Any) -> Any:
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        functions: Any = builder.module.globals
        function = functions.get("llvm.prefetch.p0") or ir.Function(builder.module, kind, "llvm.prefetch.p0")
        read, second_level, data = (ir.Constant(number, k) for k in (0, 2, 1))
        builder.call(function, [builder.inttoptr(args[0], pointer), read, second_level, data])
        return inner.get_dummy_value()

    return types.void(types.uint64), generate
