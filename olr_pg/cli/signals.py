"""Handles SIGTERM and SIGINT in a command: the first signal ends the command after cleanup, the
second one at once.

The first signal raises an exception in the main thread, so that every `finally` runs and closes
sockets, Java and PostgreSQL. A command that must end in time calls `ends_within`; after that time
the process exits without further cleanup, as with SIGKILL. Replication loses no changes in that
case, as tests with SIGKILL show: confirmed changes are durable, and the others are delivered again.
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
"""Maximum time to print the reason, because stderr may be blocked."""


class _Ending:
    """Ends this process after signals; each command has its own object."""

    def __init__(self) -> None:
        self._is_told = False
        self._is_repeated = False
        self._bell: int | None = None

    def end_within(self, seconds: float) -> None:
        """Start a thread that waits for the first signal, and ends the process `seconds` after it.

        The thread is started before the signal, because a signal handler must not take a lock that
        the interrupted code may hold.
        """
        heard, self._bell = os.pipe()

        def watch() -> None:
            number = os.read(heard, 1)[0]
            time.sleep(seconds)
            _end_at_once(number, f"terminated at once, because it did not end within {seconds:g} s")

        threading.Thread(target=watch, name="olr-ending", daemon=True).start()

    def take(self, number: int, _frame: FrameType | None) -> NoReturn:
        """Handle a signal in the main thread."""
        if self._is_told and not self._is_repeated:
            _end_at_once(number, "terminated at once, because a second signal arrived")
        if not self._is_told and self._bell is not None:
            os.write(self._bell, bytes([number]))
        self._is_told, self._is_repeated = True, False
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(EXIT_TERMINATED)

    def raise_again(self, lost: sys.UnraisableHookArgs) -> None:
        """Send a signal again if its exception was lost, because it was raised where Python ignores
        exceptions.

        Python ignores exceptions in callbacks from native code, such as the compilation of kernels.
        If the signal were not sent again, the command would continue as if it had received none.
        """
        number = {SystemExit: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}.get(lost.exc_type)
        if number is None:
            sys.__unraisablehook__(lost)
            return
        # Send the signal after this callback has ended; during the callback it would be lost again.
        again = threading.Timer(_REPEAT_SECONDS, self._repeat, (number,))
        again.daemon = True
        again.start()

    def _repeat(self, number: int) -> None:
        self._is_repeated = True
        os.kill(os.getpid(), number)


_ending = _Ending()


def take_signals() -> None:
    """Make SIGTERM and SIGINT end the command that now begins. This has an effect only in the main
    thread.
    """
    global _ending
    if threading.current_thread() is not threading.main_thread():
        return
    before, _ending = _ending, _Ending()
    signal.signal(signal.SIGTERM, _ending.take)
    sys.unraisablehook = _ending.raise_again
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, before.take):  # set by `entry`
        signal.signal(signal.SIGINT, _ending.take)


def ends_within(seconds: float) -> None:
    """Make the process end `seconds` after the first signal, even if a thread is blocked."""
    _ending.end_within(seconds)


def _end_at_once(number: int, why: str) -> NoReturn:
    # Write only if stderr is ready: if its reader has stopped reading, a write would block.
    if select.select([], [2], [], _SAY_SECONDS)[1]:
        os.write(2, f"{why}\n".encode())
    os._exit(128 + number)
