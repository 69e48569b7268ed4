"""Runs work in a separate process, so that its memory does not affect later measurements.

The process is new and inherits only the environment. It ends when its parent ends, for whatever
reason.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from contextlib import closing, suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

from olr_pg.appliance.process_setup import tune_process
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.logging_setup import WARNINGS, configure_logging

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from multiprocessing.connection import Connection
    from types import FrameType

T = TypeVar("T")


def results_of(
    name: str, work: Callable[..., Generator[T, None, None]], *arguments: object
) -> Generator[T, None, None]:
    """Yield what `work` yields, in a process of its own; closing it ends the process.

    Args:
        name: of the process, for errors.
        work: a function of a module; it, its arguments and its results can be pickled.

    Raises:
        OlrPgError: one that `work` raised; 8101, the process has ended in another way (what
            Python says of it is on stderr).
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, work, arguments), name=name)
    process.start()
    sender.close()
    try:
        failure = yield from _received(receiver)
        process.join()
    finally:
        # If the process has already ended, this does nothing.
        process.terminate()
        process.join()
        receiver.close()
    if failure is not None:
        raise failure
    if process.exitcode:
        raise OlrPgError(
            Code.BENCHMARK_PROCESS_FAILED, f"{name} ended with exit code {process.exitcode}"
        )


def do_apart(name: str, work: Callable[..., object], *arguments: object) -> None:
    """Do `work` in a process of its own.

    Raises:
        OlrPgError: as `results_of`.
    """
    for _ in results_of(name, _silently, work, arguments):
        pass


def _silently(
    work: Callable[..., object], arguments: tuple[object, ...]
) -> Generator[None, None, None]:
    work(*arguments)
    yield from ()


def _received(receiver: Connection) -> Generator[Any, None, OlrPgError | None]:
    """Yield the objects that are sent; return the error that was sent last, if any."""
    with suppress(EOFError):
        while not isinstance(received := receiver.recv(), OlrPgError):
            yield received
        return received
    return None


def _work(
    sender: Connection,
    work: Callable[..., Generator[object, None, None]],
    arguments: tuple[object, ...],
) -> None:
    _end_in_order()
    tune_process()
    configure_logging(WARNINGS)
    with sender:
        try:
            with closing(work(*arguments)) as results:
                for result in results:
                    sender.send(result)
        except OlrPgError as error:
            sender.send(error)


def _end_in_order() -> None:
    """Let the first signal end this process by way of every `finally`; the next ones do nothing."""
    signals = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signals.append(signal.SIGINT)

    def end(number: int, _frame: FrameType | None) -> None:
        # Ctrl-C reaches both this process and its parent, and the parent then sends a signal, too:
        # ignore that one.
        for one in signals:
            signal.signal(one, _nothing)
        raise SystemExit(128 + number)

    for one in signals:
        signal.signal(one, end)
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN, which the programs that are started from here would inherit."""


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # a parent process started this one
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
