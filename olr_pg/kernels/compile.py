"""The decorators that every kernel is compiled with.

Kernels release the GIL and are cached on disk; `kernel.py_func` is the same code interpreted.

Numba counts the references of every array that passes a call, which half the machine code of a
kernel would be about. The caller holds all arrays, so kernels do without (`_nrt`); such a kernel
cannot allocate, which Numba says when it compiles one that does. A slice assigned to a slice is
one of those, and slow to compile for its error messages: copy in a loop.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, TypeVar

import numba

from olr_pg.kernels.cache import key_by_sources
from olr_pg.kernels.parts import PartCompiler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    F = TypeVar("F", bound=Callable[..., Any])

    def kernel(function: F) -> F:
        """Compile `function` with Numba."""

    def inlined(function: F) -> F:
        """Compile `function` with Numba, to be part of other kernels; Python must not call it."""

    def part(function: F) -> F:
        """Inline as `inlined` does if LLVM thinks so: for what is large or called a lot."""

    def inlined_kernel(function: F) -> F:
        """Inline as `inlined` does, but let Python call it too."""

    def inlined_for(*signatures: Any) -> Callable[[F], F]:
        """Inline as `inlined` does, for these signatures only; arguments are converted to them."""

    def uncompiled(function: F) -> F:
        """Return a kernel as plain Python, also where nothing is compiled (NUMBA_DISABLE_JIT)."""

    def interpreted(function: F, instead: Mapping[Any, Any] | None = None) -> F:
        """Make plain Python of a kernel and its parts: for work shorter than compiling them.

        Args:
            function: a kernel or a part.
            instead: Python functions in place of some parts, by part.
        """

else:

    def _dispatcher(options, function):
        """Numba's; `function` itself with NUMBA_DISABLE_JIT."""
        dispatcher = numba.njit(**options)(function)
        if isinstance(dispatcher, numba.core.dispatcher.Dispatcher):
            key_by_sources(dispatcher)
        return dispatcher

    def _compiled(options, function):
        """Compile for `int64`, not for every literal integer that a call in a kernel passes."""
        dispatcher = _dispatcher(options, function)
        if dispatcher is function:
            return dispatcher
        template_of = dispatcher.get_call_template

        def get_call_template(args, kws):
            return template_of(
                tuple(numba.types.unliteral(arg) for arg in args),
                {name: numba.types.unliteral(arg) for name, arg in kws.items()},
            )

        dispatcher.get_call_template = get_call_template
        return dispatcher

    _FUNCTIONS = (numba.core.dispatcher.Dispatcher, types.FunctionType)
    _KERNEL = {"nogil": True, "cache": True, "_nrt": False}
    # Nobody calls a part from Python: its wrappers would be an eighth of the compilation.
    _SMALL = _KERNEL | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}
    # On disk are the kernels that it is in.
    _PART = _SMALL | {"cache": False, "pipeline_class": PartCompiler}

    def kernel(function):
        """Compile `function` with Numba."""
        return _compiled(_KERNEL, function)

    def inlined(function):
        """Compile `function` with Numba, to be part of other kernels; Python must not call it."""
        return _compiled(_PART, function)

    def part(function):
        """Inline as `inlined` does if LLVM thinks so: for what is large or called a lot."""
        return _compiled(_PART | {"forceinline": False}, function)

    def uncompiled(function):
        """Return a kernel as plain Python, also where nothing is compiled."""
        return getattr(function, "py_func", function)

    def interpreted(function, instead=None):
        """Make plain Python of a kernel with all its parts."""
        made = dict(instead or {})

        def plain(dispatcher):
            if dispatcher not in made:
                own = uncompiled(dispatcher)
                scope = dict(own.__globals__)
                made[dispatcher] = types.FunctionType(own.__code__, scope, own.__name__)
                for name in own.__code__.co_names:
                    if isinstance(scope.get(name), _FUNCTIONS):
                        scope[name] = plain(scope[name])
            return made[dispatcher]

        return plain(function)

    def inlined_kernel(function):
        """Inline as `inlined` does, but let Python call it too."""
        return _compiled(_KERNEL | {"forceinline": True}, function)

    def inlined_for(*signatures):
        """Inline as `inlined` does, for these signatures only; arguments are converted to them.

        Without signatures Numba compiles a version for every mix of integer types that the callers
        use: eighteen of one function that stores a value.
        """

        def decorator(function):
            dispatcher = _dispatcher(_SMALL, function)
            if dispatcher is function:
                return dispatcher
            template_of = dispatcher.get_call_template

            def get_call_template(args, kws):
                # The first kernel that is compiled with it asks: one from the disk never does.
                if dispatcher._can_compile:
                    for signature in signatures:
                        dispatcher.compile(signature)
                    dispatcher.disable_compile()
                return template_of(args, kws)

            dispatcher.get_call_template = get_call_template
            return dispatcher

        return decorator
