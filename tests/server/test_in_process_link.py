"""The link from inside the server's process: what the port gives, without the port."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.wire.client import ClientProtocol, Elements, Reply
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import (
    BackToScn,
    Error,
    GetSavedScn,
    GetStatus,
    LastCommitedScn,
    LogOff,
    NoMore,
    Ok,
    Request,
    SavedScn,
    StartScn,
    State,
    Status,
    TableList,
)
from tests.server.test_listener import MemorySource, RawClient, commit_scn_of, messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.server.in_process_link import InsideLink
    from olr_pg.wire.messages import Answer

COUNT = 200


class Inside:
    """A client that has a link."""

    def __init__(self, link: InsideLink, order: ByteOrder = ByteOrder.LITTLE) -> None:
        self.link = link
        self.client = ClientProtocol(order)
        self.taken = bytearray()

    def ask(self, request: Request, count: int = 1) -> Answer | None:
        """Send; the last answer that is not Data, None where all were."""
        self.link.send(self.client.request(request, count))
        answer = None
        while self.client.pending:
            event = self.client.next_event()
            if event is None:
                self.link.receive(self.client, lambda: False)
            elif isinstance(event, Elements):
                self.taken += event.blob.tobytes()
                answer = None
            else:
                assert isinstance(event, Reply)
                answer = event.answer
        return answer

    def start(self, scn: int = 0) -> None:
        assert self.ask(TableList("q")) == Ok()
        assert self.ask(StartScn(scn)) == Ok()

    def take_all(self, end: int, confirmed: int = 0) -> None:
        """Take until so many bytes are here."""
        while len(self.taken) < end:
            self.ask(LastCommitedScn(confirmed), 7)


def replicating(server: Listener) -> str | None:
    """Who has subscribed."""
    session = server.replicating
    return None if session is None else session.peer


@pytest.fixture
def server(checkpoint: Checkpoint) -> Iterator[Listener]:
    with Listener(MemorySource(COUNT, bound=1000), checkpoint) as server:
        yield server


@pytest.mark.parametrize("order", ByteOrder)
def test_the_bytes_are_those_of_the_port(order: ByteOrder, checkpoint: Checkpoint) -> None:
    expected = b"".join(b"".join(messages_of(number, order)) for number in range(COUNT))
    source = MemorySource(COUNT, bound=1000, order=order)
    with Listener(source, checkpoint, PortSettings(order=order)) as server:
        inside = Inside(server.connect(), order)
        assert inside.ask(GetStatus()) == Status(State.WAIT_TABLE_LIST)
        inside.start()
        assert inside.ask(GetStatus()) == Status(State.REPLICATING)
        inside.take_all(len(expected))
        assert inside.taken == expected
        assert inside.ask(LastCommitedScn(0), 50) == NoMore()
        assert server.connections == 0


def test_it_confirms_and_goes_back(server: Listener, checkpoint: Checkpoint) -> None:
    inside = Inside(server.connect())
    inside.start()
    sizes = [len(b"".join(messages_of(number))) for number in range(COUNT)]
    inside.take_all(sum(sizes))
    middle = commit_scn_of(99)
    inside.taken.clear()
    assert inside.ask(BackToScn(middle)) is None
    again = next(n for n in range(COUNT) if commit_scn_of(n) > middle)
    inside.take_all(sum(sizes[again:]))
    assert inside.taken == b"".join(b"".join(messages_of(n)) for n in range(again, COUNT))
    last = commit_scn_of(COUNT - 1)
    assert inside.ask(LastCommitedScn(last)) == NoMore()
    assert checkpoint.saved == commit_scn_of(COUNT)
    assert inside.ask(GetSavedScn()) == SavedScn(commit_scn_of(COUNT))


def test_one_client_at_a_time_wherever_it_comes_from(server: Listener) -> None:
    inside = Inside(server.connect())
    inside.start()
    assert replicating(server) == "bundled applier"
    with RawClient(server.address) as outside:
        outside.send(1, b"\1\0\0\0q")
        code, _ = outside.read()
        assert code == 3  # Error
        inside.link.send(inside.client.request(LogOff()))
        inside.link.close()
        # The claim is free again at once, for the port and for a link.
        assert replicating(server) is None
    other = Inside(server.connect())
    other.start()
    third = Inside(server.connect())
    answer = third.ask(TableList("q"))
    assert isinstance(answer, Error)
    assert answer.code == 4008


def test_after_log_off_it_is_broken(server: Listener) -> None:
    inside = Inside(server.connect())
    inside.link.send(inside.client.request(GetStatus()))
    inside.link.send(inside.client.request(LogOff()))
    inside.link.receive(inside.client, lambda: False)
    assert inside.client.next_event() is not None
    with pytest.raises(ConnectionResetError):
        inside.link.receive(inside.client, lambda: False)


def test_the_end_of_the_server_breaks_it(server: Listener) -> None:
    inside = Inside(server.connect())
    inside.start()
    failures: list[Exception] = []

    def converse() -> None:
        try:
            while True:
                inside.ask(LastCommitedScn(0), 3)
        except ConnectionResetError as error:
            failures.append(error)

    thread = threading.Thread(target=converse)
    thread.start()
    server.stop()
    thread.join()
    assert len(failures) == 1
    assert replicating(server) is None
    # One that comes too late, too; and closing twice does nothing.
    late = server.connect()
    with pytest.raises(ConnectionResetError):
        late.send(b"")
    late.close()
    inside.link.close()


def test_what_lies_together_in_the_queue_is_handed_over_as_it_is(checkpoint: Checkpoint) -> None:
    source = MemorySource(1)
    with Listener(source, checkpoint) as server:
        inside = Inside(server.connect())
        inside.start()
        assert source.decoder is not None
        source.decoder.join()
        inside.link.send(inside.client.request(LastCommitedScn(0), 50))
        inside.link.receive(inside.client, lambda: False)
        event = inside.client.next_event()
        assert isinstance(event, Elements)
        assert len(event) == 3
        blob = np.frombuffer(source.transactions[0].blob, np.uint8)
        assert np.shares_memory(event.blob, blob)
