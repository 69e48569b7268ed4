"""A session: the claim, and the order of checkpoint and confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.queue import ReadyQueue
from olr_pg.server.ready import CommitPosition
from olr_pg.server.session import Claim, Session
from olr_pg.server.source import RecoveryPoint
from olr_pg.wire.frames import ByteOrder, encode_frame
from tests.server.ready_one import ready_one

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class StillSource:
    """A source whose decoder does nothing by itself."""

    def __init__(self) -> None:
        self.queue = ReadyQueue()
        self.position = 1000
        self.stops = 0
        self.points: list[RecoveryPoint] = []
        self.told: list[tuple[int, str | None]] = []
        self.images: list[str | None] = []
        self.resumed: list[bool] = []
        self.refusal: OlrPgError | None = None

    def resolve(self, sql: str) -> None:
        if self.refusal is not None:
            raise self.refusal

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        if self.refusal is not None:
            raise self.refusal
        self.images.append(image)
        self.resumed.append(resumed)
        return self.queue

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
    queue.put(ready_one(begin_scn, begin_scn, commit_scn, CommitPosition(1, 1, 1, 1), blob, 2))


@pytest.fixture
def source() -> StillSource:
    return StillSource()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / FILE_NAME, "test")


@pytest.fixture
def session(source: StillSource, checkpoint: Checkpoint) -> Session:
    session = Session(source, checkpoint, Claim(patience=0), "client")
    session.resolve("q")
    session.start(1)
    return session


def test_the_checkpoint_is_the_lowest_begin_scn_not_confirmed(
    session: Session, source: StillSource, checkpoint: Checkpoint
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
    session: Session, source: StillSource, checkpoint: Checkpoint
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


def test_the_image_serves_a_start_at_the_saved_scn_only(
    source: StillSource, checkpoint: Checkpoint
) -> None:
    checkpoint.save(20, "late")
    for scn in (19, 20, 21):
        session = Session(source, checkpoint, Claim(patience=0), "client")
        session.resolve("q")
        session.start(scn)
        session.close()
    assert source.images == [None, "late", None]
    assert source.resumed == [False, True, False]


def test_a_transaction_open_in_the_decoder_holds_the_checkpoint(
    session: Session, source: StillSource, checkpoint: Checkpoint
) -> None:
    source.position = 30
    put(source.queue, 50, 110)
    session.take(0, 9)
    session.take(110, 9)
    assert checkpoint.saved == 30


def test_the_transmitting_transaction_is_not_confirmed(
    session: Session, source: StillSource, checkpoint: Checkpoint
) -> None:
    put(source.queue, 50, 110)
    assert session.take(0, 1).messages == 1
    assert session.take(2**64 - 1, 1).messages == 1
    assert checkpoint.saved is None


def test_a_run_confirms_between_transactions(
    session: Session, source: StillSource, checkpoint: Checkpoint
) -> None:
    for number in range(3):
        put(source.queue, 50 + number, 110 + number)
    # each request confirms what it can: the batch ends with each transaction
    assert [session.take(2**64 - 1, 9).messages for _ in range(4)] == [2, 2, 2, 0]
    assert checkpoint.saved == 1000
    assert source.queue.is_empty()


def test_what_cannot_be_made_durable_is_not_confirmed(
    session: Session, source: StillSource, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    put(source.queue, 50, 110)
    session.take(0, 9)
    obstacle = tmp_path / (FILE_NAME + ".new")
    obstacle.mkdir()
    with pytest.raises(OlrPgError, match="OLR-04013"):
        session.take(110, 1)
    assert source.queue.status().transmitted == 1
    assert session.saved_scn() is None
    obstacle.rmdir()
    assert session.take(110, 1).messages == 0
    assert checkpoint.saved == 1000


def test_back_to_scn_gives_one_message(session: Session, source: StillSource) -> None:
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
    claim = Claim(patience=0)
    first = Session(source, checkpoint, claim, "10.0.0.1:1")
    second = Session(source, checkpoint, claim, "10.0.0.2:2")
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
    claim = Claim(patience=0)
    session = Session(source, checkpoint, claim, "client")
    source.refusal = OlrPgError(4019, "no")
    with pytest.raises(OlrPgError, match="OLR-04019"):
        session.resolve("q")
    assert claim.holder is None
    source.refusal = None
    session.resolve("q")
    session.close()
    assert source.stops == 1


@pytest.mark.parametrize("scn", [2**63, 2**64 - 1])
def test_what_is_not_an_scn_does_not_start(
    scn: int, source: StillSource, checkpoint: Checkpoint
) -> None:
    session = Session(source, checkpoint, Claim(patience=0), "client")
    session.resolve("q")
    with pytest.raises(OlrPgError, match="OLR-04002"):
        session.start(scn)
    assert session.queue is None


def test_the_end_of_a_session_closes_its_queue(session: Session, source: StillSource) -> None:
    session.close()
    assert source.queue.closed
    assert session.queue is None


def test_a_source_that_cannot_stop_leaves_the_claim_to_others(
    source: StillSource, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> None:
        raise OSError(30, "Read-only file system")

    claim = Claim(patience=0)
    session = Session(source, checkpoint, claim, "one")
    session.resolve("q")
    monkeypatch.setattr(source, "stop", stop)
    with pytest.raises(OSError, match="Read-only"):
        session.close()
    Session(source, checkpoint, claim, "two").resolve("q")
