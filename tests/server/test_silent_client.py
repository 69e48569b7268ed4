"""A client that asks for nothing: it is told of, and ended where it takes too long."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from olr_pg.config.port_sections import Limits
from olr_pg.server import listener
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener, Silence
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.port_session import PortSession
from tests.server.test_listener import MemorySource, RawClient, commit_scn_of

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 6
OK = 1


@pytest.fixture
def server(checkpoint: Checkpoint) -> Iterator[Listener]:
    with Listener(MemorySource(COUNT), checkpoint) as server:
        yield server


@pytest.mark.parametrize("asks_for_status", [False, True])
def test_another_client_gets_the_place_of_a_silent_one_and_its_transactions(
    checkpoint: Checkpoint, asks_for_status: bool
) -> None:
    limits = Limits.model_validate({"silent-seconds": 0.5})
    with (
        Listener(MemorySource(COUNT), checkpoint, PortSettings(limits=limits)) as server,
        RawClient(server.address) as silent,
        RawClient(server.address) as other,
    ):
        silent.begin()
        assert len(silent.commits(2)) == 2
        while other.ask(1, b"q") != (OK, b""):
            if asks_for_status:
                with suppress(EOFError, ConnectionError):
                    assert silent.ask(6) == (5, b"\3\0")
        with suppress(ConnectionError):
            while silent.socket.recv(1):
                pass  # what was on its way
        assert other.ask_scn(2, 0) == (OK, b"")
        assert other.commits(COUNT)[0] == commit_scn_of(0)
        assert server.refusals.counts()["OLR-04053"] == 1


def test_a_client_that_is_alone_may_be_silent(checkpoint: Checkpoint) -> None:
    """One that only polls now and then, or applies a large batch, loses no connection."""
    limits = Limits.model_validate({"silent-seconds": 0.01})
    with (
        Listener(MemorySource(COUNT), checkpoint, PortSettings(limits=limits)) as server,
        RawClient(server.address) as client,
    ):
        client.begin()
        assert len(client.commits(2)) == 2
        for _ in range(3):
            server._look_at_silence()
        assert server.refusals.counts() == {}
        assert client.commits(1, commit_scn_of(1)) == [commit_scn_of(2)]


def test_a_client_that_asked_again_keeps_its_place(checkpoint: Checkpoint) -> None:
    """Another one was refused before that, and has gone."""
    limits = Limits.model_validate({"silent-seconds": 0.01})
    with (
        Listener(MemorySource(COUNT), checkpoint, PortSettings(limits=Limits())) as server,
        RawClient(server.address) as client,
    ):
        client.begin()
        with RawClient(server.address) as other:
            assert other.error(1, b"q") == 4008
        assert len(client.commits(2)) == 2
        server.settings = server.settings._replace(limits=limits)
        server._look_at_silence()
        assert server.refusals.counts() == {}
        assert client.commits(1, commit_scn_of(1)) == [commit_scn_of(2)]


def test_a_silent_client_is_told_of_also_without_a_time_out(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "WARN_SECONDS", 0.0)
    limits = Limits.model_validate({"silent-seconds": None})
    with (
        Listener(MemorySource(COUNT), checkpoint, PortSettings(limits=limits)) as server,
        RawClient(server.address) as client,
    ):
        client.begin()
        assert len(client.commits(2)) == 2
        warning = server.silence
        assert warning is not None
        assert warning.code == 4054
        assert warning.where["client"] == "{}:{}".format(*client.socket.getsockname())
        assert "it has not confirmed 2 transactions that it received" in warning.detail
        assert "no SCN is saved" in warning.detail
        assert "no time limit ends its connection" in warning.detail


def test_a_query_that_takes_its_time_is_no_silence(checkpoint: Checkpoint) -> None:
    class Slow(MemorySource):
        def resolve(self, sql: str, _is_abandoned: object = None) -> None:
            asked.set()
            assert may_go_on.wait(60)
            super().resolve(sql)

    asked, may_go_on = threading.Event(), threading.Event()
    with Listener(Slow(COUNT), checkpoint) as server, RawClient(server.address) as client:
        client.send(1, b"q")
        assert asked.wait(60)
        holder = server.replicating
        assert holder is not None
        assert Silence(lambda: holder.asked_at + 1000).seconds(holder) == 0
        may_go_on.set()
        assert client.read() == (OK, b"")


def test_a_silence_is_logged_once(checkpoint: Checkpoint) -> None:
    now = [1000.0]
    watched = Silence(lambda: now[0])
    session = PortSession(
        MemorySource(1), checkpoint, Listener(MemorySource(1), checkpoint)._claim, "p"
    )
    session.asked_at = 1000.0
    with capture_logs() as lines:
        for seconds in (0, 14, 16, 17):
            now[0] = 1000.0 + seconds
            watched.report(session, watched.of(session, 77, None))
        session.asked_at = now[0]
        now[0] += 20
        watched.report(session, watched.of(session, 77, 30.0))
    assert len(lines) == 2
    assert all(line["log_level"] == "warning" for line in lines)
    assert "the saved SCN stays at 77" in lines[0]["reason"]
    assert "another client may take its place after 30 s" in lines[1]["reason"]


def test_the_place_is_the_bundled_applier_s_before_the_port_listens(
    checkpoint: Checkpoint,
) -> None:
    with Listener(MemorySource(COUNT), checkpoint, applier="applier olr_pg") as server:
        for _ in range(2):
            with RawClient(server.address) as stranger:
                assert stranger.error(1, b"select owner, name from t") == 4008
                assert stranger.ask(6) == (5, b"\1\0")
                assert stranger.saved() is None
        link = server.connect()
        link.close()
        with RawClient(server.address) as stranger:
            assert stranger.error(1, b"select owner, name from t") == 4008
