"""How every redo kernel is compiled, and how it reads integers.

Kernels release the GIL and are cached on disk; `kernel.py_func` is the same code interpreted.
All readers take the byte order of the file; the caller has checked the bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import numba

BYTES: Final = (
    numba.types.Array(numba.uint8, 1, "C"),
    numba.types.Array(numba.uint8, 1, "C", readonly=True),
)
"""The payload of a window, and the bytes of a mapped log."""

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])

    def kernel(function: F) -> F:
        """Compile `function` with Numba."""

    def inlined(function: F) -> F:
        """Compile `function` with Numba, to be part of other kernels."""

    def inlined_for(*signatures: Any) -> Callable[[F], F]:
        """As `inlined`, for these signatures only; arguments are converted to them."""

else:

    def kernel(function):
        """Compile `function` with Numba."""
        return numba.njit(nogil=True, cache=True)(function)

    _PART = {
        "nogil": True,
        "cache": True,
        # Nobody calls a part from Python: its wrappers would be an eighth of the compilation.
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }

    def inlined(function):
        """Compile `function` with Numba, to be part of other kernels."""
        return numba.njit(**_PART)(function)

    def inlined_for(*signatures):
        """As `inlined`, for these signatures only; arguments are converted to them.

        Without signatures Numba compiles a version for every mix of literals and integer types
        that the callers use: eighteen of one function that stores a value.
        """
        return numba.njit(list(signatures), **_PART)


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def u16(data: Any, at: int, big: bool) -> int:
    """The unsigned 16-bit integer at `at`."""
    if big:
        return int(data[at]) << 8 | int(data[at + 1])
    return int(data[at]) | int(data[at + 1]) << 8


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def u32(data: Any, at: int, big: bool) -> int:
    """The unsigned 32-bit integer at `at`."""
    if big:
        return (
            int(data[at]) << 24 | int(data[at + 1]) << 16 | int(data[at + 2]) << 8
            | int(data[at + 3])
        )  # fmt: skip
    return (
        int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16
        | int(data[at + 3]) << 24
    )  # fmt: skip


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def scn8(data: Any, at: int, big: bool) -> int:
    """The SCN slot of 8 bytes at `at`, either form (redo-format §0.3); −1 for none."""
    base = u32(data, at, big)
    wrap = u16(data, at + 4, big)
    if base == 0xFFFFFFFF and wrap == 0xFFFF:
        return -1
    if wrap & 0x8000:
        return base | u16(data, at + 6, big) << 32 | (wrap & 0x7FFF) << 48
    return base | wrap << 32
