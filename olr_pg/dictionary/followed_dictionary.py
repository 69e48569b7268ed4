"""Follows dictionary changes: stores rows of SYS tables by ROWID, applies the changes from redo to
them, and builds table definitions from them.

A transaction that changed rows of the SYS tables is applied as a whole when it commits (dictionary
§10). Only rows of two kinds of owners are stored, so dictionary changes of other owners use no
memory: the owners in the snapshot, and the users that were created after it. A user that was
dropped and created again is a new user: it has the same name and another number.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.lob_locator import LobCompression, LobForm, decode_locator
from olr_pg.datatypes.number import decode_number
from olr_pg.datatypes.text import decode_text_by_policy
from olr_pg.dictionary.beside_columns import BesideColumns, Parent, read_beside
from olr_pg.dictionary.committed_changes import DictionaryTransaction, SysRowChange, SysRowOperation
from olr_pg.dictionary.model import LOB_TYPES, Column, Snapshot, Table
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.partition_groups import Part
from olr_pg.dictionary.stored_segments import holds_rows
from olr_pg.dictionary.sys_rows import (
    SYS_COLUMNS,
    TEXTS,
    TOLD_BY_REDO,
    ConstraintRow,
    SysRow,
    SysRows,
    absent,
    make_row,
)
from olr_pg.dictionary.sys_tables import join_tables
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


SYS: Final = "SYS"
NEEDED: Final = frozenset({"OBJ$", "TAB$", "COL$"})
"""The SYS tables without which the dictionary cannot be followed."""

_USER: Final = "USER$"
_PARTITIONS: Final = "TABPART$", "TABCOMPART$"
_RAW: Final = 23
"""COL$.TYPE# of RAW."""

_ADDED_WITH_DEFAULT: Final = 1 << 30
"""Bit of COL$.PROPERTY (dictionary §2.4)."""


class _Section(NamedTuple):
    """How the rows of a SYS table are stored.

    Attributes:
        name: the name of its field in `SysRows`.
        key: the field by which rows are found.
    """

    name: str
    key: str

    @property
    def columns(self) -> dict[str, str]:
        """The SYS table's columns, by field of the row."""
        return {**SYS_COLUMNS[self.name], **TOLD_BY_REDO.get(self.name, {})}


_SECTIONS: Final = {
    _USER: _Section("sys_user", "user"),
    "OBJ$": _Section("sys_obj", "obj"),
    "TAB$": _Section("sys_tab", "obj"),
    "TABCOMPART$": _Section("sys_tabcompart", "bo"),
    "LOB$": _Section("sys_lob", "obj"),
    "LOBCOMPPART$": _Section("sys_lob_comp_part", "l_obj"),
    "COL$": _Section("sys_col", "obj"),
    "CDEF$": _Section("sys_cdef", "obj"),
    "CCOL$": _Section("sys_ccol", "obj"),
    "IND$": _Section("sys_ind", "bo"),
    "ICOL$": _Section("sys_icol", "bo"),
    "INDPART$": _Section("sys_indpart", "bo"),
    "TABPART$": _Section("sys_tabpart", "bo"),
    "TABSUBPART$": _Section("sys_tabsubpart", "p_obj"),
    "LOBFRAG$": _Section("sys_lob_frag", "parent_obj"),
    "ECOL$": _Section("sys_ecol", "tab_obj"),
    "DEFERRED_STG$": _Section("sys_deferredstg", "obj"),
    "TS$": _Section("sys_ts", "ts"),
    "CON$": _Section("sys_con", "con"),
    "COM$": _Section("sys_com", "obj"),
}
"""The sections by SYS table. Their order is the order in which the changes of one transaction are
applied: referenced rows come before rows that reference them.
"""


def followed_tables(snapshot: Snapshot) -> tuple[Table, ...]:
    """Return the SYS tables that must be decoded to follow the dictionary; empty if it cannot be
    followed.
    """
    if snapshot.sys_rows is None:
        return ()
    found = tuple(
        table
        for table in snapshot.tables
        if table.source_owner == SYS and table.name in _SECTIONS and table.refusal is None
    )
    is_rooted = all(row.row_id for row in snapshot.sys_rows.sys_obj)
    return found if is_rooted and {table.name for table in found} >= NEEDED else ()


class _Rows:
    """The rows of one SYS table."""

    def __init__(self, section: _Section, rows: Iterable[SysRow]) -> None:
        self.section = section
        self._rows: dict[str, SysRow] = {}
        self._index: dict[int, dict[str, SysRow]] = defaultdict(dict)
        for number, row in enumerate(rows):
            self.put(row.row_id or f"#{number}", row)

    def put(self, row_id: str, row: SysRow) -> None:
        self.remove(row_id)
        self._rows[row_id] = row
        self._index[getattr(row, self.section.key)][row_id] = row

    def remove(self, row_id: str) -> SysRow | None:
        row = self._rows.pop(row_id, None)
        if row is not None:
            del self._index[getattr(row, self.section.key)][row_id]
        return row

    def get(self, row_id: str) -> SysRow | None:
        return self._rows.get(row_id)

    def all(self) -> list[Any]:
        return list(self._rows.values())

    def of(self, *numbers: int) -> list[Any]:
        """Return the rows whose key field is one of `numbers`."""
        return [row for number in numbers for row in self._index.get(number, {}).values()]


class FollowedDictionary:
    """The rows of the SYS tables, and the tables that they define; see the module.

    Args:
        rows: the SYS rows as of the snapshot's SCN.
        charset_name: the database's character set, in which names are stored.
    """

    def __init__(self, rows: SysRows, charset_name: str) -> None:
        self._rows = {
            table: _Rows(section, getattr(rows, section.name))
            for table, section in _SECTIONS.items()
        }
        self._charset = charset(charset_name)
        # Owners of single captured tables count too, because they also own the segments of these
        # tables.
        self._owners = {
            row.user for row in rows.sys_user if not (row.single and is_oracle_schema(row.name))
        }

    def concerned(self, transaction: DictionaryTransaction) -> set[int]:
        """Return OBJ# of the existing tables that `apply` would change.

        Raises:
            OlrPgError: 3070, a row of a SYS table is invalid.
        """
        found = set[int]()
        for change in self._known(transaction):
            rows = self._rows[change.table]
            old = rows.get(change.row_id)
            if old is not None:
                found.update(self._tables_of(change.table, old))
                if "NAME" in change.values:
                    found.update(self._referring(change.table, old))
            elif change.operation is SysRowOperation.INSERT:
                new = self._new_row(rows.section, change, {})
                found.update(self._tables_of(change.table, new))
        return found

    def apply(self, transaction: DictionaryTransaction) -> set[int]:
        """Apply the changes of a committed transaction.

        Returns:
            OBJ# of the affected tables. If a table or column was renamed, the tables whose foreign
            keys refer to it are among them.

        Raises:
            OlrPgError: 3070, a row of a SYS table is invalid.
        """
        touched = set[int]()
        for change in self._known(transaction):
            touched.update(self._apply(change))
        return touched

    @staticmethod
    def _known(transaction: DictionaryTransaction) -> list[SysRowChange]:
        """Return the changes of stored SYS tables, in the order of `_SECTIONS`."""
        known = [change for change in transaction.changes if change.table in _SECTIONS]
        order = list(_SECTIONS)
        return sorted(known, key=lambda change: order.index(change.table))

    def creates_owner(self, transaction: DictionaryTransaction) -> bool:
        """Return whether a transaction creates a user whose tables `apply` will store from then
        on.
        """
        return any(
            change.table == _USER
            and change.operation is SysRowOperation.INSERT
            and self._is_captured(_USER, self._new_row(_SECTIONS[_USER], change, {}))
            for change in transaction.changes
        )

    def creates_table(self, transaction: DictionaryTransaction) -> bool:
        """Return whether a transaction creates a table that `apply` stores.

        Raises:
            OlrPgError: 3070, a row of a SYS table is invalid.
        """
        inserted = [one for one in transaction.changes if one.operation is SysRowOperation.INSERT]
        tables = {one.values.get("OBJ#") for one in inserted if one.table == "TAB$"}
        return any(
            self._is_captured("OBJ$", self._new_row(_SECTIONS["OBJ$"], one, {}))
            for one in inserted
            if one.table == "OBJ$" and one.values.get("OBJ#") in tables
        )

    def with_new_partitions(self, transaction: DictionaryTransaction) -> set[int]:
        """Return OBJ# of the tables that get a partition in a transaction.

        Raises:
            OlrPgError: 3070, a row of a SYS table is invalid.
        """
        found = set[int]()
        for change in transaction.changes:
            if change.table in _PARTITIONS and change.operation is SysRowOperation.INSERT:
                section = _SECTIONS[change.table]
                found.add(getattr(self._new_row(section, change, {}), section.key))
        return found

    def table(self, obj: int) -> Table | None:
        """Return the current definition of the table with that OBJ#; None if it does not exist.

        Raises:
            OlrPgError: 3005, its rows are inconsistent.
        """
        rows = self._rows_of(obj)
        if not rows.sys_tab or not rows.sys_obj:
            return None
        return join_tables(rows, "redo")[0]

    def with_default(self, obj: int) -> frozenset[int]:
        """Return INTCOL# of the columns that were added with a default that older rows do not
        store.
        """
        columns = self._rows["COL$"].of(obj)
        return frozenset(row.int_col for row in columns if row.property & _ADDED_WITH_DEFAULT)

    def beside(self, table: Table) -> BesideColumns:
        """Return the current comments, default texts, constraints and indexes of a table."""
        return read_beside(self._rows_of(table.obj), table, self._parent)

    def _parent(self, row: ConstraintRow) -> Parent | None:
        """Return the key that a foreign key references; None if it is unknown."""
        objects = self._rows["OBJ$"].of(row.parent)
        if not objects:
            return None
        owner = next((one.name for one in self._rows[_USER].of(objects[0].owner)), "")
        names = {one.int_col: one.name for one in self._rows["COL$"].of(row.parent)}
        key = sorted(
            (one.pos, one.int_col)
            for one in self._rows["CCOL$"].of(row.parent)
            if one.con == row.parent_con
        )
        columns = tuple(names[one] for _, one in key if one in names)
        return Parent(owner, objects[0].name, columns) if owner and columns else None

    def parts(self, table: Table) -> dict[int, Part]:
        """Return a table's partitions and sub-partitions whose names are known, by OBJ#."""
        composite = {row.obj: row.part for row in self._rows["TABCOMPART$"].of(table.obj)}
        indexes = (row.obj for row in self._rows["IND$"].of(table.obj))
        rows = (
            *self._rows["TABPART$"].of(table.obj),
            *self._rows["TABSUBPART$"].of(*composite),
            *self._rows["INDPART$"].of(*indexes),
        )
        names = {row.obj: row.subname for row in self._rows["OBJ$"].of(*table.partitions)}
        found = dict[int, Part]()
        for row in rows:
            parent = getattr(row, "p_obj", 0)
            outer, inner = composite.get(parent, 0), row.part
            place = None if outer is None or inner is None else (outer, inner)
            if names.get(row.obj):
                found[row.obj] = Part(names[row.obj], parent, place, row.data_obj)
        return found

    # --- changes ---

    def _apply(self, change: SysRowChange) -> Iterator[int]:
        rows = self._rows[change.table]
        old = rows.get(change.row_id)
        if change.operation is SysRowOperation.INSERT:
            new = self._new_row(rows.section, change, {})
            if not self._is_captured(change.table, new):
                return
            rows.put(change.row_id, new)
            if change.table == _USER:
                self._owners.add(getattr(new, rows.section.key))
        elif old is None:
            return
        elif change.operation is SysRowOperation.DELETE:
            yield from self._tables_of(change.table, old)
            rows.remove(change.row_id)
            return
        else:
            values = {one.name: getattr(old, one.name) for one in fields(old)}
            new = self._new_row(rows.section, change, values)
            if new == old:
                return
            yield from self._tables_of(change.table, old)
            if getattr(old, "name", "") != getattr(new, "name", ""):
                yield from self._referring(change.table, old)
            rows.put(change.row_id, new)
        yield from self._tables_of(change.table, new)

    def _new_row(self, section: _Section, change: SysRowChange, values: dict[str, Any]) -> SysRow:
        values = {**values, "row_id": change.row_id}
        kind = SysRows.model_fields[section.name].annotation
        row: type[SysRow] = kind.__args__[0]  # type: ignore[union-attr]
        required = {one.name for one in fields(row) if one.default is MISSING}
        for field, column in section.columns.items():
            if column in change.values:
                values[field] = self._value(field, change.values[column])
            elif field not in values and field in required:
                values[field] = absent(field)
        try:
            return make_row(row, values)
        except ValidationError as error:
            raise OlrPgError(
                Code.DICTIONARY_ROW_UNREADABLE,
                f"{change.table}: {error.errors()[0]['msg']}",
                rowid=change.row_id,
            ) from error

    def _value(self, field: str, raw: bytes | None) -> Any:
        if field in TEXTS:
            return decode_text_by_policy(raw or b"", self._charset)[0]
        if raw is None:
            return absent(field)
        if field == "default":
            return _row_default(raw)
        number = decode_number(raw)
        try:
            return int(number)
        except ValueError as error:
            raise OlrPgError(Code.DICTIONARY_ROW_UNREADABLE, f"{field} is {number}") from error

    def _is_captured(self, table: str, row: Any) -> bool:
        if table == "TS$":
            return True
        if table == _USER:
            return not is_oracle_schema(row.name)
        if table in ("OBJ$", "CON$"):
            return row.owner in self._owners
        if table == "INDPART$":
            return any(self._organised_by(row.bo))
        numbers = {
            "TABCOMPART$": "bo", "TABPART$": "bo", "TABSUBPART$": "p_obj", "LOBCOMPPART$": "l_obj",
            "LOBFRAG$": "parent_obj", "ECOL$": "tab_obj", "IND$": "bo", "ICOL$": "bo",
        }  # fmt: skip
        return bool(self._rows["OBJ$"].of(getattr(row, numbers.get(table, "obj"))))

    def _tables_of(self, table: str, row: Any) -> Iterator[int]:
        """Yield OBJ# of the table that a row belongs to."""
        if table in ("OBJ$", "TAB$", "COL$", "CDEF$", "CCOL$", "LOB$", "DEFERRED_STG$", "COM$"):
            yield from self._roots(row.obj)
        elif table == "CON$":
            yield from self._constrained(row.con)
        elif table == "ECOL$":
            yield from self._roots(row.tab_obj)
        elif table in ("TABPART$", "TABCOMPART$"):
            yield row.bo
        elif table in ("IND$", "ICOL$"):
            yield from self._roots(row.bo)
        elif table == "INDPART$":
            yield from self._organised_by(row.bo)
        elif table == "TABSUBPART$":
            yield from self._roots(row.p_obj)
        elif table == "LOBCOMPPART$":
            yield from self._roots(row.l_obj)
        elif table == "LOBFRAG$":
            yield from self._roots(row.parent_obj)
        elif table == "TS$":
            yield from self._tables_in(row.ts)

    def _referring(self, table: str, row: Any) -> set[int]:
        """Return OBJ# of the tables whose foreign keys name the table or column that a row of OBJ$
        or COL$ describes.
        """
        if table not in ("OBJ$", "COL$"):
            return set()
        return {one.obj for one in self._rows["CDEF$"].all() if one.parent == row.obj}

    def _constrained(self, con: int) -> set[int]:
        """Return OBJ# of a constraint's table; empty if it is unknown."""
        return {row.obj for row in self._rows["CDEF$"].all() if row.con == con}

    def _tables_in(self, ts: int) -> set[int]:
        """Return OBJ# of the tables with a segment in a tablespace. These tables are affected if
        the tablespace was encrypted or decrypted.
        """

        def there(*names: str) -> list[Any]:
            return [row for name in names for row in self._rows[name].all() if row.ts == ts]

        owner = {
            row.obj: row.bo for name in ("TABCOMPART$", "IND$") for row in self._rows[name].all()
        }
        owner |= {row.l_obj: row.obj for row in self._rows["LOB$"].all()}
        owner |= {row.part_obj: owner.get(row.l_obj, 0) for row in self._rows["LOBCOMPPART$"].all()}
        found = {row.obj for row in there("TAB$", "LOB$")}
        found |= {row.bo for row in there("TABPART$", "IND$")}
        found |= {owner.get(row.p_obj, 0) for row in there("TABSUBPART$")}
        found |= {owner.get(row.bo, 0) for row in there("INDPART$")}
        found |= {owner.get(row.parent_obj, 0) for row in there("LOBFRAG$")}
        return {obj for obj in found if self._rows["TAB$"].of(obj)}

    def _organised_by(self, index: int) -> Iterator[int]:
        """Yield OBJ# of the table whose rows are in this index, if its table is index-organised."""
        for row in self._rows["IND$"].all():
            if row.obj == index and holds_rows(row):
                yield row.bo

    def _roots(self, obj: int) -> Iterator[int]:
        """Yield `obj` if it is a table; for a LOB segment or a partition, yield OBJ# of its
        table.
        """
        if self._rows["TAB$"].of(obj):
            yield obj
            return
        for row in self._rows["LOB$"].all():
            if row.l_obj == obj:
                yield row.obj
        for row in self._rows["LOBCOMPPART$"].all():
            if row.part_obj == obj:
                yield from self._roots(row.l_obj)
        for row in self._rows["TABSUBPART$"].all():
            if row.obj == obj:
                yield from self._roots(row.p_obj)
        for name in ("TABPART$", "TABCOMPART$"):
            for row in self._rows[name].all():
                if row.obj == obj:
                    yield row.bo

    # --- joining ---

    def _rows_of(self, obj: int) -> SysRows:
        """Return the SYS rows that define one table."""
        composite = self._rows["TABCOMPART$"].of(obj)
        lobs = self._rows["LOB$"].of(obj)
        lob_objects = [row.l_obj for row in lobs]
        lob_parts = self._rows["LOBCOMPPART$"].of(*lob_objects)
        fragments = self._rows["LOBFRAG$"].of(*lob_objects, *(row.part_obj for row in lob_parts))
        indexes = {row.ind for row in (*lobs, *fragments)} - {0}
        objects = self._rows["OBJ$"].of(
            obj, *lob_objects, *(fragment.frag_obj for fragment in fragments), *sorted(indexes)
        )
        names = {f"SYS_IL{row.obj:010d}C{row.int_col:05d}$$" for row in lobs}
        if names:
            known = {row.obj for row in objects}
            objects += [
                row
                for row in self._rows["OBJ$"].all()
                if row.name in names and row.obj not in known
            ]
        table_indexes = self._rows["IND$"].of(obj)
        index_parts = self._rows["INDPART$"].of(*(i.obj for i in table_indexes))
        of_table = self._rows["TABPART$"].of(obj)
        subparts = self._rows["TABSUBPART$"].of(*(row.obj for row in composite))
        named = [row.obj for row in (*of_table, *subparts, *index_parts)]
        known = {row.obj for row in objects}
        objects += self._rows["OBJ$"].of(*named)
        objects += [
            row
            for row in self._rows["OBJ$"].of(*(index.obj for index in table_indexes))
            if row.obj not in known
        ]
        constraints = self._rows["CDEF$"].of(obj)
        parts: dict[str, Sequence[Any]] = {
            "sys_user": self._rows[_USER].all(),
            "sys_obj": objects,
            "sys_tab": self._rows["TAB$"].of(obj),
            "sys_col": self._rows["COL$"].of(obj),
            "sys_cdef": constraints,
            "sys_con": self._rows["CON$"].of(*(row.con for row in constraints)),
            "sys_com": self._rows["COM$"].of(obj),
            "sys_ccol": self._rows["CCOL$"].of(obj),
            "sys_tabpart": of_table,
            "sys_tabcompart": composite,
            "sys_tabsubpart": subparts,
            "sys_lob": lobs,
            "sys_lob_comp_part": lob_parts,
            "sys_lob_frag": fragments,
            "sys_ts": self._rows["TS$"].all(),
            "sys_ecol": self._rows["ECOL$"].of(obj),
            "sys_deferredstg": self._rows["DEFERRED_STG$"].of(obj, *named),
            "sys_ind": table_indexes,
            "sys_icol": self._rows["ICOL$"].of(obj),
            "sys_indpart": index_parts,
        }
        values: dict[str, Any] = {name: list(rows) for name, rows in parts.items()}
        return SysRows.model_construct(**values)


def as_followed(table: Table) -> Table:
    """Return a SYS table in the form for decoding, without the LOB columns that are not needed.

    The needed LOB columns are decoded as RAW, so their values are locators. The default of an added
    column (ECOL$) is read from the locator itself, so no LOB pages must be decoded.
    """
    used = _SECTIONS[table.name].columns.values()

    def seen(column: Column) -> Column:
        if column.type_code not in LOB_TYPES:
            return column
        if column.name not in used:
            return replace(column, hidden=True)
        return replace(column, type_code=_RAW, lob=None)

    return replace(table, columns=tuple(map(seen, table.columns)))


def _row_default(locator: bytes) -> str | None:
    """Return the bytes in a locator in hex; None if the LOB is stored outside of the row or
    compressed.
    """
    try:
        found = decode_locator(locator)
    except OlrPgError:
        return None
    if found.form is LobForm.EMPTY:
        return ""
    if found.form is not LobForm.INLINE or found.compression is not LobCompression.NONE:
        return None
    return locator[found.start : found.start + found.size].hex()
