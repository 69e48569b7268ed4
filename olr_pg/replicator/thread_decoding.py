"""Decodes splits in threads of this process: ``olr-pg decode --jobs``.

The kernels release Python's lock (``nogil``), and so does NumPy for large arrays. So several
threads decode at the same time, and their results need no copying. If text lines are requested, the
threads also render the transactions that are complete within a split, so that the caller's thread
has little left to do. A transaction that cannot be rendered stays packed, so that its error is
raised at its position.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.decoding.split import Encoded, Split, SplitResult, Subscription, decode_whole
from olr_pg.errors import OlrPgError
from olr_pg.ordered_window import in_order
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.kernel_warmup import is_compiled, warm_kernels
from olr_pg.wire.room_filling import Form

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import numpy.typing as npt

    from olr_pg.dictionary.model import Database
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.wire.frames import Buffer

_AHEAD: Final = 1
"""Number of splits whose results may wait, besides those that are being decoded. With one, a thread
need not wait for its next split while the caller's thread uses a result.
"""

_TEXT_SIZE: Final = 3
"""Expected size of lines: bytes per byte of packed transactions. A larger text is copied once more.
"""

_WINDOW_BYTES: Final = 4 << 20
"""Smaller than for one thread, because the threads share the processor's cache and the heap. Two
threads need as much time as with 16 MB, and a third less memory.
"""


class ThreadDecoding:
    """Decodes splits in several threads. The object is a context manager that ends the threads.

    Args:
        jobs: the number of threads.
        lines_of: the database whose changes are rendered as text lines; None to return packed
            transactions instead.
        with_names: as for `decode_split`.
        invalid_dates: as for `PackedLines`.
    """

    def __init__(
        self,
        jobs: int,
        *,
        lines_of: Database | None = None,
        with_names: bool = False,
        invalid_dates: InvalidDates | None = None,
    ) -> None:
        is_lines = lines_of is not None
        if not is_compiled(lines=is_lines):
            # Only one thread can compile at a time. This compiles in two processes.
            warm_kernels(lines=is_lines)
        self._jobs = jobs
        self._lines_of = lines_of
        self._with_names = with_names
        self._invalid_dates = invalid_dates
        self._of_thread = threading.local()
        self._pool = ThreadPoolExecutor(jobs, "decoding")

    def __enter__(self) -> ThreadDecoding:
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads after their current splits."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of the splits, in order. To cancel pending splits, close the generator.

        Raises:
            OlrPgError: 2002 to 2008 errors of the log.
        """

        def submit(split: Split) -> Future[SplitResult]:
            return self._pool.submit(self._decode, subscription, split)

        with closing(in_order(splits, submit, self._jobs + _AHEAD)) as decoded:
            for _, result in decoded:
                yield result

    def _decode(self, subscription: Subscription, split: Split) -> SplitResult:
        result = decode_whole(
            subscription, split, with_names=self._with_names, window_bytes=_WINDOW_BYTES
        )
        if self._lines_of is None:
            return result
        written = partial(_written, subscription, self._lines(self._lines_of))
        return result._replace(encoded=tuple(map(written, result.encoded)))

    def _lines(self, database: Database) -> PackedLines:
        """Return the renderer of the current thread; it cannot be used by several threads."""
        lines: PackedLines | None = getattr(self._of_thread, "lines", None)
        if lines is None:
            lines = self._of_thread.lines = PackedLines(database, invalid_dates=self._invalid_dates)
        return lines


def _written(subscription: Subscription, lines: PackedLines, part: Encoded) -> Encoded:
    """Return transactions as text lines, or packed if one of them cannot be rendered."""
    messages = part.messages
    text = _Text(_TEXT_SIZE * messages.blob.size)
    try:
        first = lines.write_transactions(messages.blob.data, subscription.tables, text.append)
    except OlrPgError:
        return part
    return part._replace(
        messages=messages._replace(blob=text.written(), first=first, form=Form.LINES)
    )


class _Text:
    """Collects text in one buffer. It is enlarged if the text does not fit.

    Args:
        size: expected bytes of the text. Pages that are not written use no memory.
    """

    def __init__(self, size: int) -> None:
        self._room = np.empty(size, np.uint8)
        self._end = 0

    def append(self, text: Buffer) -> None:
        """Append text."""
        more = np.frombuffer(text, np.uint8)
        first, self._end = self._end, self._end + more.size
        if self._end > self._room.size:
            written, self._room = self._room[:first], np.empty(2 * self._end, np.uint8)
            self._room[:first] = written
        self._room[first : self._end] = more

    def written(self) -> npt.NDArray[np.uint8]:
        """Return the text."""
        return self._room[: self._end]
