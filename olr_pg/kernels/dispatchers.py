"""Numba's dispatchers of kernels, of each kind that `compile` has a decorator for.

Numba counts the references of every array that passes a call, which half the machine code of a
kernel would be about. The caller holds all arrays, so kernels do without (`_nrt`); such a kernel
cannot allocate, which Numba says when it compiles one that does. A slice assigned to a slice is
one of those, and slow to compile for its error messages: copy in a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numba
from numba.core.dispatcher import Dispatcher

from olr_pg.kernels.cache import KernelCache
from olr_pg.kernels.parts import PartCompiler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_KERNEL: Final = {"nogil": True, "_nrt": False}
# Nobody calls a part from Python: its wrappers would be an eighth of the compilation.
_SMALL: Final = {
    **_KERNEL,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": True,
}
# On disk are the kernels that it is in.
_PART: Final = {**_SMALL, "pipeline_class": PartCompiler}


def kernel(function: Callable[..., Any]) -> Any:
    """Make what Python calls."""
    return _of_any_integers(_kept(_dispatcher(function, _KERNEL)))


def inlined(function: Callable[..., Any]) -> Any:
    """Make a part that is inlined."""
    return _of_any_integers(_dispatcher(function, _PART))


def part(function: Callable[..., Any]) -> Any:
    """Make a part that is inlined if LLVM thinks so."""
    return _of_any_integers(_dispatcher(function, {**_PART, "forceinline": False}))


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Make a part that Python calls, too."""
    return _of_any_integers(_kept(_dispatcher(function, {**_KERNEL, "forceinline": True})))


def inlined_for(signatures: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """Make a part that is compiled for these signatures only."""
    dispatcher = _kept(_dispatcher(function, _SMALL))
    if not _is_compiled(dispatcher):
        return dispatcher
    template_of = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        # The first kernel that is compiled with it asks: one from the disk never does.
        if dispatcher._can_compile:
            for signature in signatures:
                dispatcher.compile(signature)
            dispatcher.disable_compile()
        return template_of(args, kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _dispatcher(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return Numba's; `function` itself with NUMBA_DISABLE_JIT."""
    return numba.njit(**options)(function)


def _is_compiled(dispatcher: Any) -> bool:
    return isinstance(dispatcher, Dispatcher)


def _kept(dispatcher: Any) -> Any:
    """Let what is compiled be kept on disk."""
    if not _is_compiled(dispatcher):
        return dispatcher
    dispatcher._cache = KernelCache(dispatcher.py_func)
    return dispatcher


def _of_any_integers(dispatcher: Any) -> Any:
    """Compile for `int64`, not for every literal integer that a call in a kernel passes."""
    if not _is_compiled(dispatcher):
        return dispatcher
    template_of = dispatcher.get_call_template
    plain: Any = numba.types.unliteral

    def get_call_template(args: Any, kws: Any) -> Any:
        return template_of(
            tuple(plain(arg) for arg in args), {name: plain(arg) for name, arg in kws.items()}
        )

    dispatcher.get_call_template = get_call_template
    return dispatcher
