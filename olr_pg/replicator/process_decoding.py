"""Decodes splits in other processes of this machine, without Spark: ``olr-pg decode --jobs``.

The kernels release Python's lock, but a third of the work is short calls of Python and NumPy, for
which threads would wait for each other: this third does not get faster with more threads.

The processes are forked when the context begins, so they have imported all modules. Each waits for
a split at its socket, and writes the result (`decoding.split_results`) into a file in memory, whose
descriptor is passed through the socket. The first process maps the file, so it does not copy a
result. If text lines are requested, the other processes also render the transactions that are
complete within a split, so that the first process has little left to do. Transactions that cannot
be rendered, for example because of an invalid date, stay packed. The first process renders such
transactions. So an error is raised at its position, and a replaced date is counted once, even if a
split is decoded again after a DDL.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from multiprocessing.reduction import recv_handle, send_handle
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.decoding.split import Encoded, Split, SplitResult, Subscription, decode_whole
from olr_pg.decoding.split_results import WrittenMessages, read_result
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.positioned import write_at
from olr_pg.ordered_window import in_order
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.kernel_warmup import is_compiled, warm_kernels
from olr_pg.wire.encoder import Form

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from multiprocessing.connection import Connection

    from olr_pg.dictionary.model import Database
    from olr_pg.wire.frames import Buffer

_AHEAD: Final = 1
"""Number of splits whose results may wait, besides those that are being decoded. With one waiting
result, a process need not wait for its next split while the caller uses a result.
"""

_ROOMS_KEPT: Final = 2
"""Number of free files in memory that are kept for each process."""

_WINDOW_BYTES: Final = 8 << 20
"""Smaller than for one process: each process needs 25 MiB less memory than with 16 MB, and no more
time.
"""


_FEWER: Final = (
    "use fewer --jobs, or raise the limits of open files and of processes (`ulimit -n`,"
    " `ulimit -u`)"
)


_LARGER: Final = (
    "raise the limit of the size of files (`ulimit -f`), add memory, or use --jobs 1. The results"
    " are kept in memory, but they count as files"
)


class _Task(NamedTuple):
    """What all splits have in common. The arguments are the same as for `ProcessDecoding`."""

    lines_of: Database | None
    with_names: bool


class _Answer(NamedTuple):
    """The answer to a split: an error, or the size of the result in its file."""

    error: BaseException | None
    size: int = 0


class ProcessDecoding:
    """Decodes splits in several processes. The object is a context manager, which starts and ends
    the processes.

    Args:
        jobs: the number of processes.
        lines_of: the database whose changes are rendered as text lines; None to return packed
            transactions instead.
        with_names: as for `decode_split`.
    """

    def __init__(
        self, jobs: int, *, lines_of: Database | None = None, with_names: bool = False
    ) -> None:
        is_lines = lines_of is not None
        if not is_compiled(lines=is_lines):
            warm_kernels(lines=is_lines)  # once, and not in each process
        self._task = _Task(lines_of, with_names)
        self._jobs = jobs
        self._processes: list[_Process] = []
        self._of_thread = threading.local()
        self._pool = ThreadPoolExecutor(jobs, "decoding", self._take_process)
        self._free: list[_Process] = []

    def __enter__(self) -> ProcessDecoding:
        """Start the processes.

        Raises:
            OlrPgError: 6009, not all of the processes can be started.
        """
        try:
            for _ in range(self._jobs):
                self._processes.append(_Process(self._task, self._processes))
        except OSError as error:
            self.__exit__()
            detail = f"process {len(self._processes) + 1} cannot be started: {plain_reason(error)}"
            raise OlrPgError(Code.DECODING_PROCESS_LOST, detail, action=_FEWER) from error
        self._free = list(self._processes)
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes after their current splits."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for process in self._processes:
            process.end()

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of the splits, in order. To cancel pending splits, close the generator.

        Raises:
            OlrPgError: 2002 to 2008 errors of the log; 6009, a process was lost.
        """
        packed = pickle.dumps(subscription)

        def submit(split: Split) -> Future[SplitResult]:
            return self._pool.submit(self._decode, packed, split)

        with closing(in_order(splits, submit, self._jobs + _AHEAD)) as decoded:
            for _, result in decoded:
                yield result

    def _take_process(self) -> None:
        """Give a process to the current thread, which passes splits to it."""
        self._of_thread.process = self._free.pop()

    def _decode(self, subscription: bytes, split: Split) -> SplitResult:
        process: _Process = self._of_thread.process
        return read_result(memoryview(process.ask(subscription, split)))


class _Process:
    """A process that decodes splits, one after the other.

    Args:
        others: the processes that were started earlier. The new process closes its copies of the
            sockets of the earlier processes, so that each process ends as soon as this process
            ends.
    """

    def __init__(self, task: _Task, others: Sequence[_Process]) -> None:
        self._socket, theirs = multiprocessing.Pipe()
        unused = [self._socket, *(other._socket for other in others)]
        self._process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(theirs, task, unused), daemon=True
        )
        self._process.start()
        theirs.close()
        self._subscription: bytes | None = None
        self._rooms: list[int] = []
        self._has_ended = False

    def ask(self, subscription: bytes, split: Split) -> mmap.mmap:
        """Let the process decode a split, wait for its answer, and map the file of the result.

        Raises:
            OlrPgError: 2002 to 2008 errors of the log; 6009, the process was lost.
        """
        changed = None if subscription is self._subscription else subscription
        self._subscription = subscription
        try:
            with self._room() as room:
                _send(self._socket, (changed, split))
                send_handle(self._socket, room, self._process.pid)
                answer: _Answer = self._socket.recv()
                mapped = mmap.mmap(room, answer.size, prot=mmap.PROT_READ) if answer.size else None
        except (EOFError, ConnectionError) as error:
            raise self._lost(split) from error
        except OSError as error:
            detail = f"its result cannot be received: {plain_reason(error)}"
            code = Code.DECODING_PROCESS_LOST
            raise OlrPgError(code, detail, action=_FEWER, file=split.path) from error
        if answer.error is not None:
            self._take_back(room)
            raise answer.error
        assert mapped is not None  # a result without an error has bytes
        weakref.finalize(mapped, self._take_back, room)
        return mapped

    @contextmanager
    def _room(self) -> Iterator[int]:
        """Yield a file in memory for a result. After an exception, the file is closed."""
        room = self._rooms.pop() if self._rooms else os.memfd_create("olr-pg-split")
        try:
            yield room
        except BaseException:
            os.close(room)
            raise

    def _take_back(self, room: int) -> None:
        """Keep a file in memory for the next results, because its pages exist already. Close the
        file if enough files are kept.
        """
        if self._has_ended or len(self._rooms) >= _ROOMS_KEPT:
            os.close(room)
        else:
            self._rooms.append(room)

    def _lost(self, split: Split) -> OlrPgError:
        self._process.join()
        code = self._process.exitcode
        how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        return OlrPgError(Code.DECODING_PROCESS_LOST, f"it ended with {how}", file=split.path)

    def end(self) -> None:
        """End the process; it must not be decoding."""
        self._socket.close()
        self._process.join()
        self._process.close()
        self._has_ended = True
        while self._rooms:
            os.close(self._rooms.pop())


def _serve(socket: Connection, task: _Task, unused: Sequence[Connection]) -> None:
    """Decode splits until the other end of the socket is closed.

    Ctrl-C in a terminal is sent to this process too, but the other process decides when to end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in unused:
        other.close()
    lines = None if task.lines_of is None else PackedLines(task.lines_of)
    subscription: Subscription | None = None
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            changed, split = socket.recv()
            room = recv_handle(socket)
            if changed is not None:
                subscription = pickle.loads(changed)  # noqa: S301 - made by our parent process
            assert subscription is not None  # the first request contains it
            with _Result(room) as result:
                try:
                    _decode(result, subscription, split, lines, with_names=task.with_names)
                except Exception as error:  # noqa: BLE001 - raised in the other process
                    error.add_note(traceback.format_exc())
                    _send(socket, _Answer(error))
                    continue
                _send(socket, _Answer(None, result.size))


def _send(socket: Connection, value: object) -> None:
    """Send a value, as `Connection.send` does. That method pickles into a BytesIO, and Python 3.13
    prints an error when it discards the BytesIO of a call that has failed.
    """
    socket.send_bytes(pickle.dumps(value))


class _Result(WrittenMessages):
    """The result of a split, which is written to a file in memory. The context closes the file.

    Args:
        file: the descriptor of the file. The file may contain an earlier result.

    Attributes:
        size: the bytes of the result so far.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self.size = 0
        super().__init__(self._write_whole)

    def __enter__(self) -> _Result:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def _write_whole(self, data: memoryview) -> None:
        data = data.cast("B")
        try:
            write_at(self._file, data, self.size)
        except OSError as error:
            detail = f"its result cannot be written: {plain_reason(error)}"
            raise OlrPgError(Code.DECODING_PROCESS_LOST, detail, action=_LARGER) from error
        self.size += len(data)

    def append(self, text: Buffer) -> None:
        """Write messages or lines."""
        self._write_whole(memoryview(text))
        self.written += memoryview(text).nbytes

    def cut(self, size: int) -> None:
        """Remove everything after the first `size` bytes."""
        self.written = self.size = size


def _decode(
    written: _Result,
    subscription: Subscription,
    split: Split,
    lines: PackedLines | None,
    *,
    with_names: bool,
) -> None:
    """Decode a split, and write the result.

    Args:
        lines: renders transactions as text lines; None to write packed transactions.
    """
    decoded = partial(
        decode_whole, subscription, split, with_names=with_names, window_bytes=_WINDOW_BYTES
    )
    if lines is None:
        written.finish(decoded(written))
        return
    result = decoded(None)
    encoded = tuple(_rendered(written, subscription, lines, part) for part in result.encoded)
    written.finish(result._replace(encoded=encoded))


def _rendered(
    written: _Result, subscription: Subscription, lines: PackedLines, part: Encoded
) -> Encoded:
    """Write transactions as text lines, or packed if one of them cannot be rendered. Return the
    transactions without their bytes.
    """
    messages, begin = part.messages, written.written
    nothing = messages.blob[:0]
    try:
        first = lines.write_transactions(messages.blob.data, subscription.tables, written.append)
    except OlrPgError:
        written.cut(begin)
        written.append(messages.blob.data)
        return part._replace(messages=messages._replace(blob=nothing))
    return part._replace(messages=messages._replace(blob=nothing, first=first, form=Form.LINES))
