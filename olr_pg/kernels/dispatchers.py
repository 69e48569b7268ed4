"""Creates Numba's dispatchers for kernels, with one function for each decorator in `compile`.

By default, Numba counts references to every array that is passed in a call. This would be about
half of the machine code of a kernel. It is not needed, because the caller holds all arrays during
the call. So kernels are compiled without reference counting (`_nrt`). Such a kernel cannot allocate
memory; Numba reports an error if it does. Do not assign a slice to a slice: this counts as
allocating memory, and is slow to compile because of its error messages. Copy in a loop instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numba
from numba.core.dispatcher import Dispatcher

from olr_pg.kernels.cache import KernelCache
from olr_pg.kernels.parts import KernelCompiler, PartCompiler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A wrapper for C would be needed only if C code called a kernel, or if a function were an argument.
_KERNEL: Final = {
    "nogil": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelCompiler,
}
# Python does not call parts, so they need no wrappers. Compiling wrappers would take an eighth of
# the time.
_SMALL: Final = {**_KERNEL, "no_cpython_wrapper": True, "forceinline": True}
# A part has no cache on disk: it is contained in the kernels that are on disk.
_PART: Final = {**_SMALL, "pipeline_class": PartCompiler}


def kernel(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a kernel that Python calls."""
    return _of_any_integers(_kept(_dispatcher(function, _KERNEL)))


def inlined(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that is inlined."""
    return _of_any_integers(_dispatcher(function, _PART))


def part(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that LLVM may inline."""
    return _of_any_integers(_dispatcher(function, {**_PART, "forceinline": False}))


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of an inlined function that Python can call too."""
    return _of_any_integers(_kept(_dispatcher(function, {**_KERNEL, "forceinline": True})))


def inlined_for(signatures: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that is compiled for these signatures only."""
    dispatcher = _kept(_dispatcher(function, _SMALL))
    if not _is_compiled(dispatcher):
        return dispatcher
    template_of = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        # The signatures are compiled when a kernel that contains this part is compiled. A kernel
        # from the disk does not need them.
        if dispatcher._can_compile:
            for signature in signatures:
                dispatcher.compile(signature)
            dispatcher.disable_compile()
        return template_of(args, kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _dispatcher(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return Numba's dispatcher for a function, or the function itself if NUMBA_DISABLE_JIT is
    set.
    """
    return numba.njit(**options)(function)


def _is_compiled(dispatcher: Any) -> bool:
    return isinstance(dispatcher, Dispatcher)


def _kept(dispatcher: Any) -> Any:
    """Make a dispatcher save its kernel to the cache on disk, and load it from there."""
    if not _is_compiled(dispatcher):
        return dispatcher
    dispatcher._cache = KernelCache(dispatcher.py_func)
    return dispatcher


def _of_any_integers(dispatcher: Any) -> Any:
    """Make a dispatcher compile one version for `int64`, instead of one for each constant that
    kernels pass in calls.
    """
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
