"""Creation of Numba's dispatchers of kernels, one function for each decorator in `compile`.

By default, Numba counts the references to every array that is passed in a call. That would be about
half of a kernel's machine code. The caller holds all arrays anyway, so kernels are compiled without
it (`_nrt`). Such a kernel cannot allocate memory; Numba reports an error when it compiles one that
does. Assigning a slice to a slice counts as allocating and is slow to compile because of its error
messages: copy in a loop instead.
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
# Parts are not called from Python, and their wrappers would take an eighth of the compilation.
_SMALL: Final = {
    **_KERNEL,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": True,
}
# The kernels that contain the part are on disk.
_PART: Final = {**_SMALL, "pipeline_class": PartCompiler}


def kernel(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a kernel that Python calls."""
    return _of_any_integers(_kept(_dispatcher(function, _KERNEL)))


def inlined(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that is inlined."""
    return _of_any_integers(_dispatcher(function, _PART))


def part(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that is inlined if LLVM decides so."""
    return _of_any_integers(_dispatcher(function, {**_PART, "forceinline": False}))


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that Python calls too."""
    return _of_any_integers(_kept(_dispatcher(function, {**_KERNEL, "forceinline": True})))


def inlined_for(signatures: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that is compiled for these signatures only."""
    dispatcher = _kept(_dispatcher(function, _SMALL))
    if not _is_compiled(dispatcher):
        return dispatcher
    template_of = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        # Only compiling a kernel with this part asks for it; a kernel from the disk does not.
        if dispatcher._can_compile:
            for signature in signatures:
                dispatcher.compile(signature)
            dispatcher.disable_compile()
        return template_of(args, kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _dispatcher(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return Numba's dispatcher, or `function` itself with NUMBA_DISABLE_JIT."""
    return numba.njit(**options)(function)


def _is_compiled(dispatcher: Any) -> bool:
    return isinstance(dispatcher, Dispatcher)


def _kept(dispatcher: Any) -> Any:
    """Give a dispatcher the cache on disk."""
    if not _is_compiled(dispatcher):
        return dispatcher
    dispatcher._cache = KernelCache(dispatcher.py_func)
    return dispatcher


def _of_any_integers(dispatcher: Any) -> Any:
    """Compile for `int64` instead of for every literal integer that a kernel passes in a call."""
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
