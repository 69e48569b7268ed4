"""Reads a logical replication slot of the target as a stream of pgoutput messages.

libpq implements the replication protocol (psycopg's `pgconn`). This module starts the stream,
parses its frames `w` (a message) and `k` (keepalive), and sends frames `r` (the confirmed
position). Facts: PostgreSQL's documentation, “Streaming Replication Protocol”.

A silent network is detected as in `applier.target.statement_watch`. The watch observes the commands
before the stream. The stream itself can be silent for a long time because nothing is committed. So
the stream periodically requests a keepalive, and `check` asks about the session if no keepalive
arrives.
"""

from __future__ import annotations

import select
import struct
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg import generators, sql
from psycopg.pq import ExecStatus

from olr_pg.applier.settings import ANSWER_SECONDS
from olr_pg.applier.target.statement_watch import ConnectionWatch, StatementWatch
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.pgoutput import VERSION, lsn_number, lsn_text
from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts
from olr_pg.postgres.sqlstates import is_in_use, is_missing, is_unusable

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection
    from psycopg.pq.abc import PGresult

STATUS_SECONDS: Final = 10.0
"""Interval at which the confirmed position is sent, even if the server does not ask for it. The
server is asked for a keepalive each time.
"""

_SERVER_TIMEOUT: Final = "10min"
"""The server ends the stream if it gets no reply for this time. This time is long, because one
array of changes can wait for a lock in Oracle.
"""

# A walsender that does not work waits for WAL or for the client ("Activity" and "Client"). It then
# answers a request for a keepalive at once.
_AT_WORK: Final = """
SELECT coalesce(wait_event_type, '') NOT IN ('Activity', 'Client')
FROM pg_stat_activity WHERE pid = %s
"""

_WAL_DATA: Final = ord("w")
_KEEPALIVE: Final = ord("k")
_WAL_HEADER: Final = 25
_ALIVE: Final = struct.Struct("!xQqB")
_STATUS: Final = struct.Struct("!cQQQqB")
_WITH_TRANSACTION_TIMEOUT: Final = 170_000
_EPOCH_SECONDS: Final = 946_684_800


class System(NamedTuple):
    """Identifies the cluster and its history.

    Attributes:
        identifier: identifier of the cluster; a copy of the cluster has the same identifier.
        timeline: the current timeline; each promotion begins a new timeline.
        lsn: the position up to which PostgreSQL has flushed WAL to disk.
    """

    identifier: str
    timeline: int
    lsn: int


class SlotStream:
    """A connection that reads a replication slot; used by one thread.

    Args:
        connect_string: the connection string of the target.
        watch: a watch for several connections; None to make one for this connection only.
        answer_seconds: time limit for an answer that is lost.

    Attributes:
        sent_lsn: every transaction that committed before this LSN has been received.
    """

    def __init__(
        self,
        connect_string: str,
        watch: StatementWatch | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._answer_seconds = answer_seconds
        # PostgreSQL sends texts and names in client_encoding. Its default is the encoding of the
        # database, or the value of ALTER ROLE … SET or ALTER DATABASE … SET.
        self._connection = BoundedConnection.connect(
            with_timeouts(connect_string, client_encoding="UTF8"),
            autocommit=True,
            replication="database",
            application_name="olr_pg fallback",
        )
        self._pgconn = self._connection.pgconn
        self.sent_lsn = 0
        self._confirmed = 0
        self._told_at = 0.0
        self._asked_at: float | None = None
        try:
            (watch or ConnectionWatch(connect_string, answer_seconds)).opened(self._connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, which frees the slot."""
        self._connection.close()

    def identify(self) -> System:
        """Read the cluster's identifier, timeline and WAL position.

        Raises:
            OlrPgError, psycopg.Error: any error of the server.
        """
        result = self._command("IDENTIFY_SYSTEM")
        return System(_cell(result, 0), int(_cell(result, 1)), lsn_number(_cell(result, 2)))

    def parted_at(self, before: int, timeline: int) -> int | None:
        """Return the LSN at which the history of `timeline` branched off from the earlier timeline
        `before`; None if `before` is not part of this history.

        Raises:
            psycopg.Error: any error of the server, also if the server lacks the timeline's history
                file.
        """
        if before > timeline:
            return None
        result = self._command(f"TIMELINE_HISTORY {timeline}")
        for line in _cell(result, 1).splitlines():
            fields = line.split(None, 2)
            if len(fields) > 1 and fields[0] == str(before):
                return lsn_number(fields[1])
        return None

    def start(self, slot: str, publication: str, lsn: int) -> None:
        """Start streaming the transactions that commit at `lsn` or later.

        Raises:
            OlrPgError: 7301 the slot is lost, 7302 another process reads the slot.
            psycopg.Error: the server cannot be reached.
        """
        self._set_limits()
        name = sql.Identifier(publication).as_string(self._connection)
        names = sql.quote(name)
        place = sql.Identifier(slot).as_string(self._connection)
        try:
            self._command(
                f"START_REPLICATION SLOT {place} LOGICAL {lsn_text(lsn)} (proto_version"
                f" '{VERSION}', publication_names {names}, binary 'true', streaming 'on',"
                " messages 'true')",
                expected=ExecStatus.COPY_BOTH,
            )
        except psycopg.Error as error:
            raise _start_error(error, slot) from error
        self._confirmed = lsn
        self.tell(ask=True)

    def _set_limits(self) -> None:
        """Set the time limits of the session, whatever the role or the database has.

        PostgreSQL sends a transaction, or a streamed part of it, within a transaction of its own.
        If Oracle takes the rows more slowly than PostgreSQL sends them, this lasts as long as it
        takes to apply them. A limit would end such a transaction each time, and the way back would
        never continue. wal_sender_timeout detects a client that has disappeared.
        """
        self._command(f"SET wal_sender_timeout = '{_SERVER_TIMEOUT}'")
        self._command("SET tcp_user_timeout = 0")
        if self._connection.info.server_version >= _WITH_TRANSACTION_TIMEOUT:
            self._command("SET transaction_timeout = 0")

    def next_message(self, seconds: float) -> bytes | None:
        """Return the next pgoutput message; None if none arrives within `seconds`.

        Raises:
            psycopg.Error: the connection is lost, or the server ended the stream.
        """
        until = time.monotonic() + seconds
        while True:
            size, data = self._pgconn.get_copy_data(1)
            if size > 0:
                self._asked_at = None
                frame = bytes(data)
                if frame[0] == _WAL_DATA:
                    return frame[_WAL_HEADER:]
                if frame[0] == _KEEPALIVE:
                    self._take_keepalive(frame)
                continue
            if size < 0:
                self._raise_end()
            now = time.monotonic()
            if now - self._told_at >= STATUS_SECONDS:
                self.tell(ask=True)
            left = max(0.0, until - now)
            if select.select([self._pgconn.socket], [], [], min(left, STATUS_SECONDS))[0]:
                self._pgconn.consume_input()
            elif not left:
                return None

    def check(self, connection: Connection[Any]) -> None:
        """Check that the network has not lost the stream, if the server has not answered for
        `answer_seconds`.

        Args:
            connection: another connection to the same server.

        Raises:
            psycopg.OperationalError: the stream is lost.
            psycopg.Error: the server cannot be queried.
        """
        now = time.monotonic()
        if self._asked_at is None or now - self._asked_at < self._answer_seconds:
            return
        pooled = self._connection.pooled
        pid = self._connection.info.backend_pid if pooled is None else pooled[0]
        row = connection.execute(_AT_WORK, (pid,)).fetchone()
        if row == (True,):
            self._asked_at = now
            return
        # The next connection of the watch ends the session, so that the slot becomes free.
        self._pgconn.finish()
        raise psycopg.OperationalError("the network has lost the replication stream")

    def confirm(self, lsn: int) -> None:
        """Confirm all transactions that committed before `lsn`, so that the server can remove their
        WAL.
        """
        if lsn > self._confirmed:
            self._confirmed = lsn
            self.tell()

    def tell(self, *, ask: bool = False) -> None:
        """Send the confirmed position to the server.

        Args:
            ask: whether to ask the server for its position.
        """
        self._told_at = time.monotonic()
        if ask and self._asked_at is None:
            self._asked_at = self._told_at
        microseconds = int((time.time() - _EPOCH_SECONDS) * 1_000_000)
        lsn = self._confirmed
        self._pgconn.put_copy_data(_STATUS.pack(b"r", lsn, lsn, lsn, microseconds, int(ask)))
        self._pgconn.flush()

    def _take_keepalive(self, frame: bytes) -> None:
        lsn, _at, wants_answer = _ALIVE.unpack_from(frame)
        self.sent_lsn = max(self.sent_lsn, lsn)
        if wants_answer:
            self.tell()

    def _command(self, command: str, expected: ExecStatus | None = None) -> PGresult:
        self._pgconn.send_query(command.encode())
        result: PGresult = self._connection.wait(generators.execute(self._pgconn))[-1]
        wanted = (expected,) if expected else (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
        if result.status not in wanted:
            raise _failure(result)
        return result

    def _raise_end(self) -> None:
        """Raise the error that ended the stream.

        Raises:
            psycopg.Error: always.
        """
        result = self._pgconn.get_result()
        if result is not None and result.status == ExecStatus.FATAL_ERROR:
            raise _failure(result)
        raise psycopg.OperationalError("the server has ended the replication stream")


def _failure(result: PGresult) -> psycopg.Error:
    """Return the error of a result. Without an SQLSTATE, libpq itself has made the result, because
    the connection was lost.
    """
    error = psycopg.errors.error_from_result(result, encoding="utf-8")
    return error if error.sqlstate is not None else psycopg.OperationalError(str(error))


def _start_error(error: psycopg.Error, slot: str) -> OlrPgError | psycopg.Error:
    """Return the error that explains why a slot cannot be read."""
    if is_in_use(error):
        return OlrPgError(Code.FALLBACK_SLOT_IN_USE, "another process reads the slot", slot=slot)
    if is_missing(error):
        return OlrPgError(Code.FALLBACK_SLOT_LOST, "the slot does not exist", slot=slot)
    if is_unusable(error):
        what = "PostgreSQL has invalidated the slot"
        return OlrPgError(Code.FALLBACK_SLOT_LOST, what, slot=slot)
    return error


def _cell(result: PGresult, column: int) -> str:
    found = result.get_value(0, column)
    assert found is not None
    return found.decode()
