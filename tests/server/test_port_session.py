"""A session: the claim, and the order of checkpoint and confirmation.

The link from inside the server's process: what the port gives, without the port.

Which recovery image may take the place of the redo before it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from structlog.testing import capture_logs

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.port_session import PortSession, RecoveryPoint, ReplicationClaim
from olr_pg.server.queue import ReadyQueue
from olr_pg.wire.frames import ByteOrder, encode_frame
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
from olr_pg.wire.protocol import ClientProtocol, Elements, Reply
from tests.advice import followed
from tests.server.ready_one import ready_one
from tests.server.test_listener import MemorySource, RawClient, commit_scn_of, messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.server.port_session import InsideLink
    from olr_pg.wire.messages import Answer


class StillSource:
    """A source whose decoder does nothing by itself."""

    def __init__(self) -> None:
        self.queue = ReadyQueue()
        self.position = 1000
        self.reach = 1000
        self.stops = 0
        self.points: list[RecoveryPoint] = []
        self.told: list[tuple[int, str | None]] = []
        self.images: list[str | None] = []
        self.started: list[int] = []
        self.resumed: list[bool] = []
        self.refusal: OlrPgError | None = None

    def resolve(self, sql: str, _is_abandoned: object = None) -> None:
        if self.refusal is not None:
            raise self.refusal

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        if self.refusal is not None:
            raise self.refusal
        self.started.append(scn)
        self.images.append(image)
        self.resumed.append(resumed)
        return self.queue

    def reach_scn(self) -> int:
        return self.reach

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        return self.points

    def saved(self, scn: int, image: str | None) -> None:
        self.told.append((scn, image))

    def open_scn(self) -> int:
        return self.position

    def stop(self) -> None:
        self.stops += 1


def put(queue: ReadyQueue, begin_scn: int, commit_scn: int) -> None:
    blob = encode_frame(b"\4\0x", ByteOrder.LITTLE) * 2
    queue.put(ready_one(begin_scn, begin_scn, commit_scn, CommitPosition(0, 1, 1, 1, 1), blob, 2))


@pytest.fixture
def source() -> StillSource:
    return StillSource()


def subscribed(
    source: StillSource, checkpoint: Checkpoint, sql: str = "q", applier: str | None = None
) -> PortSession:
    session = PortSession(
        source, checkpoint, ReplicationClaim(patience=0), "client", applier=applier
    )
    session.resolve(sql)
    return session


def started(
    source: StillSource,
    checkpoint: Checkpoint,
    scn: int,
    sql: str = "q",
    applier: str | None = None,
) -> PortSession:
    session = subscribed(source, checkpoint, sql, applier)
    session.start(scn)
    return session


@pytest.fixture
def session(source: StillSource, checkpoint: Checkpoint) -> PortSession:
    return started(source, checkpoint, 1)


def test_the_checkpoint_is_the_lowest_begin_scn_not_confirmed(
    session: PortSession, source: StillSource, checkpoint: Checkpoint
) -> None:
    for begin_scn, commit_scn in ((50, 110), (40, 120), (90, 130), (95, 140)):
        put(source.queue, begin_scn, commit_scn)
    assert session.take(0, 6).messages == 6
    assert session.saved_scn() is None
    assert session.take(110, 1).messages == 1
    assert checkpoint.saved == 40
    session.take(120, 1)
    assert checkpoint.saved == 90
    session.take(130, 1)
    assert checkpoint.saved == 95
    session.take(140, 1)
    assert checkpoint.saved == 1000
    source.position = 1500
    session.take(140, 1)  # idle: the decoder's progress moves it
    assert checkpoint.saved == 1500
    assert session.saved_scn() == 1500


def test_an_image_is_named_once_what_is_not_in_it_is_confirmed(
    session: PortSession, source: StillSource, checkpoint: Checkpoint
) -> None:
    for begin_scn, commit_scn in ((50, 110), (60, 120), (125, 130)):
        put(source.queue, begin_scn, commit_scn)
    source.position = 20  # a transaction that is open for long
    source.points = [
        RecoveryPoint("early", 110, 112),
        RecoveryPoint("late", 120, 122),
        RecoveryPoint("behind", 130, 133),
    ]
    session.take(0, 9)
    session.take(109, 1)
    assert (checkpoint.saved, checkpoint.image) == (None, None)
    session.take(110, 1)
    assert (checkpoint.saved, checkpoint.image) == (20, "early")
    session.take(120, 1)
    assert (checkpoint.saved, checkpoint.image) == (20, "late")
    assert source.told == [(20, "early"), (20, "late")]
    # The transaction is over: nothing before the image is wanted any more.
    source.position = 1000
    session.take(129, 1)
    session.take(130, 1)
    assert (checkpoint.saved, checkpoint.image) == (1000, None)


@pytest.mark.parametrize("declines", [False, True])
@pytest.mark.parametrize("start_scn", [39, 40, 41])
@pytest.mark.parametrize("who", ["bundled", "query", "another query"])
@pytest.mark.parametrize("saved_by", ["bundled", "query", "another query", None])
def test_an_image_serves_only_whoever_confirmed_what_is_before_it(
    source: StillSource,
    checkpoint: Checkpoint,
    saved_by: str | None,
    who: str,
    start_scn: int,
    declines: bool,
) -> None:
    """The same SCN is no proof: one transaction that is open for long keeps it for all clients."""

    def session_of(client: str) -> PortSession:
        applier = "applier" if client == "bundled" else None
        return subscribed(source, checkpoint, client, applier)

    checkpoint.save(40, "image", None)
    if saved_by is not None:
        put(source.queue, 45, 110)
        source.position, source.points = 40, [RecoveryPoint("image", 110, 112)]
        first = session_of(saved_by)
        first.start(40)
        first.take(0, 9)
        first.take(110, 1)
        first.close()
    assert (checkpoint.saved, checkpoint.image) == (40, "image")
    source.queue = ReadyQueue()
    session = session_of(who)
    if declines:
        session.decline_image()
    session.start(start_scn)
    expected = "image" if start_scn == 40 and who == saved_by and not declines else None
    assert source.images[-1] == expected
    assert source.resumed[-1] == (start_scn == 40)


def test_a_transaction_open_in_the_decoder_holds_the_checkpoint(
    session: PortSession, source: StillSource, checkpoint: Checkpoint
) -> None:
    source.position = 30
    put(source.queue, 50, 110)
    session.take(0, 9)
    session.take(110, 9)
    assert checkpoint.saved == 30


def test_the_transmitting_transaction_is_not_confirmed(
    session: PortSession, source: StillSource, checkpoint: Checkpoint
) -> None:
    put(source.queue, 50, 110)
    assert session.take(0, 1).messages == 1
    assert session.take(110, 1).messages == 1
    assert checkpoint.saved is None


@pytest.mark.parametrize(
    ("sql", "scn", "applier", "is_told"),
    [("q", 1000, None, False), ("other", 1000, None, True), ("other", 0, None, False),
     ("other", 1000, "applier", False)],
)  # fmt: skip
def test_the_log_says_that_others_tables_were_confirmed(
    source: StillSource, checkpoint: Checkpoint, sql: str, scn: int, applier: str | None,
    *, is_told: bool,
) -> None:  # fmt: skip
    with capture_logs() as logs:
        first = started(source, checkpoint, 1)  # nobody has confirmed anything yet
        put(source.queue, 50, 110)
        first.take(0, 2)
        first.take(110, 1)
        assert checkpoint.saved == 1000
        first.close()
        source.queue = ReadyQueue()
        started(source, checkpoint, scn, sql, applier)
    event = "this client's list of tables differs from the list of the client that confirmed last"
    told = [(one["start_scn"], one["saved_scn"]) for one in logs if one["event"] == event]
    assert told == ([(scn, 1000)] if is_told else [])


def test_a_run_confirms_between_transactions(
    session: PortSession, source: StillSource, checkpoint: Checkpoint
) -> None:
    for number in range(3):
        put(source.queue, 50 + number, 110 + number)
    # each request confirms what it can: the batch ends with each transaction
    assert [session.take(500, 9).messages for _ in range(4)] == [2, 2, 2, 0]
    assert checkpoint.saved == 1000
    assert source.queue.is_empty()


def test_what_cannot_be_made_durable_is_not_confirmed(
    session: PortSession, source: StillSource, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    put(source.queue, 50, 110)
    session.take(0, 9)
    obstacle = tmp_path / (FILE_NAME + ".new")
    obstacle.mkdir()
    with pytest.raises(OlrPgError, match="OLR-04013"):
        session.take(110, 1)
    assert source.queue.status().transmitted == 1
    assert session.saved_scn() is None
    assert checkpoint.failure is not None  # for the status: the client need not say anything
    assert checkpoint.failure.code == 4013
    obstacle.rmdir()
    assert session.take(110, 1).messages == 0
    assert checkpoint.saved == 1000
    assert checkpoint.failure is None


def test_back_to_scn_gives_one_message(session: PortSession, source: StillSource) -> None:
    assert session.rewind(0).messages == 0
    put(source.queue, 50, 110)
    put(source.queue, 51, 111)
    session.take(0, 9)
    assert session.rewind(111).messages == 0
    assert session.rewind(110).messages == 1
    assert source.queue.status().transmitting == 1


def test_a_second_session_is_refused_until_the_first_ends(
    source: StillSource, checkpoint: Checkpoint
) -> None:
    claim = ReplicationClaim(patience=0)
    first = PortSession(source, checkpoint, claim, "10.0.0.1:1")
    second = PortSession(source, checkpoint, claim, "10.0.0.2:2")
    first.resolve("q")
    with pytest.raises(OlrPgError, match=r"10\.0\.0\.1:1") as caught:
        second.resolve("q")
    assert caught.value.code == 4008
    assert second.saved_scn() is None
    second.close()
    assert source.stops == 0
    first.close()
    first.close()
    assert source.stops == 1
    second.resolve("q")
    assert claim.holder is second


def test_a_refused_subscription_leaves_the_claim_free(
    source: StillSource, checkpoint: Checkpoint
) -> None:
    claim = ReplicationClaim(patience=0)
    session = PortSession(source, checkpoint, claim, "client")
    source.refusal = OlrPgError(4019, "no")
    with pytest.raises(OlrPgError, match="OLR-04019"):
        session.resolve("q")
    assert claim.holder is None
    source.refusal = None
    session.resolve("q")
    session.close()
    assert source.stops == 1


@pytest.mark.parametrize("scn", [2**63, 2**64 - 1])
def test_an_scn_may_have_64_bits(scn: int, source: StillSource, checkpoint: Checkpoint) -> None:
    session = subscribed(source, checkpoint)
    session.start(scn)
    assert session.queue is source.queue
    assert source.started == [scn]


def test_the_end_of_a_session_closes_its_queue(session: PortSession, source: StillSource) -> None:
    session.close()
    assert source.queue.closed
    assert session.queue is None


def test_a_source_that_cannot_stop_leaves_the_claim_to_others(
    source: StillSource, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> None:
        raise OSError(30, "Read-only file system")

    claim = ReplicationClaim(patience=0)
    session = PortSession(source, checkpoint, claim, "one")
    session.resolve("q")
    monkeypatch.setattr(source, "stop", stop)
    with pytest.raises(OSError, match="Read-only"):
        session.close()
    PortSession(source, checkpoint, claim, "two").resolve("q")


@pytest.mark.parametrize("start", [0, 5, 10**9, 2**63, 2**64 - 1])
@pytest.mark.parametrize("saved", [None, 100])
def test_who_confirms_nothing_moves_nothing(
    source: StillSource, checkpoint: Checkpoint, saved: int | None, start: int
) -> None:
    if saved is not None:
        checkpoint.save(saved, None, "somebody else")
    session = started(source, checkpoint, start)
    source.position = max(start, source.position)
    for _ in range(3):
        assert session.take(0, 1).messages == 0
        assert session.saved_scn() == saved
        source.position += 1000
    put(source.queue, 1100, 1110)
    assert session.take(0, 1).messages == 1
    session.rewind(0)
    session.close()
    assert Checkpoint(checkpoint.path, "test").saved == saved
    assert source.told == []


def test_who_starts_ahead_moves_nothing_by_confirming(
    source: StillSource, checkpoint: Checkpoint
) -> None:
    checkpoint.save(100)
    session = started(source, checkpoint, 101)
    put(source.queue, 150, 200)
    session.take(0, 9)
    assert session.take(200, 1).messages == 0
    assert source.queue.is_empty()
    source.position = 2000
    session.take(200, 1)
    assert checkpoint.saved == 100
    assert session.ahead is not None
    followed(
        session.ahead, Code.CLIENT_AHEAD, "Start a client at the SCN that GetSavedSCN returns",
        "let it confirm them without using them",
    )  # fmt: skip
    session.close()
    # Whoever starts there gets what was passed over.
    source.queue = ReadyQueue()
    session = started(source, checkpoint, 100)
    assert session.ahead is None
    put(source.queue, 110, 120)
    put(source.queue, 150, 200)
    session.take(0, 9)
    session.take(200, 1)
    assert checkpoint.saved == 2000


def test_a_confirmation_of_who_starts_further_back_lowers_it(
    source: StillSource, checkpoint: Checkpoint
) -> None:
    checkpoint.save(500, None, "somebody else")
    session = started(source, checkpoint, 20)
    for begin_scn, commit_scn in ((30, 110), (40, 120)):
        put(source.queue, begin_scn, commit_scn)
    session.take(0, 9)
    assert checkpoint.saved == 500
    session.take(110, 1)
    assert checkpoint.saved == 40
    session.take(120, 1)
    assert checkpoint.saved == 1000


class TestQuietTime:
    """The decoder's progress is the client's, where there is nothing to confirm."""

    def test_after_a_confirmation(self, source: StillSource, checkpoint: Checkpoint) -> None:
        checkpoint.save(50)
        session = started(source, checkpoint, 50)
        put(source.queue, 60, 110)
        session.take(0, 9)
        session.take(110, 1)
        source.position = 3000
        session.take(110, 1)
        assert checkpoint.saved == 3000

    def test_of_the_same_tables_over_a_restart(
        self, source: StillSource, checkpoint: Checkpoint
    ) -> None:
        session = started(source, checkpoint, 50)
        put(source.queue, 60, 110)
        session.take(0, 9)
        session.take(110, 1)
        session.close()
        again, source = Checkpoint(checkpoint.path, "test"), StillSource()
        session = started(source, again, 1000)
        source.position = 3000
        session.take(0, 1)
        assert again.saved == 3000
        session.close()
        source = StillSource()
        session = started(source, again, 3000, "another query")
        source.position = 4000
        session.take(0, 1)
        assert again.saved == 3000

    def test_it_never_falls(self, source: StillSource, checkpoint: Checkpoint) -> None:
        session = started(source, checkpoint, 0, "q", "applier")
        source.position = 900
        session.take(0, 1)
        assert checkpoint.saved == 900
        session.close()
        session = started(source, checkpoint, 10, "q", "applier")
        source.position = 10
        session.take(0, 1)
        assert checkpoint.saved == 900

    def test_the_start_of_the_bundled_applier_is_not_written(
        self, source: StillSource, checkpoint: Checkpoint
    ) -> None:
        session = started(source, checkpoint, 700, "q", "applier")
        source.position = 700
        session.take(0, 1)
        assert session.saved_scn() is None
        source.position = 701
        session.take(0, 1)
        assert checkpoint.saved == 701
        assert checkpoint.confirmed_by == "applier"

    def test_an_image_is_named_where_the_scn_stays(
        self, source: StillSource, checkpoint: Checkpoint
    ) -> None:
        checkpoint.save(40, None, "applier")
        session = started(source, checkpoint, 40, "q", "applier")
        source.position, source.points = 40, [RecoveryPoint("late", 120, 122)]
        session.take(0, 1)
        assert (checkpoint.saved, checkpoint.image) == (40, "late")


class TestWhatWasNeverSent:
    """Its confirmation is refused and changes nothing."""

    def test_is_refused(
        self, session: PortSession, source: StillSource, checkpoint: Checkpoint
    ) -> None:
        for begin_scn, commit_scn in ((50, 110), (60, 120)):
            put(source.queue, begin_scn, commit_scn)
        assert session.take(0, 2).messages == 2
        for scn in (111, 120, 10**9, 2**63, 2**64 - 1):
            with pytest.raises(OlrPgError, match="OLR-04051"):
                session.take(scn, 1)
        assert source.queue.status().transmitted == 1
        assert checkpoint.saved is None
        # It goes on where it was.
        assert session.take(110, 1).messages == 1
        assert checkpoint.saved == 60

    def test_also_before_anything_was_sent(
        self, session: PortSession, source: StillSource, checkpoint: Checkpoint
    ) -> None:
        for scn in (1001, 2**64 - 1):
            with pytest.raises(OlrPgError, match="nothing was sent yet"):
                session.take(scn, 1)
        assert checkpoint.saved is None

    def test_what_an_earlier_session_was_sent_may_be_brought(
        self, session: PortSession, source: StillSource
    ) -> None:
        assert session.take(500, 1).messages == 0
        for begin_scn, commit_scn in ((50, 110), (60, 600)):
            put(source.queue, begin_scn, commit_scn)
        assert session.take(500, 2).messages == 2
        assert session.take(500, 1).messages == 1
        assert source.queue.status().transmitted == 0
        with pytest.raises(OlrPgError, match="OLR-04051"):
            session.take(601, 1)

    def test_the_one_in_transit_counts_as_sent(
        self, session: PortSession, source: StillSource
    ) -> None:
        put(source.queue, 50, 110)
        assert session.take(0, 1).messages == 1
        assert session.take(109, 1).messages == 1


def test_the_place_of_the_bundled_applier_is_kept(
    source: StillSource, checkpoint: Checkpoint
) -> None:
    claim = ReplicationClaim(patience=3600, is_kept=True)
    stranger = PortSession(source, checkpoint, claim, "stranger")
    own = PortSession(source, checkpoint, claim, "own", applier="applier")
    for _ in range(2):
        with pytest.raises(OlrPgError, match="bundled applier") as caught:
            stranger.resolve("q")
        assert caught.value.code == 4008
        own.resolve("q")
        assert claim.holder is own
    own.close()
    with pytest.raises(OlrPgError, match="OLR-04008"):
        stranger.resolve("q")


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


POINT = RecoveryPoint("image", commit_scn=100, read_scn=90, whole_scn=20)


@pytest.mark.parametrize(
    ("start_scn", "unconfirmed_scn", "serves"),
    [
        (50, None, True),
        (50, 101, True),
        (50, 100, False),
        (19, None, False),
        (20, None, True),
        (89, None, True),
        (90, None, False),
    ],
    ids=[
        "all is confirmed",
        "what is not confirmed commits behind it",
        "something in front of it is not confirmed",
        "a transaction may lack its begin",
        "the first that has its begin",
        "there is redo to save",
        "the start lies behind it",
    ],
)
def test_an_image_serves_whom_nothing_is_lacking(
    start_scn: int, unconfirmed_scn: int | None, serves: bool
) -> None:
    assert POINT.serves(start_scn, unconfirmed_scn) is serves
