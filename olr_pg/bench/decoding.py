"""The benchmarks `scan` and `decode`: redo per second on one core.

The rates are compared with two limits: copying the same bytes in memory, and reading them from
memory to compute a checksum (XOR of all words, like that of a redo block).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.bench.inputs import CASES, LogSet, log_set
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.capture.logs import open_log
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.decoding.split import decode_split, open_for_decoding, plan_splits, subscribe
from olr_pg.redo.log_extraction import read_changes
from olr_pg.replicator.decode_once import chosen_tables
from olr_pg.wire.output import Unkept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from olr_pg.bench.suite import Options
    from olr_pg.decoding.split import Split, Subscription
    from olr_pg.dictionary.model import Table
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
    """Read logs of which no table is subscribed: every block is checked, and every record is
    visited.
    """
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
