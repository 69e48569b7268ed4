"""Compiles kernels, and the functions that are only parts of kernels. No machine code is made for
parts.

By default, Numba compiles every function to machine code, together with a copy of all functions
that it calls. A part is then optimized once by itself, and again in each function that contains it,
up to the kernel. For a kernel with five levels of parts, this took half of the compile time, and
the machine code of the parts was never used. So a part consists of its own code only. A kernel
links each part that it needs once, directly or indirectly, and then optimizes them together.
"""

from __future__ import annotations

from typing import Any, Final, Self

from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_UNNEEDED: Final = frozenset(
    {
        untyped_passes.InlineClosureLikes,
        untyped_passes.MakeFunctionToJitFunction,
        untyped_passes.InlineInlinables,
        untyped_passes.LiteralUnroll,
        untyped_passes.LiteralPropagationSubPipelinePass,
        typed_passes.NopythonRewrites,
    }
)
"""Numba's compilation steps for Python code that kernels do not contain: comprehensions, functions
in functions, `inline="always"`, `literal_unroll`, and array expressions. These steps would not
change a kernel, but would take a twentieth of the compile time. Without these steps, Numba calls a
function with `inline="always"` like any other; for the other code it reports an error.
"""


class _LinkedLate(JITCodeLibrary):
    """Code that only lists the libraries that it needs.

    Attributes:
        needed: the libraries of the functions that this code calls, directly or indirectly. Callers
            come before the functions that they call, because LLVM links only a function that the
            code before it calls.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.needed: dict[Any, None] = {}

    def add_linking_library(self, library: Any) -> None:
        """Record a library that this code needs, and after it those that this library needs."""
        if library in self.needed:
            return
        for one in (library, *getattr(library, "needed", ())):
            self.needed.pop(one, None)
            self.needed[one] = None


class PartLibrary(_LinkedLate):
    """The code of a part. It is linked into kernels and optimized there. It never runs
    separately.
    """

    def finalize(self) -> None:
        """Do nothing, because the part is linked and optimized together with the kernel."""

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, because Python cannot call a part."""
        return 0

    @property
    def codegen(self) -> Self:
        """Return the code generator, whose `set_env` receives the environment of a compiled
        function.
        """
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing. Only code that works with Python objects needs an environment, whose address
        would be written into machine code.
        """


class KernelLibrary(_LinkedLate):
    """The code of a kernel with all its parts."""

    def finalize(self) -> None:
        """Link the parts, and make machine code."""
        for library in self.needed:
            JITCodeLibrary.add_linking_library(self, library)
        super().finalize()


class _KernelSteps(Compiler):
    """Numba's compiler without the steps of `_UNNEEDED`."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's steps that kernels need."""
        pipelines: list[Any] = super().define_pipelines()
        for one in pipelines:
            one.passes = [step for step in one.passes if step[0] not in _UNNEEDED]
            one.finalize()
        return pipelines


class PartCompiler(_KernelSteps):
    """Numba's compiler with `PartLibrary`, for parts."""

    def __init__(self, typing: Any, target: Any, _library: None, *arguments: Any) -> None:
        super().__init__(typing, target, PartLibrary(target.codegen(), "part"), *arguments)


class KernelCompiler(_KernelSteps):
    """Numba's compiler with `KernelLibrary`, for kernels."""

    def __init__(self, typing: Any, target: Any, _library: None, *arguments: Any) -> None:
        library = KernelLibrary(target.codegen(), "kernel")
        library.enable_object_caching()  # else the kernel could not be saved to disk
        super().__init__(typing, target, library, *arguments)
