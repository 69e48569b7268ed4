"""Compiling what is only a part of kernels: no further than the kernels need it.

Numba takes every function that it compiles all the way to machine code. So a part would be
optimized once for itself, and again in each of those that it is a part of, up to the kernel: for a
kernel of five levels half of its compilation, of which nothing is used.
"""

from __future__ import annotations

from typing import Any, Self

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class PartLibrary(JITCodeLibrary):
    """The code of a part: it is linked into kernels, optimized there, and runs nowhere else."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernel's own optimization sees all of it."""

    def _finalize_final_module(self) -> None:
        """Ready to be linked, but given to no engine, which would make machine code of it."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0: Python cannot call it."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Self:
        """Return what is told of the environment (`set_env`)."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: only Python objects need one, and it would be written into machine code."""


class PartCompiler(Compiler):
    """Numba's compiler, for parts."""

    def __init__(self, typing: Any, target: Any, _library: None, *arguments: Any) -> None:
        super().__init__(typing, target, PartLibrary(target.codegen(), "part"), *arguments)
