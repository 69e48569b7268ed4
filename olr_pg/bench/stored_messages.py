"""Generated row changes of a table with 12 columns or many: as SQL, and as messages that the server
delivers, stored in a file. A run maps the file piece by piece.

The encoder of the appliance makes the protocol elements. The protocol elements are several times as
large as the changes. In memory, they would be the larger part of the memory that the benchmarks
report.

The applier gets the changes as protocol elements, and a publishing PostgreSQL gets them as
statements. So the applier and the logical replication worker have the same work.
"""

from __future__ import annotations

import mmap
from datetime import datetime, timedelta
from decimal import Decimal
from math import gcd
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from psycopg import sql

from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.temporal import DateTime, encode_date, encode_timestamp
from olr_pg.dictionary.model import Column, KeyKind, Table
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
from olr_pg.wire.encoder import EncodedTransactions, encode_transactions
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from psycopg import Connection


I64 = npt.NDArray[np.int64]

_SEED: Final = 20_240_607
_WORDS: Final = ("north", "harbour", "copper", "lantern", "meadow", "granite", "willow", "ember")
_EPOCH: Final = datetime(2024, 1, 1)  # noqa: DTZ001 - Oracle's DATE has no zone
_PIECE_ROWS: Final = 16_384
_GOLDEN: Final = 0.618
_SHARES: Final = {
    "insert": (1.0, 0.0), "update": (0.0, 1.0), "delete": (0.0, 0.0), "mix": (0.6, 0.3),
}  # fmt: skip
"""The shares of inserts and of updates among the changes; the other changes are deletes."""


def _text(words: int) -> Callable[[Random], str]:
    return lambda rng: " ".join(rng.choice(_WORDS) for _ in range(words))


def _number(scale: int, digits: int) -> Callable[[Random], Decimal]:
    return lambda rng: Decimal(rng.randrange(10**digits)).scaleb(-scale)


def _moment(rng: Random) -> datetime:
    return _EPOCH + timedelta(seconds=rng.randrange(40_000_000))


def _fraction(rng: Random) -> datetime:
    return _moment(rng) + timedelta(microseconds=rng.randrange(1, 1_000_000))


class _Spec(NamedTuple):
    """A column: its PostgreSQL type, its description in Oracle's dictionary, and a function that
    makes values.
    """

    name: str
    target: str
    type_code: OracleType
    length: int
    precision: int | None
    scale: int | None
    make: Callable[[Random], Any]


_SPECS: Final = (
    _Spec("ID", "bigint", OracleType.NUMBER, 22, 18, 0, _number(0, 1)),
    _Spec("CUSTOMER", "bigint", OracleType.NUMBER, 22, 12, 0, _number(0, 9)),
    _Spec("AMOUNT", "numeric(12,2)", OracleType.NUMBER, 22, 12, 2, _number(2, 9)),
    _Spec("QUANTITY", "integer", OracleType.NUMBER, 22, 9, 0, _number(0, 4)),
    _Spec("NAME", "varchar(60)", OracleType.VARCHAR2, 60, None, None, _text(3)),
    _Spec("CITY", "varchar(40)", OracleType.VARCHAR2, 40, None, None, _text(2)),
    _Spec("STATUS", "varchar(12)", OracleType.VARCHAR2, 12, None, None, _text(1)),
    _Spec("CREATED", "timestamp(0)", OracleType.DATE, 7, None, None, _moment),
    _Spec("CHANGED", "timestamp(6)", OracleType.TIMESTAMP, 11, None, 6, _fraction),
    _Spec("PRICE", "numeric(10,4)", OracleType.NUMBER, 22, 10, 4, _number(4, 9)),
    _Spec("NOTE", "varchar(120)", OracleType.VARCHAR2, 120, None, None, _text(9)),
    _Spec("REFERENCE", "varchar(30)", OracleType.VARCHAR2, 30, None, None, _text(2)),
)


class MadeUpTable:
    """The table ``bench.t``, whose first column is its key.

    Args:
        specs: the columns.
        sets: shape (m, k); the indexes of the columns that an update sets. Update n sets those of
            row n modulo m.
        pool_rows: number of distinct rows, from which the changes take all values except the key.

    Attributes:
        names: the column names in the target.
    """

    def __init__(self, specs: Sequence[_Spec], sets: I64, pool_rows: int) -> None:
        self.specs = tuple(specs)
        self.sets = sets
        self.pool_rows = pool_rows
        self.names = tuple(spec.name.lower() for spec in self.specs)

    @property
    def create(self) -> str:
        """The SQL that creates the table in the target."""
        columns = (f"{s.name.lower()} {s.target}" for s in self.specs)
        return (
            "CREATE SCHEMA IF NOT EXISTS bench;"
            f" CREATE TABLE bench.t ({', '.join(columns)}, PRIMARY KEY (id))"
        )

    def set_by(self, numbers: I64) -> I64:
        """Return the indexes of the columns that these updates set: one row for each number."""
        return self.sets[numbers % len(self.sets)]

    def source_table(self) -> Table:
        """Return the table as Oracle's dictionary would describe it."""
        return Table(
            owner="BENCH",
            name="T",
            obj=70_001,
            dataobj=70_001,
            columns=tuple(
                Column(
                    name=spec.name,
                    segcol=number,
                    intcol=number,
                    col=number,
                    type_code=spec.type_code,
                    length=spec.length,
                    precision=spec.precision,
                    scale=spec.scale,
                    charset_id=873 if spec.type_code is OracleType.VARCHAR2 else None,
                    charset_form=1 if spec.type_code is OracleType.VARCHAR2 else None,
                )
                for number, spec in enumerate(self.specs, 1)
            ),
            key_kind=KeyKind.PRIMARY,
            key=(1,),
        )


NARROW: Final = MadeUpTable(_SPECS, np.array([[2, 6, 8]]), pool_rows=4_096)
"""A table of 12 columns. An update sets AMOUNT, STATUS and CHANGED."""

_DRAWN_SETS: Final = 1_009
_SMALL: Final = (1, 2, 3, 6, 7)
"""Indexes of the columns that are repeated in a wide table. Of these, 1,000 fit into a page."""


def wide_table(width: int, set_columns: int) -> MadeUpTable:
    """Return a table with many small columns.

    Args:
        width: number of columns.
        set_columns: how many columns each update sets, at most all except the key. If there are
            fewer, the columns are drawn anew for each of 1,009 updates.
    """
    places = range(1, width)
    repeated = (_SPECS[_SMALL[place % len(_SMALL)]] for place in places)
    specs = [spec._replace(name=f"{spec.name}_{n}") for n, spec in enumerate(repeated, 1)]
    rng = Random(_SEED + width)  # noqa: S311 - reproducible, not secret
    drawn = [sorted(rng.sample(places, set_columns)) for _ in range(_DRAWN_SETS)]
    sets = [list(places)] if set_columns >= width - 1 else drawn
    return MadeUpTable((_SPECS[0], *specs), np.array(sets), pool_rows=256)


class Changes(NamedTuple):
    """Consecutive changes of a `ChangeSet`, in whole transactions.

    Attributes:
        first: number of the first change.
        kind: shape (n); the `DmlKind` of each change.
        key: shape (n); the key of each change.
        old, new: shape (n); numbers of the pool's rows that are the images before and after each
            change.
    """

    first: int
    kind: npt.NDArray[np.uint8]
    key: I64
    old: I64
    new: I64

    def __len__(self) -> int:
        return len(self.kind)


class ChangeSet:
    """Row changes in order, in transactions of equal size. The changes are generated piece by
    piece; repeated calls generate the same changes.

    Every key is changed once. Updates and deletes visit the rows of the table in a scattered order.

    Args:
        case: ``insert``, ``update``, ``delete``, or ``mix`` (60 %, 30 % and 10 % of these).
        count: number of changes.
        transaction_rows: number of changes in each transaction; the last one can have fewer.
        table: the table that is changed.

    Attributes:
        rows: number of rows that the table has before the changes; their keys begin with 1.
    """

    def __init__(
        self, case: str, count: int, transaction_rows: int, table: MadeUpTable = NARROW
    ) -> None:  # fmt: skip
        self.count = count
        self.table = table
        self.transaction_rows = transaction_rows
        self._shares = _SHARES[case]
        self._step = max(1, _PIECE_ROWS // transaction_rows) * transaction_rows
        self.rows = sum(int((self._kinds(at) != DmlKind.INSERT).sum()) for at in self._firsts())

    def pieces(self) -> Iterator[Changes]:
        """Yield the changes in pieces of some ten thousand changes."""
        stride = _stride(self.rows)
        inserts = others = 0
        for first in self._firsts():
            kind = self._kinds(first)
            is_insert = kind == DmlKind.INSERT
            key = np.empty(len(kind), np.int64)
            new_keys = int(is_insert.sum())
            key[is_insert] = self.rows + 1 + inserts + np.arange(new_keys)
            place = others + np.arange(len(kind) - new_keys)
            key[~is_insert] = place * stride % max(self.rows, 1) + 1
            inserts += new_keys
            others += len(kind) - new_keys
            old = (key - 1) % self.table.pool_rows
            drawn = np.random.default_rng((_SEED, first, 1)).integers(
                0, self.table.pool_rows, len(kind)
            )
            new = np.where(kind == DmlKind.UPDATE, drawn, old)
            yield Changes(first, kind, key, old, new)

    def _firsts(self) -> range:
        return range(0, self.count, self._step)

    def _kinds(self, first: int) -> npt.NDArray[np.uint8]:
        draw = np.random.default_rng((_SEED, first)).random(min(self._step, self.count - first))
        inserts, updates = self._shares
        return np.where(draw < inserts, DmlKind.INSERT, np.where(
            draw < inserts + updates, DmlKind.UPDATE, DmlKind.DELETE)).astype(np.uint8)  # fmt: skip


def _stride(rows: int) -> int:
    """Return a step of about 0.6 · `rows`. Repeated steps modulo `rows` reach every row once."""
    stride = int(rows * _GOLDEN) | 1
    while gcd(stride, rows) > 1:
        stride += 2
    return stride


class Pool:
    """The rows from which a table's values are taken, as Python values and in Oracle's form."""

    def __init__(self, table: MadeUpTable = NARROW) -> None:
        self.table = table
        specs, width = table.specs, len(table.specs)
        rng = Random(_SEED)  # noqa: S311 - reproducible, not secret
        self.rows = [[spec.make(rng) for spec in specs] for _ in range(table.pool_rows)]
        raw = [
            _oracle_value(spec, value)
            for row in self.rows
            for spec, value in zip(specs, row, strict=True)
        ]
        self.data = np.frombuffer(b"".join(raw), np.uint8)
        self.length = np.array([len(value) for value in raw], np.int64).reshape(-1, width)
        ends = np.cumsum(self.length.reshape(-1)).reshape(-1, width)
        self.offset = ends - self.length

    def load(self, connection: Connection[Any]) -> None:
        """Create the table ``pool`` with the number of each row (`i`) and its columns."""
        connection.execute("CREATE TABLE pool AS SELECT 0 AS i, t.* FROM bench.t t LIMIT 0")
        names = sql.SQL(", ").join(map(sql.Identifier, ("i", *self.table.names)))
        with connection.cursor().copy(sql.SQL("COPY pool ({}) FROM STDIN").format(names)) as copy:
            for number, row in enumerate(self.rows):
                copy.write_row((number, *row))


def _oracle_value(spec: _Spec, value: Any) -> bytes:
    if spec.type_code is OracleType.NUMBER:
        return encode_number(value)
    if spec.type_code is OracleType.VARCHAR2:
        return bytes(value, "ascii")
    fields = (value.year, value.month, value.day, value.hour, value.minute, value.second)
    if spec.type_code is OracleType.DATE:
        return encode_date(DateTime(*fields, 0))
    return encode_timestamp(DateTime(*fields, value.microsecond * 1000))


def fill_table(connection: Connection[Any], table: MadeUpTable, rows: int) -> None:
    """Fill ``bench.t`` with rows that have the keys 1 to `rows`; the table ``pool`` must exist."""
    names = sql.SQL(", ").join(map(sql.Identifier, table.names[1:]))
    connection.execute(
        sql.SQL(
            "INSERT INTO bench.t SELECT g, {} FROM generate_series(1, {}) g"
            " JOIN pool ON i = (g - 1) % {} ORDER BY g"
        ).format(names, rows, table.pool_rows)
    )


_PUBLISH: Final = """
CREATE PROCEDURE play(size int) LANGUAGE plpgsql AS $$
DECLARE c record; n int := 0;
BEGIN
  FOR c IN SELECT kind, key, new FROM change ORDER BY number LOOP
    IF c.kind = {insert} THEN
      INSERT INTO bench.t SELECT c.key, {values} FROM pool WHERE i = c.new;
    ELSIF c.kind = {update} THEN
      EXECUTE (SELECT statement FROM setting WHERE number = n % {sets}) USING c.new, c.key;
    ELSE
      DELETE FROM bench.t WHERE id = c.key;
    END IF;
    n := n + 1;
    IF n % size = 0 THEN COMMIT; END IF;
  END LOOP;
END $$
"""


def publish(connection: Connection[Any], changes: ChangeSet) -> None:
    """Execute the changes in PostgreSQL, in the same transactions; the connection is in autocommit
    mode.
    """
    table = changes.table
    connection.execute("DROP PROCEDURE IF EXISTS play; DROP TABLE IF EXISTS change, setting")
    connection.execute("CREATE INDEX IF NOT EXISTS pool_i ON pool (i)")
    connection.execute("CREATE TABLE change (number int, kind int, key bigint, new int)")
    with connection.cursor().copy("COPY change FROM STDIN") as copy:
        for piece in changes.pieces():
            rows = zip(piece.kind.tolist(), piece.key.tolist(), piece.new.tolist(), strict=True)
            for number, row in enumerate(rows, piece.first):
                copy.write_row((number, *row))
    connection.execute("CREATE TABLE setting (number int PRIMARY KEY, statement text)")
    with connection.cursor().copy("COPY setting FROM STDIN") as copy:
        for number, columns in enumerate(table.sets.tolist()):
            copy.write_row((number, _update(table, columns).as_string()))
    connection.execute(
        sql.SQL(_PUBLISH).format(
            insert=sql.Literal(int(DmlKind.INSERT)),
            update=sql.Literal(int(DmlKind.UPDATE)),
            values=sql.SQL(", ").join(map(sql.Identifier, table.names[1:])),
            sets=sql.Literal(len(table.sets)),
        )
    )
    connection.execute("SET synchronous_commit = off; ANALYZE pool; ANALYZE bench.t")
    connection.execute("CALL play(%s)", (changes.transaction_rows,))


def _update(table: MadeUpTable, columns: Sequence[int]) -> sql.Composed:
    """Return the UPDATE that sets these columns of the row with the key $2 to the values of the
    pool's row $1.
    """
    names = [sql.Identifier(table.names[i]) for i in columns]
    return sql.SQL("UPDATE bench.t SET {} FROM pool WHERE i = $1 AND t.id = $2").format(
        sql.SQL(", ").join(sql.SQL("{0} = pool.{0}").format(name) for name in names)
    )


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
