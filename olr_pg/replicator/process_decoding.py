"""Splits decoded by processes of this machine: ``olr-pg decode --jobs``.

The processes are forked from this one, which has loaded the kernels, before it has threads of its
own. A split's result comes back as a file (`olr_pg.files.result_files`), which is mapped here. Who
wants lines of text has the processes render what is whole within a split, too: then little is left
to be done in order. A transaction that cannot be rendered stays in messages, so that its error
turns up in its place.
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
from functools import lru_cache
from itertools import count
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.decoding.split import SplitResult, decode_split, open_split
from olr_pg.decoding.split_results import read_result, write_result, write_split
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.result_files import ResultFile, ResultFiles, result_lost
from olr_pg.ordered_window import in_order
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.kernel_warmup import warm_kernels

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from concurrent.futures import Future

    from olr_pg.decoding.split import Encoded, Split, Subscription
    from olr_pg.dictionary.model import Database

_AHEAD: Final = 3
"""Splits under way per process: each has its next one at hand while another's is waited for."""


class ProcessDecoding:
    """Decodes splits in processes; a context, whose end ends them.

    Args:
        jobs: how many.
        lines_of: whose lines of text are wanted in the place of messages; None: messages are.
        with_names: as of `decode_split`.
        parent: the directory to put results below; None for the system's.
    """

    def __init__(
        self,
        jobs: int,
        *,
        lines_of: Database | None = None,
        with_names: bool = False,
        parent: str | None = None,
    ) -> None:
        warm_kernels()
        self._jobs = jobs
        self._subscriptions = 0
        self._tasks = count()
        try:
            self._folder = tempfile.mkdtemp(prefix="olr-pg-decode-", dir=parent)
        except OSError as error:
            raise result_lost(error, directory=parent or tempfile.gettempdir()) from error
        self._results = ResultFiles(self._folder, _AHEAD * jobs)
        directory = str(self._results.directory)
        self._pool = ProcessPoolExecutor(
            jobs, multiprocessing.get_context("fork"), _begin, (directory, lines_of, with_names)
        )
        self._pool.submit(os.getpid)  # forks all of them, now

    def __enter__(self) -> ProcessDecoding:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, which finish their splits, and remove their results."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._results.remove()
        shutil.rmtree(self._folder, ignore_errors=True)

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of splits, in order; closing it gives up what is under way.

        Raises:
            OlrPgError: 2002 to 2008 the log, 6006 there is no room for results, 9210 a process has
                ended.
        """
        stored = self._stored(subscription)
        decoded = in_order(
            zip(self._tasks, splits, strict=False),
            lambda numbered: self._pool.submit(_decode, *numbered, stored),
            _AHEAD * self._jobs,
            self._give_up,
        )
        try:
            with closing(decoded):
                for (task, _), _ in decoded:
                    result = self._results.take(task)
                    assert result is not None  # its process has named it
                    yield read_result(result[1])
        except BrokenProcessPool as error:
            raise OlrPgError(
                Code.DECODING_PROCESS_ENDED, f"one of {self._jobs} that decode"
            ) from error

    def _stored(self, subscription: Subscription) -> str:
        self._subscriptions += 1
        path = self._results.directory / f"subscription-{self._subscriptions}"
        path.write_bytes(pickle.dumps(subscription))
        return str(path)

    def _give_up(self, numbered: tuple[int, Split], done: Future[None]) -> None:
        """Let the file of a result that nobody wants any more be used again."""

        def release_file(ended: Future[None]) -> None:
            if not ended.cancelled() and ended.exception() is None:
                self._results.take(numbered[0])

        done.cancel()
        done.add_done_callback(release_file)


class _Worker(NamedTuple):
    """What a process works with."""

    directory: str
    lines: JsonLines | None
    with_names: bool


_worker: _Worker | None = None


def _begin(directory: str, lines_of: Database | None, with_names: bool) -> None:
    """Begin a process: it does not see Ctrl-C, and ends with its parent, however that ends."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, args=(directory,), daemon=True).start()
    _worker = _Worker(directory, None if lines_of is None else JsonLines(lines_of), with_names)


def _end_with_parent(directory: str) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    # With the files that are kept beside it.
    shutil.rmtree(Path(directory).parent, ignore_errors=True)
    os._exit(1)


def _decode(task: int, split: Split, stored: str) -> None:
    """Decode a split, and write its result."""
    assert _worker is not None
    subscription = _subscription(stored)
    log = open_split(split)
    file = ResultFile(_worker.directory, task)
    with closing(file):
        if _worker.lines is None:
            write_split(
                subscription, log, split.first_block, split.end_block, file.write,
                split.first_group, with_names=_worker.with_names,
            )  # fmt: skip
        else:
            result = decode_split(
                subscription, log, split.first_block, split.end_block,
                first_group=split.first_group,
            )  # fmt: skip
            encoded = tuple(_written(part, _worker.lines, file) for part in result.encoded)
            write_result(result._replace(encoded=encoded), file.write, file.size)
        file.finish()


@lru_cache(maxsize=1)
def _subscription(stored: str) -> Subscription:
    subscription: Subscription = pickle.loads(Path(stored).read_bytes())  # noqa: S301 - ours
    return subscription


def _written(part: Encoded, lines: JsonLines, file: ResultFile) -> Encoded:
    """Write lines, or the messages where that cannot be; return the rest."""
    messages, at = part.messages, file.size
    try:
        first = lines.write_transactions(
            messages.blob.data, messages.first, lambda text: file.write(memoryview(text))
        )
    except OlrPgError:
        file.back_to(at)
        file.write(messages.blob.data)
        return part._replace(messages=messages._replace(blob=messages.blob[:0]))
    messages = messages._replace(blob=messages.blob[:0], first=first)
    return part._replace(messages=messages, rendered=True)
