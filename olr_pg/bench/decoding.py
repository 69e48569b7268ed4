"""Scan and decode: redo per second, on one core.

The limits beside them: copying the same bytes in memory, and reading them with a checksum (XOR of
all words, as a redo block's), both from memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.bench.inputs import CASES, LogSet, log_set
from olr_pg.bench.measure import Result, compared, measured
from olr_pg.capture.logs import open_log
from olr_pg.redo.extract import read_changes
from olr_pg.replicator.decode import chosen_tables
from olr_pg.replicator.heap import keep_freed_memory
from olr_pg.replicator.split import decode_split, open_for_decoding, plan_splits, subscribe
from olr_pg.wire.output import Unkept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.bench.suite import Options
    from olr_pg.dictionary.model import Table

MB: Final = 1e6
_TABLES_MORE: Final = 1_000
_SMALLER: Final = 10
_UNUSED_OBJECT: Final = 1_000_000
"""Above the OBJ# of everything in the logs."""


def scan(options: Options) -> Iterator[Result]:
    """A log in which nothing is subscribed: every block checked, every record walked."""
    logs = log_set(options.cache, "orders", options.size)
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
    data = [np.fromfile(path, np.uint8) for path in logs.logs]
    room = np.empty(max(part.size for part in data), np.uint8)

    def copy() -> float:
        for part in data:
            np.copyto(room[: part.size], part)
        return logs.size

    def checksum() -> float:
        for part in data:
            np.bitwise_xor.reduce(part[: part.size & ~7].view(np.uint64))
        return logs.size

    work()
    for anchor, limit in (("memory copy", copy), ("XOR of all words", checksum)):
        yield compared(
            name, "MB/s", partial(measured, work), anchor=anchor,
            anchor_run=partial(measured, limit), runs=runs, scale=MB,
        )  # fmt: skip


def decode(options: Options) -> Iterator[Result]:
    """Every change to protocol elements, on one core."""
    for workload in CASES:
        logs = log_set(options.cache, workload, options.size)
        yield from _against_limits(
            f"decode {workload}, one core", logs, decoding(logs), options.runs
        )


def scaling(options: Options) -> Iterator[Result]:
    """Rates that should be the same: a tenth of the redo, and many more tables subscribed."""
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
    """Tables like the given ones, of which the redo holds nothing."""
    for number in range(count):
        table = tables[number % len(tables)]
        obj = _UNUSED_OBJECT + number
        yield replace(
            table, name=f"{table.name}_{number}", obj=obj, dataobj=obj, partitions=(), segments=()
        )


def decoding(logs: LogSet, tables: Sequence[Table] | None = None) -> Callable[[], float]:
    """Decoding `logs` for `tables`, by default all that change, as a Spark worker does.

    The messages are written room by room; a worker writes each to a file, which is left to the
    benchmark `spark`.
    """
    chosen = tables or chosen_tables(logs.snapshot, None)
    subscription = subscribe(chosen, logs.snapshot.database.con_id)
    output = Unkept()
    keep_freed_memory()

    def work() -> float:
        for path in logs.logs:
            archived, log = open_log(str(path)), open_for_decoding(str(path))
            for split in plan_splits(archived):
                result = decode_split(subscription, log, split.first_block, split.end_block, output)
                if result.failure is not None:
                    raise result.failure
        return logs.size

    return work
