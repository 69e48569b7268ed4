"""The benchmarks of decoding. `scan` and `decode`: redo per second on one core.

The rates are compared with two limits: copying the same bytes in memory, and reading them from
memory to compute a checksum (XOR of all words, like that of a redo block).

`growth`: how the cost and the memory of decoding grow with the backlog; decoding runs through Spark
and the merger. The CPU seconds of all processes are counted, so that other work on the machine does
not affect the figures. The memory is that of the largest Python process, which is the driver or a
worker.

`sealing_cost`: the cost of encrypting files that contain rows. The cases are: writing and reading
encrypted files, decoding encrypted logs, and decoding with spilled transactions.
"""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.bench.inputs import CASES, LogSet, log_set
from olr_pg.bench.measure import Result, compared, measured, measured_by_cpu
from olr_pg.capture.logs import open_log
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import decode_split, open_for_decoding, plan_splits, subscribe
from olr_pg.files.sealed import (
    KEY_BYTES,
    RowKey,
    SealedReader,
    current_key,
    row_file,
    seal_file,
    sealing,
)
from olr_pg.redo.log_extraction import read_changes
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding, chosen_tables, decode_logs
from olr_pg.replicator.spark_decoding import PRELOAD, SparkDecoding
from olr_pg.spark.session import SparkSettings, stop_session
from olr_pg.wire.output import Unkept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from olr_pg.bench.suite import Options
    from olr_pg.decoding.split import Split, Subscription
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.wire.output import MessageOutput

Bytes = npt.NDArray[np.uint8]

MB: Final = 1e6
_MAPPED_MAX: Final = 128_000_000
"""Maximum bytes of logs that are scanned. The logs stay mapped, so that the scan is measured
without the mapping. The size exceeds every processor's cache.
"""

_ANCHOR_MAX: Final = 64 << 20
"""Maximum bytes that an anchor keeps in memory and processes repeatedly. The size exceeds every
processor's cache.
"""

_PIECE: Final = 8 << 20
_TABLES_MORE: Final = 1_000
_SMALLER: Final = 10
_UNUSED_OBJECT: Final = 1_000_000
"""A number above every OBJ# in the logs."""


def scan(options: Options) -> Iterator[Result]:
    """Read logs without any subscribed table: every block is checked, each record is visited."""
    logs = log_set(options.cache, "orders", options.size).beginning(_MAPPED_MAX)
    nothing = subscribe((), logs.snapshot.database.con_id)
    opened = [open_for_decoding(str(path)) for path in logs.logs]

    def read() -> float:
        for log in opened:
            for _ in read_changes(log, nothing.objects):
                pass
        return logs.size

    yield from _against_limits("scan orders, nothing subscribed", logs, read, options.runs)


def _against_limits(
    name: str, logs: LogSet, work: Callable[[], float], runs: int
) -> Iterator[Result]:
    data = _beginning(logs)
    room = np.empty(_PIECE, np.uint8)

    def copy() -> float:
        for piece in _pieces(data, logs.size):
            np.copyto(room[: piece.size], piece)
        return logs.size

    def checksum() -> float:
        for piece in _pieces(data, logs.size):
            np.bitwise_xor.reduce(piece[: piece.size & ~7].view(np.uint64))
        return logs.size

    work()
    for anchor, limit in (("memory copy", copy), ("XOR of all words", checksum)):
        yield compared(
            name, "MB/s", partial(measured, work), anchor=anchor,
            anchor_run=partial(measured, limit), runs=runs, scale=MB,
        )  # fmt: skip


def _beginning(logs: LogSet) -> Bytes:
    """Return the first bytes of the logs."""
    data = np.empty(min(logs.size, _ANCHOR_MAX), np.uint8)
    filled = 0
    for path in logs.logs:
        with path.open("rb", buffering=0) as file:
            filled += file.readinto(data[filled:].data)
    return data


def _pieces(data: Bytes, size: int) -> Iterator[Bytes]:
    """Yield pieces of the data with `size` bytes in total; the data is repeated as often as
    needed.
    """
    while size > 0:
        for start in range(0, min(size, data.size), _PIECE):
            yield data[start : min(start + _PIECE, size)]
        size -= data.size


def decode(options: Options) -> Iterator[Result]:
    """Convert every change to protocol elements, on one core."""
    for workload in CASES:
        logs = log_set(options.cache, workload, options.size)
        yield from _against_limits(
            f"decode {workload}, one core", logs, decoding(logs), options.runs
        )


def scaling(options: Options) -> Iterator[Result]:
    """Compare rates that should be equal: with a tenth of the redo, and with many more subscribed
    tables.
    """
    logs = log_set(options.cache, "orders", options.size)
    tenth = log_set(options.cache, "orders", options.size // _SMALLER)
    work, less_work = decoding(logs), decoding(tenth)
    less_work()
    yield compared(
        "decode orders, one core", "MB/s", partial(measured, work),
        anchor=f"1/{_SMALLER} of the redo",
        anchor_run=partial(measured, less_work), runs=options.runs, scale=MB,
    )  # fmt: skip
    tables = chosen_tables(logs.snapshot, None)
    yield compared(
        f"decode orders, {_TABLES_MORE} more tables subscribed", "MB/s",
        partial(measured, decoding(logs, (*tables, *_others(tables, _TABLES_MORE)))),
        anchor="the tables that change", anchor_run=partial(measured, work),
        runs=options.runs, scale=MB,
    )  # fmt: skip


def _others(tables: Sequence[Table], count: int) -> Iterator[Table]:
    """Yield tables like the given ones, but without changes in the redo."""
    for number in range(count):
        table = tables[number % len(tables)]
        obj = _UNUSED_OBJECT + number
        yield replace(
            table, name=f"{table.name}_{number}", obj=obj, dataobj=obj, partitions=(), segments=()
        )


def decoding(
    logs: LogSet,
    tables: Sequence[Table] | None = None,
    output: Callable[[], MessageOutput] = Unkept,
) -> Callable[[], float]:
    """Return a function that decodes `logs` as a Spark worker does, for `tables` (by default all
    tables that change).

    Args:
        output: returns the output for the messages of a split. By default the messages are made in
            reused buffers and dropped.
    """
    subscription = subscription_to(logs, tables)
    keep_freed_memory()

    def work() -> float:
        decode_all(subscription, splits_of(logs), output)
        return logs.size

    return work


def decode_all(
    subscription: Subscription, splits: Iterable[Split], output: Callable[[], MessageOutput]
) -> None:
    """Decode splits. The messages of each split go to an output of its own; the other results are
    dropped.
    """
    for split in splits:
        # Open the log again for each split, so that only the part of one split is mapped at a time.
        log = open_for_decoding(split.path)
        result = decode_split(subscription, log, split, output())
        if result.failure is not None:
            raise result.failure


def subscription_to(logs: LogSet, tables: Sequence[Table] | None = None) -> Subscription:
    """Return a subscription to `tables`, by default to all tables that change."""
    chosen = tables or chosen_tables(logs.snapshot, None)
    return subscribe(chosen, logs.snapshot.database.con_id)


def splits_of(logs: LogSet) -> list[Split]:
    """Return the splits of all logs."""
    return [split for path in logs.logs for split in plan_splits(open_log(str(path)))]


_SMALLEST: Final = 100_000_000
"""Approximate bytes of the smallest backlog, if the largest one is large enough."""

_STEPS_PER_DECADE: Final = 2
_LOGS_OF_SMALLEST: Final = 4


class _Cost(NamedTuple):
    """The cost of decoding one backlog: its bytes, the CPU seconds, and the peak memory in MiB."""

    size: int
    cpu_seconds: float
    peak_mib: float

    @property
    def rate(self) -> float:
        """MB for each CPU second."""
        return self.size / self.cpu_seconds / MB


def growth(options: Options) -> Iterator[Result]:
    """Decode backlogs up to the given size. Each backlog is the beginning of the next backlog; the
    smallest backlog is the anchor.
    """
    sizes = backlog_sizes(options.size)
    logs = log_set(
        options.cache, "orders", options.size, sizes[0] // _LOGS_OF_SMALLEST, copies=True
    )
    try:
        _decoded(logs, logs.logs[:_LOGS_OF_SMALLEST])
        first: _Cost | None = None
        for size in sizes:
            cost = _cost(logs, _first_part(logs, size), options.runs)
            first = first or cost
            yield Result(
                f"decode {cost.size / MB:,.0f} MB of orders, merged; memory of the largest process",
                cost.rate, "MB/CPU s", f"{first.size / MB:,.0f} MB", first.rate,
                cost.rate / first.rate, cost.cpu_seconds, cost.peak_mib,
            )  # fmt: skip
    finally:
        stop_session()


def backlog_sizes(most: int) -> list[int]:
    """Return the sizes of the backlogs in bytes, in ascending order, up to `most`. The smallest is
    about `_SMALLEST`, or less.
    """
    steps = max(1, round(_STEPS_PER_DECADE * math.log10(most / _SMALLEST)))
    return [round(most / 10 ** (step / _STEPS_PER_DECADE)) for step in range(steps, -1, -1)]


def _first_part(logs: LogSet, size: int) -> Sequence[Path]:
    """Return the first logs, with about `size` bytes in total."""
    count = max(1, round(len(logs.logs) * size / logs.size))
    return logs.logs[:count]


def _cost(logs: LogSet, chosen: Sequence[Path], runs: int) -> _Cost:
    """Return the median run's CPU seconds, and the highest memory."""
    costs = [_decoded(logs, chosen) for _ in range(runs)]
    return costs[0]._replace(
        cpu_seconds=median(cost.cpu_seconds for cost in costs),
        peak_mib=max(cost.peak_mib for cost in costs),
    )


def _decoded(logs: LogSet, chosen: Sequence[Path]) -> _Cost:
    decoder = SparkDecoding(SparkSettings("local[2]", {}, PRELOAD))

    def work() -> float:
        messages = decode_logs(
            logs.snapshot,
            [str(log) for log in chosen],
            options=DecodingOptions(decode=decoder.decode),
        )
        return sum(blob.nbytes for blob in messages)

    sample = measured(work, tree=True)
    assert sample.amount, "nothing was decoded"
    return _Cost(sum(log.stat().st_size for log in chosen), sample.cpu_seconds, sample.peak_rss_mib)


_SEALED_BYTES: Final = 4 << 20


def sealing_cost(options: Options) -> Iterator[Result]:
    """Run each case with a key and, for comparison, without one."""
    key = RowKey(os.urandom(KEY_BYTES))
    logs = log_set(options.cache, "orders", options.size)
    data = b"".join(path.read_bytes() for path in logs.logs)
    path = options.folder / "rows"
    yield _beside(
        "rows written to a file and read", key, partial(_there_and_back, path, data), options
    )
    plain, sealed = options.folder / "plain", options.folder / "sealed"
    for folder in (plain, sealed):
        folder.mkdir()
        for log in logs.logs:
            shutil.copy(log, folder)
    with sealing(key):
        for log in sealed.iterdir():
            seal_file(log)
    yield _beside(
        "logs decoded",
        key,
        partial(_decode_sealed, logs.snapshot, plain, sealed, logs.size),
        options,
    )
    yield _beside(
        "logs decoded, open transactions on disk", key,
        partial(_spilled, logs.snapshot, plain, options.folder / "spill", logs.size), options,
    )  # fmt: skip


def _beside(name: str, key: RowKey, work: Callable[[], float], options: Options) -> Result:
    def with_key() -> float:
        with sealing(key):
            return work()

    for one in (work, with_key):
        one()
    return compared(
        f"{name}, encrypted", "MB/CPU s", partial(measured_by_cpu, with_key), anchor="plain",
        anchor_run=partial(measured_by_cpu, work), runs=options.runs, scale=MB,
    )  # fmt: skip


def _there_and_back(path: Path, data: bytes) -> float:
    view = memoryview(data)
    with row_file(path) as file:
        for at in range(0, len(data), _SEALED_BYTES):
            file.write(view[at : at + _SEALED_BYTES])
    if current_key() is None:
        return len(path.read_bytes())
    with SealedReader(path) as sealed:
        return len(sealed.read(0, sealed.size))


def _spilled(snapshot: Snapshot, logs: Path, folder: Path, size: int) -> float:
    storage = SpillFiles(folder, 0)
    for _ in LogDecoding(snapshot, [str(logs)]).runs(DecodingOptions(storage=storage)):
        pass
    return size


def _decode_sealed(snapshot: Snapshot, plain: Path, sealed: Path, size: int) -> float:
    folder = plain if current_key() is None else sealed
    for _ in LogDecoding(snapshot, [str(folder)]).runs():
        pass
    return size
