"""``olr-pg simulate --serve``: serves a simulation as a live database, for trying out the tool.

The listener has a thread per connection, on the loopback address. The logs of a finished simulation
are archived one after the other. A simulation that continues (``--live``) archives its logs while
it runs.

``--serve --sql`` serves a database that executes SQL. If `DatabaseShape.neighbour` is set, there
are two PDBs, each with its own schema. One user owns both schemas, and enters the second PDB with
ALTER SESSION SET CONTAINER. The owner of the schema logs on and executes SQL. The user of the
replication can read the dictionary, the archived logs, and the rows at every SCN, as in every other
served simulation.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.errors import Code, OlrPgError, plain_reason, system_reason
from olr_pg.files.owned import written_whole
from olr_pg.redo.header import PROBE_BYTES, LogHeader, parse_log_header, probe_geometry
from olr_pg.simulator.model.transactions import (
    ADD_COLUMN,
    DROP_COLUMN,
    RENAME_COLUMN,
    RENAME_TABLE,
    Transaction,
)
from olr_pg.simulator.online_redo.online_files import Archived, Event, OpenResetlogs, Step
from olr_pg.simulator.oracle_net.catalogue import encrypt_tables
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.session import PASSWORD, USER, ClientSession, SessionHost
from olr_pg.simulator.oracle_net.state import ARCHIVE, ORADATA, UNDO_RETENTION, OracleState
from olr_pg.simulator.oracle_net.values import MalformedMessageError, PacketStream
from olr_pg.simulator.simulated_files import SimulatedFiles, Summary, prepare_directory
from olr_pg.simulator.sql.database import SqlDatabase
from olr_pg.simulator.truth import ddl_lines, truth_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.model.tables import Logging
    from olr_pg.simulator.online_redo.online_database import OnlineDatabase
    from olr_pg.simulator.writer.log_file import OpenLog


HOST: Final = "127.0.0.1"

_ASKED_SECONDS: Final = 1.0

_log = structlog.get_logger(__name__)


class StandIn(SessionHost):
    """A server that python-oracledb accepts as an Oracle database.

    Args:
        state: its database; `close` closes it, and all `containers`.
        port: 0 for any free port.

    Attributes:
        refusing: new connections are reset, as when a database goes down.
        malformed: requests that could not be read; expected to stay empty.

    Raises:
        OlrPgError: 8010, the port cannot be opened.
    """

    def __init__(self, state: OracleState, *, port: int = 0) -> None:
        super().__init__(state)
        self.refusing = False
        self.malformed: list[str] = []
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        try:
            self._listener = socket.create_server((HOST, port))
        except OSError as error:
            raise OlrPgError(Code.STAND_IN_PORT_UNUSABLE, plain_reason(error), port=port) from error
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, name="stand-in", daemon=True)
        self._accepting.start()

    @property
    def connect_string(self) -> str:
        """``host:port/service``."""
        return f"{HOST}:{self.port}/{self.service}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the port, every connection and the database. Further calls do nothing.

        The call waits for the threads of the connections.
        """
        if self.stopping:
            return
        self.stopping = True
        # A close without a shutdown would not wake the thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        self.cut()
        for thread in self._threads:
            thread.join()
        for state in (self.state, *self.containers.values()):
            state.close()

    def cut(self) -> None:
        """Break all connections."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            _shut(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing or self.stopping:
                _reset(connection)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add(connection)
                self._threads = [thread for thread in self._threads if thread.is_alive()]
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            ClientSession(self, PacketStream(connection)).run()
        except MalformedMessageError as error:
            self.malformed.append(str(error))
            _log.error("the simulated Oracle could not read a request", reason=str(error))
        finally:
            with self._lock:
                self._connections.discard(connection)
            _shut(connection)
            connection.close()


def _reset(connection: socket.socket) -> None:
    """Close with RST after the client's first byte; earlier, the client may see a normal end."""
    connection.settimeout(_ASKED_SECONDS)
    with suppress(OSError):
        connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client has already disconnected.
        return


CONFIG: Final = "olr-pg.json"
"""The file, next to the logs, with a configuration that replicates the simulation."""

TRUTH: Final = "truth.jsonl"
SOURCE: Final = "source.jsonl"
"""The file that is read instead of the truth if redo does not contain all changes of the source."""

DDL: Final = "ddl.jsonl"
"""This file exists only for a finished simulation."""

TABLES: Final = "tables"
LOGS: Final = "logs"
ONLINE: Final = "online"
UNDO_STEPS: Final = 20
ONLINE_DIRECTORY: Final = "ONLINELOG_DIR"
"""The directory object of the online logs, with its name on RDS."""

ARCHIVE_DIRECTORY: Final = "ARCHIVELOG_DIR"
"""The directory object of `LOGS`, with its name on RDS."""


@contextmanager
def served(summary: Summary, directory: Path, *, port: int, every: float) -> Iterator[StandIn]:
    """Serve a simulation as a database that archives one log after the other.

    Args:
        directory: the output directory of the simulation; `CONFIG` is written to it.
        every: seconds between two logs; 0 archives all of them before the port opens.

    Raises:
        OlrPgError: 8002 the configuration cannot be written, 8010 the port cannot be opened.
    """
    headers = {path: read_header(path) for path in summary.logs}
    states = _states(summary, headers[summary.logs[0]].dbid, directory)
    for file, (scn, at) in summary.unrecoverable.items():
        next(iter(states.values())).note_unrecoverable(file, scn, at)
    stopping = threading.Event()

    def archive() -> None:
        for path, header in headers.items():
            if stopping.wait(every):
                return
            for state in states.values():
                state.archived(path.name, header)

    archiving = threading.Thread(target=archive, daemon=True)
    if not every:
        archive()
    with StandIn(next(iter(states.values())), port=port) as server:
        server.containers = states if summary.others else {}
        write_config((summary.snapshot, *summary.others), directory, server)
        if every:
            archiving.start()
        try:
            yield server
        finally:
            stopping.set()
            if every:
                archiving.join()


def _states(summary: Summary, dbid: int, directory: Path) -> dict[str, OracleState]:
    """Return the state of each container, by its name."""
    levels = {table.full_name: table.logging for table in summary.tables}
    encrypted = [table.full_name for table in summary.tables if table.encrypted]
    states: dict[str, OracleState] = {}
    for snapshot in (summary.snapshot, *summary.others):
        name = snapshot.database.con_name or ""
        prefix = f"{name}." if summary.others else ""
        own = {
            table.removeprefix(prefix): level
            for table, level in levels.items()
            if table.startswith(prefix)
        }
        state = _state(snapshot, dbid, directory, own)
        names = [table.removeprefix(prefix) for table in encrypted if table.startswith(prefix)]
        encrypt_tables(state.catalogue, names)
        _Rows(state, snapshot, directory, prefix).read_more()
        states[name] = state
    return states


class LiveServer:
    """Serves a live simulation; implements `simulator.live.LiveWatch`.

    Args:
        directory: the output directory of the simulation; `CONFIG` is written to it.
        port: 0 for any free port.
        opened: called with the server when the port is open.
        undo_seconds: age up to which versions of rows can be read as of an SCN; older ones are
            discarded.
    """

    def __init__(
        self,
        directory: Path,
        port: int,
        opened: Callable[[StandIn], None],
        *,
        undo_seconds: float = UNDO_RETENTION,
    ) -> None:
        self._undo_seconds = undo_seconds
        self._kept = deque[tuple[float, int]]()
        """Times, each with the SCN that was current then."""

        self._directory, self._port, self._opened = directory, port, opened
        self._server: StandIn | None = None
        self._open_things = ExitStack()

    def begin(self, files: SimulatedFiles, database: OnlineDatabase) -> None:
        """Prepare the database; the port is opened when every thread has a log."""
        self._database = database
        self._state = _state(files.start, files.simulation.instance.identity.dbid, self._directory)
        self._open_things.callback(self._state.close)
        self._state.offer_directory(ONLINE_DIRECTORY, ORADATA, self._directory / ONLINE)
        self._state.show_online_logs(database.control)
        self._rows = _Rows(self._state, files.start, self._directory)

    def made(self, files: SimulatedFiles) -> None:
        """Add the changes of generated redo; queries see them when the current SCN reaches their
        commit.
        """
        simulation = files.simulation
        self._rows.read_more(simulation.open_begins())
        self._state.advance(simulation.snapshot().structure.sequences)
        self._keep_undo(time.monotonic())

    def _keep_undo(self, now: float) -> None:
        """Discard versions older than the undo retention, at intervals of a twentieth of it."""
        step = self._undo_seconds / UNDO_STEPS
        if not self._kept or now - self._kept[-1][0] >= step:
            self._kept.append((now, self._state.scn))
            oldest = None
            while self._kept[0][0] < now - self._undo_seconds:
                oldest = self._kept.popleft()
            if oldest is not None:
                self._rows.forget(oldest[1])

    def stepped(self, step: Step) -> None:
        """Follow the online logs and the archive.

        Raises:
            OlrPgError: 8002 the configuration cannot be written, 8010 the port cannot be opened.
        """
        if isinstance(step, Event | Archived):
            self._state.scn = max(self._state.scn, self._database.current_scn())
        match step:
            case Event():
                if self._server is None and self._database.is_open:
                    self._open()
            case Archived():
                header = read_header(self._directory / LOGS / step.name)
                self._state.archived(step.name, header, moves_scn=False)
            case OpenResetlogs(header):
                own = header.resetlogs_scn, header.resetlogs, header.activation
                self._state.open_resetlogs(*own)

    def _open(self) -> None:
        self._server = self._open_things.enter_context(StandIn(self._state, port=self._port))
        write_config((self._state.snapshot,), self._directory, self._server)
        self._opened(self._server)

    def close(self) -> None:
        """Close the port, and discard all data."""
        self._open_things.close()


def _state(
    snapshot: Snapshot, dbid: int, directory: Path, levels: Mapping[str, Logging] | None = None
) -> OracleState:
    """Return the state of the served database before it has archived a log."""
    state = OracleState(snapshot, dbid=dbid, logging=levels)
    state.offer_directory(ARCHIVE_DIRECTORY, ARCHIVE, directory / LOGS)
    return state


class _Rows:
    """The rows of the tables, read from the simulator's files.

    Args:
        prefix: prefix of the names of the container's tables in these files.
    """

    def __init__(
        self, state: OracleState, snapshot: Snapshot, directory: Path, prefix: str = ""
    ) -> None:
        source = directory / SOURCE
        self._truth = source if source.exists() else directory / TRUTH
        self._ddl = directory / DDL
        self._read = 0
        self._versions = RowVersions(state.catalogue, own_tables(snapshot), prefix)
        self._versions.read_start(directory / TABLES, snapshot.scn)

    def read_more(self, unfinished: Sequence[int] = ()) -> None:
        """Apply the transactions that were added to the files since the last call."""
        if not self._truth.exists():
            return
        with self._truth.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        ddl = self._ddl.read_bytes().splitlines() if self._ddl.exists() else ()
        self._versions.read_truth(whole.splitlines(), ddl)
        self._versions.unfinished = unfinished
        self._read += len(whole)

    def forget(self, scn: int) -> None:
        """Discard the versions that ended at or before `scn`."""
        self._versions.forget(scn)


def own_tables(snapshot: Snapshot) -> list[Table]:
    """Return the tables of users: all except those in Oracle's own schemas."""
    return [table for table in snapshot.tables if not is_oracle_schema(table.owner)]


def read_header(path: Path) -> LogHeader:
    """Read the header of a finished log."""
    with path.open("rb") as file:
        block_size, _ = probe_geometry(file.read(PROBE_BYTES), path=str(path))
        file.seek(0)
        return parse_log_header(file.read(block_size), file.read(block_size), path=str(path))


def write_config(snapshots: Sequence[Snapshot], directory: Path, server: StandIn) -> None:
    """Write a configuration that replicates the given tables from the server.

    Raises:
        OlrPgError: 8002, the configuration cannot be written.
    """
    several = [str(one.database.con_name) for one in snapshots] if len(snapshots) > 1 else []
    document: dict[str, Any] = {
        "context": {"data": "data"},
        "source": {
            "kind": "oracle",
            "user": USER,
            "password": PASSWORD,
            "server": server.connect_string,
            **({"containers": several} if several else {}),
            "path-mapping": [
                *(ARCHIVE, str((directory / LOGS).absolute())),
                *(ORADATA, str((directory / ONLINE).absolute())),
            ],
        },
    }
    tables = dict.fromkeys(table.full_name for one in snapshots for table in own_tables(one))
    if tables:  # Without a table, the file is written without this section.
        document["apply"] = {
            "connect-string": "embedded",
            "tables": list(tables),
            "create-tables": True,
        }
    if server.sql is not None:
        document["prove"] = {"user": server.sql.owner.lower(), "password": PASSWORD}
    path = directory / CONFIG
    try:
        # The file is written again for each new table, and commands may be reading it.
        with written_whole(path) as file:
            file.write(json.dumps(document, indent=2).encode() + b"\n")
    except OSError as error:
        raise OlrPgError(
            Code.SIMULATION_DIRECTORY_UNUSABLE, f"{path}: {system_reason(error)}"
        ) from error


SWITCH_SECONDS: Final = 2.0


RENAMING: Final = (RENAME_COLUMN, DROP_COLUMN, RENAME_TABLE)
"""Operations of `DdlEffect` that change names, of columns or tables."""


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
            one.reach(scn)


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
            # Numbers stay texts, so that they keep all digits.
            defaults = {
                key: json.loads(text, parse_float=str, parse_int=str) for key, text in added.items()
            }
            # Changes that were committed with the DDL use the old names.
            is_renamed = any(one.operation in RENAMING for t in committed for one in t.ddl)
            if is_renamed:
                self._tell(committed)
            self._rows.follow(own_tables(snapshot), defaults)
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
        self._server.told(lines)

    def reach(self, scn: int) -> None:
        """Show an SCN as the current one, and the transactions that are open at it."""
        self._rows.unfinished = self.database.open_begins()
        self.state.scn = scn
