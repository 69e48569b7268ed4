"""The decorators that mark a function as a kernel or as a part of kernels.

Kernels release the GIL and are cached on disk. `kernel.py_func` is the undecorated Python function.
Numba is imported when a kernel is first called (`late_dispatcher`).
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
        """Compile `function` with Numba and inline it into the kernels that call it. Python code
        must not call such a function.
        """

    def part(function: F) -> F:
        """Compile `function` as `inlined` does, but let LLVM decide whether to inline it. Use this
        decorator for functions that are large or are called in many places.
        """

    def inlined_kernel(function: F) -> F:
        """Compile and inline `function` as `inlined` does. Python can also call the result."""

    def inlined_for(*signatures: Any) -> Callable[[F], F]:
        """Inline the function as `inlined` does, but compile it for these signatures only.
        Arguments are converted to the types of the signatures.
        """

    def uncompiled(function: F) -> F:
        """Return the undecorated Python function of a kernel, also if kernels are not compiled
        (NUMBA_DISABLE_JIT).
        """

    def interpreted(function: F, instead: Mapping[Any, Any] | None = None) -> F:
        """Return a Python function that runs a kernel and all its parts without compiling. Use this
        function if running this function takes less time than compiling the kernel.

        Args:
            function: a kernel or a part.
            instead: Python functions that replace some of the parts, by part.
        """

else:

    def kernel(function):
        """Compile `function` with Numba."""
        return LateDispatcher(function, "kernel")

    def inlined(function):
        """Compile `function` with Numba and inline it into other kernels. Do not call it from
        Python.
        """
        return LateDispatcher(function, "inlined")

    def part(function):
        """Compile `function` as `inlined` does, but let LLVM decide whether to inline it."""
        return LateDispatcher(function, "part")

    def inlined_kernel(function):
        """Inline a function as `inlined` does. Python can also call the result."""
        return LateDispatcher(function, "inlined_kernel")

    def inlined_for(*signatures):
        """Inline a function as `inlined` does, for these signatures only. Arguments are converted
        to their types.

        Without signatures, Numba compiles a version for every combination of integer types in the
        calls. For example, Numba compiled eighteen versions of a function that stores a value.
        """
        return lambda function: LateDispatcher(function, "inlined_for", signatures)

    def uncompiled(function):
        """Return the undecorated Python function of a kernel, also if kernels are not compiled."""
        return getattr(function, "py_func", function)

    def interpreted(function, instead=None):
        """Return a Python function that runs a kernel and all its parts without compiling."""
        return plain_python(function, instead)
