"""StartSCN, LastCommitedSCN, BackToSCN, GetSavedSCN and LogOff on a real socket."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.listener import Listener
from tests.server.test_listener import MemorySource, RawClient, commit_scn_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNT = 6
BEGIN, COMMIT = 1, 2
OK, NO_MORE, ERROR, DATA, SAVED = 1, 2, 3, 4, 6


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / FILE_NAME, "test")


@pytest.fixture
def server(checkpoint: Checkpoint) -> Iterator[Listener]:
    with Listener(MemorySource(COUNT), checkpoint) as server:
        yield server


def saved(client: RawClient) -> int | None:
    """What GetSavedSCN answers."""
    code, body = client.ask(7)
    assert code == SAVED
    flag, scn = struct.unpack("<HQ", body)
    assert flag in (0, 1)
    return scn if flag else None


def commits(client: RawClient, count: int, confirmed: int = 0) -> list[int]:
    """Take so many whole transactions; their commit SCNs."""
    found: list[int] = []
    while len(found) < count:
        element = client.next(confirmed)
        if element[0] == COMMIT:
            found.append(int.from_bytes(element[9:17], "little"))
    return found


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
            assert saved(client) is None
            for _ in range(3):
                assert client.ask_scn(3, 0) == (NO_MORE, b"")
            assert client.ask_scn(4, 0) == (NO_MORE, b"")
            assert saved(client) is None
    with RawClient(server.address) as client:
        client.begin(saved(client) or 0)
        assert len(commits(client, COUNT)) == COUNT


def test_the_saved_scn_is_the_lowest_begin_of_what_is_not_confirmed(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        first, *_ = commits(client, 3)
        assert saved(client) is None
        client.ask_scn(3, first)
        kept = saved(client)
        assert kept is not None
    with RawClient(server.address) as client:
        client.begin(kept + 10**6)
        assert saved(client) == kept
        client.ask_scn(3, 0)
        assert saved(client) == kept
    with RawClient(server.address) as client:
        client.begin(kept)
        expected = begun_from(kept)
        assert 0 < len(expected) <= COUNT
        assert commits(client, len(expected)) == expected


def test_what_was_never_sent_cannot_be_confirmed(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        for scn in (commit_scn_of(COUNT), 10**9, 2**63, 2**64 - 1):
            assert refused(client, 3, scn) == 4051
        first, second = commits(client, 2)
        for scn in (second + 1, 10**9, 2**64 - 1):
            assert refused(client, 3, scn) == 4051
        assert saved(client) is None
        assert client.ask(6) == (5, b"\3\0")
        # Nothing changed: both are still there to go back to.
        code, element = client.ask_scn(4, first)
        assert (code, element[0]) == (DATA, BEGIN)
        assert int.from_bytes(element[9:17], "little") == second


def test_a_client_may_bring_what_it_had_from_an_earlier_session(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        *_, last = commits(client, 3)  # durable there, and never confirmed
    with RawClient(server.address) as client:
        client.begin()
        code, element = client.ask_scn(3, last)
        assert (code, element[0]) == (DATA, BEGIN)
        rest = commits(client, COUNT, last)
        assert rest[-1] == commit_scn_of(COUNT - 1)


def test_back_to_scn_in_the_middle_of_a_transaction(server: Listener) -> None:
    with RawClient(server.address) as client:
        client.begin()
        first = commits(client, 1)[0]
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
        first, *_ = commits(client, 3)
        client.ask_scn(3, first)
        kept = saved(client)
        client.send(7)
        client.send(5)  # LogOff
        client.send(7)  # nobody listens any more
        assert client.read()[0] == SAVED
        assert client.socket.recv(1) == b""
    with RawClient(server.address) as client:
        assert saved(client) == kept
        assert kept is not None
        client.begin(kept)
        expected = begun_from(kept)
        assert commits(client, len(expected)) == expected
