"""Decodes splits and merges them (`merger`); decodes them again if the dictionary has changed."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.decoding.joined_logs import joined_runs
from olr_pg.decoding.split import SPLIT_BYTES, plan_joined, plan_splits
from olr_pg.ordering.merger import ThreadSplit
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import Decode
    from olr_pg.ordering.merger import Merger
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.transactions.row_fault import RowFault


class Merged(NamedTuple):
    """The result of merging a split.

    Attributes:
        released: the transactions that can be released now, for each view in commit order.
        left_out: the faults that are released together with these transactions.
        source: the merged split, or None for a step without a split. If a split must be decoded
            again, there is no result until it was merged for the second time.
    """

    released: list[ReadyRun]
    left_out: list[RowFault]
    source: ThreadSplit | None


def thread_splits(
    logs: Sequence[ArchivedLog],
    goes_on_at: Callable[[ArchivedLog], int] | None = None,
    split_bytes: int = SPLIT_BYTES,
) -> list[ThreadSplit]:
    """Divide logs into splits, in the order of the logs. Small logs are joined
    (`decoding.joined_logs`).

    Args:
        goes_on_at: returns the block at which decoding of a log continues; None if each log is
            decoded from its start.
        split_bytes: approximate size of a split.
    """
    sources: list[ThreadSplit] = []
    for run in joined_runs(logs, split_bytes):
        first = run[0]
        block = FIRST_DATA_BLOCK if goes_on_at is None else goes_on_at(first)
        if len(run) > 1 and block == FIRST_DATA_BLOCK:
            sources.append(ThreadSplit(first.header.thread, plan_joined(run)))
            continue
        for number, log in enumerate(run):
            start = block if number == 0 else FIRST_DATA_BLOCK
            splits = plan_splits(log, split_bytes, start)
            sources += [ThreadSplit(log.header.thread, split, log.end_scn) for split in splits]
    return sources


def merge_splits(
    merger: Merger,
    sources: Sequence[ThreadSplit],
    decode: Decode,
) -> Iterator[Merged]:
    """Decode splits and merge them; decode them again if the dictionary has changed.

    If the decoding of joined logs fails, they are decoded again one by one.

    Args:
        merger: merges the splits; check its `failure` after each result.
        sources: the splits, in redo order.
        decode: decodes splits in their order. The iterator that `decode` returns is closed if its
            remaining results are not needed.

    Raises:
        OlrPgError: any error of `decode` or the merger.
    """
    todo = list(sources)
    while todo:
        with closing(decode(merger.subscription, [source.split for source in todo])) as results:
            for done, result in enumerate(results, 1):
                source = todo[done - 1]
                if result.failure is not None and source.split.joined:
                    todo = [*source.apart(), *todo[done:]]
                    break
                released = merger.feed(source.thread, result, source)
                if merger.again:
                    todo = [*merger.again, *todo[done:]]
                    merger.again = []
                    break
                yield Merged(released, merger.left_out, source)
                if merger.failure is not None:
                    return
            else:
                return


def move_on(merger: Merger, step: Callable[[], list[ReadyRun]], decode: Decode) -> Iterator[Merged]:
    """Advance a merger without a new split; if this changes the dictionary, decode and merge splits
    again.

    Args:
        merger: the merger; check its `failure` after each result.
        step: the merger's method that advances it and returns the released transactions.
        decode: as for `merge_splits`.

    Raises:
        OlrPgError: any error of `decode` or the merger.
    """
    released = step()
    while merger.again:
        sources, merger.again = merger.again, []
        yield from merge_splits(merger, sources, decode)
        released = step()
    yield Merged(released, merger.left_out, None)
