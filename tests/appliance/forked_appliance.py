"""Commands in processes that are forked from one that has imported them and loaded the kernels.

That is most of what a start takes. A start by the shell is tested in tests/cli/test_run.py.
"""

from __future__ import annotations

import multiprocessing
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from olr_pg.load import copy_task
from tests.cli.fork_server import IMPORTED, become

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


def become_without_spark(order: dict[str, Any]) -> NoReturn:
    """As `become`; a load reads the rows in this process."""
    vars(copy_task)["HERE_BYTES"] = 1 << 40
    become(order)


COMMANDS: Final = (
    *("olr_pg.cli.errors", "olr_pg.cli.tables", "olr_pg.cli.doctor", "olr_pg.cli.status"),
    *("olr_pg.cli.migration.cutover", "olr_pg.cli.migration.load", "olr_pg.cli.migration.verify"),
    *("olr_pg.applier.batches.replay", "olr_pg.load.initial", "olr_pg.load.cutover.cut_over"),
    *("olr_pg.load.sources", "olr_pg.load.target_structure", "olr_pg.load.stored_dictionaries"),
)
"""Modules of commands that a process would import otherwise."""


class ForkedCommand:
    """The process of a command; its methods are those of `subprocess.Popen`.

    Args:
        files: where stdout and stderr go; the process appends to them.
        target: what the process does with its order.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        files: Sequence[str],
        target: Callable[[dict[str, Any]], NoReturn] = become,
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.simulation.warm", *IMPORTED, *COMMANDS])
        order = {
            "arguments": list(arguments),
            "folder": str(folder),
            "environ": dict(os.environ),
            "files": list(files),
        }
        self._process = context.Process(target=target, args=(order,))
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


class ForkedAppliance(ForkedCommand):
    """The process of a run."""

    def __init__(self, config: Path, log: Path, *options: str) -> None:
        arguments = ["run", "--config", str(config), *options]
        super().__init__(arguments, log.parent, [os.devnull, str(log)])


@contextmanager
def at_work(config: Path, log: Path, *options: str) -> Iterator[ForkedAppliance]:
    """The appliance, which appends to a log; whoever uses it ends it."""
    process = ForkedAppliance(config, log, *options)
    try:
        yield process
    finally:
        process.kill()
