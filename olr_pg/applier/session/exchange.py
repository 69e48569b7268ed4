"""The applier's connection to the server: requests, and the answers in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.wire.client import ClientProtocol, Elements, Reply
from olr_pg.wire.messages import Error, LogOff

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.transactions.schema_event import SchemaEvent
    from olr_pg.wire.frames import ByteOrder
    from olr_pg.wire.link import ServerLink
    from olr_pg.wire.messages import Answer, Request

_log = structlog.get_logger(__name__)


class Exchange:
    """Requests and answers over one connection at a time.

    Args:
        order: byte order of the connection.
        is_stopped: asked now and then while the server is silent: whether to give up.
    """

    def __init__(
        self, connect: Callable[[], ServerLink], order: ByteOrder, is_stopped: Callable[[], bool]
    ) -> None:
        self._connect = connect
        self._order = order
        self._is_stopped = is_stopped
        self._link: ServerLink | None = None
        self._protocol = ClientProtocol(order)

    @property
    def pending(self) -> int:
        """Requests whose answer has not been given."""
        return self._protocol.pending

    def open(self) -> None:
        """Connect.

        Raises:
            OSError: the server cannot be reached.
        """
        self._protocol = ClientProtocol(self._order)
        self._link = self._connect()

    def close(self) -> None:
        """Log off, as far as there is a connection."""
        if self._link is None:
            return
        try:
            self._link.send(self._protocol.request(LogOff()))
        except OSError as error:
            _log.debug("no log off", error=plain_reason(error))
        self._link.close()
        self._link = None

    def ask(self, request: Request) -> Answer:
        """Send one request and return its answer, with nothing else in flight.

        Raises:
            OSError: the connection is lost, or another client has the server.
            OlrPgError: 5012, the server refuses.
        """
        self.send(request)
        while (event := self._protocol.next_event()) is None:
            self.receive()
        assert isinstance(event, Reply)
        if isinstance(event.answer, Error) and event.answer.code == Code.PLACE_TAKEN:
            # Perhaps our own lost connection, which the server has not noticed yet.
            raise ConnectionRefusedError(event.answer.text)
        return _accepted(event)

    def send(self, request: Request, count: int = 1) -> None:
        """Send a request so many times; the answers come with `next_answer`."""
        assert self._link is not None
        self._link.send(self._protocol.request(request, count))

    def receive(self) -> None:
        """Take what the server answered; waits until there is something."""
        assert self._link is not None
        self._link.receive(self._protocol, self._is_stopped)

    def next_answer(self) -> Elements | Answer | SchemaEvent | None:
        """Return the next answers in request order, or an event; None until more is received.

        Raises:
            OlrPgError: 5012, the server refuses; and those of `ClientProtocol.next_event`.
        """
        answer = self._protocol.next_event()
        if answer is None:
            return self._protocol.told()
        return _accepted(answer) if isinstance(answer, Reply) else answer


def _accepted(reply: Reply) -> Answer:
    if isinstance(reply.answer, Error):
        request = type(reply.request).__name__
        raise OlrPgError(
            Code.SERVER_REFUSED, f"{request}: {reply.answer.text}", server_code=reply.answer.code
        )
    return reply.answer
