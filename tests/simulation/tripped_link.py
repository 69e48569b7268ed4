"""A link from inside the server's process that fails where a proxy between two sockets would."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tests.simulation.proxy import Framer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.server.port_session import InsideLink
    from olr_pg.transactions.schema_event import SchemaEvent
    from olr_pg.wire.protocol import ClientProtocol
    from tests.simulation.proxy import Direction, Framing, Trip


class _Answers:
    """What the server gives at once: messages, or an event."""

    def __init__(self) -> None:
        self.data = b""
        self.events: list[SchemaEvent] = []

    def adopt(self, data: memoryview) -> None:
        self.data += bytes(data)

    def tell(self, event: SchemaEvent) -> None:
        self.events.append(event)


class TrippedLink:
    """A `applier.session.server_side.ServerLink` around another.

    Args:
        armed: the fault that is armed now.
    """

    def __init__(
        self, link: InsideLink, framing: Framing, armed: Callable[[], Trip | None]
    ) -> None:
        self._link = link
        self._armed = armed
        self._framers = {
            "requests": Framer(framing, "requests"),
            "answers": Framer(framing, "answers"),
        }

    def send(self, requests: bytes) -> None:
        for part in self._passed(requests, "requests"):
            self._link.send(part)

    def decline_image(self) -> None:
        self._link.decline_image()

    def receive(self, client: ClientProtocol, stopped: Callable[[], bool]) -> None:
        answers = _Answers()
        self._link.receive(cast("ClientProtocol", answers), stopped)
        for part in self._passed(answers.data, "answers"):
            client.receive(part)
        for event in answers.events:
            client.tell(event)

    def close(self) -> None:
        self._link.close()

    def _passed(self, data: bytes, direction: Direction) -> Iterator[bytes]:
        """What passes of some messages."""
        out = bytearray()
        for message in self._framers[direction].feed(data):
            trip = self._armed()
            if trip is None or not trip.is_due(direction, message):
                out += message
                continue
            now = trip.passing(message)
            yield bytes(out + message[:now])
            trip.act()
            trip.tripped.set()
            if trip.cuts:
                self._link.close()
                raise ConnectionResetError("the proxy has cut it")
            out = bytearray(message[now:])
        yield bytes(out)
