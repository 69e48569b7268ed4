"""Creates Numba's dispatchers for kernels, with one function for each decorator in `compile`.

By default, Numba counts references to every array that is passed in a call. The counting would be
about half of the machine code of a kernel. Kernels need no counting, because the caller holds all
arrays during the call. So kernels are compiled without reference counting (`_nrt`). A kernel
without reference counting cannot allocate memory; Numba reports an error if it does. Do not assign
a slice to a slice: this counts as allocating memory, and is slow to compile because of its error
messages. Copy in a loop instead.

By default, Numba also compiles every function to machine code, together with a copy of all
functions that it calls. A part is then optimized once by itself, and again in each function that
contains it, up to the kernel. For a kernel with five levels of parts, this took half of the compile
time, and the machine code of the parts was never used. So a part consists of its own code only, and
no machine code is made for it. A kernel links each part that it needs once, directly or indirectly,
and then optimizes them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numba
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher

from olr_pg.kernels.cache import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    """The code of a part. This code is linked into kernels and optimized there. It never runs
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

    def __init__(self, typing: Any, target: Any, *arguments: Any) -> None:
        super().__init__(typing, _remembering_sizes(target), *arguments)

    def define_pipelines(self) -> list[Any]:
        """Return Numba's steps that kernels need."""
        pipelines: list[Any] = super().define_pipelines()
        for one in pipelines:
            one.passes = [step for step in one.passes if step[0] not in _UNNEEDED]
            one.finalize()
        return pipelines


def _remembering_sizes(target: Any) -> Any:
    """Make a target context ask LLVM only once for the size of a type; return the context.

    Numba asks for the size of each variable that a function stores. For each answer, LLVM parses a
    module. Without this function, that would be a fourteenth of the compile time.
    """
    if "get_abi_sizeof" not in vars(target):
        measure, sizes = target.get_abi_sizeof, dict[str, int]()

        def get_abi_sizeof(of: Any) -> int:
            text = str(of)
            if text not in sizes:
                sizes[text] = measure(of)
            return sizes[text]

        target.get_abi_sizeof = get_abi_sizeof
    return target


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


# A wrapper for C would be needed only if C code called a kernel, or if a function were an argument.
_KERNEL: Final = {
    "nogil": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelCompiler,
}
# Python does not call parts, so they need no wrappers. Compiling wrappers would take an eighth of
# the time.
_SMALL: Final = {**_KERNEL, "no_cpython_wrapper": True, "forceinline": True}
# A part has no cache on disk: it is contained in the kernels that are on disk.
_PART: Final = {**_SMALL, "pipeline_class": PartCompiler}


def kernel(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a kernel that Python calls."""
    return _of_any_integers(_kept(_dispatcher(function, _KERNEL)))


def inlined(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that is inlined."""
    return _of_any_integers(_dispatcher(function, _PART))


def part(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that LLVM may inline."""
    return _of_any_integers(_dispatcher(function, {**_PART, "forceinline": False}))


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Create the dispatcher of an inlined function that Python can call too."""
    return _of_any_integers(_kept(_dispatcher(function, {**_KERNEL, "forceinline": True})))


def inlined_for(signatures: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """Create the dispatcher of a part that is compiled for these signatures only."""
    dispatcher = _kept(_dispatcher(function, _SMALL))
    if not _is_compiled(dispatcher):
        return dispatcher
    template_of = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        # The signatures are compiled when a kernel that contains this part is compiled. A kernel
        # from the disk does not need them.
        if dispatcher._can_compile:
            for signature in signatures:
                dispatcher.compile(signature)
            dispatcher.disable_compile()
        return template_of(args, kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _dispatcher(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return Numba's dispatcher for a function, or the function itself if NUMBA_DISABLE_JIT is
    set.
    """
    return numba.njit(**options)(function)


def _is_compiled(dispatcher: Any) -> bool:
    return isinstance(dispatcher, Dispatcher)


def _kept(dispatcher: Any) -> Any:
    """Make a dispatcher save its kernel to the cache on disk, and load it from there."""
    if not _is_compiled(dispatcher):
        return dispatcher
    dispatcher._cache = KernelCache(dispatcher.py_func)
    return dispatcher


def _of_any_integers(dispatcher: Any) -> Any:
    """Make a dispatcher compile one version for `int64`, instead of one for each constant that
    kernels pass in calls.
    """
    if not _is_compiled(dispatcher):
        return dispatcher
    template_of = dispatcher.get_call_template
    plain: Any = numba.types.unliteral

    def get_call_template(args: Any, kws: Any) -> Any:
        return template_of(
            tuple(plain(arg) for arg in args), {name: plain(arg) for name, arg in kws.items()}
        )

    dispatcher.get_call_template = get_call_template
    return dispatcher
