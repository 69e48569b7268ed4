"""Results of splits as bytes, as a Spark task sends them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from olr_pg.decoding.split import Split, decode_split
from olr_pg.decoding.split_results import WrittenMessages, read_result

if TYPE_CHECKING:
    from olr_pg.decoding.split import SplitResult, Subscription
    from olr_pg.redo.window import Log


def blocks_of(first: int, end: int) -> Split:
    """The split with the blocks [first, end) of a log that is open."""
    return Split("", first, end, 0)


def packed_split(subscription: Subscription, log: Log, first: int, end: int) -> memoryview:
    """What a task writes of a split."""
    written = io.BytesIO()
    messages = WrittenMessages(written.write)
    result = decode_split(subscription, log, blocks_of(first, end), messages)
    messages.finish(result)
    return written.getbuffer()


def through_bytes(result: SplitResult) -> SplitResult:
    """A result that was written and read."""
    written = io.BytesIO()
    encoded = []
    for one in result.encoded:
        written.write(one.messages.blob.data)
        encoded.append(one._replace(messages=one.messages._replace(blob=one.messages.blob[:0])))
    messages = WrittenMessages(written.write)
    messages.written = written.tell()
    messages.finish(result._replace(encoded=tuple(encoded)))
    return read_result(written.getbuffer())
