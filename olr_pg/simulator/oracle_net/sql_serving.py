"""``olr-pg simulate --serve --sql``: serves a database that executes SQL.

If `DatabaseShape.neighbour` is set, there are two PDBs, each with its own schema. The owner of both
enters the second PDB with ALTER SESSION SET CONTAINER.

The owner of the schema logs on and executes SQL. The user of the replication can read the
dictionary, the archived logs, and the rows at every SCN, as in every other served simulation.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.model.transactions import (
    ADD_COLUMN,
    DROP_COLUMN,
    RENAME_COLUMN,
)
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import (
    ARCHIVE_DIRECTORY,
    LOGS,
    own_tables,
    read_header,
    write_config,
)
from olr_pg.simulator.oracle_net.server import StandIn
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.sql.database import SqlDatabase
from olr_pg.simulator.truth import ddl_lines, truth_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.writer.log_file import OpenLog

SWITCH_SECONDS: Final = 2.0


RENAMING: Final = (RENAME_COLUMN, DROP_COLUMN)
"""Operations of `DdlEffect` that change the names of columns."""


class SqlServer:
    """A database that executes SQL from clients.

    Args:
        directory: output: ``logs/``, ``truth.jsonl`` and a configuration that replicates the
            database.
        port: 0 for any free port.
        switch_seconds: a log with redo is switched after this time.

    Raises:
        OlrPgError: 8002 the directory cannot be used, 8010 the port cannot be opened.
    """

    def __init__(
        self,
        seed: int,
        directory: Path,
        shape: DatabaseShape,
        *,
        port: int = 0,
        switch_seconds: float = SWITCH_SECONDS,
    ) -> None:
        self._directory = prepare_directory(directory)
        self._truth = (directory / "truth.jsonl").open("w", encoding="utf-8")
        self.database = SqlDatabase(seed, shape, self._archive)
        databases = [self.database]
        if shape.neighbour:
            databases.append(SqlDatabase(seed, shape, self._archive, first=self.database))
        self._served = [_Served(one, self) for one in databases]
        for one in self._served:
            one.state.offer_directory(ARCHIVE_DIRECTORY, ARCHIVE, directory / LOGS)
        self.server = StandIn(self._served[0].state, port=port)
        self.server.sql = self.database
        if len(databases) > 1:
            self.server.sql_beside = {str(one.container.name): one for one in databases}
            self.server.containers = {
                str(one.database.container.name): one.state for one in self._served
            }
        self._seconds, self._stopping = switch_seconds, threading.Event()
        self._switching = threading.Thread(target=self._switch, daemon=True)
        self._switching.start()
        for one in self._served:
            one.redefine()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Archive the remaining redo, and close the port. Further calls do nothing."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._switching.join()
        self.database.shut_down()
        self.server.close()
        self._truth.close()

    def _switch(self) -> None:
        while not self._stopping.wait(self._seconds):
            self.database.follow_clock()
            self.database.switch_logs()

    def _archive(self, log: OpenLog, next_scn: int, time: int) -> None:
        """Write an archived log under a temporary name, and rename it when it is complete."""
        folder = self._directory / LOGS
        part = folder / f".{log.name}.part"
        part.write_bytes(log.close(next_scn, time))
        part.rename(folder / log.name)
        for one in self._served:
            one.state.archived(log.name, read_header(folder / log.name), moves_scn=False)

    def defined(self) -> None:
        """Write a configuration that replicates the current tables."""
        scn = self.database.current_scn()
        snapshots = [one.database.snapshot(scn) for one in self._served]
        write_config(snapshots, self._directory, self.server)

    def told(self, lines: Sequence[str]) -> None:
        """Write the committed transactions to the truth; give all containers the current SCN."""
        self._truth.writelines(line + "\n" for line in lines)
        self._truth.flush()
        scn = self.database.current_scn()
        for one in self._served:
            one.state.scn = scn


class _Served:
    """A container: its database, and the state that the user of the replication can read.

    Args:
        server: notified of each commit and each DDL.
    """

    def __init__(self, database: SqlDatabase, server: SqlServer) -> None:
        self.database = database
        start = database.snapshot(database.current_scn())
        self.state = OracleState(start, dbid=database.instance.identity.dbid)
        self._server = server
        self._rows = RowVersions(self.state.catalogue, ())
        database.changed, database.committed = self.redefine, self._follow

    def redefine(self) -> None:
        """Update the dictionary to the current tables."""
        database = self.database
        snapshot = database.snapshot(database.current_scn())
        committed = database.take_committed()
        added = {
            (effect.table.full_name, effect.table.columns[effect.column].name): default.json
            for transaction in committed
            for effect in transaction.ddl
            if effect.operation == ADD_COLUMN and effect.column is not None
            if (default := effect.table.columns[effect.column].default) is not None
        }
        levels = {one.sim.full_name: one.sim.logging for one in database.tables.values()}
        with self.state.catalogue.alone():
            since = min((one.commit_scn for one in committed if one.ddl), default=snapshot.scn)
            self.state.redefine(snapshot, levels, since)
            texts = {key: text.strip('"') for key, text in added.items()}
            # Changes that were committed with the DDL use the old names of columns.
            is_renamed = any(one.operation in RENAMING for t in committed for one in t.ddl)
            if is_renamed:
                self._tell(committed)
            self._rows.follow(own_tables(snapshot), texts)
            if not is_renamed:
                self._tell(committed)
        self._server.defined()

    def _follow(self) -> None:
        """Make committed changes visible to flashback queries."""
        with self.state.catalogue.alone():
            if self._rows.knows(one.sim.full_name for one in self.database.tables.values()):
                self.state.advance(self.database.drawn_sequences())
                self._tell(self.database.take_committed())
                return
        self.redefine()  # The statement that commits has created a table.

    def _tell(self, committed: Sequence[Transaction]) -> None:
        known = {one.sim.full_name for one in self.database.tables.values()}
        told = [
            one for one in committed
            if any(change.table.full_name in known for change in one.delivered) or one.ddl
        ]  # fmt: skip
        lines = list(truth_lines(told))
        self._rows.read_truth(lines, ddl_lines(told))
        self._rows.unfinished = self.database.open_begins()
        self._server.told(lines)
