"""The cache of compiled kernels on disk: where its files are, and how a kernel is loaded with
little work.

Numba's own loading prepares for compiling further kernels: it imports everything that the functions
can be compiled from, and parses what others may inline. Most processes compile nothing. So this
module loads only the kernel's machine code, at its first call. The rest is done when a kernel is
compiled that uses it.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm
import numba.core.runtime._nrt_python as runtime
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
)
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import compile_result
from numba.core.environment import Environment, lookup_environment

from olr_pg.kernels.sources import are_loaded, sources_digest

_INTRINSIC: Final = "llvm."


def is_on_disk(kernel: Any) -> bool:
    """Return whether a kernel was compiled from these sources, for any argument types and any
    processor.
    """
    found = getattr(kernel, "_cache", NullCache())  # NUMBA_DISABLE_JIT: a function
    # The index comes before what it lists.
    if not isinstance(found, KernelCache) or not found.is_used:
        return False
    return found.index.with_suffix(".1.nbc").exists()


def index_of(kernel: Any) -> Path | None:
    """Return the file that lists the compiled forms of a kernel, or None if kernels are not
    compiled.
    """
    found = getattr(kernel, "_cache", NullCache())
    return found.index if isinstance(found, KernelCache) else None


class _Results(CompileResultCacheImpl):
    """The parts of a compiled kernel that the cache stores: its machine code, and the parts that
    other kernels inline.
    """

    def reduce(self, cres: Any) -> Any:
        """Return the form in which a compiled kernel is saved."""
        library, *described, _annotation, reload_init, environments = super().reduce(cres)
        name, _, (machine_code, bitcode) = library
        names = _Names(cres.library._get_module_for_linking())
        return (
            (name, machine_code, bitcode, names.defined),
            names.needed,
            described,
            reload_init,
            [(one.globals["__name__"], one.consts, one.env_name) for one in environments],
        )

    def rebuild(self, target_context: Any, reduced_data: Any) -> Any:
        """Build a compiled kernel from its saved form."""
        library_parts, needed, described, reload_init, environments = reduced_data
        descriptor, environment, signature, objectmode, lifted = described
        _know(needed, target_context)
        for initialize in reload_init:
            initialize()
        library = LoadedLibrary(target_context.codegen(), *library_parts)
        entry_point = target_context.get_executable(library, descriptor, environment)
        referenced = [_environment(*one) for one in environments]
        for one in referenced:
            library.codegen.set_env(one.env_name, one)
        return compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            entry_point=entry_point,
            type_annotation="",  # irrelevant, and longer than the rest
            signature=signature,
            objectmode=objectmode,
            lifted=lifted,
            fndesc=descriptor,
            library=library,
            environment=environment,
            reload_init=reload_init,
            referenced_envs=referenced,
        )


def _environment(module: str, constants: list[Any], name: str) -> Any:
    """Return the environment in which the code of a part finds its constants.

    The module of the part is not imported: only code that works on Python objects uses it.
    """
    found = lookup_environment(name)
    if found is None:
        found = Environment(
            vars(sys.modules[module]) if module in sys.modules else {"__name__": module}
        )
        found.consts.extend(constants)
        found.env_name = name
        Environment._memo[name] = found
    return found


class KernelCache(FunctionCache):
    """Numba's cache of one function, with files that have the digest of the sources in their names.

    Attributes:
        is_used: False where the sources have changed since they were imported: nothing is loaded
            nor saved then.
    """

    _impl_class = _Results

    def __init__(self, function: Any) -> None:
        """Find the place on disk.

        Args:
            function: may be of another package: what its module imports of this package counts,
                Numba looks at the module itself.
        """
        super().__init__(function)
        place = function.__module__, function.__code__.co_filename
        self.is_used = are_loaded(*place)
        if not self.is_used:
            self.disable()
        digest = sources_digest(*place)
        name = f"{self._impl.filename_base}-{digest}"
        make: Any = _CacheFile
        self._cache_file = make(self._cache_path, name, digest)

    @property
    def index(self) -> Path:
        """The file that lists the kernel's compiled forms. It may not exist."""
        return Path(self._cache_file._index_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled form for a signature, or return None if there is none."""
        # Do not use Numba's method: it prepares the context for compiling.
        return self._load_overload(sig, target_context)


class _CacheFile(IndexDataCacheFile):
    """Numba's index file of a cache. An index that names types which no longer exist is treated as
    absent.

    The argument types of a kernel may come from modules that the kernel's own module does not
    import.
    """

    def _load_index(self) -> Any:
        load: Any = super()._load_index
        try:
            return load()
        except (AttributeError, ImportError):
            return {}


class _Names:
    """The names that a module of LLVM defines, and those that it expects elsewhere."""

    def __init__(self, module: Any) -> None:
        values = [*module.functions, *module.global_variables]
        self.defined = frozenset(value.name for value in values if not value.is_declaration)
        self.needed = frozenset(
            value.name
            for value in values
            if value.is_declaration and not value.name.startswith(_INTRINSIC)
        )


class LoadedLibrary(JITCodeLibrary):
    """The machine code of a loaded kernel. Its other parts are parsed only when a kernel is
    compiled that inlines it.
    """

    def __init__(
        self, codegen: Any, name: str, machine_code: bytes, bitcode: bytes, defined: frozenset[str]
    ) -> None:
        super().__init__(codegen, name)
        self._bitcode = bitcode
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()
        codegen._engine._defined_symbols.update(defined)

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self._bitcode)
        return self._shared_module


def _know(names: frozenset[str], target_context: Any) -> None:
    """Make all these names known to the linker. An unknown name would end the process."""
    _name_runtime()
    if not all(map(_is_known, names)):
        # The other names come from modules that Numba loads to compile.
        target_context.refresh()


@cache
def _name_runtime() -> None:
    """Make the names of Numba's array functions known to the linker. Numba itself does that only
    when it compiles.
    """
    for name, address in runtime.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@cache
def _is_known(name: str) -> bool:
    return llvm.address_of_symbol(name) is not None
