"""The rows of a table as sessions see them: committed versions at every SCN, and uncommitted
values.

A row has its current values, the open transaction that has changed them, and its committed values
with their SCNs. So a session reads committed rows and its own changes, and a flashback query reads
rows as of any SCN. A transaction has the list of its changes, so that it can be rolled back.

`RangeBounds` and `ListBounds` find the partition of a row by the bytes of its partition column: the
bytes of Oracle's numbers, dates and texts sort like the values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from olr_pg.simulator.sql.typed_values import Value, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import Row, SimTable
    from olr_pg.simulator.sql.blocks import Block
    from olr_pg.simulator.sql.sql_columns import SqlColumn

Values = tuple[Value, ...]


@dataclass(slots=True, eq=False)
class StoredRow:
    """A row.

    Attributes:
        row: the row of the model.
        values: the current values; None if the row is deleted.
        writer: the open transaction that has changed it.
        locker: the transaction that has locked it.
        since: the SCNs of its commits, in ascending order; `were` has the values from each SCN on.
    """

    table: SqlTable
    row: Row
    values: Values | None
    writer: SqlTransaction | None = None
    locker: SqlTransaction | None = None
    since: list[int] = field(default_factory=list)
    were: list[Values | None] = field(default_factory=list)

    @property
    def committed(self) -> Values | None:
        """The values after the last commit; None if the row did not exist then."""
        return self.were[-1] if self.were else None

    def seen_by(self, reader: SqlTransaction | None) -> Values | None:
        """Return the values that a session sees now; None if it does not see the row."""
        return self.values if self.writer is None or self.writer is reader else self.committed

    def as_of(self, scn: int) -> Values | None:
        """Return the values as of an SCN; None if the row did not exist."""
        at = bisect_right(self.since, scn)
        return self.were[at - 1] if at else None


@dataclass(frozen=True, slots=True)
class Key:
    """A primary or unique key; `columns` are 0-based."""

    name: str
    columns: tuple[int, ...]
    is_primary: bool = False

    def of(self, values: Values) -> tuple[Any, ...] | None:
        """Return the key of a row; None if all its columns are NULL, so that it is not in the
        index.
        """
        found = tuple(key_of(values[at]) for at in self.columns)
        return None if all(one is None for one in found) else found


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key.

    Attributes:
        columns: the columns, from 0, in the order of `parent_key`.
        on_delete: ``CASCADE``, ``SET NULL``, or empty.
    """

    name: str
    columns: tuple[int, ...]
    parent: SqlTable
    parent_key: Key
    on_delete: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint: its name and its condition's text."""

    name: str
    condition: str


@dataclass(frozen=True, slots=True, eq=False)
class Trigger:
    """A row trigger.

    Attributes:
        text: the text of its CREATE statement, which contains the block.
        events: the events for which the trigger fires, of INSERTING, UPDATING and DELETING.
        columns: the columns for whose UPDATE the trigger fires, from 0; empty for all.
    """

    name: str
    text: str
    block: Block
    events: frozenset[str]
    is_before: bool
    columns: frozenset[int] = frozenset()

    def concerns(self, event: str, changed: Iterable[int]) -> bool:
        """Return whether the trigger fires for an event that changes the given columns."""
        return event in self.events and (
            event != "UPDATING" or not self.columns or bool(self.columns & {*changed})
        )


class SqlTable:
    """A table of SQL.

    Args:
        sim: the table of the model.

    Attributes:
        present: rows that at least one session sees.
        partition_names: names in the order of the model's segments.
        moves_rows: ENABLE ROW MOVEMENT.
        disabled_keys, disabled_triggers: disabled foreign keys and triggers.
        gone: deleted rows, which only flashback queries see.
    """

    def __init__(self, sim: SimTable, columns: Sequence[SqlColumn]) -> None:
        self.sim = sim
        self.columns = tuple(columns)
        self.keys: list[Key] = []
        self.foreign_keys: list[ForeignKey] = []
        self.checks: list[Check] = []
        self.children: list[tuple[SqlTable, ForeignKey]] = []
        self.triggers: list[Trigger] = []
        self.disabled_keys: list[ForeignKey] = []
        self.disabled_triggers: list[Trigger] = []
        self.partition_names: list[str] = []
        self.moves_rows = False
        self.present: dict[StoredRow, None] = {}
        self.gone: list[StoredRow] = []
        self._had: dict[Key, dict[tuple[Any, ...], dict[StoredRow, None]]] = {}

    @property
    def name(self) -> str:
        """The name of the table, without the owner."""
        return self.sim.name

    @property
    def full_name(self) -> str:
        """``OWNER.NAME``."""
        return self.sim.full_name

    def position(self, name: str) -> int | None:
        """Return the 0-based number of a column, None if there is none."""
        return next((at for at, one in enumerate(self.columns) if one.name == name), None)

    def names(self, positions: Iterable[int]) -> tuple[str, ...]:
        """Return the names of columns, given by their 0-based numbers."""
        return tuple(self.columns[at].name for at in positions)

    @property
    def primary_key(self) -> Key | None:
        """The primary key of the table."""
        return next((key for key in self.keys if key.is_primary), None)

    def add_key(self, key: Key) -> None:
        """Add a unique key, and index the existing rows."""
        self.keys.append(key)
        self._had[key] = defaultdict(dict)
        for stored in self.present:
            for values in (stored.values, stored.committed):
                self._note(key, stored, values)

    def drop_key(self, key: Key) -> None:
        """Remove a key."""
        self.keys.remove(key)
        del self._had[key]

    def _note(self, key: Key, stored: StoredRow, values: Values | None) -> None:
        found = None if values is None else key.of(values)
        if found is not None:
            self._had[key][found][stored] = None

    def note(self, stored: StoredRow) -> None:
        """Index a row by the current values of its keys."""
        for key in self.keys:
            self._note(key, stored, stored.values)

    def holders(self, key: Key, wanted: tuple[Any, ...]) -> list[StoredRow]:
        """Return the rows that have a key value now, or had it before an uncommitted change."""
        found = self._had[key].get(wanted)
        return [] if found is None else [one for one in found if one in self.present]

    def scan(
        self, reader: SqlTransaction | None, scn: int | None = None
    ) -> Iterator[tuple[StoredRow, Values]]:
        """Yield the rows that a session sees, or the rows as of an SCN."""
        if scn is None:
            for stored in list(self.present):
                values = stored.seen_by(reader)
                if values is not None:
                    yield stored, values
            return
        for stored in (*self.gone, *self.present):
            values = stored.as_of(scn)
            if values is not None:
                yield stored, values

    def settle(self, stored: StoredRow) -> None:
        """Move a row to `present` or `gone`, depending on its state."""
        if stored.values is None and stored.writer is None:
            self.present.pop(stored, None)
            for key in self.keys:
                for values in stored.were:
                    found = None if values is None else key.of(values)
                    if found is not None:
                        self._had[key].get(found, {}).pop(stored, None)
            if stored.were:
                self.gone.append(stored)
        else:
            self.present[stored] = None

    def forget(self, scn: int) -> None:
        """Discard versions that ended at or before an SCN."""
        self.gone = [one for one in self.gone if one.since[-1] > scn]
        for stored in self.present:
            at = bisect_right(stored.since, scn) - 1
            if at > 0:
                del stored.since[:at], stored.were[:at]

    def map_values(self, change: Any) -> None:
        """Apply `change` to the values of all versions of all rows, as for DDL that changes
        columns.
        """
        for stored in (*self.present, *self.gone):
            stored.values = None if stored.values is None else change(stored.values)
            stored.were = [None if one is None else change(one) for one in stored.were]


class Entry(NamedTuple):
    """The state of a row before a change or lock."""

    stored: StoredRow
    row: Row
    values: Values | None
    writer: SqlTransaction | None
    locker: SqlTransaction | None


class Mark(NamedTuple):
    """A point in a transaction: its number of entries, and the savepoint of the model."""

    entries: int
    undo: int


@dataclass(slots=True, eq=False)
class SqlTransaction:
    """A transaction.

    Attributes:
        savepoints: the savepoints by name, in the order in which they were set.
        waits_for: the transaction whose end it waits for.
        waits_since: the number of its wait; an earlier wait has a lower number.
        is_victim: its statement must fail, to break a deadlock.
        is_active: the transaction has not ended.
        loaded: tables that the transaction has loaded by direct path.
    """

    entries: list[Entry] = field(default_factory=list)
    savepoints: dict[str, Mark] = field(default_factory=dict)
    waits_for: SqlTransaction | None = None
    waits_since: int = 0
    is_victim: bool = False
    is_active: bool = True
    loaded: set[SqlTable] = field(default_factory=set)

    def note(self, stored: StoredRow) -> None:
        """Record the state of a row before it is changed or locked, and lock it."""
        own = stored.row, stored.values, stored.writer, stored.locker
        self.entries.append(Entry(stored, *own))
        stored.locker = self

    def take_back(self, entries: int) -> None:
        """Undo the newest changes until `entries` changes remain."""
        while len(self.entries) > entries:
            entry = self.entries.pop()
            stored = entry.stored
            stored.row, stored.values = entry.row, entry.values
            stored.writer, stored.locker = entry.writer, entry.locker
            stored.table.settle(stored)

    def end(self, commit_scn: int | None) -> None:
        """Commit the transaction at an SCN, or roll it back if `commit_scn` is None."""
        if commit_scn is None:
            self.take_back(0)
        for stored in {entry.stored: None for entry in self.entries}:
            if stored.writer is self:
                stored.writer = None
                assert commit_scn is not None
                if stored.values != stored.committed or not stored.were:
                    stored.since.append(commit_scn)
                    stored.were.append(stored.values)
                stored.table.settle(stored)
            if stored.locker is self:
                stored.locker = None
        self.entries.clear()
        self.savepoints.clear()
        self.is_active = False


NOWHERE = -1


@dataclass(slots=True)
class RangeBounds:
    """Partitions by range.

    Attributes:
        cells: the upper bound of each partition; empty for MAXVALUE, which contains NULL.
    """

    cells: list[list[bytes | None]]

    def __call__(self, cell: Cell | None) -> int:
        """Return the number of the partition of a value; -1 where there is none."""
        for at, bound in enumerate(self.cells):
            if not bound or (cell is not None and cell.raw < (bound[0] or b"")):
                return at
        return NOWHERE

    @property
    def is_sorted(self) -> bool:
        """Return whether the bounds are ascending."""
        values = [bound[0] or b"" for bound in self.cells if bound]
        return values == sorted(set(values))

    def may_follow(self, bound: Sequence[bytes | None]) -> bool:
        """Return whether a bound is above the bound of the last partition."""
        last = self.cells[-1]
        return bool(last) and (not bound or (bound[0] or b"") > (last[0] or b""))


@dataclass(slots=True)
class ListBounds:
    """Partitions by list.

    Attributes:
        cells: the values of each partition, None for NULL; empty for DEFAULT.
    """

    cells: list[list[bytes | None]]

    def __call__(self, cell: Cell | None) -> int:
        """Return the number of the partition of a value; -1 where there is none."""
        value = None if cell is None else cell.raw
        for at, values in enumerate(self.cells):
            if value in values:
                return at
        defaults = [at for at, values in enumerate(self.cells) if not values]
        return defaults[0] if defaults else NOWHERE
