"""Runs the statements of a scenario in the source database, in order and in the scenario's
sessions.

A statement can wait for another session's lock. Then the script continues with other sessions. A
waiting session runs its next statement only after its waiting statement got the lock and ended.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Final

import oracledb

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.driver.driver_failures import oracle_error
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.proving.scratch_schema import ora_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    """Raised if a statement does not behave as the scenario requires. The scenario then cannot be
    run in this database.
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
    accounts is allowed to do this.

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
