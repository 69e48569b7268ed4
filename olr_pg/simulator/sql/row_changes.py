"""Changes rows, both in the model, which writes redo, and in the rows that sessions see.

Keys and foreign keys are checked at the end of a statement, as in Oracle, so that a statement may
swap keys. If another transaction holds a row, the statement waits.

The calls of DBMS_LOB change a part of one value. Offsets count from 1. Offsets and amounts are in
bytes for a BLOB, and in UTF-16 units for a CLOB. So a supplementary character of a CLOB counts
twice, as in Oracle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.simulator.model.lobs import UTF16
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.parsing import Locking
from olr_pg.simulator.sql.row_store import StoredRow
from olr_pg.simulator.sql.typed_values import Blob, Clob, key_of, to_number
from olr_pg.simulator.writer.chained_rows import ChainWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import Row
    from olr_pg.simulator.sessions.session import SimSession
    from olr_pg.simulator.sql.database import SqlDatabase
    from olr_pg.simulator.sql.row_store import (
        Check,
        ForeignKey,
        Key,
        SqlTable,
        SqlTransaction,
        Trigger,
        Values,
    )
    from olr_pg.simulator.sql.typed_values import Value


WRITE, TRIM, ERASE = "write", "trim", "erase"


class Locator(NamedTuple):
    """A LOB of a row; `at` is its column, from 0."""

    stored: StoredRow
    at: int

    def read(self) -> Clob | Blob:
        """Return the current value."""
        values = self.stored.values
        value = None if values is None else values[self.at]
        if not isinstance(value, Clob | Blob):
            raise OraError(22275, "invalid LOB locator specified")
        return value


@dataclass(frozen=True, slots=True)
class LobChange:
    """A change of a part of a LOB.

    Attributes:
        kind: `WRITE`, `TRIM` or `ERASE`; empty if the value does not change.
        offset: the first changed byte, from 0; for TRIM, the new length.
        data: the written bytes: for ERASE, zeros or blanks.
        value: the whole new value.
    """

    kind: str
    offset: int
    data: bytes
    value: Clob | Blob


def content_of(value: str | bytes) -> bytes:
    """Return the bytes of a LOB as they are stored."""
    return bytes(value) if isinstance(value, bytes) else value.encode(UTF16, "surrogatepass")


def _value_of(kind: type, content: bytes) -> Clob | Blob:
    if issubclass(kind, bytes):
        return Blob(content)
    return Clob(content.decode(UTF16, "surrogatepass"))


def _width(lob: Value) -> int:
    return 1 if isinstance(lob, bytes) else 2


def _count(value: Value, least: int = 0) -> int:
    count = int(to_number(value) or 0)
    if count < least:
        raise OraError(21560, "argument is null, invalid, or out of range")
    return count


def _buffer(lob: Value, value: Value, amount: int) -> bytes:
    """Return the bytes to write: the first `amount` units of a text or RAW."""
    if isinstance(lob, bytes) and isinstance(value, str):
        value = bytes.fromhex(value)
    assert isinstance(value, str | bytes)
    content = content_of(value)
    size = amount * _width(lob)
    if size > len(content):
        raise OraError(21560, "argument 2 is null, invalid, or out of range")
    return content[:size]


def _written(lob: Clob | Blob, offset: int, data: bytes) -> LobChange:
    """Return the change that writes bytes at an offset; a gap after the end is filled."""
    content = content_of(lob)
    if offset > len(content):
        gap = offset - len(content)
        data = (bytes(gap) if isinstance(lob, bytes) else b"\0 " * (gap // 2)) + data
        offset = len(content)
    new = content[:offset] + data + content[offset + len(data) :]
    return LobChange(WRITE, offset, data, _value_of(type(lob), new))


def _write(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    amount, offset, buffer = arguments
    at = (_count(offset, 1) - 1) * _width(lob)
    return _written(lob, at, _buffer(lob, buffer, _count(amount, 1)))


def _write_append(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    amount, buffer = arguments
    return _written(lob, len(content_of(lob)), _buffer(lob, buffer, _count(amount, 1)))


def _append(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    (other,) = arguments
    assert isinstance(other, str | bytes)
    return _written(lob, len(content_of(lob)), content_of(other))


def _copy(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    source, amount, *places = arguments
    to, start = [*places, None, None][:2]
    width = _width(lob)
    assert isinstance(source, str | bytes)
    first = (_count(start or to_number("1"), 1) - 1) * width
    data = content_of(source)[first : first + _count(amount, 1) * width]
    return _written(lob, (_count(to or to_number("1"), 1) - 1) * width, data)


def _trim(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    size, content = _count(arguments[0]) * _width(lob), content_of(lob)
    if size > len(content):
        raise OraError(22926, "specified trim length is greater than current LOB value's length")
    kind = TRIM if size < len(content) else ""
    return LobChange(kind, size, b"", _value_of(type(lob), content[:size]))


def _erase(lob: Clob | Blob, arguments: Sequence[Value]) -> LobChange:
    amount, *places = arguments
    width, content = _width(lob), content_of(lob)
    offset = (_count(places[0], 1) - 1) * width if places else 0
    size = min(_count(amount, 1) * width, max(0, len(content) - offset))
    blank = bytes(size) if isinstance(lob, bytes) else b"\0 " * (size // 2)
    new = content[:offset] + blank + content[offset + size :]
    return LobChange(ERASE if size else "", offset, blank, _value_of(type(lob), new))


LOB_CALLS: Final[dict[str, Callable[[Clob | Blob, Sequence[Value]], LobChange]]] = {
    "DBMS_LOB.WRITE": _write,
    "DBMS_LOB.WRITEAPPEND": _write_append,
    "DBMS_LOB.APPEND": _append,
    "DBMS_LOB.COPY": _copy,
    "DBMS_LOB.TRIM": _trim,
    "DBMS_LOB.ERASE": _erase,
}


WAITS: Final = Locking()

ARRAY_MAX: Final = 200
"""Maximum rows of one record, whose number of rows is one byte."""


@dataclass(slots=True)
class Changes:
    """The changes of one statement.

    Args:
        holds: returns whether a row fulfils a CHECK; None if the condition is unknown for it.
        fire: runs a trigger for a row with its old and new values; returns the new values.

    Attributes:
        touched: the changed rows, with their values before the statement.
        gathered: if not None, `insert` collects rows here, to be inserted together.
    """

    database: SqlDatabase
    session: SimSession
    transaction: SqlTransaction
    holds: Callable[[SqlTable, Check, Values], bool | None]
    fire: Callable[[SqlTable, Trigger, str, Values | None, Values | None], Values | None]
    touched: dict[StoredRow, Values | None] = field(default_factory=dict)
    gathered: dict[SqlTable, list[Values]] | None = None

    # --- rows ---

    def insert(self, table: SqlTable, rows: Sequence[Values]) -> list[StoredRow]:
        """Insert rows; their values must have the types of the columns."""
        if self.gathered is not None:
            self.gathered.setdefault(table, []).extend(rows)
            return []
        self._expect_unloaded(table)
        if not table.triggers:
            return self._insert_rows(table, rows)
        found: list[StoredRow] = []
        for given in rows:
            values = self._fire(table, "INSERTING", None, given, is_before=True)
            assert values is not None
            found += self._insert_rows(table, [values])
            self._fire(table, "INSERTING", None, values, is_before=False)
        return found

    def _insert_rows(self, table: SqlTable, rows: Sequence[Values]) -> list[StoredRow]:
        for values in rows:
            self._check_row(table, values)
        cells = [self._cells(table, values) for values in rows]
        for row in cells:
            self._check_partition(table, row)
        made: list[Row] = []
        at = 0
        while at < len(cells):
            made += self._insert_some(table, cells[at:])
            at = len(made)
        return self._store(table, made, rows)

    def _store(
        self, table: SqlTable, made: Sequence[Row], rows: Sequence[Values]
    ) -> list[StoredRow]:
        found: list[StoredRow] = []
        for row, values in zip(made, rows, strict=True):
            stored = StoredRow(table, row, None)
            self.transaction.note(stored)
            stored.values, stored.writer = values, self.transaction
            table.settle(stored)
            table.note(stored)
            self.touched.setdefault(stored, None)
            found.append(stored)
        return found

    def can_append(self, table: SqlTable, rows: Sequence[Values]) -> bool:
        """Return whether rows can be loaded by direct path; if not, they are inserted as usual."""
        plain = not (table.triggers or table.foreign_keys or len(table.sim.segments) > 1)
        return plain and self.session.is_free(table.sim) and all(
            self.session.is_whole(table.sim, self._cells(table, values)) for values in rows
        )  # fmt: skip

    def append(self, table: SqlTable, rows: Sequence[Values]) -> list[StoredRow]:
        """Load rows by direct path. Keys are checked first, because a load cannot be undone."""
        for values in rows:
            self._check_row(table, values)
        for key in table.keys:
            wanted = [own for own in map(key.of, rows) if own is not None]
            taken = any(table.holders(key, own) for own in wanted)
            if taken or len(set(wanted)) < len(wanted):
                raise OraError(1, f"unique constraint ({table.sim.owner}.{key.name}) violated")
        self._expect_unloaded(table)
        if self.session.transaction is None:
            self.session.begin_empty()
        count = self.session.load_part(table.sim, [self._cells(table, one) for one in rows])
        self.transaction.loaded.add(table)
        return self._store(table, table.sim.live[len(table.sim.live) - count :], rows)

    def _expect_unloaded(self, table: SqlTable) -> None:
        if table in self.transaction.loaded:
            raise OraError(12838, "cannot read/modify an object after modifying it in parallel")

    def insert_gathered(self) -> int:
        """Insert the gathered rows; return their number."""
        gathered, self.gathered = self.gathered or {}, None
        return sum(len(self.insert(table, rows)) for table, rows in gathered.items())

    def _insert_some(self, table: SqlTable, cells: Sequence[list[Cell | None]]) -> list[Row]:
        """Insert the first row, and further rows that fit into the same block."""
        sim, together = table.sim, 1
        if not sim.index_organised and not sim.lobs:
            segment = sim.segment_of(cells[0])
            most = min(len(cells), ARRAY_MAX)
            while together < most and sim.segment_of(cells[together]) is segment:
                together += 1
            whole = [len(ChainWriter.parts(sim, row)) == 1 for row in cells[:together]]
            together = whole.index(False) if False in whole else together
        if together > 1:
            made = self.session.insert_many(sim, cells[:together])
        else:
            row = self.session.insert(sim, cells[0])
            made = [row] if row is not None else []
        if not made:
            raise OraError(1554, "out of transaction slots in transaction tables")
        return made

    def update(self, stored: StoredRow, new: Mapping[int, Value]) -> None:
        """Update a locked row; the new values must have the types of the columns."""
        table, old = stored.table, stored.values
        assert old is not None
        values: Values = tuple(new.get(at, value) for at, value in enumerate(old))
        if table.triggers:
            given, changed = values, tuple(new)
            fired = self._fire(table, "UPDATING", old, values, changed, is_before=True)
            values = fired or values
            further = {at for at, value in enumerate(values) if value is not given[at]}
            new = {at: values[at] for at in sorted({*new, *further})}
        self._check_row(table, values)
        cells = {at: table.columns[at].cell(value) for at, value in new.items()}
        row = stored.row
        if table.sim.partition_column in cells and table.sim.has_partitions:
            after = [cells.get(at, cell) for at, cell in enumerate(row.cells)]
            self._check_partition(table, after)
            if table.sim.segment_of(after).obj != row.block.obj and not table.moves_rows:
                raise OraError(
                    14402, "updating partition key column would cause a partition change"
                )
        self._change(stored)
        if not self.session.update(row, cells):
            if any(cell is not None or old[at] is not None for at, cell in cells.items()):
                raise OraError(3001, "unimplemented feature: the simulator cannot write its redo")
            self.session.lock(row)
        elif row.deleted:  # the row has moved to another partition or leaf
            stored.row = table.sim.live[-1]
        stored.values = values
        table.note(stored)
        if table.triggers:
            self._fire(table, "UPDATING", old, values, tuple(new), is_before=False)

    def delete(self, stored: StoredRow) -> None:
        """Delete a locked row."""
        old = stored.values
        self._fire(stored.table, "DELETING", old, None, is_before=True)
        self._change(stored)
        if not self.session.delete(stored.row):
            raise OraError(3001, "unimplemented feature: the simulator cannot delete this row")
        stored.values = None
        self._fire(stored.table, "DELETING", old, None, is_before=False)

    def change_lob(self, locator: Locator, change: LobChange) -> None:
        """Change a part of a LOB of a locked row, as DBMS_LOB does."""
        stored, at = locator
        storage = stored.table.columns[at].storage
        if storage is not None and not storage.wide:
            raise OraError(
                3001, "unimplemented feature: the simulator cannot change parts of this CLOB"
            )
        if stored.locker is not self.transaction or stored.values is None:
            raise OraError(22920, "row containing the LOB value is not locked")
        if not change.kind:
            return
        self._change(stored)
        row, lobs = stored.row, self.session.lobs
        if change.kind == TRIM:
            done = lobs.trim_lob(row, at, change.offset)
        elif change.kind == ERASE:
            done = lobs.erase_lob(row, at, change.offset, len(change.data))
        else:
            done = lobs.write_lob(row, at, change.offset, change.data)
        if not done:
            raise OraError(3001, "unimplemented feature: the simulator cannot write its redo")
        values = stored.values
        stored.values = (*values[:at], change.value, *values[at + 1 :])

    def _fire(
        self, table: SqlTable, event: str, old: Values | None, new: Values | None,
        changed: Sequence[int] = (), *, is_before: bool,
    ) -> Values | None:  # fmt: skip
        """Run the triggers for a change of a row; return its new values."""
        for trigger in table.triggers:
            if trigger.is_before is is_before and trigger.concerns(event, changed):
                new = self.fire(table, trigger, event, old, new)
        return new

    def _change(self, stored: StoredRow) -> None:
        self._expect_unloaded(stored.table)
        self.touched.setdefault(stored, stored.values)
        self.transaction.note(stored)
        stored.writer = self.transaction

    def lock(self, stored: StoredRow, locking: Locking = WAITS, *, in_redo: bool = False) -> bool:
        """Lock a row; False if another transaction has locked it and `locking` skips such rows.

        Raises:
            OraError, StatementRestart: another transaction had locked it.
        """
        holder = stored.locker
        if holder is not None and holder is not self.transaction:
            if locking.skips:
                return False

            def is_held() -> bool:
                return stored.locker is holder and holder.is_active

            self.database.wait(self.transaction, holder, is_held, locking.seconds)
        if in_redo and holder is None:
            self.transaction.note(stored)
            self.session.lock(stored.row)
        return True

    @staticmethod
    def _cells(table: SqlTable, values: Values) -> list[Cell | None]:
        return [column.cell(value) for column, value in zip(table.columns, values, strict=True)]

    @staticmethod
    def _check_partition(table: SqlTable, cells: Sequence[Cell | None]) -> None:
        if table.sim.has_partitions and table.sim.range_of(cells) < 0:
            raise OraError(14400, "inserted partition key does not map to any partition")

    # --- constraints ---

    def _check_row(self, table: SqlTable, values: Values) -> None:
        for column, value in zip(table.columns, values, strict=True):
            if column.not_null and value is None:
                name = f'"{table.sim.owner}"."{table.name}"."{column.name}"'
                raise OraError(1400, f"cannot insert NULL into ({name})")
        for check in table.checks:
            if self.holds(table, check, values) is False:
                raise OraError(2290, f"check constraint ({table.sim.owner}.{check.name}) violated")

    def finish(self) -> None:
        """Check the keys and foreign keys of the changed rows.

        Raises:
            OraError: ORA-00001, ORA-02291, ORA-02292, a constraint is violated.
            StatementRestart: another transaction had to end first.
        """
        seen = 0
        while seen < len(self.touched):  # rows deleted by ON DELETE are checked, too
            new = list(self.touched.items())[seen:]
            seen = len(self.touched)
            for stored, _ in new:
                if stored.values is not None:
                    self._check_keys(stored, stored.values)
            for stored, before in new:
                self._check_children(stored, before)

    def _check_keys(self, stored: StoredRow, values: Values) -> None:
        for key in stored.table.keys:
            self._check_key(stored, key, values)
        for foreign in stored.table.foreign_keys:
            self._check_parent(stored.table, foreign, values)

    def _check_key(self, stored: StoredRow, key: Key, values: Values) -> None:
        wanted = key.of(values)
        if wanted is None:
            return
        for other in stored.table.holders(key, wanted):
            if other is stored:
                continue
            self._wait_for_change(other, lambda row: row is not None and key.of(row) == wanted)
            if other.values is not None and key.of(other.values) == wanted:
                owner = stored.table.sim.owner
                raise OraError(1, f"unique constraint ({owner}.{key.name}) violated")

    def _wait_for_change(self, other: StoredRow, concerns: Callable[[Values | None], bool]) -> None:
        """If another transaction has changed a row, and `concerns` is true of its old or new
        values, wait until that transaction ends.
        """
        writer = other.writer
        if writer is None or writer is self.transaction:
            return
        if not (concerns(other.values) or concerns(other.committed)):
            return
        self.database.wait(
            self.transaction, writer, lambda: other.writer is writer and writer.is_active
        )

    def _check_parent(self, table: SqlTable, foreign: ForeignKey, values: Values) -> None:
        if any(values[at] is None for at in foreign.columns):
            return
        parent, key = foreign.parent, foreign.parent_key
        wanted = _referenced(foreign, values) or ()

        def is_parent(row: Values | None) -> bool:
            return row is not None and key.of(row) == wanted

        for other in parent.holders(key, wanted):
            self._wait_for_change(other, is_parent)
            if is_parent(other.values):
                return
        raise OraError(
            2291,
            f"integrity constraint ({table.sim.owner}.{foreign.name}) violated - parent key not"
            " found",
        )

    def _check_children(self, stored: StoredRow, before: Values | None) -> None:
        table = stored.table
        for child, foreign in table.children:
            if foreign.parent is not table:
                continue
            key = foreign.parent_key
            old = None if before is None else key.of(before)
            if old is None or (stored.values is not None and key.of(stored.values) == old):
                continue
            if any(
                other.values is not None and key.of(other.values) == old
                for other in table.holders(key, old)
            ):
                continue
            self._release_children(child, foreign, old, is_deleted=stored.values is None)

    def _release_children(
        self, child: SqlTable, foreign: ForeignKey, old: tuple[Any, ...], *, is_deleted: bool
    ) -> None:
        """Apply ON DELETE to the rows that refer to a removed key, or raise an error."""

        def refers(row: Values | None) -> bool:
            return row is not None and _referenced(foreign, row) == old

        for other in list(child.present):
            self._wait_for_change(other, refers)
            if not refers(other.values):
                continue
            if not (is_deleted and foreign.on_delete):
                raise OraError(
                    2292,
                    f"integrity constraint ({child.sim.owner}.{foreign.name}) violated - child"
                    " record found",
                )
            self.lock(other)
            if foreign.on_delete == "CASCADE":
                self.delete(other)
            else:
                self.update(other, dict.fromkeys(foreign.columns))


def _referenced(foreign: ForeignKey, values: Values) -> tuple[Any, ...] | None:
    """Return the parent key to which a child row refers; None if one of its columns is NULL."""
    found = tuple(key_of(values[at]) for at in foreign.columns)
    return None if None in found else found
