"""The decorators that mark a function as a kernel or as a part of kernels.

Kernels release the GIL and are cached on disk. `kernel.py_func` is the same code as plain Python.
Numba is not imported before a kernel is called (`late_dispatcher`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from olr_pg.kernels.late_dispatcher import LateDispatcher, plain_python

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    F = TypeVar("F", bound=Callable[..., Any])

    def kernel(function: F) -> F:
        """Compile `function` with Numba as a kernel, which Python calls."""

    def inlined(function: F) -> F:
        """Compile `function` with Numba and inline it in the kernels that call it. Python must not
        call it.
        """

    def part(function: F) -> F:
        """Compile `function` as `inlined` does, but let LLVM decide whether to inline it. Use it
        for large functions and for those that are called in many places.
        """

    def inlined_kernel(function: F) -> F:
        """Inline `function` as `inlined` does, and let Python call it too."""

    def inlined_for(*signatures: Any) -> Callable[[F], F]:
        """Inline the function as `inlined` does, but compile it for these signatures only.
        Arguments are converted to them.
        """

    def uncompiled(function: F) -> F:
        """Return the plain Python of a kernel. It also works where nothing is compiled
        (NUMBA_DISABLE_JIT).
        """

    def interpreted(function: F, instead: Mapping[Any, Any] | None = None) -> F:
        """Return the plain Python of a kernel and its parts. It is for work that takes less time
        than compiling them.

        Args:
            function: a kernel or a part.
            instead: Python functions in place of some parts, by part.
        """

else:

    def kernel(function):
        """Compile `function` with Numba."""
        return LateDispatcher(function, "kernel")

    def inlined(function):
        """Compile `function` with Numba and inline it in other kernels. Python must not call it."""
        return LateDispatcher(function, "inlined")

    def part(function):
        """Compile `function` as `inlined` does, but let LLVM decide whether to inline it."""
        return LateDispatcher(function, "part")

    def inlined_kernel(function):
        """Inline as `inlined` does, but let Python call it too."""
        return LateDispatcher(function, "inlined_kernel")

    def inlined_for(*signatures):
        """Inline as `inlined` does, for these signatures only; arguments are converted to them.

        Without signatures Numba compiles a version for every mix of integer types that the callers
        use: eighteen of one function that stores a value.
        """
        return lambda function: LateDispatcher(function, "inlined_for", signatures)

    def uncompiled(function):
        """Return a kernel as plain Python, also where nothing is compiled."""
        return getattr(function, "py_func", function)

    def interpreted(function, instead=None):
        """Make plain Python of a kernel with all its parts."""
        return plain_python(function, instead)
