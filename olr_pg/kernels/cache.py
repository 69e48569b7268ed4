"""The cache of compiled kernels on disk: finds its files, and loads a kernel quickly.

When Numba itself loads a kernel, it also prepares for compiling other kernels: it imports the
modules that the compiler needs, and parses the code that other kernels may inline. Most processes
compile nothing. So this module loads only the machine code of a kernel, when the kernel is first
called. The other steps are done later, if another kernel that uses this kernel is compiled.

The digest of the sources of a kernel shows whether a compiled kernel on disk is outdated. Numba
itself checks only the source file in which a kernel is defined: its name, time and size. But a
kernel inlines functions and uses table layouts from other modules. If these functions and layouts
change in an upgrade, Numba would load an old kernel that reads columns at the wrong place. So the
names of the cache files contain a digest of all modules that the kernel's module imports, directly
or indirectly, and of the modules that compile the kernel.

The digest is calculated from the current files. If an upgrade replaces files while a process runs,
the process would compile old code and save it under the digest of the new files. `are_loaded`
returns whether the files are still those that the process imported.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import llvmlite.binding as llvm
import numba.core.runtime._nrt_python as runtime
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import compile_result
from numba.core.environment import Environment, lookup_environment

from olr_pg.kernels.late_dispatcher import LOADED_AT, MAKERS

if TYPE_CHECKING:
    from collections.abc import Callable


_ROOT: Final = Path(__file__).resolve().parent.parent
_PACKAGE: Final = __name__.partition(".")[0]
_DIGITS: Final = 12

_NO_PART: Final = frozenset({f"{_PACKAGE}.errors"})
"""Modules that most modules of kernels import, but that do not affect compiled code. Without this
exception, each new error code would cause all kernels to be compiled again.
"""

# Only imports at the start of a line count. Imports for type checkers are indented.
_IMPORT: Final = re.compile(
    rf"^(?:from ({_PACKAGE}[\w.]*) import|import ({_PACKAGE}[\w.]+))", re.MULTILINE
)


@cache
def sources_digest(module: str, path: str = "") -> str:
    """Return the digest of the sources of a module and of all modules of this package that it
    imports.

    Args:
        module: full name of the module.
        path: path of its source file, if the module is of another package.
    """
    whole = hashlib.sha256()
    for name in sorted(_sources(module, path)):
        whole.update(name.encode() + _source(name).digest)
    return whole.hexdigest()[:_DIGITS]


@cache
def are_loaded(module: str, path: str = "") -> bool:
    """Return whether the files of a digest have not changed since this process imported them.

    Args:
        module, path: as in `sources_digest`.
    """
    changed = max(_source(name).changed_at for name in _sources(module, path))
    if not module.startswith(f"{_PACKAGE}."):
        changed = max(changed, Path(path).stat().st_ctime)
    return changed < LOADED_AT


def _sources(module: str, path: str) -> set[str]:
    """Return the modules of this package whose sources affect the kernels of a module."""
    sources = {module, *imported(module), MAKERS, *imported(MAKERS)}
    if module.startswith(f"{_PACKAGE}."):
        return sources
    named = _named_in(Path(path).read_text("utf-8")) - _NO_PART
    return sources.union(named, *map(imported, named))


def imported(module: str) -> set[str]:
    """Return the modules of this package that `module` imports, directly or indirectly, without the
    modules in `_NO_PART`.
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = _source(waiting.pop()).imports - found - _NO_PART
        found |= new
        waiting += new
    return found


class _Source(NamedTuple):
    """The facts about a source file that this module needs.

    Attributes:
        changed_at: Unix time at which the file was changed or copied to its place.
    """

    digest: bytes
    imports: frozenset[str]
    changed_at: float


@cache
def _source(module: str) -> _Source:
    """Read the source of a module. A module outside the folder of the package counts as empty."""
    package, _, rest = module.partition(".")
    path = (_ROOT / rest.replace(".", "/")).with_suffix(".py")
    if package != _PACKAGE or not path.is_file():
        return _Source(hashlib.sha256().digest(), frozenset(), 0.0)
    text = path.read_bytes()
    return _Source(hashlib.sha256(text).digest(), _named_in(text.decode()), path.stat().st_ctime)


def _named_in(text: str) -> frozenset[str]:
    """Return the modules of this package that are imported in a source text."""
    return frozenset(one or other for one, other in _IMPORT.findall(text))


_INTRINSIC: Final = "llvm."


def is_on_disk(kernel: Any) -> bool:
    """Return whether the disk has a form of the kernel that was compiled from the current sources,
    for any argument types and any processor.
    """
    found = getattr(kernel, "_cache", NullCache())  # with NUMBA_DISABLE_JIT, it is a function
    # Compiling writes the index first and then the files that it lists, so look for such a file.
    if not isinstance(found, KernelCache) or not found.is_used:
        return False
    return found.index.with_suffix(".1.nbc").exists()


def index_of(kernel: Any) -> Path | None:
    """Return the path of the file that lists the compiled forms of a kernel, or None if kernels are
    not compiled.
    """
    found = getattr(kernel, "_cache", NullCache())
    return found.index if isinstance(found, KernelCache) else None


class _Results(CompileResultCacheImpl):
    """Converts a compiled kernel to the form in the cache and back. The cache contains its machine
    code, and the code that other kernels inline.
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
            type_annotation="",  # not needed, and larger than everything else
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

    The module of the part is not imported, because only code that works with Python objects needs
    it.
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
    """Numba's cache of one function. The names of its files contain the digest of the sources.

    Attributes:
        is_used: False if the sources have changed since they were imported. With changed sources,
            the cache loads and saves nothing.
    """

    _impl_class = _Results

    def __init__(self, function: Any) -> None:
        """Find the folder on disk.

        Args:
            function: the function, which can be of another package. For a function of another
                package, the digest covers the modules of this package that the function's module
                imports; Numba itself checks the function's module.

        Raises:
            OlrPgError: 1222, there is no folder that this user may write.
        """
        try:
            super().__init__(function)
        except RuntimeError as error:  # Numba's "no locator available"
            raise _no_folder(function) from error
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
        """The path of the file that lists the compiled forms of the kernel. The file may not
        exist.
        """
        return Path(self._cache_file._index_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled form for a signature, or return None if there is none."""
        # Not Numba's method, because it prepares the context for compiling.
        return self._load_overload(sig, target_context)


def _no_folder(function: Any) -> Exception:
    """Return the error that Numba found no folder for compiled kernels."""
    from olr_pg.errors import Code, OlrPgError  # rarely needed

    named = os.environ.get("NUMBA_CACHE_DIR") or "not set"
    return OlrPgError(
        Code.KERNELS_NOT_WRITABLE,
        f"this user can write neither in NUMBA_CACHE_DIR ({named}), nor in the directory of the"
        " program, nor in the cache directory of its home",
        directory=str(Path(function.__code__.co_filename).parent / "__pycache__"),
    )


class _CacheFile(IndexDataCacheFile):
    """Numba's files of a cache. If a file cannot be unpickled, it is treated as if it did not
    exist, and is replaced.

    Numba does not sync its files, so a power failure can cut them. An index can also name types
    that no longer exist: modules that the kernel's module does not import can define the argument
    types of the kernel, and the digest does not cover these modules.
    """

    def load(self, key: Any) -> Any:
        """Return the saved form for a signature, or None if there is none."""
        load: Any = super().load
        return _unpickled(partial(load, key), None)

    def _load_index(self) -> Any:
        load: Any = super()._load_index
        return _unpickled(load, {})


def _unpickled(load: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return load()
    except OSError:
        raise
    except Exception:  # noqa: BLE001 - a damaged pickle can raise any exception
        return otherwise


class _Names:
    """The names that an LLVM module defines, and the names that it uses but does not define."""

    def __init__(self, module: Any) -> None:
        values = [*module.functions, *module.global_variables]
        self.defined = frozenset(value.name for value in values if not value.is_declaration)
        self.needed = frozenset(
            value.name
            for value in values
            if value.is_declaration and not value.name.startswith(_INTRINSIC)
        )


class LoadedLibrary(JITCodeLibrary):
    """The machine code of a loaded kernel. The code for inlining is parsed only if another kernel
    that inlines this kernel is compiled.
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
    """Make these names known to the linker. With an unknown name, LLVM would end the process."""
    _name_runtime()
    if not all(map(_is_known, names)):
        # The other names are defined by modules that Numba loads for compiling.
        target_context.refresh()


@cache
def _name_runtime() -> None:
    """Make the names of Numba's array functions known to the linker. Numba itself does this only
    when it compiles.
    """
    for name, address in runtime.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@cache
def _is_known(name: str) -> bool:
    return llvm.address_of_symbol(name) is not None
