"""Ready transactions on disk: what one target has not taken while others go on.

Transactions are collected in memory until they make a segment, which then goes into a file of its
own; a segment is read back when everything before it was taken. The files belong to one run of
replication: a restart decodes again what they held, and removes them.
"""

from __future__ import annotations

import mmap
import pickle
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.errors import OlrPgError
from olr_pg.server.ready import CommitPosition, ReadyTransaction
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.protocol import TRANSACTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SEGMENT_BYTES: Final = 4 << 20
"""Of a segment, about: large against a file's cost, small in memory."""

_MAPPED_BYTES: Final = 16 << 20
"""From this size on a segment is one large transaction, which is mapped instead of read."""

_SIZE_BYTES: Final = 8
_SUFFIX: Final = ".ready"

_log = structlog.get_logger(__name__)


class _Segment(NamedTuple):
    path: Path
    size: int
    transactions: int


class Backlog:
    """The transactions behind those that the ready queue of a target has in memory.

    Not to be used from several threads at once: the queue has the lock.

    Args:
        directory: of the files, for nothing else; made when first needed. What an earlier process
            left there is removed.
        bytes_max: of all files.

    Attributes:
        transactions: how many it holds.
        size: how many bytes they take, `TRANSACTION_BYTES` for each included.
    """

    def __init__(self, directory: Path, bytes_max: int) -> None:
        self._directory = directory
        self.bytes_max = bytes_max
        self._segments: deque[_Segment] = deque()
        self._open: list[ReadyTransaction] = []
        self._open_bytes = 0
        self._made = 0
        self._failing = False
        self.transactions = 0
        self.size = 0
        for left in directory.glob(f"*{_SUFFIX}"):
            left.unlink(missing_ok=True)

    def append(self, transaction: ReadyTransaction) -> bool:
        """One more, behind all others; False where there is no room for it."""
        size = len(transaction.blob) + TRANSACTION_BYTES
        if self.size + size > self.bytes_max:
            return False
        if self._open_bytes + size > SEGMENT_BYTES and self._open and not self._write():
            return False
        self._open.append(transaction)
        self._open_bytes += size
        self.size += size
        self.transactions += 1
        return True

    def pop(self) -> Sequence[ReadyTransaction]:
        """The oldest ones; empty where there are none.

        Raises:
            OlrPgError: 4042, their file cannot be read.
        """
        if not self._segments:
            found, self._open, self._open_bytes = self._open, [], 0
        else:
            found = self._read(self._segments.popleft())
        self.transactions -= len(found)
        self.size -= sum(len(one.blob) + TRANSACTION_BYTES for one in found)
        return found

    def clear(self) -> None:
        """Forget all of them."""
        for segment in self._segments:
            segment.path.unlink(missing_ok=True)
        self._segments.clear()
        self._open = []
        self._open_bytes = self.transactions = self.size = 0

    def _write(self) -> bool:
        """Put what is collected into a file; False where the disk does not take it."""
        path = self._directory / f"{self._made}{_SUFFIX}"
        heads = pickle.dumps(
            [
                (t.con_id, t.xid, t.begin_scn, t.commit_scn, tuple(t.position), len(t.blob),
                 t.messages, t.order.value, t.view)
                for t in self._open
            ]
        )  # fmt: skip
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.write(len(heads).to_bytes(_SIZE_BYTES, "little"))
                file.write(heads)
                file.writelines(t.blob for t in self._open)
        except OSError as error:
            path.unlink(missing_ok=True)
            if not self._failing:
                reason = OlrPgError(4041, f"{error.strerror or error}", file=str(path))
                _log.warning("ready transactions cannot be put on disk", error=reason)
            self._failing = True
            return False
        self._failing = False
        self._made += 1
        self._segments.append(_Segment(path, self._open_bytes, len(self._open)))
        self._open, self._open_bytes = [], 0
        return True

    def _read(self, segment: _Segment) -> list[ReadyTransaction]:
        try:
            with segment.path.open("rb") as file:
                if segment.size >= _MAPPED_BYTES:
                    data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                else:
                    data = memoryview(file.read())
            segment.path.unlink()
        except OSError as error:
            raise OlrPgError(4042, f"{error.strerror or error}", file=str(segment.path)) from error
        at = _SIZE_BYTES + int.from_bytes(data[:_SIZE_BYTES], "little")
        found = []
        for con_id, xid, begin, commit, position, size, messages, order, view in pickle.loads(  # noqa: S301 - this process wrote it
            data[_SIZE_BYTES:at]
        ):
            found.append(
                ReadyTransaction(
                    con_id, xid, begin, commit, CommitPosition(*position), data[at : at + size],
                    messages, ByteOrder(order), view,
                )
            )  # fmt: skip
            at += size
        return found
