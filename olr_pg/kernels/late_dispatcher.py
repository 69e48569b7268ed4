"""Kernels of which nothing is made before they are called, or compiled into another one.

A module of kernels has dozens, and a process that loads one from disk (`cache`) needs none of the
others: what Numba makes of each takes half a millisecond. Numba itself takes a third of a second,
and most processes that import a module of kernels call none.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAKERS: Final = f"{__package__}.dispatchers"
"""The module whose functions make Numba's dispatchers."""

_LOCK: Final = threading.RLock()
"""One of a kernel, whichever threads ask for it."""


class LateDispatcher:
    """Stands for Numba's dispatcher, and becomes it when it is called or anything else is asked."""

    # A call finds what to call in this slot without any Python in between: first the method that
    # makes the dispatcher, then the dispatcher.
    __slots__ = ("__call__", "__dict__", "_arguments", "_kind", "py_func")

    def __init__(self, function: Callable[..., Any], kind: str, *arguments: Any) -> None:
        """Take the kernel's code.

        Args:
            function: the code.
            kind: which function of `dispatchers` makes the dispatcher of it.
            arguments: what that function takes before the code.
        """
        self.py_func = function
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self._kind, self._arguments = kind, arguments
        self.__call__ = self._first_call

    @property
    def dispatcher(self) -> Any:
        """Numba's, the same each time; with NUMBA_DISABLE_JIT the code."""
        if self.__call__ == self._first_call:
            with _LOCK:
                if self.__call__ == self._first_call:
                    make = getattr(importlib.import_module(MAKERS), self._kind)
                    self.__call__ = make(*self._arguments, self.py_func)
        return self.__call__

    def _first_call(self, *arguments: Any, **named: Any) -> Any:
        return self.dispatcher(*arguments, **named)

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes it for in another kernel."""
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> Any:
        return self.dispatcher.__reduce__()
