"""A connection of the stand-in: from the connect packet to the log-off.

**Log-on.** The client authenticates itself by a password with a 12c verifier. Client and server
derive a key from the password and a salt (PBKDF2). Each side sends half of a session key, encrypted
with this key. After this exchange, the client sends the password, encrypted with the session key.

**Calls.** The session answers statements and their fetches, and opens and reads files of directory
objects (BFILE). A test can make any call fail, hang or lose its connection.

Source of the facts: what python-oracledb's thin mode sends and accepts
(``impl/thin/messages/auth.pyx``, ``crypto.pyx``).
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net import ttc_messages as msg
from olr_pg.simulator.oracle_net.catalogue import is_query
from olr_pg.simulator.oracle_net.sql_values import SqlClient, returned_places
from olr_pg.simulator.oracle_net.ttc_messages import (
    ExecuteOption,
    Function,
    LobOperation,
    Message,
    write_status,
)
from olr_pg.simulator.oracle_net.values import (
    DATA_FLAGS_BYTES,
    LOBS,
    LONGS,
    Bfile,
    MalformedMessageError,
    Marker,
    PacketStream,
    PacketType,
    PeerGoneError,
    TtcReader,
    TtcWriter,
    Wanted,
    decode_bind,
    lob_of,
    write_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from olr_pg.simulator.oracle_net.catalogue import QueryResult
    from olr_pg.simulator.oracle_net.state import OracleState
    from olr_pg.simulator.oracle_net.ttc_messages import LobRequest
    from olr_pg.simulator.oracle_net.values import BindType, LobValue
    from olr_pg.simulator.sql.database import SqlDatabase

_WITH_AMOUNT: Final = (LobOperation.LENGTH, LobOperation.READ, LobOperation.OPEN)


class SessionFiles:
    """The open files of a session.

    Args:
        directories: the local folders of directory objects, by name.
    """

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = directories
        self._open: dict[Bfile, Path] = {}

    def answer(self, file: Bfile, request: LobRequest, out: TtcWriter) -> int:
        """Carry out a LOB request on a file; return the number of bytes that were sent.

        Raises:
            OraError: as Oracle reports it.
        """
        operation = LobOperation(request.operation)
        amount = sent = 0
        if operation is LobOperation.OPEN:
            self._open[file] = self._path(file)
        elif operation is LobOperation.CLOSE:
            self._opened(file)
            del self._open[file]
        elif operation is LobOperation.LENGTH:
            amount = self._opened(file).stat().st_size
        elif operation is LobOperation.READ:
            with self._opened(file).open("rb") as content:
                content.seek(request.offset - 1)
                piece = content.read(request.amount)
            out.byte(Message.LOB_DATA).bytes_(piece)
            amount = sent = len(piece)
        out.byte(Message.PARAMETER).raw(request.locator)
        if operation in _WITH_AMOUNT:
            out.integer(amount)
        if operation is LobOperation.IS_OPEN:
            out.byte(int(file in self._open))
        write_status(out)
        return sent

    def _path(self, file: Bfile) -> Path:
        if file.directory not in self._directories:
            raise OraError(22285, "non-existent directory or file for FILEOPEN operation")
        path = self._directories[file.directory] / file.name
        if not path.is_file():
            failed = "file or LOB operation FILEOPEN failed\nNo such file or directory"
            raise OraError(22288, failed)
        return path

    def _opened(self, file: Bfile) -> Path:
        if file not in self._open:
            raise OraError(22289, "cannot perform FILEREAD operation on an unopened file or LOB")
        return self._open[file]


Phase = str
"""``connect``, ``execute``, ``fetch`` or ``lob``."""


@dataclass(slots=True)
class Fault:
    """A fault that will happen.

    Attributes:
        phase: the phase of a call in which it happens.
        contains: happens only for statements with this text (case is ignored); empty for all.
        error: number and text of the ORA error; None for no error.
        drop: cut the connection.
        delay: seconds to wait before the answer.
        times: number of times that the fault happens; 0 for every time.
        after: number of matching calls that succeed before the fault happens.
    """

    phase: Phase
    contains: str = ""
    error: tuple[int, str] | None = None
    drop: bool = False
    delay: float = 0.0
    times: int = 1
    after: int = 0
    hits: int = field(default=0, init=False)


class Faults:
    """The pending faults; any thread may change them."""

    def __init__(self) -> None:
        self._pending: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        """Add a fault; return it."""
        with self._lock:
            self._pending.append(fault)
        return fault

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._pending.clear()

    def take(self, phase: Phase, sql: str = "") -> Fault | None:
        """Return the fault that happens now, if there is one, and count it."""
        with self._lock:
            for fault in self._pending:
                if fault.phase == phase and fault.contains.upper() in sql.upper():
                    if fault.after:
                        fault.after -= 1
                        continue
                    fault.hits += 1
                    if fault.times and fault.hits >= fault.times:
                        self._pending.remove(fault)
                    return fault
        return None


VERIFIER_12C: Final = 0x4815
SERVER_PROOF: Final = b"SERVER_TO_CLIENT"

_BLOCK: Final = 16
_HALF_KEY: Final = 32
_KEY: Final = 32
_PASSWORD_ROUNDS: Final = 16
"""Number of rounds in which the key of the password is derived; Oracle uses 4096. The server sends
the number to the client, which uses the same number. Fewer rounds protect a password less, but this
password is no secret, and tests log on thousands of times.
"""
_SESSION_ROUNDS: Final = 3


class PasswordCheck:
    """A log-on attempt."""

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._verifier_data = secrets.token_bytes(_BLOCK)
        self._session_salt = secrets.token_bytes(_BLOCK)
        self._half = secrets.token_bytes(_HALF_KEY)
        salt = self._verifier_data + b"AUTH_PBKDF2_SPEEDY_KEY"
        derived = hashlib.pbkdf2_hmac("sha512", self._password, salt, _PASSWORD_ROUNDS, 64)
        self._password_key = hashlib.sha512(derived + self._verifier_data).digest()[:_KEY]
        self._session_key = b""

    def challenge(self) -> list[tuple[str, str, int]]:
        """Return the answer of the first phase, as (name, value, flags)."""
        return [
            ("AUTH_SESSKEY", _hex(_encrypt(self._password_key, self._half)), 1),
            ("AUTH_VFR_DATA", _hex(self._verifier_data), VERIFIER_12C),
            ("AUTH_PBKDF2_CSK_SALT", _hex(self._session_salt), 0),
            ("AUTH_PBKDF2_VGEN_COUNT", str(_PASSWORD_ROUNDS), 0),
            ("AUTH_PBKDF2_SDER_COUNT", str(_SESSION_ROUNDS), 0),
        ]

    def accepts(self, pairs: dict[str, str]) -> bool:
        """Return whether the client's answer in the second phase proves the password."""
        theirs = _decrypt(self._password_key, bytes.fromhex(pairs["AUTH_SESSKEY"]))
        both = _hex(theirs[:_KEY] + self._half[:_KEY]).encode()
        self._session_key = hashlib.pbkdf2_hmac(
            "sha512", both, self._session_salt, _SESSION_ROUNDS, _KEY
        )
        plain = _decrypt(self._session_key, bytes.fromhex(pairs["AUTH_PASSWORD"]))
        padding = plain[-1]
        return plain[_BLOCK:-padding] == self._password

    def proof(self) -> str:
        """Return the value that proves to the client that the server also knows the password."""
        return _hex(_encrypt(self._session_key, secrets.token_bytes(_BLOCK) + SERVER_PROOF))


def _hex(data: bytes) -> str:
    return data.hex().upper()


def _encrypt(key: bytes, data: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(_BLOCK))).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def _decrypt(key: bytes, data: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(_BLOCK))).decryptor()
    return decryptor.update(data) + decryptor.finalize()


SERVICE: Final = "SIM"
USER: Final = "olr"
PASSWORD: Final = "olr"  # noqa: S105 - it guards nothing
PROTOCOL_VERSION: Final = 318
SDU: Final = 8192

_CONNECT_DATA_LENGTH: Final = 16
_CONNECT_DATA_MAX: Final = 230
_HEARD_MAX: Final = 1_000
_POLL_SECONDS: Final = 0.02
_NO_CHANGE: Final = (
    "may not perform insert, delete, update operation inside a READ ONLY transaction"
)
_READ_ONLY: Final = "SET TRANSACTION READ ONLY"
_ALLOWED_READ_ONLY: Final = ("ALTER SESSION", "SET ROLE")
_INVALID_PASSWORD: Final = "invalid username/password; logon denied"  # noqa: S105 - ORA-01017


def _version_number(version: str) -> int:
    """Return a version in the form that servers send since 18, as python-oracledb reads it."""
    major, minor, update, patch, last = map(int, version.split("."))
    return major << 24 | minor << 16 | update << 12 | patch << 4 | last


class InterruptedCallError(Exception):
    """The client has interrupted a call."""


_SET_CONTAINER: Final = re.compile(r'ALTER SESSION SET CONTAINER = "(.+)"$')


@dataclass(slots=True)
class Cursor:
    """An open cursor, with its number in the session, and its remaining rows."""

    number: int
    sql: str
    bind_types: tuple[BindType, ...] = ()
    returned: tuple[int, ...] = ()
    result: QueryResult | None = None
    wanted: list[Wanted] = field(default_factory=list)
    sent: int = 0


class SessionHost:
    """The server that a session belongs to.

    Attributes:
        state: the state of the database.
        containers: the state of each PDB that sessions may enter, by name.
        faults: the planned faults.
        stopping: the server is being closed.
        lob_read_max: bytes of the largest piece of a LOB that was sent.
        heard: the last statements; for each, whether it came in a read-only transaction.
        sql: a database that executes SQL for its owner; None if there is none.
        sql_beside: such a database for each PDB, by name.
        privileges: the administrative privileges of the user.
    """

    def __init__(self, state: OracleState) -> None:
        self.state = state
        self.containers: dict[str, OracleState] = {}
        self.faults = Faults()
        self.user, self.password, self.service = USER, PASSWORD, SERVICE
        self.stopping = False
        self.sql: SqlDatabase | None = None
        self.sql_beside: dict[str, SqlDatabase] = {}
        self.privileges = frozenset[msg.AuthMode]()
        self.lob_read_max = 0
        self.heard: deque[tuple[str, bool]] = deque(maxlen=_HEARD_MAX)


class ClientSession:
    """Serves one client."""

    def __init__(self, server: SessionHost, stream: PacketStream) -> None:
        self._server = server
        self._entered = ""
        self._stream = stream
        self._cursors: dict[int, Cursor] = {}
        self._next_cursor = 1
        self._lobs: list[LobValue] = []
        self._files = SessionFiles(server.state.directories)
        self._user = ""
        self._reads_only = False
        self._check: PasswordCheck | None = None
        self._sql: SqlClient | None = None
        self._calls: dict[int, Callable[[TtcReader, TtcWriter], None]] = {
            Function.AUTH_PHASE_ONE: self._auth_one,
            Function.AUTH_PHASE_TWO: self._auth_two,
            Function.EXECUTE: self._execute,
            Function.REEXECUTE: self._reexecute,
            Function.REEXECUTE_AND_FETCH: self._reexecute,
            Function.FETCH: self._fetch,
            Function.LOB: self._lob,
            Function.COMMIT: self._commit,
            Function.ROLLBACK: self._roll_back,
            Function.PING: self._nothing,
            Function.LOGOFF: self._nothing,
        }

    def run(self) -> None:
        """Serve until either side ends the connection."""
        try:
            if self._accept():
                while True:
                    self._answer()
        except (PeerGoneError, InterruptedCallError):
            # A client that gives up while it connects does not continue.
            return
        finally:
            if self._sql is not None:
                self._sql.close()

    def _accept(self) -> bool:
        packet = self._stream.receive()
        body = packet.body
        length = int.from_bytes(body[_CONNECT_DATA_LENGTH : _CONNECT_DATA_LENGTH + 2], "big")
        if length > _CONNECT_DATA_MAX:
            text = self._stream.receive().body[DATA_FLAGS_BYTES:].decode()
        else:
            text = body[-length:].decode()
        self._strike("connect")
        if f"(SERVICE_NAME={self._server.service})" not in text.replace(" ", ""):
            refusal = b"(DESCRIPTION=(ERR=12514)(VSNNUM=0)(ERROR_STACK=(ERROR=(CODE=12514))))"
            self._stream.send(
                PacketType.REFUSE, b"\0\0" + len(refusal).to_bytes(2, "big") + refusal
            )
            return False
        accept = PROTOCOL_VERSION.to_bytes(2, "big") + bytes(22) + SDU.to_bytes(4, "big")
        self._stream.send(PacketType.ACCEPT, accept + bytes(9))
        self._stream.accepted = True
        self._stream.sdu = SDU
        return True

    def _answer(self) -> None:
        packet = self._stream.receive()
        if packet.type == PacketType.MARKER:
            self._break_off(packet.marker)
            return
        reader = TtcReader(packet.body[DATA_FLAGS_BYTES:], self._more)
        if reader.done:
            raise PeerGoneError
        out = TtcWriter()
        try:
            self._dispatch(reader, out)
        except InterruptedCallError:
            self._break_off(Marker.INTERRUPT)
            return
        except OraError as fault:
            out = TtcWriter()
            msg.write_end(out, fault.code, f"{fault}\n", offset=fault.offset)
        self._stream.send_message(bytes(out.data))

    def _more(self) -> bytes:
        return self._stream.receive().body[DATA_FLAGS_BYTES:]

    def _dispatch(self, reader: TtcReader, out: TtcWriter) -> None:
        while True:
            code = reader.byte()
            if code == Message.PROTOCOL:
                msg.read_protocol(reader)
                msg.write_protocol(out)
                return
            if code == Message.DATA_TYPES:
                msg.read_data_types(reader)
                msg.write_data_types(out)
                return
            function = reader.byte()
            reader.byte()  # sequence number
            if code == Message.PIGGYBACK:
                self._piggyback(function, reader)
            elif code == Message.FUNCTION and function in self._calls:
                self._calls[function](reader, out)
                return
            else:
                raise MalformedMessageError(f"message {code}, function {function}")

    def _piggyback(self, function: int, reader: TtcReader) -> None:
        if function == Function.CLOSE_CURSORS:
            for number in msg.read_close_cursors(reader):
                self._cursors.pop(number, None)
        elif function == Function.SET_SCHEMA:
            reader.byte()
            reader.sized_bytes()
        else:
            raise MalformedMessageError(f"piggyback {function}")

    def _break_off(self, marker: int) -> None:
        """Cancel the operation in progress, by an exchange of markers with the client."""
        self._stream.send_marker(Marker.BREAK)
        while marker != Marker.RESET:
            packet = self._stream.receive()
            if packet.type == PacketType.MARKER:
                marker = packet.marker
        self._stream.send_marker(Marker.RESET)
        out = TtcWriter()
        text = "ORA-01013: user requested cancel of current operation\n"
        msg.write_end(out, 1013, text)
        self._stream.send_message(bytes(out.data))

    def _strike(self, phase: str, sql: str = "") -> None:
        """Cause the fault that is due, if there is one.

        Raises:
            OraError, PeerGoneError, InterruptedCallError: depending on the fault.
        """
        fault = self._server.faults.take(phase, sql)
        if fault is not None:
            self._suffer(fault)

    def _suffer(self, fault: Fault) -> None:
        end = time.monotonic() + fault.delay
        while time.monotonic() < end and not self._server.stopping:
            if self._stream.readable(_POLL_SECONDS):
                raise InterruptedCallError
        if fault.drop:
            raise PeerGoneError
        if fault.error is not None:
            raise OraError(*fault.error)

    def _auth_one(self, reader: TtcReader, out: TtcWriter) -> None:
        self._user, _, _ = msg.read_auth(reader)
        self._check = PasswordCheck(self._server.password)
        msg.write_pairs(out, self._check.challenge())
        msg.write_status(out)

    def _auth_two(self, reader: TtcReader, out: TtcWriter) -> None:
        _, modes, pairs = msg.read_auth(reader)
        sql, user = self._server.sql, self._user.upper()
        known = user == self._server.user.upper() or (sql is not None and user == sql.owner)
        if self._check is None or not self._check.accepts(pairs) or not known:
            raise OraError(1017, _INVALID_PASSWORD)
        if not modes <= self._server.privileges:
            raise OraError(1031, "insufficient privileges")
        is_mounted = self._server.state.catalogue.is_mounted
        if is_mounted and not modes:
            raise OraError(1033, "ORACLE initialization or shutdown in progress")
        self._strike("connect")
        if sql is not None and user == sql.owner:
            self._sql = SqlClient(sql)
        session = [
            ("AUTH_VERSION_NO", str(_version_number(self._server.state.version))),
            ("AUTH_SESSION_ID", "42"),
            ("AUTH_SERIAL_NUM", "4711"),
            ("AUTH_MAX_IDEN_LENGTH", "128"),
            ("AUTH_SC_SERVICE_NAME", self._server.service),
            ("AUTH_SVR_RESPONSE", self._check.proof()),
        ]
        if not is_mounted:  # a mounted 19c does not send it (python-oracledb, issue 294)
            session.append(("AUTH_MAX_OPEN_CURSORS", "300"))
        msg.write_pairs(out, [(key, value, 0) for key, value in session])
        msg.write_status(out)

    def _nothing(self, _reader: TtcReader, out: TtcWriter) -> None:
        msg.write_status(out)

    def _commit(self, reader: TtcReader, out: TtcWriter) -> None:
        self._reads_only = False
        if self._sql is not None:
            self._sql.session.commit()
        self._nothing(reader, out)

    def _roll_back(self, reader: TtcReader, out: TtcWriter) -> None:
        self._reads_only = False
        if self._sql is not None:
            self._sql.session.rollback()
        self._nothing(reader, out)

    def _execute(self, reader: TtcReader, out: TtcWriter) -> None:
        places = returned_places if self._sql is not None else lambda _: ()
        known = {number: cursor.sql for number, cursor in self._cursors.items()}
        request = msg.read_execute(reader, places, known)
        number = request.cursor
        if request.sql is not None:
            if not number:
                number, self._next_cursor = self._next_cursor, self._next_cursor + 1
            self._cursors[number] = Cursor(number, request.sql)
        cursor = self._cursor(number)
        if request.options & ExecuteOption.DEFINE:
            self._define(cursor, request.defines or ())
            rows = request.rows if request.options & ExecuteOption.FETCH else 0
            self._write_rows(cursor, rows, out)
            return
        cursor.bind_types, cursor.returned = request.bind_types, request.returned
        commits = bool(request.options & ExecuteOption.COMMIT)
        self._run(cursor, request.rows, request.binds, out, commits=commits)

    def _reexecute(self, reader: TtcReader, out: TtcWriter) -> None:
        number, rows, commits = msg.read_reexecute(reader)
        cursor = self._cursor(number)
        executions = 1 if is_query(cursor.sql) else max(rows, 1)
        binds = msg.read_binds(reader, cursor.bind_types, executions, cursor.returned)
        self._run(cursor, rows, binds, out, commits=commits)

    def _run(
        self,
        cursor: Cursor,
        rows: int,
        binds: list[list[bytes | None]],
        out: TtcWriter,
        *,
        commits: bool,
    ) -> None:
        self._server.heard.append((cursor.sql, self._reads_only))
        self._strike("execute", cursor.sql)
        entered = _SET_CONTAINER.match(cursor.sql)
        if self._sql is not None and not entered:
            self._run_sql(cursor, rows, binds, out, commits=commits)
            return
        if not is_query(cursor.sql):
            if cursor.sql.upper() == _READ_ONLY:
                if self._state().catalogue.is_mounted:
                    raise OraError(1109, "database not open")
                self._reads_only = True
            elif self._reads_only and not cursor.sql.upper().startswith(_ALLOWED_READ_ONLY):
                raise OraError(1456, _NO_CHANGE)
            if entered:
                self._enter(entered[1])
            else:
                self._state().command(cursor.sql)
            msg.write_end(out, cursor=cursor.number)
            return
        first = binds[0] if binds else []
        catalogue = self._state().catalogue
        values = [
            decode_bind(*one, catalogue.text, self._lobs)
            for one in zip(cursor.bind_types, first, strict=True)
        ]
        self._answer_query(cursor, rows, catalogue.query(cursor.sql, values), out)

    def _run_sql(
        self,
        cursor: Cursor,
        rows: int,
        binds: list[list[bytes | None]],
        out: TtcWriter,
        *,
        commits: bool,
    ) -> None:
        client = self._sql
        assert client is not None
        outcomes = client.run(cursor.sql, cursor.bind_types, binds)
        if outcomes[-1].is_query:
            self._answer_query(cursor, rows, client.result(outcomes[-1]), out)
            return
        if commits:
            client.session.commit()
        if cursor.returned:
            client.write_returned(out, outcomes, cursor.bind_types, cursor.returned)
        msg.write_end(out, cursor=cursor.number, rows=sum(one.count for one in outcomes))

    def _answer_query(self, cursor: Cursor, rows: int, result: QueryResult, out: TtcWriter) -> None:
        cursor.result, cursor.sent = result, 0
        cursor.wanted = [Wanted(one.kind.code, one.kind.form) for one in result.columns]
        msg.write_describe(out, result.columns)
        # LOBs are sent only after the driver has said in which form it wants them.
        wants_lobs = any(one.code in LOBS for one in cursor.wanted)
        self._write_rows(cursor, 0 if wants_lobs else rows, out)

    def _enter(self, container: str) -> None:
        """Enter a PDB.

        Raises:
            OraError: ORA-65011, no PDB has that name.
        """
        if container not in self._server.containers:
            raise OraError(65011, f'Pluggable database "{container}" does not exist.')
        self._entered = container
        if self._sql is not None:
            self._sql.close()
            self._sql = SqlClient(self._server.sql_beside[container])

    def _state(self) -> OracleState:
        """Return the state of the container that the session is in.

        Raises:
            OraError: ORA-01109, the container was closed meanwhile.
        """
        if not self._entered:
            return self._server.state
        if self._entered not in self._server.containers:
            raise OraError(1109, "database not open")
        return self._server.containers[self._entered]

    def _define(self, cursor: Cursor, defines: tuple[BindType, ...]) -> None:
        for at, define in enumerate(defines):
            if cursor.wanted[at].code in LOBS and define.code in LONGS:
                cursor.wanted[at] = Wanted(define.code, define.form)

    def _fetch(self, reader: TtcReader, out: TtcWriter) -> None:
        number, rows = reader.integer(), reader.integer()
        cursor = self._cursor(number)
        self._strike("fetch", cursor.sql)
        self._write_rows(cursor, rows, out)

    def _write_rows(self, cursor: Cursor, count: int, out: TtcWriter) -> None:
        assert cursor.result is not None
        rows = cursor.result.rows[cursor.sent : cursor.sent + count]
        cursor.sent += len(rows)
        if rows:
            msg.write_row_header(out)
        conversions = self._state().catalogue.text if self._sql is None else self._sql.text
        for row in rows:
            out.byte(Message.ROW_DATA)
            for value, wanted in zip(row, cursor.wanted, strict=True):
                write_value(out, value, wanted, self._lobs, conversions)
        if count and cursor.sent == len(cursor.result.rows):
            text = "ORA-01403: no data found\n"
            msg.write_end(out, msg.NO_DATA_FOUND, text, cursor=cursor.number, rows=cursor.sent)
        else:
            msg.write_end(out, cursor=cursor.number, rows=cursor.sent)

    def _lob(self, reader: TtcReader, out: TtcWriter) -> None:
        request = msg.read_lob(reader)
        self._strike("lob")
        file = Bfile.of(request.locator)
        if file is not None:
            sent = self._files.answer(file, request, out)
            self._server.lob_read_max = max(self._server.lob_read_max, sent)
            return
        lob = lob_of(request.locator, self._lobs)
        amount = lob.size
        if request.operation == LobOperation.READ:
            piece = lob.piece(request.offset, request.amount)
            self._server.lob_read_max = max(self._server.lob_read_max, len(piece))
            out.byte(Message.LOB_DATA).bytes_(piece)
            amount = len(piece) // lob.unit
        elif request.operation != LobOperation.LENGTH:
            raise OraError(3001, "unimplemented feature")
        out.byte(Message.PARAMETER).raw(request.locator).integer(amount)
        msg.write_status(out)

    def _cursor(self, number: int) -> Cursor:
        if number not in self._cursors:
            raise OraError(1001, "invalid cursor")
        return self._cursors[number]
