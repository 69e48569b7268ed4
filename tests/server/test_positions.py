"""StartSCN, LastCommitedSCN, BackToSCN, GetSavedSCN and LogOff on a real socket."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from tests.server.test_listener import MemorySource, RawClient, commit_scn_of

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 6
BEGIN = 1
NO_MORE, DATA, SAVED = 2, 4, 6


@pytest.fixture
def server(checkpoint: Checkpoint) -> Iterator[Listener]:
    with Listener(MemorySource(COUNT), checkpoint) as server:
        yield server


def begun_from(scn: int) -> list[int]:
    """The commit SCNs of the transactions that began there or later."""
    runs = MemorySource(COUNT).transactions
    return [one.last_commit_scn for one in runs if one.lowest_begin_scn >= scn]


def refused(client: RawClient, code: int, scn: int) -> int:
    """The code of the error that a request gets."""
    return client.error(code, struct.pack("<Q", scn))


@pytest.mark.parametrize("scn", [10**9, 2**63, 2**64 - 1])
def test_a_start_far_ahead_saves_nothing(server: Listener, scn: int) -> None:
    for _ in range(2):
        with RawClient(server.address) as client:
            client.begin(scn)
            assert client.saved() is None
            for _ in range(3):
                assert client.ask_scn(3, 0) == (NO_MORE, b"")
            assert client.ask_scn(4, 0) == (NO_MORE, b"")
            assert client.saved() is None
    with RawClient(server.address) as client:
        client.begin(client.saved() or 0)
        assert len(client.commits(COUNT)) == COUNT


def test_the_saved_scn_is_the_lowest_begin_of_what_is_not_confirmed(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        first, *_ = client.commits(3)
        assert client.saved() is None
        client.ask_scn(3, first)
        kept = client.saved()
        assert kept is not None
    with RawClient(server.address) as client:
        client.begin(kept + 10**6)
        assert client.saved() == kept
        client.ask_scn(3, 0)
        assert client.saved() == kept
    with RawClient(server.address) as client:
        client.begin(kept)
        expected = begun_from(kept)
        assert 0 < len(expected) <= COUNT
        assert client.commits(len(expected)) == expected


def test_what_was_never_sent_cannot_be_confirmed(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        for scn in (commit_scn_of(COUNT), 10**9, 2**63, 2**64 - 1):
            assert refused(client, 3, scn) == 4051
        first, second = client.commits(2)
        for scn in (second + 1, 10**9, 2**64 - 1):
            assert refused(client, 3, scn) == 4051
        assert client.saved() is None
        assert client.ask(6) == (5, b"\3\0")
        # Nothing changed: both are still there to go back to.
        code, element = client.ask_scn(4, first)
        assert (code, element[0]) == (DATA, BEGIN)
        assert int.from_bytes(element[9:17], "little") == second


def test_a_client_may_bring_what_it_had_from_an_earlier_session(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        *_, last = client.commits(3)  # durable there, and never confirmed
    with RawClient(server.address) as client:
        client.begin()
        code, element = client.ask_scn(3, last)
        assert (code, element[0]) == (DATA, BEGIN)
        rest = client.commits(COUNT, last)
        assert rest[-1] == commit_scn_of(COUNT - 1)


def test_back_to_scn_in_the_middle_of_a_transaction(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        first = client.commits(1)[0]
        begin = client.next(0)
        assert begin[0] == BEGIN
        client.next(0)  # a row of it: it is in transit now
        for scn in (first, 2**64 - 1):
            # The one in transit goes back to its Begin, whatever its commit SCN is.
            assert client.ask_scn(4, scn) == (DATA, begin)
        code, element = client.ask_scn(4, 0)
        assert (code, int.from_bytes(element[9:17], "little")) == (DATA, first)


def test_log_off_ends_the_session_and_leaves_what_is_not_confirmed(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        first, *_ = client.commits(3)
        client.ask_scn(3, first)
        kept = client.saved()
        client.send(7)
        client.send(5)  # LogOff
        client.send(7)  # nobody listens any more
        assert client.read()[0] == SAVED
        assert client.socket.recv(1) == b""
    with RawClient(server.address) as client:
        assert client.saved() == kept
        assert kept is not None
        client.begin(kept)
        expected = begun_from(kept)
        assert client.commits(len(expected)) == expected
