"""Executes a script with statements of several sessions, in the order of the script, and writes the
files of its database, like those of `simulate`.

If a statement waits for a lock of another session, the script continues, and the statement ends
when it gets the lock. The next statement of the waiting session begins only after that.
"""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.model.shop_inventory import write_dictionary
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.simulated_files import Summary, log_files, prepare_directory, write_lines
from olr_pg.simulator.sql.database import SqlDatabase
from olr_pg.simulator.sql.sql_session import SqlSession
from olr_pg.simulator.truth import ddl_lines, tables_at, truth_lines, write_rows
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sql.typed_values import Value
    from olr_pg.simulator.truth import Rows


class Step(Protocol):
    """A statement of a script.

    Attributes:
        session: the name of the session.
        errors: the numbers of the expected ORA errors, of which one must occur; empty if it must
            succeed.
        line: the statement's line in the script, from 1.
        binds: rows of binds; empty for no binds, several rows for an array.
    """

    @property
    def session(self) -> str: ...  # noqa: D102

    @property
    def text(self) -> str: ...  # noqa: D102

    @property
    def errors(self) -> tuple[int, ...]: ...  # noqa: D102

    @property
    def line(self) -> int: ...  # noqa: D102

    @property
    def binds(self) -> tuple[tuple[str | float | None, ...], ...]: ...  # noqa: D102


def _values(row: Iterable[str | float | None]) -> list[Value]:
    return [Decimal(str(one)) if isinstance(one, int | float) else one for one in row]


class _Worker:
    """A session with its own thread.

    Attributes:
        crash: an error other than an ORA error of the statement.
    """

    def __init__(self, database: SqlDatabase, failed: Callable[[Step, str], None]) -> None:
        self.sql = SqlSession(database)
        self._database, self._failed = database, failed
        self._step: Step | None = None
        self._ends = False
        self.crash: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Return whether its last statement has ended."""
        return self._step is None

    @property
    def is_waiting(self) -> bool:
        """Return whether its statement waits for another session."""
        transaction = self.sql.transaction
        return transaction is not None and transaction.waits_for is not None

    def run(self, step: Step) -> None:
        """Execute a statement; return when it has ended or waits for another session."""
        lock = self._database.lock
        with lock:
            lock.wait_for(lambda: self.is_idle)
            self._step = step
            lock.notify_all()
            lock.wait_for(lambda: self.is_idle or self.is_waiting)
        if self.crash is not None:
            raise self.crash

    def close(self) -> None:
        """Roll back the open transaction, and end the thread."""
        lock = self._database.lock
        with lock:
            lock.wait_for(lambda: self.is_idle)
            self._ends = True
            lock.notify_all()
        self._thread.join()

    def _work(self) -> None:
        lock = self._database.lock
        while True:
            with lock:
                lock.wait_for(lambda: self._step is not None or self._ends)
                step = self._step
            if step is None:
                self.sql.close()
                return
            try:
                self.sql.execute_many(step.text, [_values(row) for row in step.binds] or [()])
            except OraError as error:
                if error.code not in step.errors:
                    self._failed(step, str(error))
            except Exception as error:  # noqa: BLE001 - the thread would end, the script wait for ever
                self.crash = error
            else:
                if step.errors:
                    self._failed(step, "the statement did not fail, but should have")
            with lock:
                self._step = None
                lock.notify_all()


def run_script(database: SqlDatabase, steps: Iterable[Step]) -> None:
    """Execute a script; at its end, open transactions are rolled back.

    Raises:
        OlrPgError: 8052, a statement failed unexpectedly, or succeeded unexpectedly.
    """
    failures: list[str] = []

    def failed(step: Step, reason: str) -> None:
        failures.append(f"line {step.line}: {reason}")

    workers: dict[str, _Worker] = {}
    try:
        for step in steps:
            if step.session not in workers:
                workers[step.session] = _Worker(database, failed)
            workers[step.session].run(step)
            if failures:
                break
    finally:
        for worker in workers.values():
            if worker.is_idle:
                worker.close()
        for worker in workers.values():
            worker.close()
    if failures:
        raise OlrPgError(Code.SQL_SCRIPT_FAILED, failures[0])


def simulate_script(
    seed: int, out_dir: Path, shape: DatabaseShape, steps: Sequence[Step], recorded_from: int
) -> Summary:
    """Execute a script; write logs, dictionary, truth and tables of its recorded part.

    Args:
        recorded_from: the number of the first recorded step. The dictionary contains the tables
            that exist before it.

    Raises:
        OlrPgError: 8052 a statement did not have the expected result, 8002 the directory cannot be
            used.
    """
    directory = prepare_directory(out_dir)
    logs: list[Path] = []
    database = SqlDatabase(seed, shape, log_files(directory / "logs", logs))
    run_script(database, steps[:recorded_from])
    start = database.begin_recording()
    tables = [table.sim for table in database.tables.values()]
    columns = {table: table.columns for table in tables}
    write_dictionary(start, directory)
    for table in tables:
        write_rows(directory / "tables", table, _lines(table, table.at_start), start.scn)
    for log in logs:  # a decoder reads only the redo after the dictionary's SCN
        log.unlink()
    logs.clear()
    run_script(database, steps[recorded_from:])
    database.shut_down()
    committed = database.take_committed()
    write_lines(directory / "truth.jsonl", truth_lines(committed))
    write_lines(directory / "ddl.jsonl", ddl_lines(committed))
    rows = tables_at(tables, committed, database.instance.scn)
    existing = {table.sim for table in database.tables.values()}
    for table in tables:
        # The name of a dropped table can be that of a newer one, which has other columns.
        if table in existing and len(columns[table]) <= len(table.columns):
            own = rows[table.full_name]
            write_rows(directory / "final", table, _lines(table, own), database.instance.scn)
    changes = dict.fromkeys(DmlKind, 0)
    for transaction in committed:
        for change in transaction.delivered:
            changes[change.kind] += 1
    return Summary(
        *(seed, shape, start, sum(bool(one.delivered) for one in committed), changes),
        *({name: len(own) for name, own in rows.items()}, tuple(tables)),
    ).with_logs(logs)


def _lines(table: SimTable, rows: Rows) -> list[tuple[str, list[Cell | None]]]:
    """Return rows with all columns, in the order of their ROWIDs or keys."""
    return [
        ("" if table.index_organised else identity,
         [image.get(number) for number in range(len(table.columns))])
        for identity, image in sorted(rows.items())
    ]  # fmt: skip
