"""The spool: source transactions that do not fit in memory wait on disk until their Commit arrives.

The changes of each table are written to a separate file (`files.waiting_rows`) as protocol
messages. Messages that were received together are written together, as a run. After a restart the
spool is empty: changes that were not applied are not confirmed, so the server delivers them again.

A spooled transaction is applied in slices, which are read one after the other, in one target
transaction.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.applier.statements.table_changes import (
    HeldMessages,
    LostValueMarks,
    count_by_table,
    cut_rows,
    framed,
    join,
    rows_of,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.waiting_rows import WaitingRows, WaitingUse

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.transactions.lobs.lost_values import LostLob
    from olr_pg.wire.frames import ByteOrder


SPOOLED: Final = WaitingUse("spool-", Code.SPOOL_UNWRITABLE, Code.SPOOL_DAMAGED)

_WAIT_SECONDS: Final = 0.2


class _Run(NamedTuple):
    """A section of a file, with messages that were written together.

    Attributes:
        cut: the offsets of the changes whose LOB values were dropped because they were too large.
    """

    offset: int
    size: int
    changes: int
    cut: tuple[int, ...]


class SpoolFiles:
    """The directory of the spools, with a limit on its size.

    Args:
        directory: where the files are written; None for the system's directory of temporary files.
        disk_max: maximum bytes of all files together; None for no limit.
    """

    def __init__(self, directory: Path | None = None, disk_max: int | None = None) -> None:
        self._directory = directory
        self._disk_max = disk_max
        self._used = 0
        self._changed = threading.Condition()

    def open(self) -> WaitingRows:
        """Open a new file.

        Raises:
            OlrPgError: 5021, the file cannot be created.
        """
        return WaitingRows(SPOOLED, self._directory)

    def reserve(self, size: int, own: int, has_stopped: Callable[[], bool]) -> None:
        """Reserve `size` bytes of the limit; wait while other transactions use too much of it.

        Args:
            own: the bytes that this transaction has already reserved.
            has_stopped: returns whether the applier has stopped, so that waiting is pointless.

        Raises:
            OlrPgError: 5020, the transaction alone is larger than the limit.
        """
        limit = self._disk_max
        with self._changed:
            while limit is not None and self._used + size > limit:
                if own + size > limit:
                    raise OlrPgError(
                        Code.SPOOL_LIMIT,
                        f"{own + size} bytes of one transaction so far",
                        limit=limit,
                    )
                if has_stopped():
                    break
                self._changed.wait(_WAIT_SECONDS)
            self._used += size

    def release(self, size: int) -> None:
        """Release `size` reserved bytes of the limit."""
        with self._changed:
            self._used -= size
            self._changed.notify_all()


class _TableFile:
    """The messages of one table in a file."""

    def __init__(self, files: SpoolFiles) -> None:
        self.runs: list[_Run] = []
        self._file = files.open()
        self.close = weakref.finalize(self, _close, self._file, files)

    @property
    def size(self) -> int:
        """The size of the messages in bytes."""
        return self._file.size

    def append(self, data: bytes, changes: int, cut: tuple[int, ...]) -> None:
        """Append messages. The caller must have reserved the space for the messages."""
        self.runs.append(_Run(self._file.append(data), len(data), changes, cut))

    def read(self, number: int) -> npt.NDArray[np.uint8]:
        """Read the messages of a run; thread-safe.

        Raises:
            OlrPgError: 5022, the file is damaged.
        """
        run = self.runs[number]
        return np.frombuffer(self._file.read(run.offset, run.size), np.uint8)


def _close(file: WaitingRows, files: SpoolFiles) -> None:
    file.close()
    files.release(file.size)


class SpooledChanges:
    """A spooled transaction's changes to one table, or to all tables. Implements
    `slices.Slices`.
    """

    def __init__(
        self,
        file: _TableFile,
        order: ByteOrder,
        identity: tuple[int, int],
        counts: Mapping[str, int],
    ) -> None:
        commit_scn, xid = identity
        self._counts = counts
        self._file = file
        self._order = order
        self.commit_scn = commit_scn
        self.xid = xid
        self._lost: list[tuple[str, tuple[LostLob, ...]]] = []

    @property
    def size(self) -> int:
        """The size of the messages in bytes."""
        return self._file.size

    def close(self) -> None:
        """Release the disk space. Call this method when the transaction is applied or will be
        delivered again.
        """
        self._file.close()

    def __len__(self) -> int:
        return sum(run.changes for run in self._file.runs)

    def add_lost(self, table: str, lobs: tuple[LostLob, ...]) -> bool:
        """Add missing LOB values of changes of a table. Return False if the transaction has no
        changes of that table.
        """
        if table not in self._counts:
            return False
        self._lost.append((table, lobs))
        return True

    def read(self, changes_max: int, bytes_max: int) -> Iterator[Selection]:
        """See `slices.Slices.read`.

        Raises:
            OlrPgError: 5022, the file is damaged.
        """
        identity = self.commit_scn, self.xid
        markings = [LostValueMarks(table, lobs, self._counts[table]) for table, lobs in self._lost]
        for part in self._read(changes_max, bytes_max):
            marked = part
            for one in markings:
                marked = one.mark(marked, rows_of(part, one.table, *identity))
            yield marked

    def _read(self, changes_max: int, bytes_max: int) -> Iterator[Selection]:
        parts: list[Selection] = []
        messages, size = HeldMessages(), 0
        for number, run in enumerate(self._file.runs):
            parts.append(messages.parse(self._file.read(number), run.cut, self._order))
            size += run.size
            if size >= bytes_max or sum(map(len, parts)) >= changes_max:
                yield join(parts)
                parts, size = [], 0
        if parts:
            yield join(parts)


class Spool:
    """Collects a transaction on disk while it is received.

    Args:
        has_stopped: see `SpoolFiles.reserve`.
    """

    def __init__(
        self, files: SpoolFiles, order: ByteOrder, has_stopped: Callable[[], bool]
    ) -> None:
        self._files = files
        self._order = order
        self._is_hopeless = has_stopped
        self._tables: dict[str, _TableFile] = {}
        self._identity = (0, 0)
        self._counts: dict[str, Counter[str]] = {}

    @property
    def xid(self) -> int:
        """The transaction's XID; 0 before anything was added."""
        return self._identity[1]

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return sum(file.size for file in self._tables.values())

    def add(self, table: str, selection: Selection) -> None:
        """Append the next changes of a table.

        Raises:
            OlrPgError: 5020, the transaction is larger than the limit; 5021, the file cannot be
                written.
        """
        self._identity = int(selection.commit_scn[0]), int(selection.xid[0])
        data, first = framed(selection)
        file = self._tables.get(table)
        if file is None:
            file = self._tables[table] = _TableFile(self._files)
        self._files.reserve(data.size, self.size, self._is_hopeless)
        cut = tuple(first[cut_rows(selection)].tolist())
        file.append(data.tobytes(), len(selection), cut)
        self._counts.setdefault(table, Counter()).update(count_by_table([selection]))

    def finish(self) -> dict[str, SpooledChanges]:
        """Return the transaction's changes by table. Call this method when the Commit of the
        transaction has arrived.
        """
        return {
            table: SpooledChanges(file, self._order, self._identity, self._counts[table])
            for table, file in self._tables.items()
        }
