"""``olr-pg run --no-apply`` as an external client sees it: raw bytes, one request at a time."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMIT_SCN = 2267708
BEGIN_SCN = 2267707
XID = 10 << 48 | 12 << 32 | 572
QUERY = b"SELECT owner, table_name FROM all_tables WHERE table_name = 'TEST_CDC'"
START_SECONDS = 120.0

NO_MORE = struct.pack("<H", 2)
OK = struct.pack("<H", 1)


class RawClient:
    """Strictly one request, then its answer; nothing of the project's own code."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, code: int, body: bytes = b"") -> bytes:
        self.socket.sendall(struct.pack("<IH", len(body) + 2, code) + body)
        return self._exactly(struct.unpack("<I", self._exactly(4))[0])

    def element(self, code: int, scn: int) -> bytes:
        """The element that answers LastCommitedSCN or BackToSCN, waiting while there is none."""
        while (answer := self.ask(code, struct.pack("<Q", scn))) == NO_MORE:
            time.sleep(0.1)  # the protocol's own pace: NoMore means ask again later
        assert answer[:2] == struct.pack("<H", 4), answer
        return answer[2:]

    def subscribe(self, scn: int) -> None:
        assert self.ask(1, QUERY) == OK
        assert self.ask(2, struct.pack("<Q", scn)) == OK

    def saved_scn(self) -> int | None:
        answer = self.ask(7)
        _, flag, scn = struct.unpack("<HHQ", answer)
        return scn if flag else None

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError("the server closed the connection")
            data += part
        return data


@contextmanager
def served(folder: Path, real: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server on `port`; killed with -9 at the end, as at any point before."""
    config = folder / "serve.json"
    config.write_text(
        json.dumps(
            {
                "context": {"data": str(folder / "data")},
                "source": {
                    "kind": "offline",
                    "dictionary": str(real / "TEST-chkpt-2266634.json"),
                    "logs": str(real / "*.dbf"),
                },
                "target": {"address": f"127.0.0.1:{port}"},
                "spark": {"master": "local[1]"},
            }
        ),
        "utf-8",
    )
    command = [sys.executable, "-m", "olr_pg", "run", "--no-apply", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            assert process.poll() is None, f"the server ended with {process.returncode}"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def check_transaction(begin: bytes, insert: bytes, commit: bytes) -> None:
    assert struct.unpack_from("<BQQQ", begin) == (1, BEGIN_SCN, COMMIT_SCN, XID)
    assert len(begin) == 35
    assert struct.unpack_from("<BQQQ", insert) == (4, BEGIN_SCN, COMMIT_SCN, XID)
    assert struct.unpack_from("<IBBB", insert, 29) == (72726, 8, 8, 18)
    assert insert[36:70] == b"OLR_TESTTEST_CDCAAARwWAAYAAAAAOAAA"
    assert struct.unpack_from("<H", insert, 70)[0] == 2
    assert b"ID\xc1\x02" in insert
    assert insert.endswith(b"NAMEhello world")
    assert struct.unpack_from("<BQQQ", commit) == (2, COMMIT_SCN, COMMIT_SCN, XID)
    assert len(commit) == 29


@pytest.mark.timeout(900)  # four servers, three of which start Spark
def test_a_raw_client_and_a_server_that_is_killed_at_every_step(
    tmp_path: Path, real_log_dir: Path, port: int
) -> None:
    with served(tmp_path, real_log_dir, port), RawClient(port) as client:
        assert client.saved_scn() is None
        client.subscribe(0)
        begin = client.element(3, 0)
        insert = client.element(3, 0)
        # In the middle of the transaction: it starts again with its Begin.
        assert client.element(4, 0) == begin
        assert client.element(3, 0) == insert
    # Killed before the Commit was taken: nothing was confirmed.
    with served(tmp_path, real_log_dir, port), RawClient(port) as client:
        saved = client.saved_scn() or 0
        assert saved <= BEGIN_SCN
        client.subscribe(saved)
        whole = [client.element(3, 0) for _ in range(3)]
        check_transaction(*whole)
        assert whole[:2] == [begin, insert]
    # Killed before the Commit was confirmed: delivered again, then confirmed.
    with served(tmp_path, real_log_dir, port), RawClient(port) as client:
        saved = client.saved_scn() or 0
        assert saved <= BEGIN_SCN
        client.subscribe(saved)
        assert [client.element(3, 0) for _ in range(3)] == whole
        assert client.ask(3, struct.pack("<Q", COMMIT_SCN)) == NO_MORE
        confirmed = client.saved_scn()
        assert confirmed is not None
        assert confirmed > BEGIN_SCN
    # Killed after the confirmation: it is not lost.
    with served(tmp_path, real_log_dir, port), RawClient(port) as client:
        assert client.saved_scn() == confirmed
        assert client.ask(5 + 1) == struct.pack("<HH", 5, 1)
