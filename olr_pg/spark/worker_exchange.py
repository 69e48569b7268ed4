"""The connection between the driver and the workers of its machine: tasks out, results back.

A worker connects to a socket in the spool directory, which only the user of this process can enter,
and says which turn (`handing_out`) it works in. It is sent shares, lists of tasks, one ahead of
what it does, and sends back the cells of each task; an empty share ends its work.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final, Self

from olr_pg.errors import Code, OlrPgError
from olr_pg.spark.result_cells import cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from olr_pg.spark.handing_out import HandingOut
    from olr_pg.spark.result_cells import TaskResult

    Channel = Connection[Any, Any]

_NAME: Final = "tasks"
_WAITING_MAX: Final = 128


class Exchange:
    """The driver's side: serves the workers that connect, each in a thread.

    Args:
        directory: of the socket; the workers know it.
        handing_out: what they are given.
        payloads: of the tasks.

    Raises:
        OSError: the socket cannot be made.
    """

    def __init__(self, directory: Path, handing_out: HandingOut, payloads: Sequence[bytes]) -> None:
        self._handing_out = handing_out
        self._payloads = payloads
        self._lock = threading.Lock()
        self._workers: dict[threading.Thread, socket.socket] = {}
        self._closed = False
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            with _address(directory) as address:
                self._listener.bind(address)
            self._listener.listen(_WAITING_MAX)
        except OSError:
            self._listener.close()
            raise
        self._acceptor = threading.Thread(target=self._accept, name="spark-exchange")
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections: a worker that still has one ends as soon as it asks."""
        self._closed = True
        self._listener.shutdown(socket.SHUT_RDWR)  # ends the wait for the next connection
        self._acceptor.join()
        self._listener.close()
        with self._lock:
            workers = dict(self._workers)
            for connection in workers.values():
                with contextlib.suppress(OSError):  # the worker was faster
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in workers:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if not self._closed:  # no more file descriptors
                    self._handing_out.fail(OlrPgError(Code.SPARK_JOB_FAILED, f"{error.strerror}"))
                return
            thread = threading.Thread(target=self._serve, args=(connection,), name="spark-worker")
            with self._lock:
                self._workers[thread] = connection
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        shares: deque[list[int]] = deque()
        try:
            with _channel(connection) as worker:
                self._converse(worker, shares)
        except (EOFError, OSError):
            pass  # the worker is lost, or not wanted any more; what it had is given back
        finally:
            self._handing_out.give_back(chain.from_iterable(shares))
            with self._lock:
                del self._workers[threading.current_thread()]
                connection.close()

    def _converse(self, worker: Channel, shares: deque[list[int]]) -> None:
        """Give a worker its shares and take its results.

        Args:
            shares: what the worker has at the moment, in order.
        """
        turn: int = worker.recv()
        depth = 2 if self._handing_out.ahead else 1
        while True:
            while len(shares) < depth:
                share = self._handing_out.share(turn, wait=not shares)
                if not share:
                    break
                shares.append(share)
                worker.send([(task, self._payloads[task]) for task in share])
            if not shares:
                worker.send([])
                return
            while shares[0]:
                task, result = worker.recv()
                self._handing_out.put(task, result)
                shares[0].remove(task)
            shares.popleft()


def take_part(directory: Path, turn: int, task: Callable[[bytes, TaskResult], None]) -> None:
    """Do all tasks that a worker is given in a turn.

    Args:
        directory: the spool's, for the socket and for large results.
        turn: its number.
        task: called with a payload and where its result goes.

    Raises:
        OSError: the driver cannot be reached.
    """
    with (
        # Shares are taken in as they come: a driver that waits to send one would take no results.
        ThreadPoolExecutor(1, thread_name_prefix="shares") as receiver,
        _connected(directory) as driver,
        contextlib.suppress(EOFError, ConnectionError),  # the driver wants nothing more
    ):
        driver.send(turn)
        share = driver.recv()
        while share:
            following = receiver.submit(driver.recv)
            for number, payload in share:
                result = list(cells(number, partial(task, payload), str(directory)))
                driver.send((number, result))
            share = following.result()


@contextlib.contextmanager
def _connected(directory: Path) -> Iterator[Channel]:
    with socket.socket(socket.AF_UNIX) as connection:
        with _address(directory) as address:
            connection.connect(address)
        try:
            with _channel(connection) as channel:
                yield channel
        finally:
            with contextlib.suppress(OSError):  # the driver was faster
                connection.shutdown(socket.SHUT_RDWR)  # ends the wait for another share


def _channel(connection: socket.socket) -> Channel:
    return Connection(os.dup(connection.fileno()))


@contextlib.contextmanager
def _address(directory: Path) -> Iterator[str]:
    """Give the socket a short address (unix(7)), however long the directory's name is."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{number}/{_NAME}"
    finally:
        os.close(number)
