"""Loads new tables that were created with rows, if `apply.ddl.new-table` is ``load``.

Such a table (CREATE TABLE … AS SELECT) cannot be replicated from its creation on, because the redo
may not contain its rows. It is loaded as ``olr-pg tables add`` does: a separate process reads the
rows of the live source as of an SCN, then the applier restarts with the table in its list. The
other tables continue meanwhile, and the load does not use the memory of the appliance.

Tables are loaded one after the other, into one target after the other. If a load fails, a warning
says so, and the table is loaded when the appliance starts again; an interrupted load continues.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.config.source_section import OracleSource
from olr_pg.decoding.new_tables import warn_of_new_table
from olr_pg.errors import plain_reason
from olr_pg.monitor.control import OwnCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.config.model import Config

_ENDING_SECONDS: Final = 10.0
_REASON_LINES_MAX: Final = 20
_REASON_LENGTH_MAX: Final = 500

_log = structlog.get_logger(__name__)


@contextmanager
def loading_new_tables(
    config: Config,
    withheld: Callable[[], Mapping[str, str]],
    command: Sequence[str] = (sys.executable, "-P", "-m", "olr_pg"),
) -> Iterator[Callable[[str], bool]]:
    """Yield a function that is called with the name of a table, and load these tables while the
    context is active.

    The function returns whether the table will be loaded into every target that has a bundled
    applier: the source is live, and they have the policy ``load``. It returns at once.

    Args:
        withheld: returns the values that the configuration reads from the environment.
        command: the program to run; the words of the command follow it.
    """
    policies = {part.name: part.apply.ddl.new_table for part in config.targets if part.apply}
    names = [name for name, policy in policies.items() if policy == "load"]
    if not names or not isinstance(config.source, OracleSource):
        yield lambda _: False
        return
    loads = _Loads([*command, "tables", "add", "--config", config.file], names, withheld())

    def load(table: str) -> bool:
        loads.add(table)
        return len(names) == len(policies)

    try:
        yield load
    finally:
        loads.stop()


class _Loads:
    """A queue of tables, and the thread that runs the command for each of them.

    Args:
        command: the command without the target and the table.
        targets: the names of the targets; an empty name if there is only one.
        environ: environment variables for the process, in addition to those of this process.
    """

    def __init__(
        self, command: Sequence[str], targets: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        self._command, self._targets = list(command), targets
        self._process = OwnCommand(environ, _ENDING_SECONDS)
        self._at_work = set[str]()
        self._waiting = deque[str]()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="olr-load", daemon=True)
        self._thread.start()

    def add(self, table: str) -> None:
        """Load a table, unless it waits or is being loaded."""
        with self._changed:
            if table not in self._at_work:
                self._at_work.add(table)
                self._waiting.append(table)
                self._changed.notify()
                _log.info("loading a new table that was created with rows", table=table)

    def _run(self) -> None:
        while (table := self._next()) is not None:
            for target in self._targets:
                self._load(table, target)
            with self._changed:
                self._at_work.discard(table)

    def _next(self) -> str | None:
        """Wait for the next table; None after the end."""
        with self._changed:
            ended = self._process.ended
            self._changed.wait_for(lambda: self._waiting or ended.is_set())
            return None if ended.is_set() else self._waiting.popleft()

    def _load(self, table: str, target: str) -> None:
        named = {"table": table, **({"target": target} if target else {})}
        of_target = ["--target", target] if target else []
        last = deque[bytes](maxlen=_REASON_LINES_MAX)
        command = [*self._command, *of_target, "--", table]
        try:
            code = self._process.run(command, last.append, with_errors=True)
            output = " ".join(b"".join(last).decode("utf-8", "replace").split())
        except OSError as failure:
            code, output = 1, plain_reason(failure)
        if self._process.ended.is_set():
            return
        if code == 0:
            _log.info("a new table was loaded, and is replicated", **named)
            return
        warn_of_new_table(f"its rows were not loaded: {output[-_REASON_LENGTH_MAX:]}", **named)

    def stop(self) -> None:
        """End the command that runs. The load continues when the appliance starts again."""
        self._process.stop()
        with self._changed:
            self._changed.notify()
        self._thread.join()
