"""Runs work in a separate process, so that the memory of this work does not affect later
measurements.

The process is started anew and inherits only the environment. The process ends when its parent
ends, whatever the reason.
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
    """Run `work` in a separate process, and yield the objects that it yields. Closing the generator
    ends the process.

    Args:
        name: name of the process, for error messages.
        work: a function at the top level of a module. The function, its arguments and its results
            must be picklable.

    Raises:
        OlrPgError: an error that `work` raised; 8101, the process ended in another way (Python's
            message is on stderr).
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
        # This has no effect if the process has already ended.
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
    """Run `work` in a separate process.

    Raises:
        OlrPgError: see `results_of`.
    """
    for _ in results_of(name, _silently, work, arguments):
        pass


def _silently(
    work: Callable[..., object], arguments: tuple[object, ...]
) -> Generator[None, None, None]:
    work(*arguments)
    yield from ()


def _received(receiver: Connection) -> Generator[Any, None, OlrPgError | None]:
    """Yield the objects that the process sends. If the last one is an error, return it instead."""
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
    """Make the first signal end this process with an exception, so that every `finally` runs. Later
    signals have no effect.
    """
    signals = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signals.append(signal.SIGINT)

    def end(number: int, _frame: FrameType | None) -> None:
        # Ctrl-C reaches both this process and its parent, and then the parent also sends a signal:
        # ignore the second one.
        for one in signals:
            signal.signal(one, _nothing)
        raise SystemExit(128 + number)

    for one in signals:
        signal.signal(one, end)
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Ignore a signal. SIG_IGN is not used, because programs that this process starts would inherit
    it.
    """


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # because a parent process started this one
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
