"""Kernels whose Numba dispatcher is created when they are first called, or compiled into another
kernel.

Most processes that import a module of kernels call only a few of its dozens of kernels, or none. To
create a dispatcher takes half a millisecond, and to import Numba takes a third of a second.

To compile the kernels takes half a minute. To run the kernels as Python code, without compiling,
takes a second for 100 KB of redo. So if the work of a process is short, or another process compiles
the kernels, the process runs the kernels that are not on disk as Python code (`interpret_first`).
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
"""The Unix time at which this process began to import kernels. In a process that was forked later,
it is the time of the parent process.
"""

_LOCK: Final = threading.RLock()
"""The lock under which dispatchers are created, so that each kernel has only one, even if several
threads call it.
"""

_FROM_PYTHON: Final = frozenset({"kernel", "inlined_kernel"})
"""The kinds of functions that Python can call."""


class _Interpretation:
    """The time for which this process still interprets kernels that are not on disk. All threads
    share it.
    """

    seconds: float = 0.0


def interpret_first(seconds: float) -> None:
    """Interpret kernels that are not on disk, until their calls have taken `seconds` in total.

    When this time is used up, a kernel is compiled when it is called. If another process has
    compiled a kernel in the meantime, its next call loads it from disk.
    """
    _Interpretation.seconds = seconds


class LateDispatcher:
    """Replaces the Numba dispatcher of a kernel until the first call, which creates the
    dispatcher.
    """

    # The slot `__call__` contains the method that creates the dispatcher, and after the first call
    # the dispatcher itself. So later calls run no Python code of this class.
    __slots__ = ("__call__", "__dict__", "_arguments", "_kind", "_made", "_plain", "py_func")

    def __init__(self, function: Callable[..., Any], kind: str, *arguments: Any) -> None:
        """Store the function of the kernel.

        Args:
            function: the undecorated function.
            kind: name of the function in `dispatchers` that creates the dispatcher.
            arguments: the arguments of that function that precede `function`.
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
        """The Numba dispatcher, which is created at the first access. If NUMBA_DISABLE_JIT is set,
        the result is the undecorated function.
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
        """Return whether to interpret this call. A later call may find the kernel on disk."""
        if _Interpretation.seconds <= 0 or self._kind not in _FROM_PYTHON:
            return False
        return not importlib.import_module(_DISK).is_on_disk(self)

    def _interpret(self, *arguments: Any, **named: Any) -> Any:
        if self._plain is None:
            self._plain = plain_python(self)
        start = time.thread_time()
        # Integers in a kernel may overflow as in machine code, so NumPy must not warn.
        with np.errstate(over="ignore"):
            result = self._plain(*arguments, **named)
        _Interpretation.seconds -= time.thread_time() - start
        return result

    @property
    def _numba_type_(self) -> Any:
        """The Numba type of this object, which Numba needs if another kernel calls it."""
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> Any:
        return self.dispatcher.__reduce__()


_FUNCTIONS: Final = (LateDispatcher, types.FunctionType)


def plain_python(function: Any, instead: Mapping[Any, Any] | None = None) -> Any:
    """Return a Python function that runs a kernel and all its parts without compiling, see
    `compile.interpreted`.
    """
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
