"""Decodes splits: large amounts of redo with Spark tasks, small amounts in the appliance's own
process.

A Spark job takes about 50 ms until its first result, and the session takes seconds to start. So if
one core is faster, the calling thread does the work, with the same function as a task. Kernels
release the GIL, so that other threads can answer confirmations at the same time.
"""

from __future__ import annotations

import pickle
import threading
from contextlib import closing
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.decoding.split import Split, SplitResult, Subscription
from olr_pg.decoding.split_results import read_result, write_split
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.sealed import current_key, use_key
from olr_pg.observability.tracing import span
from olr_pg.spark.jobs import errors_of_task, run_tasks
from olr_pg.spark.session import SparkSettings, get_session

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from olr_pg.files.result_files import TaskResult
    from olr_pg.files.sealed import RowKey

PRELOAD: Final = (
    "olr_pg.decoding.heap:keep_freed_memory",
    "olr_pg.replicator.kernel_warmup:warm_kernels",
)
"""The functions that Spark's daemon calls before it forks workers."""

HERE_BYTES: Final = 8 << 20
"""Default for the maximum bytes of redo that are decoded in this process."""

_log = structlog.get_logger(__name__)


def decode_task(payload: bytes, subscription: bytes, result: TaskResult) -> None:
    """Run a Spark task: decode one split, and write its result."""
    split: Split = pickle.loads(payload)  # noqa: S301 - made by this driver
    write_split(_subscription(subscription), split, result.write)


def decode_sealed_task(
    key: RowKey, payload: bytes, subscription: bytes, result: TaskResult
) -> None:
    """Run a Spark task that reads or writes encrypted files; `key` is their key."""
    use_key(key)
    decode_task(payload, subscription, result)


@lru_cache(maxsize=2)
def _subscription(packed: bytes) -> Subscription:
    subscription: Subscription = pickle.loads(packed)  # noqa: S301 - made by this driver
    return subscription


class SplitCounts(NamedTuple):
    """The numbers of splits decoded in this process and by Spark's workers."""

    here: int = 0
    by_spark: int = 0


class SparkDecoding:
    """Decodes splits: large amounts of redo on Spark, small amounts in the calling thread.

    Args:
        settings: the settings of the Spark session, which is started when it is first needed.
        here_bytes: maximum bytes of redo to decode in this process.
        waits: whether to wait while the session starts. If False, splits are decoded in this
            process until the session is ready. Decoding in this process is better for online redo,
            because the source writes more redo while the session starts.

    Attributes:
        counts: the numbers of decoded splits; the object is replaced, never modified.
    """

    def __init__(
        self, settings: SparkSettings, here_bytes: int = HERE_BYTES, *, waits: bool = True
    ) -> None:
        self._settings = settings
        self._here_bytes = here_bytes
        self._waits = waits
        self._starting: threading.Thread | None = None
        self.counts = SplitCounts()

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of the splits, in order. To cancel pending splits, close the
        generator.
        """
        is_little = sum(split.size for split in splits) <= self._here_bytes
        for number, split in enumerate(splits):
            if not is_little and self._may_ask_session():
                yield from self._counted_on_spark(subscription, splits[number:])
                return
            with span("decode", log=split.path, bytes=split.size):
                result = _decode_here(subscription, split)
            yield result
            self.counts = self.counts._replace(here=self.counts.here + 1)

    def _may_ask_session(self) -> bool:
        """Return whether to use the Spark session now. If `waits` is False, start the session in
        the background, and return False until it is ready.
        """
        if self._waits:
            return True
        if self._starting is None:
            self._starting = threading.Thread(
                target=self._start_session, name="olr-spark-start", daemon=True
            )
            self._starting.start()
        return not self._starting.is_alive()

    def _start_session(self) -> None:
        try:
            get_session(self._settings)
        except OlrPgError as error:
            # The next decoding that needs the session starts it again, and raises the error if this
            # fails too.
            _log.warning("Spark could not be started", reason=str(error), action=error.action)

    def _counted_on_spark(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        for result in self._on_spark(subscription, splits):
            yield result
            self.counts = self.counts._replace(by_spark=self.counts.by_spark + 1)

    def _on_spark(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        key = current_key()
        tasks = run_tasks(
            get_session(self._settings),
            [pickle.dumps(split) for split in splits],
            decode_task if key is None else partial(decode_sealed_task, key),
            broadcast=pickle.dumps(subscription),
            sizes=[split.size for split in splits],
            writes=True,
            description=describe(splits),
        )
        with closing(tasks) as results:
            try:
                for _, packed in results:
                    yield read_result(packed)
            except OlrPgError as error:
                if self._settings.local or not _is_here(error):
                    raise
                detail = f"{error.detail}, although the appliance can read the log at this path"
                file = str(error.where["file"])
                raise OlrPgError(Code.EXECUTOR_UNFIT, detail, file=file) from error


def _is_here(error: OlrPgError) -> bool:
    """Return whether a task could not open a log although the file exists for this process."""
    return error.code == Code.LOG_UNREADABLE and Path(str(error.where.get("file"))).exists()


def _decode_here(subscription: Subscription, split: Split) -> SplitResult:
    """Decode a split in this thread, with the same errors as in a task."""
    written = BytesIO()
    with errors_of_task(path=split.path):
        # A worker that a signal ends is replaced, and its task repeated; this process is not.
        write_split(subscription, split, written.write, mapped=False)
    return read_result(written.getbuffer())


def describe(splits: Sequence[Split]) -> str:
    """Return a description of the splits for Spark's web page, such as ``decode thread 1, logs
    118–125, 2.1 GB``.
    """
    logs: dict[int, list[int]] = {}
    for split in splits:
        if split.log is not None:
            logs.setdefault(split.log.position.thread, []).append(split.log.position.sequence)
    parts = []
    for thread, sequences in sorted(logs.items()):
        first, last = min(sequences), max(sequences)
        which = f"log {first}" if first == last else f"logs {first}–{last}"
        parts.append(f"thread {thread}, {which}")
    size = sum(split.size for split in splits)
    amount = f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
    return f"decode {'; '.join(parts)}, {amount}"
