"""What capture says that it does or waits for, on a live source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.capture_state import CaptureMonitor, CapturePhase, CaptureState
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.server.queue import QueueBounds
from olr_pg.spark.session import SparkSettings
from tests.oracle.test_live_run import QUERY, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from olr_pg.server.queue import ReadyQueue
    from tests.oracle.live_source import LiveSource


def test_a_state_keeps_its_beginning() -> None:
    now = 100.0
    monitor = CaptureMonitor(lambda: now)
    assert monitor.state == CaptureState(CapturePhase.WAITING_FOR_CLIENT, 100.0)
    now = 101.0
    gap = OlrPgError(2010, "sequence 7 is not among the logs", thread=1, sequence=7)
    assert monitor.enter(CapturePhase.WAITING_FOR_REDO, gap)
    now = 102.0
    again = OlrPgError(2010, "sequence 7 is not among the logs", thread=1, sequence=7)
    assert not monitor.enter(CapturePhase.WAITING_FOR_REDO, again)
    record = monitor.state.as_record()
    assert (record["state"], record["since"]) == ("WAITING_FOR_REDO", 101.0)
    assert record["reason"]["where"] == {"thread": 1, "sequence": 7}
    later = OlrPgError(2010, "sequence 9 is not among the logs", thread=1, sequence=9)
    assert monitor.enter(CapturePhase.WAITING_FOR_REDO, later)
    assert monitor.state.since == 102.0


def take_all(queue: ReadyQueue) -> None:
    """Transmit and confirm what is ready."""
    while queue.take(1_000_000).messages:
        queue.confirm(1 << 62)


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings(
    # The driver drops the socket of a failed log-on without closing it.
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)
def test_the_phases_of_a_live_source(
    live: LiveSource, shared_session: Callable[[], SparkSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.replicator.spark_decoding.get_session", lambda _: shared_session())
    with live.database() as database:
        delivery = Delivery(
            Decoder(database, SparkSettings()), bounds=QueueBounds(transactions_max=1)
        )
        assert delivery.state.phase is CapturePhase.WAITING_FOR_CLIENT
        delivery.resolve(QUERY)
        queue = delivery.start(0)

        def reaches(*phases: CapturePhase) -> Callable[[], bool]:
            return lambda: delivery.state.phase in phases

        wait_until(reaches(CapturePhase.CAUGHT_UP))
        live.archive()
        wait_until(reaches(CapturePhase.PAUSED_FOR_FLOW_CONTROL))

        def drained() -> bool:
            take_all(queue)
            return delivery.state.phase is CapturePhase.CAUGHT_UP

        wait_until(drained)
        late = live.archive(copied=False)
        wait_until(reaches(CapturePhase.WAITING_FOR_REDO))
        reason = delivery.state.reason
        assert reason is not None
        assert (reason.code, late.name in reason.detail) == (7011, True)
        live.server.refusing = True
        live.server.cut()
        wait_until(reaches(CapturePhase.WAITING_FOR_SOURCE))
        live.server.refusing = False
        live.copy(late)
        wait_until(drained)
        # A client that goes ends the run; decoding waits for the next.
        queue.close()
        delivery.stop()
        assert delivery.state.phase is CapturePhase.WAITING_FOR_CLIENT


@pytest.mark.timeout(900)
def test_what_ends_decoding_is_told_after_the_session(
    live: LiveSource, shared_session: Callable[[], SparkSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.replicator.spark_decoding.get_session", lambda _: shared_session())
    damaged = live.archive()
    copy = live.mount / damaged.name
    data = bytearray(copy.read_bytes())
    data[len(data) // 2] ^= 0xFF
    copy.write_bytes(data)
    with live.database() as database:
        delivery = Delivery(Decoder(database, SparkSettings()))
        delivery.resolve(QUERY)
        queue = delivery.start(0)
        wait_until(lambda: delivery.state.phase is CapturePhase.STOPPED)
        queue.close()
        delivery.stop()
        state = delivery.state
        assert state.phase is CapturePhase.STOPPED
        assert state.reason is not None
        assert state.reason.code == 2005


def test_a_start_whose_redo_is_not_here_yet_has_caught_up_where_it_is_known_to_be_right(
    live: LiveSource,
) -> None:
    """A load's SCN before a log with it is archived; a checkpoint at the end of the redo."""
    ahead = live.state.scn + 100
    with live.database() as database:
        for scn, resumed, phase in (
            (live.state.scn, False, CapturePhase.CAUGHT_UP),
            (ahead, True, CapturePhase.CAUGHT_UP),
            (ahead, False, CapturePhase.WAITING_FOR_REDO),
        ):
            delivery = Delivery(Decoder(database, SparkSettings()))
            delivery.resolve(QUERY)
            queue = delivery.start(scn, resumed=resumed)
            wait_until(lambda: delivery.state.phase is not CapturePhase.WAITING_FOR_CLIENT)  # noqa: B023
            state = delivery.state
            queue.close()
            delivery.stop()
            assert state.phase is phase
    assert state.reason is not None
    assert state.reason.detail == f"SCN {ahead}, no log contains it"
