"""Messages taken at the head of the ready queue: how many at once, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import format_xid
from olr_pg.wire.offsets import message_run

if TYPE_CHECKING:
    from olr_pg.ordering.ready_transactions import ReadyRun

_SIZE_BYTES: Final = 4


class TakenMessages(NamedTuple):
    """Messages that are taken: bytes `first` to `end` of what the batch of `run` has.

    They are whole transactions, or of one transaction.
    """

    run: ReadyRun
    first: int
    end: int
    messages: int


class TakenBefore(NamedTuple):
    """The messages that were taken before of the transaction at the head, and their bytes."""

    messages: int = 0
    size: int = 0


def check_commit_order(run: ReadyRun, last: int) -> None:
    """See that the transactions of a run commit in order, the first at `last` or later.

    Raises:
        OlrPgError: 4015, a commit SCN is lower than that of the one before.
    """
    scns = run.commit_scn
    if run.first_commit_scn >= last and (scns[1:] >= scns[:-1]).all():
        return
    for one in run.transactions():
        if one.commit_scn < last:
            raise OlrPgError(
                Code.OUT_OF_COMMIT_ORDER,
                f"commit SCN {one.commit_scn} after {last}",
                xid=format_xid(one.xid),
                **one.position.place(),
            )
        last = one.commit_scn


def next_messages(
    head: ReadyRun, begun: TakenBefore, messages: int, bytes_max: int, *, must: bool
) -> TakenMessages:
    """Find the next messages of one transaction.

    Args:
        begun: how far it is taken already.
        messages: at most so many.
        bytes_max: at most so many bytes; none where the first message is larger, unless one `must`
            be.
    """
    batch, start, end = head.batch, head.start + begun.size, head.start + head.size
    left = head.messages - begun.messages
    if messages >= left and end - start <= bytes_max:
        return TakenMessages(head, start, end, left)
    most, count, big = min(messages, left), 0, batch.order.is_big
    if most > 1:
        blob = np.frombuffer(batch.blob, np.uint8)
        count, end = message_run(blob, start, big, most, bytes_max)
    if count == 0:
        size = int.from_bytes(batch.blob[start : start + _SIZE_BYTES], batch.order.value)
        count, end = 1, start + _SIZE_BYTES + size
        if end - start > bytes_max and not must:
            return TakenMessages(head, start, start, 0)
    return TakenMessages(head, start, end, count)
