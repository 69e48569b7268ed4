"""What SIGTERM and SIGINT do to a command: the first one ends it in order, the second one at once.

The first raises an exception in the main thread, so that every `finally` runs: sockets, Java,
PostgreSQL. A command that has to end in time says so with `ends_within`: what has not ended by then
is left to the system, as with SIGKILL. Replication loses nothing by that, as tests with SIGKILL
show: what is confirmed is durable, and what is not comes again.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from types import FrameType

EXIT_TERMINATED: Final = 128 + signal.SIGTERM

_REPEAT_SECONDS: Final = 0.1
_SAY_SECONDS: Final = 0.5
"""What saying why may take: whoever reads stderr may not read it."""


class _Ending:
    """The end of this process by signals; one per command."""

    def __init__(self) -> None:
        self._is_told = False
        self._is_repeated = False
        self._bell: int | None = None

    def end_within(self, seconds: float) -> None:
        """End the process so long after the first signal, from a thread that waits for it.

        The thread is there before the signal: its handler must not take a lock, which the code that
        it interrupts may hold.
        """
        heard, self._bell = os.pipe()

        def watch() -> None:
            number = os.read(heard, 1)[0]
            time.sleep(seconds)
            _end_at_once(number, f"ended at once: it has not ended within {seconds:g} s")

        threading.Thread(target=watch, name="olr-ending", daemon=True).start()

    def take(self, number: int, _frame: FrameType | None) -> NoReturn:
        """Take a signal in the main thread."""
        if self._is_told and not self._is_repeated:
            _end_at_once(number, "ended at once: a second signal came")
        if not self._is_told and self._bell is not None:
            os.write(self._bell, bytes([number]))
        self._is_told, self._is_repeated = True, False
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(EXIT_TERMINATED)

    def raise_again(self, lost: sys.UnraisableHookArgs) -> None:
        """Send a signal again whose exception was lost where none can be raised.

        So it is in a callback of machine code, such as those in which kernels are compiled: the
        command would go on as if nobody had told it to end.
        """
        number = {SystemExit: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}.get(lost.exc_type)
        if number is None:
            sys.__unraisablehook__(lost)
            return
        # Behind this callback, which would lose it once more.
        again = threading.Timer(_REPEAT_SECONDS, self._repeat, (number,))
        again.daemon = True
        again.start()

    def _repeat(self, number: int) -> None:
        self._is_repeated = True
        os.kill(os.getpid(), number)


_ending = _Ending()


def take_signals() -> None:
    """Let SIGTERM and SIGINT end the command that begins; only in the main thread."""
    global _ending
    if threading.current_thread() is not threading.main_thread():
        return
    before, _ending = _ending, _Ending()
    signal.signal(signal.SIGTERM, _ending.take)
    sys.unraisablehook = _ending.raise_again
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, before.take):  # `entry` has set it
        signal.signal(signal.SIGINT, _ending.take)


def ends_within(seconds: float) -> None:
    """Let the process end so long after a first signal, whatever keeps it."""
    _ending.end_within(seconds)


def _end_at_once(number: int, why: str) -> NoReturn:
    # Whoever reads stderr may have stopped reading.
    if select.select([], [2], [], _SAY_SECONDS)[1]:
        os.write(2, f"{why}\n".encode())
    os._exit(128 + number)
