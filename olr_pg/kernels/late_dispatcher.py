"""Kernels whose Numba dispatcher is not created before they are called or compiled into another
kernel.

A module has dozens of kernels. A process that loads one of them from disk (`cache`) needs none of
the others, and creating each dispatcher takes half a millisecond. Importing Numba itself takes a
third of a second, and most processes that import a module of kernels call none.

Compiling the kernels takes half a minute. Without compilation, the first 100 KB of redo take a
second. So a process whose work is short, or whose kernels another process compiles, runs the
kernels that are not on disk as plain Python (`interpret_first`).
"""

from __future__ import annotations

import importlib
import threading
import time
import types
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAKERS: Final = f"{__package__}.dispatchers"
"""The name of the module whose functions create Numba's dispatchers."""

_DISK: Final = f"{__package__}.cache"
"""The name of the module that knows which kernels are on disk. It imports Numba."""

LOADED_AT: Final = time.time()
"""When this process, or the process it was forked from, began to import kernels (Unix time)."""

_LOCK: Final = threading.RLock()
"""The lock under which a kernel's dispatcher is created, so that there is one, whichever threads
call it.
"""

_FROM_PYTHON: Final = frozenset({"kernel", "inlined_kernel"})
"""The kinds of function that Python calls."""


class _Interpretation:
    """How long this process still interprets kernels that are not on disk, counted over all
    threads.
    """

    seconds: float = 0.0


def interpret_first(seconds: float) -> None:
    """Interpret kernels that are not on disk, until their calls have taken `seconds` altogether.

    After that, a kernel is compiled when it is called. A kernel that another process has compiled
    meanwhile is loaded from disk at its next call.
    """
    _Interpretation.seconds = seconds


class LateDispatcher:
    """Stands in for the Numba dispatcher of a kernel, and creates that dispatcher at the first
    call.
    """

    # A call finds its target in this slot without Python code: first the method that creates the
    # dispatcher, then the dispatcher.
    __slots__ = ("__call__", "__dict__", "_arguments", "_kind", "_made", "_plain", "py_func")

    def __init__(self, function: Callable[..., Any], kind: str, *arguments: Any) -> None:
        """Take the kernel's code.

        Args:
            function: the code.
            kind: which function of `dispatchers` makes the dispatcher of it.
            arguments: the arguments of that function before the code.
        """
        self.py_func = function
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self._kind, self._arguments = kind, arguments
        self._made: Any = None
        self._plain: Any = None
        self.__call__ = self._first_call

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, always the same one. With NUMBA_DISABLE_JIT it is the function
        itself.
        """
        if self._made is None:
            with _LOCK:
                if self._made is None:
                    make = getattr(importlib.import_module(MAKERS), self._kind)
                    self._made = make(*self._arguments, self.py_func)
        return self._made

    def _first_call(self, *arguments: Any, **named: Any) -> Any:
        if self._is_interpreted():
            return self._interpret(*arguments, **named)
        self.__call__ = self.dispatcher
        return self.__call__(*arguments, **named)

    def _is_interpreted(self) -> bool:
        """Return whether this call is interpreted. A later call may find the kernel on disk."""
        if _Interpretation.seconds <= 0 or self._kind not in _FROM_PYTHON:
            return False
        return not importlib.import_module(_DISK).is_on_disk(self)

    def _interpret(self, *arguments: Any, **named: Any) -> Any:
        if self._plain is None:
            self._plain = plain_python(self)
        start = time.thread_time()
        # Integers of a kernel wrap around, as in machine code.
        with np.errstate(over="ignore"):
            result = self._plain(*arguments, **named)
        _Interpretation.seconds -= time.thread_time() - start
        return result

    @property
    def _numba_type_(self) -> Any:
        """The Numba type of this object when another kernel calls it."""
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> Any:
        return self.dispatcher.__reduce__()


_FUNCTIONS: Final = (LateDispatcher, types.FunctionType)


def plain_python(function: Any, instead: Mapping[Any, Any] | None = None) -> Any:
    """Return the plain Python of a kernel with all its parts, see `compile.interpreted`."""
    made = dict(instead or {})

    def plain(dispatcher: Any) -> Any:
        if dispatcher not in made:
            own = getattr(dispatcher, "py_func", dispatcher)
            scope = dict(own.__globals__)
            made[dispatcher] = types.FunctionType(
                own.__code__, scope, own.__name__, own.__defaults__, own.__closure__
            )
            for name in own.__code__.co_names:
                if isinstance(scope.get(name), _FUNCTIONS):
                    scope[name] = plain(scope[name])
        return made[dispatcher]

    return plain(function)
