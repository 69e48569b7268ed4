"""Runs the statements of a scenario in the source database, in order and in the scenario's
sessions.

A statement can wait for another session's lock. Then the script continues with other sessions. A
waiting session runs its next statement only after its waiting statement got the lock and ended.

After the last statement, the module finds the logs that contain the redo of the scenario. For
changes that were decoded wrongly, it writes incident files of this redo.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import oracledb

from olr_pg.appliance.open_source import open_source
from olr_pg.decoding.split import open_for_decoding
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.durable import replace_file
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.proving.scratch_schema import ora_number
from olr_pg.redo.dump.incident import (
    collect_incident,
    mask_incident,
    payload_position,
    write_incident,
)
from olr_pg.redo.record_view import records_of, same_transaction, vector_xids
from olr_pg.redo.window import blocks_in_use, read_windows
from olr_pg.scalars import parse_xid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from olr_pg.capture.logs import LogScan
    from olr_pg.config.model import Config
    from olr_pg.config.source_section import OracleSource
    from olr_pg.proving.scenario import ScenarioStep

WAIT_SECONDS: Final = 1.5
"""If several sessions are used, a statement that has not ended after this time is assumed to wait
for a lock.
"""

_IS_SYSTEM: Final = re.compile(r"\s*ALTER\s+SYSTEM\b", re.IGNORECASE)
_COMMITS: Final = re.compile(
    r"\s*(COMMIT|CREATE|ALTER|DROP|TRUNCATE|RENAME|GRANT|REVOKE|COMMENT|ANALYZE|PURGE|AUDIT|BEGIN|"
    r"DECLARE|CALL)\b",
    re.IGNORECASE,
)
_NOT_HERE: Final = frozenset((1031, 65040, 2065, 1012))
"""Numbers of ORA errors of ALTER SYSTEM if the account, or a PDB, is not allowed to run it."""


class ScenarioFailedError(Exception):
    """Raised if a statement does not behave as the scenario requires. A scenario with such a
    statement cannot be run in this database.
    """


def may_commit(step: ScenarioStep) -> bool:
    """Return whether a transaction may have committed after a statement."""
    return _COMMITS.match(step.text) is not None


class _Session:
    """A session of the script, with its own thread."""

    def __init__(self, source: OracleSource, failed: Callable[[str], None]) -> None:
        self._connection = open_connection(source)
        self._failed = failed
        self._asked, self._ended = threading.Event(), threading.Event()
        self._ended.set()
        self._step: ScenarioStep | None = None
        self._thread = threading.Thread(target=self._work, name="olr-scenario", daemon=True)
        self._thread.start()

    def run(self, step: ScenarioStep, seconds: float | None) -> None:
        """Run a statement; return when it has ended, or seems to wait for a lock."""
        self._ended.wait()
        self._step = step
        self._ended.clear()
        self._asked.set()
        self._ended.wait(seconds)

    def finish(self) -> None:
        """Wait for the running statement."""
        self._ended.wait()

    def close(self) -> None:
        """Roll back the open transaction, and end the thread."""
        self._ended.wait()
        self._step = None
        self._asked.set()
        self._thread.join()

    def cancel(self) -> None:
        """Cancel the running statement."""
        if not self._ended.is_set():
            self._connection.cancel()

    def _work(self) -> None:
        with self._connection:
            while True:
                self._asked.wait()
                self._asked.clear()
                step = self._step
                if step is None:
                    return
                try:
                    self._execute(step)
                finally:
                    self._ended.set()

    def _execute(self, step: ScenarioStep) -> None:
        try:
            with self._connection.cursor() as cursor:
                if step.binds:
                    cursor.executemany(step.text, [list(row) for row in step.binds])
                else:
                    cursor.execute(step.text)
                if cursor.description is not None:
                    cursor.fetchall()  # fetch, because FOR UPDATE locks rows only then
        except oracledb.Error as error:
            number = ora_number(error)
            if number in step.errors or (_IS_SYSTEM.match(step.text) and number in _NOT_HERE):
                return
            self._failed(f"line {step.line}: {oracle_error(error, 'the statement').detail}")
        else:
            if step.errors:
                numbers = " or ".join(f"ORA-{one:05}" for one in step.errors)
                self._failed(f"line {step.line}: it succeeded, but should fail with {numbers}")


def run_steps(
    source: OracleSource,
    steps: Iterable[ScenarioStep],
    committed: Callable[[ScenarioStep], None] = lambda _step: None,
    reached: Callable[[ScenarioStep], None] = lambda _step: None,
) -> None:
    """Run statements in their sessions, and roll back transactions that are open at the end.

    Args:
        source: the login of the scratch schema's owner.
        committed: called after each statement that may have committed a transaction.
        reached: called before each statement.

    Raises:
        ScenarioFailedError: a statement failed unexpectedly, or did not fail as expected.
        OlrPgError: 7001 to 7009, errors of the database.
    """
    steps = list(steps)
    failures: list[str] = []
    sessions: dict[str, _Session] = {}
    seconds = WAIT_SECONDS if len({one.session for one in steps}) > 1 else None
    try:
        for step in steps:
            reached(step)
            if step.session not in sessions:
                sessions[step.session] = _opened(source, failures.append)
            sessions[step.session].run(step, seconds)
            if failures:
                raise ScenarioFailedError(failures[0])
            if may_commit(step):
                committed(step)
        for one in sessions.values():
            one.finish()
        if failures:
            raise ScenarioFailedError(failures[0])
    except BaseException:
        for one in sessions.values():
            one.cancel()
        raise
    finally:
        for one in sessions.values():
            one.close()


def _opened(source: OracleSource, failed: Callable[[str], None]) -> _Session:
    try:
        return _Session(source, failed)
    except oracledb.Error as error:
        raise oracle_error(error, f"logging on as {source.user}") from error


def switch_logs(sources: Iterable[OracleSource]) -> bool:
    """Switch the logs, so that the current online logs are archived. Return whether one of the
    accounts is allowed to switch logs.

    Raises:
        OlrPgError: 7001 to 7009, no login succeeds.
    """
    for source in sources:
        try:
            with open_connection(source) as connection, connection.cursor() as cursor:
                for text in ("ALTER SYSTEM ARCHIVE LOG CURRENT", "ALTER SYSTEM SWITCH LOGFILE"):
                    try:
                        cursor.execute(text)
                    except oracledb.DatabaseError:
                        continue
                    return True
        except oracledb.Error as error:
            raise oracle_error(error, f"logging on as {source.user}") from error
    return False


def not_archived(scn: int, seconds: float) -> OlrPgError:
    """Return the error that redo was not archived in time."""
    return OlrPgError(
        Code.SCENARIO_REDO_MISSING,
        f"after {seconds:.0f} s, no log contains the redo up to SCN {scn}",
    )


ARCHIVE_SECONDS: Final = 900.0
"""Maximum time to wait for a log if no account can switch logs. ARCHIVE_LAG_TARGET is rarely
higher.
"""

SWITCHED_SECONDS: Final = 120.0


@contextmanager
def logs_with(
    config: Config, data: Path, first: int, last: int, users: Sequence[OracleSource]
) -> Iterator[list[str]]:
    """Yield the paths of the logs that contain all redo from `first` to `last`.

    Args:
        config: the configuration of the scenario (`whole_way.scenario_config`).
        data: a directory for the source's files.
        users: accounts that may be allowed to switch logs.

    Raises:
        OlrPgError: 7202, the redo is not archived in time; 7xxx errors of the source.
    """
    is_switched = switch_logs(users)
    seconds = SWITCHED_SECONDS if is_switched else ARCHIVE_SECONDS
    deadline = time.monotonic() + seconds
    data.mkdir(parents=True, exist_ok=True)
    with open_source(config, data, lambda: first) as source:
        idle = 0
        while not _has(scan := source.scan(first, first), last):
            if time.monotonic() > deadline:
                raise scan.unusable[0] if scan.unusable else not_archived(last, seconds)
            if not source.has_news():
                time.sleep(min(source.pause(idle), 1.0))
            idle += 1
        yield [log.path for log in scan.logs if log.next_scn > first]


def _has(scan: LogScan, last: int) -> bool:
    """Return whether the logs of every open redo thread reach beyond an SCN."""
    ends: dict[int, int] = {}
    for log in scan.logs:
        ends[log.header.thread] = max(ends.get(log.header.thread, 0), log.next_scn)
    threads = scan.open_threads or frozenset(ends)
    return bool(threads) and all(ends.get(one, 0) > last for one in threads)


def masked_incident(logs: Sequence[str], xid: str, error: OlrPgError, path: Path) -> str:
    """Write the redo of a transaction, with masked data, to a file that can be sent to others.

    Returns:
        The path of the file; empty if none of the logs contains the transaction.
    """
    wanted = parse_xid(xid)
    for name in logs:
        log = open_for_decoding(name)
        for window in read_windows(log, end_block=blocks_in_use(log)):
            for record in records_of(window):
                named = {other for vector in record.vectors for other in vector_xids(vector)}
                if any(same_transaction(wanted, other) for other in named):
                    position = payload_position(window, record.block, record.offset)
                    found = collect_incident(window, position, wanted, error)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    content = write_incident(mask_incident(found, secrets.token_bytes))
                    replace_file(path, content)
                    return str(path)
    return ""


def difference_error(scenario: str, table: str, kind: str) -> OlrPgError:
    """Return the error for an incident file, without any values."""
    return OlrPgError(Code.SCENARIO_DIFFERS, f"{scenario}: {kind}", table=table)
