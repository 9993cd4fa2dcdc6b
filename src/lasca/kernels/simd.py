"""Rows of float64 in vector registers, for kernels whose inner loops are one short row wide.

Numba unrolls loops of a small constant length before LLVM's loop vectoriser sees them and leaves the SLP
vectoriser off, so such kernels come out scalar. These intrinsics say what is meant: a *row* is n blocks of
four float64; `blocks` – a tuple of n integers, of which only the length counts – fixes n when a kernel is
compiled. LLVM maps a block to what the machine has (one AVX register, two NEON ones, half an AVX-512 one).

`load`, `store`, `peek` and `poke` check no bounds and take no negative places. Tables whose rows are read and written
for every vote are best made by `zeros`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

__all__ = [
    "add", "block_tuple", "exp", "fma", "load", "maximum", "mul", "peak", "peek", "poke", "splat", "store", "sub",
    "total", "where_greater", "zeros",
]  # fmt: skip

_DOUBLE, _INT64 = ir.DoubleType(), ir.IntType(64)
_BLOCK, _INT_BLOCK = ir.VectorType(_DOUBLE, 4), ir.VectorType(_INT64, 4)
_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the rounded integer in the low bits


def block_tuple(width: int) -> tuple[int, ...]:
    """Return the `blocks` argument for rows of `width` values, a multiple of 4."""
    return (0,) * (width // 4)


def zeros(n: int) -> Any:
    """Return a flat array that begins where a cache line does.

    NumPy's begin at any 16 bytes, and a pass over rows that lie across two lines took up to a third longer, by the luck
    of the process (40,360 tokens of MTurk, November 2026).
    """
    room = np.zeros(n + 7)
    skipped = -room.__array_interface__["data"][0] % 64 // 8
    return room[skipped : skipped + n]


class RowType(types.Type):
    """n blocks of four float64."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__(name=f"Row({n})")


@register_model(RowType)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, row: RowType) -> None:
        super().__init__(manager, row, ir.ArrayType(_BLOCK, row.n))


def _pointers(context: Any, builder: Any, array_type: Any, array: Any, at: Any, n: int) -> list[Any]:
    data = context.make_array(array_type)(context, builder, array).data
    base = builder.gep(data, [at])
    return [builder.bitcast(builder.gep(base, [ir.Constant(_INT64, 4 * i)]), _BLOCK.as_pointer()) for i in range(n)]


def _map(builder: Any, n: int, function: Any, *rows: Any) -> Any:
    out = ir.Constant(ir.ArrayType(_BLOCK, n), ir.Undefined)
    for i in range(n):
        parts = [builder.extract_value(row, i) for row in rows]
        out = builder.insert_value(out, function(*parts), i)
    return out


def _constant(value: float) -> Any:
    return ir.Constant(_BLOCK, [value] * 4)


def _fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    kind = ir.FunctionType(_BLOCK, [_BLOCK] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.v4f64"), [x, y, z])


@intrinsic
def load(typingctx, array, at, blocks):
    """Return the row that starts at array[at] of a flat array."""
    row = RowType(blocks.count)

    def codegen(context, builder, signature, args):
        at = context.cast(builder, args[1], signature.args[1], types.int64)
        pointers = _pointers(context, builder, signature.args[0], args[0], at, row.n)
        out = ir.Constant(ir.ArrayType(_BLOCK, row.n), ir.Undefined)
        for i, pointer in enumerate(pointers):
            out = builder.insert_value(out, builder.load(pointer, align=8, typ=_BLOCK), i)
        return out

    return row(array, at, blocks), codegen


@intrinsic
def store(typingctx, array, at, row):
    """Write a row to a flat array from array[at] on."""

    def codegen(context, builder, signature, args):
        at = context.cast(builder, args[1], signature.args[1], types.int64)
        pointers = _pointers(context, builder, signature.args[0], args[0], at, row.n)
        for i, pointer in enumerate(pointers):
            builder.store(builder.extract_value(args[2], i), pointer, align=8)
        return context.get_dummy_value()

    return types.none(array, at, row), codegen


@intrinsic
def splat(typingctx, value, blocks):
    """Return a row with the same value everywhere."""
    row = RowType(blocks.count)

    def codegen(context, builder, signature, args):
        value = context.cast(builder, args[0], signature.args[0], types.float64)
        zero = ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), value, zero)
        block = builder.shuffle_vector(
            one, ir.Constant(_BLOCK, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
        )
        return _map(builder, row.n, lambda: block)

    return row(value, blocks), codegen


def _binary(operation: Any) -> Any:
    def typed(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return _map(builder, a.n, lambda x, y: operation(builder, x, y), *args)

        return a(a, b), codegen

    return typed


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


add = intrinsic(_binary(lambda builder, x, y: builder.fadd(x, y)))
sub = intrinsic(_binary(lambda builder, x, y: builder.fsub(x, y)))
mul = intrinsic(_binary(lambda builder, x, y: builder.fmul(x, y)))
maximum = intrinsic(_binary(_larger))


@intrinsic
def fma(typingctx, a, b, c):
    """Return a * b + c."""

    def codegen(context, builder, signature, args):
        return _map(builder, a.n, lambda x, y, z: _fma(builder, x, y, z), *args)

    return a(a, b, c), codegen


def _reduction(operation: Any) -> Any:
    def typed(typingctx, a):
        def codegen(context, builder, signature, args):
            blocks = [builder.extract_value(args[0], i) for i in range(a.n)]
            while len(blocks) > 1:
                pairs = [operation(builder, *blocks[i : i + 2]) for i in range(0, len(blocks) - 1, 2)]
                blocks = pairs + blocks[len(pairs) * 2 :]
            lanes = [builder.extract_element(blocks[0], ir.Constant(ir.IntType(32), i)) for i in range(4)]
            return operation(builder, operation(builder, lanes[0], lanes[2]), operation(builder, lanes[1], lanes[3]))

        return types.float64(a), codegen

    return typed


total = intrinsic(_reduction(lambda builder, x, y: builder.fadd(x, y)))
peak = intrinsic(_reduction(_larger))


@intrinsic
def exp(typingctx, a):
    """Return e**a with a relative error of 3e-16, for -700 <= a <= 700."""

    def block(builder: Any, x: Any) -> Any:
        shifted = _fma(builder, x, _constant(1.4426950408889634), _constant(_MAGIC))
        n = builder.fsub(shifted, _constant(_MAGIC))
        r = _fma(builder, n, _constant(-0.6931471803691238), x)
        r = _fma(builder, n, _constant(-1.9082149292705877e-10), r)
        factorial, coefficients = 1.0, [1.0]
        for k in range(1, 13):
            factorial *= k
            coefficients.append(1.0 / factorial)
        p = _constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            p = _fma(builder, p, r, _constant(coefficient))
        bits = builder.bitcast(shifted, _INT_BLOCK)
        bits = builder.add(bits, ir.Constant(_INT_BLOCK, [1023] * 4))
        scale = builder.bitcast(builder.shl(bits, ir.Constant(_INT_BLOCK, [52] * 4)), _BLOCK)
        return builder.fmul(p, scale)

    def codegen(context, builder, signature, args):
        return _map(builder, a.n, lambda x: block(builder, x), *args)

    return a(a), codegen


@intrinsic
def where_greater(typingctx, a, b, x, y):
    """Return x where a > b, else y."""

    def codegen(context, builder, signature, args):
        def choose(a: Any, b: Any, x: Any, y: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), x, y)

        return _map(builder, a.n, choose, *args)

    return a(a, b, x, y), codegen


@intrinsic
def peek(typingctx, array, at):
    """Return array[at] of a flat array."""

    def codegen(context, builder, signature, args):
        at = context.cast(builder, args[1], signature.args[1], types.int64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [at]))

    return array.dtype(array, at), codegen


@intrinsic
def poke(typingctx, array, at, value):
    """Write array[at] of a flat array."""

    def codegen(context, builder, signature, args):
        at = context.cast(builder, args[1], signature.args[1], types.int64)
        value = context.cast(builder, args[2], signature.args[2], array.dtype)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.store(value, builder.gep(data, [at]))
        return context.get_dummy_value()

    return types.none(array, at, value), codegen
