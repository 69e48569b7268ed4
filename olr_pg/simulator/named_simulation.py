"""A simulated database with a named workload: order entry, a bulk load, or updates of wide rows.

The row-by-row model writes all redo. On request, the model repeats the workload: each repetition
(copy) has its own keys and blocks, and begins in the same state as the first one. So the redo of
the copies differs only in the values that `simulator.stamping` changes.

Facts: values-and-lobs §1.1 (declarations).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.model import Snapshot
from olr_pg.simulator.database_shape import start_containers, start_instance, start_session
from olr_pg.simulator.fields.cells import text
from olr_pg.simulator.fields.redo_format import NO_OBJECT, TYP_NEW
from olr_pg.simulator.model.column_types import (
    char,
    date_type,
    number_type,
    nvarchar,
    raw_type,
    timestamp_type,
    timestamp_tz_type,
    varchar,
)
from olr_pg.simulator.model.shop_inventory import order_structure, table_structure
from olr_pg.simulator.model.storage import BlockState, TransactionalBlock
from olr_pg.simulator.model.tables import SimColumn
from olr_pg.simulator.sessions import order_entry
from olr_pg.simulator.sessions.order_entry import WorkSetting, insert_array
from olr_pg.simulator.sessions.placement import TableSpec, place_table
from olr_pg.simulator.sessions.row_shape import Keys
from olr_pg.simulator.writer import instance as space
from olr_pg.simulator.writer.log_file import FIRST_DATA_BLOCK, VLD_VOID
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import ColumnType, Logging, Row, SimTable
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.sessions.order_entry import Cells, KeyColumns, NamedWorkload
    from olr_pg.simulator.sessions.row_shape import RowShape
    from olr_pg.simulator.writer.instance import LogSink, RedoThread

ENDS_BYTES: Final = 12
"""Approximate bytes of the first and the last column of a wide row."""

TEXT_MAX: Final = 4_000
_WORDS: Final = "the quick brown fox jumps over the lazy dog while 0123456789 sheep sleep; "

_TYPES: Final[dict[str, Callable[..., Any]]] = {
    "NUMBER": number_type,
    "VARCHAR2": varchar,
    "NVARCHAR2": nvarchar,
    "CHAR": char,
    "RAW": raw_type,
    "DATE": date_type,
    "TIMESTAMP": timestamp_type,
    "TIMESTAMPTZ": timestamp_tz_type,
}


class _Declared(NamedTuple):
    """A declared table: its columns; the columns of its key and of another index, from 0.

    A column is NOT NULL unless NULL follows its type.
    """

    columns: str
    key: tuple[int, ...]
    indexed: tuple[int, ...] = ()


_SHOP: Final = {
    "WAREHOUSES": _Declared(
        "WAREHOUSE_ID NUMBER(6,0), NAME VARCHAR2(10), PAID NUMBER(15,2)", key=(0,)
    ),
    "DISTRICTS": _Declared(
        "WAREHOUSE_ID NUMBER(6,0), DISTRICT_ID NUMBER(6,0), NAME VARCHAR2(10),"
        " NEXT_ORDER NUMBER(12,0), PAID NUMBER(15,2)",
        key=(0, 1),
    ),
    "CUSTOMERS": _Declared(
        "CUSTOMER_ID NUMBER(12,0), WAREHOUSE_ID NUMBER(6,0), DISTRICT_ID NUMBER(6,0),"
        " NAME VARCHAR2(40), CITY NVARCHAR2(20) NULL, NOTES VARCHAR2(200) NULL,"
        " BALANCE NUMBER(12,2), PAID NUMBER(15,2), PAYMENTS NUMBER(6,0), SINCE DATE",
        key=(0,),
    ),
    "STOCK": _Declared(
        "WAREHOUSE_ID NUMBER(6,0), ITEM_ID NUMBER(6,0), NAME VARCHAR2(24), QUANTITY NUMBER(6,0),"
        " SOLD NUMBER(12,0)",
        key=(0, 1),
    ),
    "ORDERS": _Declared(
        "ORDER_ID NUMBER(12,0), CUSTOMER_ID NUMBER(12,0), CARRIER NUMBER(2,0) NULL, STATUS CHAR(1),"
        " LINES NUMBER(6,0), SHIPPED TIMESTAMPTZ(3) NULL, ENTERED TIMESTAMP(6)",
        key=(0,),
        indexed=(1,),
    ),
    "NEW_ORDERS": _Declared(
        "ORDER_ID NUMBER(12,0), WAREHOUSE_ID NUMBER(6,0), DISTRICT_ID NUMBER(6,0)", key=(0,)
    ),
    "ORDER_LINES": _Declared(
        "ORDER_ID NUMBER(12,0), LINE NUMBER(4,0), ITEM_ID NUMBER(6,0), TAG RAW(16) NULL,"
        " QUANTITY NUMBER(6,0), PRICE NUMBER(10,2), DELIVERED DATE NULL, ITEM VARCHAR2(24),"
        " AMOUNT NUMBER(12,2)",
        key=(0, 1),
    ),
    "PAYMENTS": _Declared(
        "CUSTOMER_ID NUMBER(12,0), WAREHOUSE_ID NUMBER(6,0), AMOUNT NUMBER(10,2),"
        " NOTE VARCHAR2(24) NULL, PAID_AT TIMESTAMP(6), PAYMENT_ID NUMBER(12,0)",
        key=(5,),
    ),
    "SETTINGS": _Declared("NAME VARCHAR2(24), VALUE VARCHAR2(200)", key=(0,)),
}
"""The tables of the workload `orders`; the rows of SETTINGS never change."""

_WIDE_TYPES: Final = (
    *("NUMBER(10,2)", "VARCHAR2(12)", "NUMBER(6,0)", "DATE", "VARCHAR2(30)", "TIMESTAMP(6)"),
    *("RAW(8)", "NUMBER(15,0)"),
)


def _columns(declared: str) -> tuple[SimColumn, ...]:
    return tuple(_column(*one.split()) for one in declared.split(", "))


def _column(name: str, declared: str, null: str = "") -> SimColumn:
    word, _, numbers = declared.rstrip(")").partition("(")
    kind: ColumnType = _TYPES[word](*map(int, numbers.split(",") if numbers else ()))
    return SimColumn(name, kind, nullable=bool(null))


def order_tables(logging: Logging, _: RowShape) -> list[TableSpec]:
    """Return the shop's tables."""
    return [
        TableSpec(
            *("SHOP", name, _columns(one.columns), one.key, logging),
            ((one.key, True), *([(one.indexed, False)] if one.indexed else [])),
        )
        for name, one in _SHOP.items()
    ]


def load_tables(logging: Logging, _: RowShape) -> list[TableSpec]:
    """Return one table of twelve columns, without indexes."""
    columns = _columns(
        "ID NUMBER(12,0), CODE1 VARCHAR2(20) NULL, CODE2 VARCHAR2(20) NULL,"
        " CODE3 VARCHAR2(20) NULL,"
        " AMOUNT1 NUMBER(12,2) NULL, AMOUNT2 NUMBER(12,2) NULL, AMOUNT3 NUMBER(12,2) NULL,"
        " DAY DATE NULL, MADE TIMESTAMP(6) NULL, TEXT VARCHAR2(100) NULL, MARK RAW(16) NULL,"
        " COUNT NUMBER(6,0)"
    )
    return [TableSpec("LOAD", "FACTS", columns, (0,), logging)]


def wide_tables(logging: Logging, rows: RowShape) -> list[TableSpec]:
    """Return one table with the number of columns that `rows` says."""
    count = rows.columns - 2
    kinds = (_WIDE_TYPES[n % len(_WIDE_TYPES)] for n in range(1, count + 1))
    middle = [_column(f"C{n}", kind, "NULL") for n, kind in enumerate(kinds, 1)]
    if rows.row_bytes is not None:
        kind = _of_size((rows.row_bytes - ENDS_BYTES) // count)
        middle = [replace(column, type=kind) for column in middle]
    first, last = _columns("ID NUMBER(12,0), CHANGES NUMBER(9,0)")
    columns = (first, *middle, last)
    return [TableSpec("WIDE", "READINGS", columns, (0,), logging, (((0,), True),))]


def _of_size(stored: int) -> ColumnType:
    """Declare a column whose values have `stored` bytes in a row: text, or small numbers."""
    if stored < len("\x02ab"):
        return number_type(2, 0)
    size = min(TEXT_MAX, stored - (1 if stored <= 251 else 3))
    words = _WORDS * (2 + size // len(_WORDS))

    def make(rng: Random) -> Cell:
        at = rng.randrange(len(_WORDS))
        return text(words[at : at + size], "utf-8")

    return replace(varchar(size), make=make)


INDEX_BLOCKS: Final = 16
INDEX_SPACING: Final = 30_000
"""Blocks from the beginning of one index to the next, so that the leaves of many copies fit between
them.
"""

ROW_SPACE: Final = 5200
UPDATE_RESERVE: Final = 2700
"""Bytes of a block that only updates may fill: enough that no update moves a row."""

LITTLE: Final = 3_000_000
"""If less redo than this is requested, only half of the sessions work."""

START_ARRAY: Final = 16
"""Rows per array insert when the tables are filled before the workload begins."""

NOISE: Final = 0.02
"""Probability that a space record or a void record follows a statement."""

WRITTEN_MAX: Final = 30
SPACE_FILE: Final = 22
LOG_SLACK: Final = 1 << 20
"""Bytes by which a log may exceed its planned size."""

LOST_SEED: Final = 0x1057
_COPY_SEED: Final = 0xC0B7


@dataclass(frozen=True, slots=True)
class Named:
    """A named workload.

    Attributes:
        tables: makes the tables, in the order of their numbers in the workload.
        sessions: number of concurrent sessions; half of them if little redo is requested.
        keys: the columns whose numbers are chosen so that redo can be copied.
    """

    tables: Callable[[Logging, RowShape], list[TableSpec]]
    make: Callable[[WorkSetting], NamedWorkload]
    sessions: int
    keys: KeyColumns


NAMED: Final = {
    "orders": Named(order_tables, order_entry.OrderEntry, 8, order_entry.KEYS),
    "bulk": Named(load_tables, order_entry.BulkLoad, 2, order_entry.BULK_KEYS),
    "wide": Named(wide_tables, order_entry.WideUpdates, 4, order_entry.WIDE_KEYS),
}
"""The available workloads, by name."""


class NamedSimulation:
    """A database that carries out a named workload, from the first log to the last.

    Args:
        seed: determines all random choices.
        workload: a name in `NAMED`.
        size: bytes of redo that will be written; decides the size of the tables.
        archive: receives each log that ends.
        prefilled: the tables have rows before the first redo.
        idle_threads: number of redo threads without sessions; these are the last ones.
        in_copies: the redo is written copy by copy (`begin_copy`).

    Attributes:
        changes: number of committed row changes by kind.
        transactions: number of committed transactions with row changes.
    """

    def __init__(
        self,
        seed: int,
        workload: str,
        shape: DatabaseShape,
        size: int,
        archive: LogSink,
        *,
        prefilled: bool = False,
        idle_threads: int = 0,
        in_copies: bool = False,
    ) -> None:
        self.seed, self._name, self.shape, self._size = seed, workload, shape, size
        self._named, self._rng = NAMED[workload], Random(seed)  # noqa: S311 - reproducible
        self._prefilled, self._idle_threads = prefilled, idle_threads
        self.instance = start_instance(seed, self._rng, shape, archive)
        self.threads = self.instance.threads
        self.container = start_containers(self.instance, shape)[0]
        self.tables = tuple(
            place_table(
                number, spec, shape.start_scn,
                index_blocks=INDEX_BLOCKS, index_spacing=INDEX_SPACING,
            )
            for number, spec in enumerate(self._named.tables(shape.logging[0], shape.rows))
        )  # fmt: skip
        for table in self.tables:
            table.row_space, table.update_reserve = ROW_SPACE, UPDATE_RESERVE
        few = self._named.sessions // (1 if size >= LITTLE else 2)
        few = 1 if shape.rows.statements == 0 else few
        self._session_count = max(few, shape.threads)
        self.changes = dict.fromkeys((DmlKind.INSERT, DmlKind.UPDATE, DmlKind.DELETE), 0)
        self.transactions = 0
        self._counted = 0
        self._loading: Iterator[None] | None = None
        self._time_shift = timedelta(0)
        self._begin_work(Keys(0 if in_copies else None))
        if not in_copies:
            self._fill(range(len(self.tables)))

    def _begin_work(self, keys: Keys) -> None:
        sessions = self._session_count
        now, rows = self._now, self.shape.rows
        setting = WorkSetting(self._rng, self.tables, sessions, self._size, keys, now, rows)
        self._workload = self._named.make(setting)
        busy = self.shape.threads - self._idle_threads
        self.sessions = [
            start_session(self.instance, self.container, self.threads[number % busy], number)
            for number in range(self._session_count)
        ]

    def _now(self) -> int:
        """Return the time of the workload in microseconds; every copy has the times of the first
        copy.
        """
        return int((self.instance.clock - self._time_shift).timestamp() * 1_000_000)

    # --- before the first statement ---

    def _fill(self, tables: Sequence[int]) -> None:
        """Insert the first rows of tables: with redo, unless the tables are prefilled."""
        if self._prefilled:
            for number in tables:
                table, scn = self.tables[number], self.shape.start_scn
                rows = [table.store(cells, scn) for cells in self._workload.start_rows[number]]
                self._workload.started(number, rows)
        else:
            self._loading = self._insert_first(tables)

    def _insert_first(self, tables: Sequence[int]) -> Iterator[None]:
        session = self.sessions[0]
        for number in tables:
            cells: Sequence[Cells] = self._workload.start_rows[number]
            rows: list[Row] = []
            for at in range(0, len(cells), START_ARRAY):
                rows += insert_array(session, self.tables[number], cells[at : at + START_ARRAY])
                yield
            self._workload.started(number, rows)
            session.commit()
            yield

    @property
    def is_loading(self) -> bool:
        """Whether the first rows of the tables are still being inserted."""
        return self._loading is not None

    # --- the work ---

    def work(self, size: int) -> None:
        """Write about `size` more bytes of redo."""
        end = self.instance.redo_bytes + size
        while self.instance.redo_bytes < end or self._loading is not None:
            self._step()
        self._count()

    def _step(self) -> None:
        if self._loading is not None:
            if next(self._loading, self) is self:
                self._loading = None
            return
        number = int(self._rng.random() * len(self.sessions))
        self._workload.step(number, self.sessions[number])
        if self._rng.random() < NOISE:
            self._write_noise(self.sessions[number].thread)

    def _write_noise(self, thread: RedoThread) -> None:
        """Write a space record or a void record, like Oracle's background processes (redo-format
        §12).
        """
        record, redo = self.instance.record(thread, self.container), self.shape.redo
        if self._rng.random() < 0.5:
            kind = space.FILE_MAPS[0]
            block = BlockState(SPACE_FILE, space.SPACE_DBA, record.scn)
            where = block.change(record.scn, cls=kind.cls, obj=NO_OBJECT, typ=TYP_NEW)
            record.vector(kind.opcode, space.file_map_fields(redo, kind), where)
            record.emit()
            return
        entries = [
            space.written_block(
                redo, SPACE_FILE, space.SPACE_DBA + self._rng.randrange(64), record.scn, 1
            )
            for _ in range(self._rng.randint(1, WRITTEN_MAX))
        ]
        record.vector((23, 1), [b"".join(entries)])
        record.emit(VLD_VOID)

    def heartbeat(self, thread: int) -> None:
        """Write a record without a transaction to a thread's log, and flush; `thread` counts from
        0.
        """
        self._write_noise(self.threads[thread])
        self.threads[thread].flush()

    def flush(self) -> None:
        """Finish every thread's open LWN."""
        for thread in self.threads:
            thread.flush()

    def commit_all(self) -> None:
        """Commit all open transactions."""
        for session in self.sessions:
            session.commit()
        self._count()

    def forget_undo(self) -> None:
        """If one transaction contains all statements of the run, discard its undo and changes,
        except the newest change.

        The transaction that contains all statements is never rolled back. `changes` also counts the
        discarded changes.
        """
        if self.shape.rows.statements != 0 or self.is_loading:
            return
        for transaction in (session.transaction for session in self.sessions):
            if transaction is not None:
                for change in transaction.changes[:-1]:
                    self.changes[change.kind] += 1
                del transaction.changes[:-1], transaction.undo[:-1]

    def switch_logs(self) -> None:
        """Switch the log of every thread, so that it is archived; a log without redo is not
        switched.
        """
        self.flush()
        for thread in self.threads:
            if thread.log.blocks:
                thread.switch()

    def end(self) -> None:
        """Commit all open transactions, and archive every thread's log."""
        self.commit_all()
        self.flush()
        self.instance.shut_down()

    def _count(self) -> None:
        for transaction in self.instance.committed[self._counted :]:
            self.transactions += bool(transaction.delivered)
            for change in transaction.delivered:
                self.changes[change.kind] += 1
        self._counted = len(self.instance.committed)

    def take_committed(self) -> list[Transaction]:
        """Return the transactions that were committed since the last call, in commit order."""
        self._count()
        taken, self.instance.committed, self._counted = self.instance.committed, [], 0
        return taken

    def take_finished(self) -> dict[SimTable, list[Row]]:
        """Return, by table, committed rows that no later statement changes; remove them from the
        tables.

        The final tables contain these rows in addition to `SimTable.live`.
        """
        finished: dict[SimTable, list[Row]] = defaultdict(list)
        waiting, self._workload.finished = self._workload.finished, []
        for row in waiting:
            if row.owner is not None and row.owner.active:
                self._workload.finished.append(row)
            elif row.position >= 0:
                finished[row.table].append(row)
        for table in self.tables:
            table.forget(finished[table])
        return finished

    # --- events of a running database ---

    def set_clock(self, unix_time: float) -> None:
        """Set the database's clock, in seconds since 1970; the clock never goes back."""
        now = datetime.fromtimestamp(unix_time, UTC)
        self.instance.clock = max(self.instance.clock, now)

    def open_begins(self) -> list[int]:
        """Return the begin SCNs of the open transactions."""
        begins = [one.transaction.begin_scn for one in self.sessions if one.transaction]
        return [scn for scn in begins if scn]

    def roll_back(self, thread: int) -> None:
        """Roll back the open transactions of a thread's sessions, and flush; `thread` counts from
        0.
        """
        for number, session in enumerate(self.sessions):
            if session.thread is self.threads[thread]:
                session.rollback()
                self._workload.broken_off(number)
        self.threads[thread].flush()

    def open_resetlogs(self, resetlogs: int, activation: int) -> None:
        """Begin a new incarnation; open transactions are rolled back."""
        self.flush()  # If this fills a log, the log is switched before the first thread ends.
        self.instance.open_resetlogs(resetlogs, activation)
        for thread in range(self.shape.threads):
            self.roll_back(thread)

    def lost_redo(self, thread: int, size: int) -> bytes:
        """Return the blocks that a thread was writing when its instance crashed, after its last
        LWN.

        The changes in these blocks are lost. The blocks come from another simulated database of the
        same shape.

        Args:
            thread: its number from 0; it must have no pending records.
            size: approximate bytes of redo.
        """
        own, log = self.instance, self.threads[thread].log
        pace = replace(self.shape.pace, log_blocks=1 << 30)
        shape = replace(self.shape, threads=1, start_scn=own.scn, pace=pace)
        other = NamedSimulation(
            *(self.seed ^ LOST_SEED ^ own.scn, self._name, shape, size),
            lambda *_: None,
            prefilled=True,
        )
        other.instance.clock = own.clock
        other.work(size)
        other.flush()
        lost = other.threads[0].log
        lost.sequence = log.sequence
        return lost.sealed(0, log.blocks)

    # --- copies ---

    def load_once(self) -> None:
        """Write the redo that is in no copy; each thread writes it to a separate log."""
        self._fill(sorted(self._workload.written_once))
        self.work(0)
        self.end_copy()

    def begin_copy(self, number: int = 0, seconds: int = 0) -> None:
        """Begin a copy, with its own keys and blocks, and otherwise in the state of the first copy.

        Args:
            number: the number of the copy, from 0.
            seconds: time between the beginnings of two copies.
        """
        if number == 0:
            self._copies_from = self.instance.clock
        self._time_shift = timedelta(seconds=number * seconds)
        self.instance.clock = self._copies_from + self._time_shift
        self.instance.forget_last_thread()
        self._rng.seed(self.seed ^ _COPY_SEED)
        for segment in self.container.every_segment():
            segment.rewind()
        for table in self.tables:
            for part in table.segments:
                part.open_from = len(part.blocks)
            for index in table.indexes:
                first = index.segment_dba + 1 + number * INDEX_BLOCKS
                index.blocks = [
                    TransactionalBlock(table.afn, first + at, self.shape.start_scn, first_itl=2)
                    for at in range(INDEX_BLOCKS)
                ]
        self._begin_work(Keys(number))
        once = self._workload.written_once
        self._fill([at for at in range(len(self.tables)) if at not in once])

    def end_copy(self) -> None:
        """Commit all open transactions, and end every thread's log."""
        self.commit_all()
        self.flush()
        for thread in self.threads:
            thread.switch()

    # --- the dictionary ---

    def snapshot(self) -> Snapshot:
        """Return the current dictionary."""
        database = self.instance.describe(self.container)
        keys = self._workload.next_keys()
        structure = order_structure(self.tables, keys) if keys else table_structure(self.tables)
        tables = tuple(table.describe() for table in self.tables)
        return Snapshot(self.instance.scn, database, tables, structure=structure)


def log_blocks_max(shape: DatabaseShape) -> int:
    """Return the maximum number of blocks of a log of a database."""
    return FIRST_DATA_BLOCK + shape.pace.log_blocks + LOG_SLACK // shape.redo.block_size
