"""Decodes splits in processes on this host: ``olr-pg decode --jobs``.

The processes are forked from this process before it starts threads, and after it has compiled the
kernels if they are not on disk. A process returns the result of a split in shared memory
(`olr_pg.files.shared_rooms`), or in a file if the result is too large
(`olr_pg.files.result_files`). If text lines are requested, the processes also render the
transactions that are complete within a split, so that this process has little left to do. A
transaction that cannot be rendered stays packed, so that its error is raised at its position.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import lru_cache, partial
from itertools import count
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.decoding.split import SplitResult, decode_whole
from olr_pg.decoding.split_results import read_result, write_result, write_split
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.result_files import ResultFile, ResultFiles, result_lost
from olr_pg.files.shared_rooms import RoomResult, SharedRooms
from olr_pg.ordered_window import in_order
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.kernel_warmup import is_compiled, warm_kernels
from olr_pg.wire.room_filling import Form

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from concurrent.futures import Future

    from olr_pg.decoding.split import Encoded, Split, Subscription
    from olr_pg.dictionary.model import Database
    from olr_pg.files.result_files import Result

_NO_ROOM: Final = memoryview(b"")

_AHEAD: Final = 2
"""Number of pending splits per process. With more than one, a process need not wait for its next
split.
"""


class ProcessDecoding:
    """Decodes splits in several processes. It is a context manager, which ends the processes.

    Args:
        jobs: the number of processes.
        lines_of: the database whose changes are rendered as text lines; None to return packed
            transactions instead.
        with_names: as for `decode_split`.
        parent: the directory in which results are stored; None for the system's temporary
            directory.
    """

    def __init__(
        self,
        jobs: int,
        *,
        lines_of: Database | None = None,
        with_names: bool = False,
        parent: str | None = None,
    ) -> None:
        is_lines = lines_of is not None
        if not is_compiled(lines=is_lines):
            # Otherwise each process loads the kernels that it needs, at the same time.
            warm_kernels(lines=is_lines)
        self._jobs = jobs
        self._subscriptions = 0
        self._tasks = count()
        try:
            self._folder = tempfile.mkdtemp(prefix="olr-pg-decode-", dir=parent)
        except OSError as error:
            raise result_lost(error, directory=parent or tempfile.gettempdir()) from error
        self._results = ResultFiles(self._folder, _AHEAD * jobs)
        directory = str(self._results.directory)
        self._rooms = SharedRooms((_AHEAD + 1) * jobs)  # results can wait
        self._pool = ProcessPoolExecutor(
            jobs,
            multiprocessing.get_context("fork"),
            _begin,
            (directory, self._rooms, lines_of, with_names),
        )
        self._pool.submit(os.getpid)  # the first task forks all processes

    def __enter__(self) -> ProcessDecoding:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes after their current splits, and delete their results."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._results.remove()
        shutil.rmtree(self._folder, ignore_errors=True)

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of the splits, in order. To cancel pending splits, close the generator.

        Raises:
            OlrPgError: 2002 to 2008 errors of the log, 6006 there is no space for results, 9210 a
                process has ended unexpectedly.
        """
        stored = self._stored(subscription)
        tasks = (_Task(next(self._tasks), split, stored, self._rooms.lend()) for split in splits)
        decoded = in_order(tasks, self._submit, _AHEAD * self._jobs, self._give_up)
        try:
            with closing(decoded):
                for task, size in decoded:
                    yield read_result(self._result(task, size))
        except BrokenProcessPool as error:
            raise OlrPgError(
                Code.DECODING_PROCESS_ENDED, f"one of {self._jobs} decoding processes"
            ) from error

    def _stored(self, subscription: Subscription) -> str:
        self._subscriptions += 1
        path = self._results.directory / f"subscription-{self._subscriptions}"
        path.write_bytes(pickle.dumps(subscription))
        return str(path)

    def _submit(self, task: _Task) -> Future[int | None]:
        return self._pool.submit(_decode, task)

    def _result(self, task: _Task, size: int | None) -> Result:
        """Return the result of a task. It is in shared memory if `size` is given, otherwise in a
        file.
        """
        if size is not None and task.room is not None:
            return self._rooms.result(task.room, size)
        self._give_back(task)
        found = self._results.take(task.number)
        assert found is not None  # the worker process has reported it
        return found[1]

    def _give_back(self, task: _Task) -> None:
        if task.room is not None:
            self._rooms.give_back(task.room)

    def _give_up(self, task: _Task, done: Future[int | None]) -> None:
        """Release the shared memory, or the file, of a result that is no longer needed."""

        def release(ended: Future[int | None]) -> None:
            self._give_back(task)
            if not ended.cancelled() and ended.exception() is None and ended.result() is None:
                self._results.take(task.number)

        done.cancel()
        done.add_done_callback(release)


class _Task(NamedTuple):
    """A split that a process decodes.

    Attributes:
        stored: the file with the subscription.
        room: the number of the shared memory for the result; None if all shared memory is in use.
    """

    number: int
    split: Split
    stored: str
    room: int | None


class _Worker(NamedTuple):
    """The objects that a process needs for its tasks."""

    directory: str
    rooms: SharedRooms
    lines: PackedLines | None
    with_names: bool


_worker: _Worker | None = None


def _begin(directory: str, rooms: SharedRooms, lines_of: Database | None, with_names: bool) -> None:
    """Initialise a process. It ignores Ctrl-C, and it ends if its parent has ended for any
    reason.
    """
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, args=(directory,), daemon=True).start()
    lines = None if lines_of is None else PackedLines(lines_of)
    _worker = _Worker(directory, rooms, lines, with_names)


def _end_with_parent(directory: str) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    # Delete the parent directory, which contains more than the results.
    shutil.rmtree(Path(directory).parent, ignore_errors=True)
    os._exit(1)


def _decode(task: _Task) -> int | None:
    """Decode a split and write its result. Return the size of the result in shared memory; None if
    it is in a file.
    """
    assert _worker is not None
    subscription, split = _subscription(task.stored), task.split
    room = _NO_ROOM if task.room is None else _worker.rooms.room(task.room)
    output = RoomResult(room, partial(ResultFile, _worker.directory, task.number))
    with closing(output):
        if _worker.lines is None:
            write_split(subscription, split, output.write, with_names=_worker.with_names)
        else:
            result = decode_whole(subscription, split)
            written = partial(_written, subscription, _worker.lines, output)
            encoded = tuple(map(written, result.encoded))
            write_result(result._replace(encoded=encoded), output.write, output.size)
        return output.finish()


@lru_cache(maxsize=1)
def _subscription(stored: str) -> Subscription:
    subscription: Subscription = pickle.loads(Path(stored).read_bytes())  # noqa: S301 - ours
    return subscription


def _written(
    subscription: Subscription, lines: PackedLines, output: RoomResult, part: Encoded
) -> Encoded:
    """Write transactions as text lines, or packed if one of them cannot be rendered. Return `part`
    without the written bytes.
    """
    messages, at = part.messages, output.size
    try:
        first = lines.write_transactions(
            messages.blob.data, subscription.tables, lambda text: output.write(memoryview(text))
        )
    except OlrPgError:
        output.back_to(at)
        output.write(messages.blob.data)
        return part._replace(messages=messages._replace(blob=messages.blob[:0]))
    messages = messages._replace(blob=messages.blob[:0], first=first, form=Form.LINES)
    return part._replace(messages=messages)
