"""Runs commands of ``olr-pg`` in processes of their own, beside the appliance, one at a time."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class OwnCommand:
    """Runs commands one after the other, until `stop` is called from another thread.

    Args:
        environ: environment variables for the process, in addition to those of this process.
        ending_seconds: how long a process may take to end after SIGTERM before it is killed.

    Attributes:
        ended: set by `stop`; no command starts after that.
    """

    def __init__(self, environ: Mapping[str, str], ending_seconds: float) -> None:
        self._environ = {**os.environ, **environ}
        self._ending_seconds = ending_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()

    def run(
        self,
        command: Sequence[str],
        tell: Callable[[bytes], object],
        *,
        with_errors: bool = False,
    ) -> int:
        """Run a command until it ends; return its exit code, or 0 after `stop`.

        Args:
            tell: called with each line of its output.
            with_errors: whether the lines of its standard error are output, too; otherwise they go
                to the standard error of this process.

        Raises:
            OSError: the process cannot be started.
        """
        with self._lock:
            if self.ended.is_set():
                return 0
            self._process = process = subprocess.Popen(  # noqa: S603 - one of ours
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if with_errors else None,
                env=self._environ,
                start_new_session=True,
            )
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                tell(line)
        return process.wait()

    def stop(self) -> None:
        """End the process, and let no other one start."""
        with self._lock:
            self.ended.set()
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(self._ending_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
