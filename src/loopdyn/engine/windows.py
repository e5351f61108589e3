"""Windows in compiled code: their type, how their numbers are read and written, how they are made.

`engine.jit` has the functions of which these are the compiled form.
"""

from __future__ import annotations

import operator
from typing import Any

import numba
import numba.extending
from llvmlite import ir
from numba.core import cgutils
from numba.np import arrayobj

from loopdyn.engine.jit import prefetch, whole, window


class Window(numba.types.Array):  # type: ignore[misc]
    """Type of a :func:`window` in compiled code: an array whose numbers are read and written without detours.

    One type for arrays that may be written and for those that may not: helpers are compiled once. A kernel that writes
    to its inputs is found with the JIT off.
    """

    of_kernels = True  # there are none in Python

    def __init__(self, dtype: Any, ndim: int) -> None:
        super().__init__(dtype, ndim, "C", name=f"window({dtype}, {ndim}d)")

    @property
    def key(self) -> Any:
        """Identity of the type."""
        return "window", *super().key


@numba.extending.register_model(Window)
class WindowModel(numba.extending.models.ArrayModel):  # type: ignore[misc]
    """Layout of a :func:`window`: that of an array, without an owner to count."""

    def inner_models(self) -> list[Any]:
        """Models of parts whose owners are counted: none."""
        return []


def _address(context: Any, builder: Any, kind: Window, array: Any, index_type: Any, index: Any) -> Any:
    """Address of one number of a window; None for an index that is not one integer for each dimension.

    Numba lets an index below zero count from the end. Checking for that at every access, and keeping the lengths at
    hand for it, took up to a quarter of the time of a kernel.
    """
    kinds, parts = [index_type], [index]
    if isinstance(index_type, numba.types.BaseTuple):
        kinds, parts = list(index_type.types), cgutils.unpack_tuple(builder, index, count=len(index_type))
    if len(kinds) != kind.ndim or not all(isinstance(k, numba.types.Integer) for k in kinds):
        return None
    opened = context.make_array(kind)(context, builder, array)
    places = [context.cast(builder, x, k, numba.types.intp) for x, k in zip(parts, kinds, strict=True)]
    place = places[0]
    if kind.ndim == 2:
        columns = cgutils.unpack_tuple(builder, opened.shape, 2)[1]
        place = builder.add(builder.mul(place, columns, flags=("nsw",)), places[1], flags=("nsw",))
    return builder.gep(opened.data, [place], inbounds=True)


def _tagged(builder: Any, kind: Window, instruction: Any) -> Any:
    """Tell LLVM the type of a number in memory: writing floats changes no integer, so tables need not be read again."""
    module, zero = builder.module, ir.Constant(ir.IntType(64), 0)
    number = module.add_metadata([str(kind.dtype), module.add_metadata(["loopdyn"]), zero])
    instruction.set_metadata("tbaa", module.add_metadata([number, number, zero]))
    return instruction


@numba.extending.lower_builtin(operator.getitem, Window, numba.types.Integer)
@numba.extending.lower_builtin(operator.getitem, Window, numba.types.BaseTuple)
def _read(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, index_type = signature.args
    address = _address(context, builder, kind, args[0], index_type, args[1])
    if address is None:  # a part of the window
        several = isinstance(index_type, numba.types.BaseTuple)
        read = arrayobj.getitem_array_tuple if several else arrayobj.getitem_arraynd_intp
        return read(context, builder, signature, args)
    if not isinstance(kind.dtype, numba.types.Integer | numba.types.Float):
        return arrayobj.load_item(context, builder, kind, address)
    return _tagged(builder, kind, builder.load(address))


@numba.extending.lower_builtin(operator.setitem, Window, numba.types.Any, numba.types.Any)
def _write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, index_type, value_type = signature.args
    address = _address(context, builder, kind, args[0], index_type, args[1])
    if address is None or not isinstance(value_type, numba.types.Number):
        return arrayobj.setitem_array(context, builder, signature, args)
    value = context.cast(builder, args[2], value_type, kind.dtype)
    if not isinstance(kind.dtype, numba.types.Integer | numba.types.Float):
        arrayobj.store_item(context, builder, kind, value, address)
    else:
        _tagged(builder, kind, builder.store(value, address))
    return context.get_dummy_value()


def _view(array: Any, dimensions: int) -> Any:
    """Type of a view, and the code that makes it from an address."""
    kind = Window(array.dtype, dimensions)

    def codegen(context, builder, signature, args):
        start, *shape = (
            context.cast(builder, value, given, numba.types.intp)
            for value, given in zip(args[1:], signature.args[1:], strict=True)
        )
        source = context.make_array(signature.args[0])(context, builder, args[0])
        size = context.get_constant(numba.types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
        strides = [size] if dimensions == 1 else [builder.mul(size, shape[1]), size]
        made = context.make_array(kind)(context, builder)
        address = builder.gep(source.data, [start])
        arrayobj.populate_array(made, data=address, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return made._getvalue()

    return kind, codegen


@numba.extending.intrinsic
def _line(typing_context, array, start, length):
    kind, codegen = _view(array, 1)
    return kind(array, start, length), codegen


@numba.extending.intrinsic
def _table(typing_context, array, start, rows, columns):
    kind, codegen = _view(array, 2)
    return kind(array, start, rows, columns), codegen


@numba.extending.overload(window)
def _compiled_window(array, start, *shape):
    if len(shape) == 1:
        return lambda array, start, *shape: _line(array, start, shape[0])
    return lambda array, start, *shape: _table(array, start, shape[0], shape[1])


@numba.extending.overload(whole)
def _compiled_whole(array):
    return lambda array: _line(array, 0, array.size)


@numba.extending.intrinsic
def _ask(typing_context, array, index):
    def codegen(context, builder, signature, args):
        kind, index_type = signature.args
        address = _address(context, builder, kind, args[0], index_type, args[1])
        pointer_type, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        signature_ = ir.FunctionType(ir.VoidType(), [pointer_type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, signature_, "llvm.prefetch.p0")
        for_reading, into_all_caches, data = number(0), number(3), number(1)
        builder.call(function, [builder.bitcast(address, pointer_type), for_reading, into_all_caches, data])
        return context.get_dummy_value()

    return numba.types.void(array, index), codegen


@numba.extending.overload(prefetch)
def _compiled_prefetch(array, *index):
    return lambda array, *index: _ask(array, index if len(index) > 1 else index[0])
