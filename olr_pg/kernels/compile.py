"""The decorators that every kernel is compiled with.

Kernels release the GIL and are cached on disk; `kernel.py_func` is the same code interpreted.
Nothing of Numba is made, nor imported, before a kernel is called (`late_dispatcher`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from olr_pg.kernels.late_dispatcher import LateDispatcher, plain_python

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

    def kernel(function):
        """Compile `function` with Numba."""
        return LateDispatcher(function, "kernel")

    def inlined(function):
        """Compile `function` with Numba, to be part of other kernels; Python must not call it."""
        return LateDispatcher(function, "inlined")

    def part(function):
        """Inline as `inlined` does if LLVM thinks so: for what is large or called a lot."""
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
