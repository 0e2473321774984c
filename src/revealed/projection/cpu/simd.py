"""Arithmetic on several instances at once: a numba value that is one machine vector.

Every instance of a batch shares the sparsity of its constraints, so the same operation at the
same index is due for all of them. A `Lanes` value holds one float64 of each of W instances;
`load` and `store` move it from and to a flat array in which the W numbers of one entry lie side
by side. Code written with it reads like the code for one instance and compiles to vector
instructions, without hoping for an auto-vectorizer.

The width is carried by the type of a token, a tuple of W integers: `token(8)` for eight lanes,
`token(1)` for one.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model


def _operation(typing_function: Callable) -> Any:
    # numba passes the typing context itself, which type checkers cannot know.
    return intrinsic(typing_function)


class LanesType(types.Type):
    """The numba type of W float64 numbers in one vector register (or as many as W needs)."""

    def __init__(self, width: int):
        self.width = width
        super().__init__(name=f"Lanes({width})")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(ir.DoubleType(), fe_type.width))


def token(width: int) -> tuple[int, ...]:
    """A value whose type says how many SIMD lanes the kernels use."""
    return (0,) * width


def _pointer(context, builder, array_type, array, index, width):
    data = context.make_array(array_type)(context, builder, array).data
    offset = builder.mul(index, ir.Constant(ir.IntType(64), width))
    vector = ir.VectorType(ir.DoubleType(), width)
    return builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())


@_operation
def load(typingctx, array, index, like):
    """The lanes of entry `index` of a flat array."""
    lanes = LanesType(like.count)

    def codegen(context, builder, signature, args):
        i = context.cast(builder, args[1], signature.args[1], types.int64)
        return builder.load(
            _pointer(context, builder, signature.args[0], args[0], i, lanes.width), align=8
        )

    return lanes(array, index, like), codegen


@_operation
def load_flags(typingctx, flags, index, like):
    """The lanes of entry `index` of a flat int8 array of zeros and ones, as numbers."""
    lanes = LanesType(like.count)

    def codegen(context, builder, signature, args):
        i = context.cast(builder, args[1], signature.args[1], types.int64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        offset = builder.mul(i, ir.Constant(ir.IntType(64), lanes.width))
        small = ir.VectorType(ir.IntType(8), lanes.width)
        pointer = builder.bitcast(builder.gep(data, [offset]), small.as_pointer())
        vector = ir.VectorType(ir.DoubleType(), lanes.width)
        return builder.uitofp(builder.load(pointer, align=1), vector)

    return lanes(flags, index, like), codegen


@_operation
def store(typingctx, array, index, value):
    """Write `value` to entry `index` of a flat array."""

    def codegen(context, builder, signature, args):
        i = context.cast(builder, args[1], signature.args[1], types.int64)
        width = signature.args[2].width
        target = _pointer(context, builder, signature.args[0], args[0], i, width)
        builder.store(args[2], target, align=8)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen


@_operation
def splat(typingctx, number, like):
    """The same number in every lane."""
    lanes = LanesType(like.count)

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(ir.DoubleType(), lanes.width)
        first = builder.insert_element(
            ir.Constant(vector, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0)
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes.width), [0] * lanes.width)
        return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

    return lanes(types.float64, like), codegen


@_operation
def muladd(typingctx, a, b, c):
    """a * b + c, fused where the machine can."""

    def codegen(context, builder, signature, args):
        vector = args[0].type
        name = f"llvm.fmuladd.v{signature.args[0].width}f64"
        function_type = ir.FunctionType(vector, [vector] * 3)
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, function_type, name=name
        )
        return builder.call(function, args)

    return a(a, b, c), codegen


@_operation
def select(typingctx, condition, a, b):
    """a where `condition` is positive, else b (also where it is NaN)."""

    def codegen(context, builder, signature, args):
        zero = ir.Constant(args[0].type, [0.0] * signature.args[0].width)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), args[1], args[2])

    return a(condition, a, b), codegen


@_operation
def greater(typingctx, a, b):
    """1.0 where a > b, else 0.0 (also where either is NaN)."""

    def codegen(context, builder, signature, args):
        return builder.uitofp(builder.fcmp_ordered(">", args[0], args[1]), args[0].type)

    return a(a, b), codegen


@_operation
def smaller_of(typingctx, a, b):
    """The minimum, lane by lane; b where a is NaN."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[0], args[1])

    return a(a, b), codegen


@_operation
def larger_of(typingctx, a, b):
    """The maximum, lane by lane; b where a is NaN."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])

    return a(a, b), codegen


@_operation
def any_positive(typingctx, a):
    """Whether some lane is above 0; a NaN is not."""

    def codegen(context, builder, signature, args):
        width = signature.args[0].width
        zero = ir.Constant(args[0].type, [0.0] * width)
        bits = builder.bitcast(builder.fcmp_ordered(">", args[0], zero), ir.IntType(width))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(width), 0))

    return types.boolean(a), codegen


@_operation
def square_root(typingctx, a):
    """The square root, lane by lane."""

    def codegen(context, builder, signature, args):
        vector = args[0].type
        name = f"llvm.sqrt.v{signature.args[0].width}f64"
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(vector, [vector]), name=name
        )
        return builder.call(function, args)

    return a(a), codegen


def _arithmetic(name: str):
    @_operation
    def operation(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return getattr(builder, name)(*args)

        return a(a, b), codegen

    return operation


_add, _sub, _mul, _div = (_arithmetic(name) for name in ("fadd", "fsub", "fmul", "fdiv"))


def _both_lanes(a, b) -> bool:
    return isinstance(a, LanesType) and isinstance(b, LanesType)


@overload(operator.add)
def _overload_add(a, b):
    if _both_lanes(a, b):
        return lambda a, b: _add(a, b)


@overload(operator.sub)
def _overload_sub(a, b):
    if _both_lanes(a, b):
        return lambda a, b: _sub(a, b)


@overload(operator.mul)
def _overload_mul(a, b):
    if _both_lanes(a, b):
        return lambda a, b: _mul(a, b)


@overload(operator.truediv)
def _overload_div(a, b):
    if _both_lanes(a, b):
        return lambda a, b: _div(a, b)
