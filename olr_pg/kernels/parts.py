"""Compiles functions that are only parts of kernels. No machine code is made for them.

By default, Numba compiles every function to machine code. A part is then optimized once by itself,
and again in each function that contains it, up to the kernel. For a kernel with five levels of
parts, this took half of the compile time, and the machine code of the parts was never used.
"""

from __future__ import annotations

from typing import Any, Self

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class PartLibrary(JITCodeLibrary):
    """The code of a part. It is linked into kernels and optimized there. It never runs
    separately.
    """

    def _optimize_final_module(self) -> None:
        """Do nothing, because the part is optimized together with the kernel."""

    def _finalize_final_module(self) -> None:
        """Mark the code as ready for linking. It is not passed to an LLVM engine, which would
        compile it to machine code.
        """
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, because Python cannot call a part."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Self:
        """Return the object that receives the environment (`set_env`)."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing. Only code that works with Python objects needs an environment, whose address
        would be written into machine code.
        """


class PartCompiler(Compiler):
    """Numba's compiler with `PartLibrary`, for parts."""

    def __init__(self, typing: Any, target: Any, _library: None, *arguments: Any) -> None:
        super().__init__(typing, target, PartLibrary(target.codegen(), "part"), *arguments)
