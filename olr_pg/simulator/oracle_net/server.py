"""The stand-in's listener: a thread per connection, on the loopback address."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.simulator.oracle_net.session import ClientSession, SessionHost
from olr_pg.simulator.oracle_net.ttc import MalformedMessageError, PacketStream

if TYPE_CHECKING:
    from typing import Self

    from olr_pg.simulator.oracle_net.state import OracleState

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
