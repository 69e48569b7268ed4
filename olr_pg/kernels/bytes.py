"""Functions with which kernels copy bytes and store integers by single instructions of the
processor.

Starting a loop over bytes takes a few nanoseconds. Values and headers of a row have only a few
bytes each, so loops over bytes took most of the time. If kernels are not compiled, the same
functions run as Python code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numba
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic, overload

if TYPE_CHECKING:
    from collections.abc import Callable

_machine: Callable[[Any], Any] = intrinsic
_raw_memcpy: Callable[..., None] = cgutils.raw_memcpy
SHORT: Final = 32
FORWARD: Final = 64
"""If `copy_forward` is called for more than SHORT and at most this many bytes, it copies this many
bytes.
"""
_OPTIONS: Any = {"nogil": True, "_nrt": False, "forceinline": True}


def copy_bytes(out: Any, at: int, data: Any, begin: int, end: int) -> int:
    """Copy ``data[begin:end]`` to position `at` of `out`; return the end of the copy. `out` and
    `data` are arrays of bytes.

    The function does not check bounds. The caller must check the bounds.
    """
    out[at : at + end - begin] = data[begin:end]
    return at + end - begin


def copy_forward(out: Any, at: int, data: Any, begin: int, end: int) -> int:
    """Copy bytes as `copy_bytes` does, but faster if there are few. The function may also overwrite
    bytes after the copy in `out`.

    The function copies a fixed number of bytes, with few instructions. A call of the copy function
    in the C library takes ten times as long. Because it overwrites following bytes, use it only for
    an output that is written from the beginning to the end.
    """
    return copy_bytes(out, at, data, begin, end)


def store(out: Any, at: int, value: Any, big: bool) -> None:
    """Store an integer at position `at` of `out`. The type of the integer (16, 32 or 64 bits)
    decides how many bytes are stored.
    """
    data = np.array([value]).view(np.uint8)
    out[at : at + data.size] = data[::-1] if big else data


@_machine
def _copy(typing_context: Any, out: Any, at: Any, data: Any, begin: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out_type, _, data_type, _, _ = signature.args
        target = _address(context, builder, out_type, arguments[0], arguments[1])
        source = _address(context, builder, data_type, arguments[2], arguments[3])
        _raw_memcpy(builder, target, source, arguments[4], 1)
        return context.get_dummy_value()

    int64 = numba.int64
    return numba.void(out, int64, data, int64, int64), generate


@_machine
def _store(typing_context: Any, out: Any, at: Any, value: Any, big: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        number, is_big = arguments[2], arguments[3]
        swapped = builder.bswap(number)
        chosen = builder.select(context.is_true(builder, numba.boolean, is_big), swapped, number)
        store = builder.store(chosen, builder.bitcast(place, number.type.as_pointer()))
        store.align = 1
        return context.get_dummy_value()

    return numba.void(out, numba.int64, value, numba.boolean), generate


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index], source_etype=cgutils.int8_t)


def _part(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for a function that produces machine code. Kernels call `function`, and
    get this code.
    """
    part: Callable[..., Any] = overload(function, jit_options=_OPTIONS)
    return part


@_part(copy_bytes)
def _copy_bytes(out: Any, at: Any, data: Any, begin: Any, end: Any) -> Any:
    def compiled(out: Any, at: Any, data: Any, begin: Any, end: Any) -> Any:
        _copy(out, at, data, begin, end - begin)
        return at + end - begin

    return compiled


@_part(copy_forward)
def _copy_forward(out: Any, at: Any, data: Any, begin: Any, end: Any) -> Any:
    def compiled(out: Any, at: Any, data: Any, begin: Any, end: Any) -> Any:
        count = end - begin
        if count > FORWARD or at > out.size - FORWARD or begin > data.size - FORWARD:
            _copy(out, at, data, begin, count)
        elif count <= SHORT:
            _copy(out, at, data, begin, SHORT)
        else:
            _copy(out, at, data, begin, FORWARD)
        return at + count

    return compiled


@_part(store)
def _store_integer(out: Any, at: Any, value: Any, big: Any) -> Any:
    def compiled(out: Any, at: Any, value: Any, big: Any) -> Any:
        _store(out, at, value, big)

    return compiled
