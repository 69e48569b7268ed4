"""Compilation of functions that are only parts of kernels. It stops before machine code is made.

Numba compiles every function to machine code. A part would then be optimized once for itself and
again in each function that it is a part of, up to the kernel. For a kernel of five levels that was
half of the compilation, and its result was never used.
"""

from __future__ import annotations

from typing import Any, Self

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class PartLibrary(JITCodeLibrary):
    """The code of a part. It is linked into kernels and optimized there; it never runs by
    itself.
    """

    def _optimize_final_module(self) -> None:
        """Do nothing: the optimization of the kernel covers the part."""

    def _finalize_final_module(self) -> None:
        """Mark the code as ready to be linked, but do not hand it to an engine, which would make
        machine code of it.
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
        """Do nothing: only Python objects need an environment, and its address would be written
        into the machine code.
        """


class PartCompiler(Compiler):
    """Numba's compiler, for parts."""

    def __init__(self, typing: Any, target: Any, _library: None, *arguments: Any) -> None:
        super().__init__(typing, target, PartLibrary(target.codegen(), "part"), *arguments)
