"""Decodes splits and merges them (`merger`); decodes them again if the dictionary has changed."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.decoding.joined_logs import joined_runs
from olr_pg.decoding.split import SPLIT_BYTES, plan_joined, plan_splits
from olr_pg.ordering.merger_state import ThreadSplit
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
        released: the transactions that can be released now: those of each view in commit order.
        left_out: faults of these and earlier transactions, which could not be decoded.
        source: the split, or None; a split that must be decoded again is only reported after that.
    """

    released: list[ReadyRun]
    left_out: list[RowFault]
    source: ThreadSplit | None


def thread_splits(
    logs: Sequence[ArchivedLog],
    goes_on_at: Callable[[ArchivedLog], int] | None = None,
    split_bytes: int = SPLIT_BYTES,
) -> list[ThreadSplit]:
    """Divide logs into splits, in their order; small logs are joined (`decoding.joined_logs`).

    Args:
        goes_on_at: returns the block up to which a log was already decoded; None if no log was.
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

    If one of several joined logs is broken, they are decoded again one by one.

    Args:
        merger: merges them; its `failure` can be set after each step.
        sources: the splits, in redo order.
        decode: decodes splits in their order; closed when the rest is not needed.

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
    """Advance a merger without a new split, after merging the splits that must be decoded again.

    Args:
        merger: its `failure` can be set after each step.
        step: one of its methods that return released transactions.
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
