"""``olr-pg run`` in a process that is forked from one that has imported it and loaded its kernels.

That is most of what a start takes. A start by the shell is tested in tests/cli/test_run.py.
"""

from __future__ import annotations

import multiprocessing
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tests.cli.fork_server import IMPORTED, become

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
    from pathlib import Path


class ForkedAppliance:
    """The process of a run; its methods are those of `subprocess.Popen`."""

    def __init__(self, config: Path, log: Path, *options: str) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.simulation.warm", *IMPORTED])
        order = {
            "arguments": ["run", "--config", str(config), *options],
            "folder": str(log.parent),
            "environ": dict(os.environ),
            "files": [os.devnull, str(log)],
        }
        self._process = context.Process(target=become, args=(order,))
        self._process.start()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds_max: float) -> int | None:
        self._process.join(seconds_max)
        return self.poll()

    def send_signal(self, number: signal.Signals) -> None:
        """Unless it has ended."""
        if self.poll() is None and self._process.pid is not None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


@contextmanager
def at_work(config: Path, log: Path, *options: str) -> Iterator[ForkedAppliance]:
    """The appliance, which appends to a log; whoever uses it ends it."""
    process = ForkedAppliance(config, log, *options)
    try:
        yield process
    finally:
        process.kill()
