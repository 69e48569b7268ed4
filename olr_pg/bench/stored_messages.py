"""The generated changes as messages that the server delivers, stored in a file. A run maps the file
piece by piece.

The encoder of the appliance makes the protocol elements. The protocol elements are several times as
large as the changes. In memory, they would be the larger part of the memory that the benchmarks
report.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.bench.made_up_changes import Changes, ChangeSet, Pool
from olr_pg.datatypes.number import encode_number
from olr_pg.ordering.ready_transactions import ReadyRun, ready_run
from olr_pg.redo.batch import columns_of, empty_entries
from olr_pg.transactions.finished_columns import (
    VALUE,
    DmlColumns,
    DmlKind,
    Image,
    TransactionColumns,
)
from olr_pg.wire.element_plan import build_element_plan
from olr_pg.wire.encoder import encode_transactions
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.room_filling import EncodedTransactions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt


FIRST_SCN: Final = 1_000_000
"""Begin SCN of the first transaction."""


class _Piece(NamedTuple):
    """The location of consecutive transactions in the file.

    Attributes:
        start: the offset in the file, a multiple of mmap's page size. There are two arrays of
            `transactions` numbers (the end of each transaction's messages, and their count), then
            the messages.
        size: bytes of the arrays and the messages.
        first: number of the first transaction.
        transactions: number of transactions.
    """

    start: int
    size: int
    first: int
    transactions: int


class Messages:
    """The changes as framed messages, in transactions.

    Args:
        changes: the changes that the messages contain.
        path: path of the file to write.

    Attributes:
        messages: number of messages, including Begin and Commit.
        size: bytes of the messages.
    """

    def __init__(self, changes: ChangeSet, pool: Pool, path: Path) -> None:
        self.messages = self.size = 0
        self._path = path
        self._pieces: list[_Piece] = []
        rows = changes.transaction_rows
        plan = build_element_plan([pool.table.source_table()])
        with path.open("wb") as file:
            for piece in changes.pieces():
                bounds = np.append(np.arange(0, len(piece), rows), len(piece))
                first = piece.first // rows
                dml = _dml(piece, pool, rows)
                transactions = _transactions(first, bounds)
                encoded = encode_transactions(transactions, dml, plan, big_endian=False)
                start = -(-file.tell() // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
                file.seek(start)
                for part in (encoded.first[1:], encoded.messages, encoded.blob):
                    file.write(part.data)
                count = len(encoded.messages)
                self._pieces.append(_Piece(start, file.tell() - start, first, count))
                self.messages += int(encoded.messages.sum())
                self.size += encoded.blob.size

    def pieces(self) -> Iterator[ReadyRun]:
        """Yield the transactions in the form in which the decoder queues them. A part of the file
        is mapped as long as its transactions are used.
        """
        with self._path.open("rb") as file:
            for start, size, first, count in self._pieces:
                mapped = mmap.mmap(file.fileno(), size, offset=start, access=mmap.ACCESS_COPY)
                ends, messages = np.frombuffer(mapped, np.int64, 2 * count).reshape(2, -1)
                blob = np.frombuffer(mapped, np.uint8, offset=2 * ends.nbytes)
                encoded = EncodedTransactions(blob, np.append(0, ends), messages)
                transactions = _transactions(first, np.zeros(count + 1, np.int64))
                yield ready_run(transactions, encoded, ByteOrder.LITTLE)


def _transactions(first: int, bounds: npt.NDArray[np.int64]) -> TransactionColumns:
    """Return the columns of the transactions, numbered from `first`.

    Args:
        bounds: indexes at which the changes of each transaction begin, and the end of the last one.
    """
    count = len(bounds) - 1
    number = first + np.arange(count)
    scn = (FIRST_SCN + 2 * number).astype(np.uint64)
    zero = np.zeros(count, np.uint32)
    return TransactionColumns(
        con_id=zero,
        xid=(np.uint64(5 << 48) | number.astype(np.uint64)),
        begin_scn=scn,
        begin_time=zero,
        commit_scn=scn + np.uint64(1),
        commit_time=zero,
        serial=np.zeros(count, np.uint16),
        session=zero,
        commit_delay=np.zeros(count, np.uint32),
        commit_thread=np.ones(count, np.uint16),
        commit_sequence=np.ones(count, np.uint32),
        commit_block=number.astype(np.uint32),
        commit_offset=np.zeros(count, np.uint16),
        dml_first=bounds,
    )


def _dml(changes: Changes, pool: Pool, transaction_rows: int) -> DmlColumns:
    """Return the columns of the changes. BeforeData is the whole row, as with supplemental logging
    of ALL columns.
    """
    count, width = len(changes), len(pool.table.specs)
    number = changes.first + np.arange(count)
    set_by = pool.table.set_by(number)
    is_update = changes.kind == DmlKind.UPDATE
    entries = width + np.where(is_update, set_by.shape[1], 0)
    first = np.concatenate([[0], np.cumsum(entries)])
    total = int(first[-1])
    values = columns_of(VALUE, total)
    column, image = values.column, values.image
    row = np.repeat(np.arange(count), entries)
    place = np.arange(total) - first[row]
    tail = place >= width
    column[:] = np.where(tail, set_by[row, np.maximum(place - width, 0)], place)
    image[:] = np.where(tail | (changes.kind[row] == DmlKind.INSERT), Image.AFTER, Image.BEFORE)
    source = np.where(image == Image.AFTER, changes.new[row], changes.old[row])
    offset, length = values.offset, values.length
    offset[:], length[:] = pool.offset[source, column], pool.length[source, column]
    values.next[:] = -1
    keys = [encode_number(key) for key in changes.key.tolist()]
    key_length = np.array([len(key) for key in keys], np.int64)
    at = first[:-1]
    length[at] = key_length
    offset[at] = pool.data.size + np.cumsum(key_length) - key_length
    scn = FIRST_SCN + 2 * (number // transaction_rows)
    return DmlColumns(
        kind=changes.kind,
        table=np.zeros(count, np.int32),
        scn=scn.astype(np.uint64),
        time=np.zeros(count, np.uint32),
        sequence=np.ones(count, np.uint32),
        block=np.ones(count, np.uint32),
        offset=np.zeros(count, np.uint16),
        dataobj=np.full(count, 70_001, np.uint32),
        bdba=(changes.key // 100).astype(np.uint32),
        slot=(changes.key % 100).astype(np.uint16),
        stored_first=np.full(count, -1, np.int64),
        stored_count=np.zeros(count, np.int32),
        entry_first=first,
        values=values,
        stored=empty_entries(0),
        data=np.concatenate([pool.data, np.frombuffer(b"".join(keys), np.uint8)]),
    )
