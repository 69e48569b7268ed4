"""Driver and workers over a real socket; the workers are threads here."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.spark.handing_out import HandingOut, Portions
from olr_pg.spark.result_cells import INLINE_MAX, TaskResult, result
from olr_pg.spark.result_files import Spool
from olr_pg.spark.worker_exchange import Exchange, take_part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(str(tmp_path), kept=2)
    yield spool
    spool.remove()


def begun(portions: Portions, width: int = 2) -> HandingOut:
    handing_out = HandingOut(portions, width, lambda _: None)
    handing_out.start()
    return handing_out


def repeat(payload: bytes, to: TaskResult) -> None:
    to.write(payload * 3)


def all_results(handing_out: HandingOut, count: int, spool: Spool) -> Iterator[bytes]:
    for task in range(count):
        yield bytes(result(task, handing_out.result(task), spool))
        handing_out.taken(task)


def finished(handing_out: HandingOut, count: int, spool: Spool) -> list[bytes]:
    """All results; workers come until they are there, as the driver has to see who is lost."""
    with ThreadPoolExecutor(1) as threads:
        results = threads.submit(list, all_results(handing_out, count, spool))
        while not results.done():
            take_part(spool.directory, 1, repeat)
        return results.result()


def connection_to(spool: Spool) -> Connection[Any, Any]:
    """A worker that does not keep to what was agreed."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(spool.directory / "tasks"))
        return Connection(os.dup(connection.fileno()))


def test_workers_do_all_tasks(spool: Spool) -> None:
    payloads = [b"%d" % number for number in range(50)]
    handing_out = begun(Portions([7] * 50, 30, 1_000, ahead=True))
    with Exchange(spool.directory, handing_out, payloads), ThreadPoolExecutor(2) as threads:
        workers = [threads.submit(take_part, spool.directory, 1, repeat) for _ in range(2)]
        assert list(all_results(handing_out, 50, spool)) == [payload * 3 for payload in payloads]
        for worker in workers:
            worker.result()


def test_what_a_lost_worker_had_is_done_by_another(spool: Spool) -> None:
    payloads = [b"%d" % number for number in range(9)]
    handing_out = begun(Portions([1] * 9, 2, 1_000, ahead=True))
    with Exchange(spool.directory, handing_out, payloads):
        with connection_to(spool) as lost:
            lost.send(1)
            assert [lost.recv(), lost.recv()] == [[(0, b"0"), (1, b"1")], [(2, b"2")]]
        assert finished(handing_out, 9, spool) == [payload * 3 for payload in payloads]


def test_neither_side_waits_for_the_other_to_read(spool: Spool) -> None:
    """Payloads and results are larger than what a socket takes before somebody reads."""
    payloads = [bytes([number]) * 80_000 for number in range(40)]
    handing_out = begun(Portions([1] * 40, 10, 1_000, ahead=True), width=1)
    with Exchange(spool.directory, handing_out, payloads), ThreadPoolExecutor(1) as threads:
        assert INLINE_MAX > 3 * 80_000, "the results go over the socket"
        worker = threads.submit(take_part, spool.directory, 1, repeat)
        assert list(all_results(handing_out, 40, spool)) == [payload * 3 for payload in payloads]
        worker.result()


def test_a_directory_may_have_a_long_name(tmp_path: Path) -> None:
    parent = tmp_path / ("long" * 50)
    parent.mkdir()
    spool = Spool(str(parent), kept=2)
    handing_out = begun(Portions.of(1, None, 1))
    with Exchange(spool.directory, handing_out, [b"7"]):
        take_part(spool.directory, 1, repeat)
        assert list(all_results(handing_out, 1, spool)) == [b"777"]


def test_a_worker_ends_when_the_driver_wants_no_more(spool: Spool) -> None:
    handing_out = begun(Portions.of(5, None, 1), width=1)
    done = threading.Semaphore(0)

    def counted(payload: bytes, to: TaskResult) -> None:
        repeat(payload, to)
        done.release()

    with ThreadPoolExecutor(1) as threads:
        with Exchange(spool.directory, handing_out, [b"7"] * 5):
            worker = threads.submit(take_part, spool.directory, 1, counted)
            for _ in range(2):  # then the worker waits for room
                done.acquire()
            handing_out.close()
        worker.result()


def test_a_task_that_ends_its_worker_is_given_back(spool: Spool) -> None:
    def ends(payload: bytes, to: TaskResult) -> None:
        raise SystemExit(payload.decode())

    handing_out = begun(Portions([1] * 3, 1, 10, ahead=True))
    with Exchange(spool.directory, handing_out, [b"5", b"6", b"7"]):
        with pytest.raises(SystemExit, match="5"):
            take_part(spool.directory, 1, ends)
        assert finished(handing_out, 3, spool) == [b"555", b"666", b"777"]


def test_a_worker_of_no_driver_fails(spool: Spool) -> None:
    with Exchange(spool.directory, begun(Portions.of(1, None, 1)), [b"7"]):
        pass
    with pytest.raises(OSError, match="refused"):
        take_part(spool.directory, 1, repeat)
