"""The SYS tables that define tables; their rows are changed like any other rows of the model.

In the model, SYS tables are ordinary heap tables; in Oracle, most SYS tables are in clusters
(dictionary §1.3). Columns and object numbers are those of dictionary §2 and §10; object numbers
other than those of the bootstrap objects are those of a 23ai database. Rows have the form of a
snapshot (dictionary §11).
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from olr_pg.dictionary.sys_rows import DATABASE_LEVELS, SYS_COLUMNS, TOLD_BY_REDO, SysRows, absent
from olr_pg.simulator.fields.cells import Cell, number, raw, text
from olr_pg.simulator.model.column_types import number_type, raw_type, varchar
from olr_pg.simulator.model.tables import Logging, Row, SimColumn, SimSegment, SimTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.simulator.model.lobs import SimLobSegment
    from olr_pg.simulator.model.tables import ColumnType
    from olr_pg.simulator.sessions.row_statements import RowStatements

SYS: Final = "SYS"
OWNER_NUMBER: Final = 106
"""USER# of the owner of the modelled tables."""

INDEX: Final = 1
TABLE: Final = 2
TABLE_PARTITION: Final = 19
INDEX_PARTITION: Final = 20
SEQUENCE: Final = 6
LOB: Final = 21
LOB_PARTITION: Final = 40
"""OBJ$.TYPE#."""

PRIMARY_KEY: Final = 2
"""CDEF$.TYPE#."""

CHECK_CONSTRAINT: Final = 1
"""Another CDEF$.TYPE#."""

NORMAL_INDEX: Final = 1
"""IND$.TYPE#."""

VALIDATED: Final = 0x4
"""Bit of CDEF$.DEFER."""

HAS_PRIMARY_KEY: Final = 0x20000000
PARTITIONED: Final = 0x20
ORGANISED: Final = 0x40
"""Bits of TAB$.PROPERTY."""

ROWS_INDEX: Final = 4
LOB_INDEX: Final = 8
UNIQUE: Final = 0x1
PARTITIONED_INDEX: Final = 0x2
FUNCTIONAL: Final = 0x10
"""IND$.TYPE# of the index that contains a table's rows, and of a LOB index; bits of IND$.PROPERTY.
"""

ROW_DEPENDENCIES: Final = 0x800000
"""Bit of TAB$.FLAGS: rows contain an SCN (ROWDEPENDENCIES)."""

IN_RECYCLE_BIN: Final = 0x80
"""Bit of OBJ$.FLAGS."""

IOT_TOP: Final = "SYS_IOT_TOP"

IN_ROW: Final = 0x2
PARTITIONED_LOB: Final = 0x4
SECUREFILE: Final = 0x800
"""Bits of LOB$.PROPERTY."""

FIRST_LOB_TABLESPACE: Final = 100
TABLESPACE_BLOCKS: Final = (2048, 4096, 8192, 16384, 32768)
"""Block sizes in bytes of the tablespaces of LOBs."""

ADDED_WITH_DEFAULT: Final = 1 << 30
"""Bit of COL$.PROPERTY: older rows do not store the column."""

_NUMBER: Final = number_type()
_NAME: Final = varchar(128)
_COMMENT: Final = varchar(4000)
_LONG: Final = replace(varchar(4000), type_code=8)
_BLOB: Final = replace(raw_type(4000), type_code=113)

SysValue = int | str | bytes | None


class _Section(NamedTuple):
    """A SYS table.

    Attributes:
        rows: the field of `SysRows` with its rows.
        columns: for each column, the field of a row in `SysRows`.
        key: the fields that identify a row.
    """

    obj: int
    rows: str
    columns: dict[str, str]
    key: tuple[str, ...] = ("obj",)

    @classmethod
    def of(cls, obj: int, rows: str, columns: str, *key: str) -> _Section:
        """Make a table with these columns; its default key is OBJ#."""
        told = {**SYS_COLUMNS[rows], **TOLD_BY_REDO.get(rows, {})}
        known = {column: field for field, column in told.items()}
        fields = {column: known.get(column, column.lower()) for column in columns.split()}
        return cls(obj, rows, fields, key or ("obj",))


_SECTIONS: Final = {
    "USER$": _Section.of(22, "sys_user", "USER# NAME SPARE1", "user"),
    "OBJ$": _Section.of(18, "sys_obj", "OBJ# DATAOBJ# OWNER# NAME SUBNAME TYPE# FLAGS"),
    "TAB$": _Section.of(4, "sys_tab", "OBJ# DATAOBJ# CLUCOLS FLAGS PROPERTY"),
    "COL$": _Section.of(
        21, "sys_col",
        "OBJ# COL# SEGCOL# INTCOL# NAME TYPE# LENGTH PRECISION# SCALE CHARSETFORM CHARSETID NULL$"
        " PROPERTY DEFAULT$",
        "obj", "int_col",
    ),
    "CDEF$": _Section.of(
        31, "sys_cdef", "CON# OBJ# TYPE# ENABLED DEFER ROBJ# RCON# REFACT CONDITION", "con"
    ),
    "CON$": _Section.of(28, "sys_con", "OWNER# NAME CON#", "con"),
    "COM$": _Section.of(118, "sys_com", "OBJ# COL# COMMENT$", "obj", "col"),
    "CCOL$": _Section.of(32, "sys_ccol", "CON# OBJ# INTCOL#", "con", "int_col"),
    "ECOL$": _Section.of(
        158, "sys_ecol", "TABOBJ# COLNUM BINARYDEFVAL GUARD_ID", "tab_obj", "col_num"
    ),
    "TABPART$": _Section.of(947, "sys_tabpart", "OBJ# DATAOBJ# BO#"),
    "IND$": _Section.of(19, "sys_ind", "OBJ# DATAOBJ# BO# TYPE# FLAGS PROPERTY"),
    "ICOL$": _Section.of(20, "sys_icol", "OBJ# BO# INTCOL# POS#", "obj", "int_col"),
    "INDPART$": _Section.of(955, "sys_indpart", "OBJ# DATAOBJ# BO#"),
    "LOB$": _Section.of(
        114, "sys_lob", "OBJ# INTCOL# LOBJ# TS# IND# CHUNK FLAGS PROPERTY", "obj", "int_col"
    ),
    "LOBFRAG$": _Section.of(980, "sys_lob_frag", "FRAGOBJ# PARENTOBJ# TS# INDFRAGOBJ#", "frag_obj"),
}  # fmt: skip
_INTCOLS: Final = {
    "COL$": ("obj", "int_col"),
    "CCOL$": ("obj", "int_col"),
    "COM$": ("obj", "col"),
    "ECOL$": ("tab_obj", "col_num"),
    "ICOL$": ("bo", "int_col"),
    "LOB$": ("obj", "int_col"),
}
"""The SYS tables that name columns by INTCOL#: the fields of the OBJ# and of the INTCOL#."""

_WITH_TABLESPACE: Final = ("sys_tab", "sys_tabpart", "sys_ind", "sys_indpart")
"""Fields of `SysRows` whose rows have a TS# in a snapshot, although the modelled SYS tables lack
it.
"""

_TYPES: Final = {
    "NAME": _NAME, "SUBNAME": _NAME, "BINARYDEFVAL": _BLOB, "COMMENT$": _COMMENT,
    "DEFAULT$": _LONG, "CONDITION": _LONG,
}  # fmt: skip


def sys_cell(value: SysValue) -> Cell | None:
    """Return a value of a SYS table as a cell."""
    if value is None or isinstance(value, bytes):
        return None if value is None else raw(value)
    return text(value, "utf-8") if isinstance(value, str) else number(Decimal(value))


def told_type(kind: ColumnType) -> dict[str, SysValue]:
    """Return the values of COL$ that describe a type."""
    return {
        "type": kind.type_code, "length": kind.length, "precision": kind.precision,
        "scale": kind.scale, "charset_form": kind.charset_form or 0,
        "charset_id": kind.charset_id or 0,
    }  # fmt: skip


def recycled_name(number: int) -> str:
    """Return the name of an object in the recycle bin: ``BIN$``, 16 bytes in Base64, and ``$0``."""
    unique = uuid5(NAMESPACE_OID, str(number)).bytes
    return f"BIN${b64encode(unique).decode()}$0"


class SysDictionary:
    """The SYS tables of one container and their rows.

    A session writes the rows; if `session` is None, a row exists before the first redo.

    Args:
        owner: owner of the tables that are defined.
        scn: the SCN at which the blocks of the SYS tables were formatted.
    """

    def __init__(self, owner: str, scn: int) -> None:
        self._owner = owner
        self._owner_number = OWNER_NUMBER
        self._scn = scn
        self.tables = {name: _sys_table(name) for name in _SECTIONS}
        self._rows: dict[str, dict[tuple[SysValue, ...], tuple[Row, dict[str, SysValue]]]] = {
            name: {} for name in _SECTIONS
        }

    def insert(self, session: RowStatements | None, table: str, **values: SysValue) -> None:
        """Insert a row; the keywords are the fields of `SysRows`."""
        section = _SECTIONS[table]
        named = {field: values.get(field) for field in section.columns.values()}
        cells = [sys_cell(value) for value in named.values()]
        if session is None:
            row: Row | None = self.tables[table].store(cells, self._scn)
        else:
            row = session.insert(self.tables[table], cells)
        assert row is not None
        self._rows[table][tuple(named[field] for field in section.key)] = row, named

    def update(
        self, session: RowStatements, table: str, key: tuple[SysValue, ...], **values: SysValue
    ) -> None:
        """Update the row with a key."""
        row, named = self._rows[table][key]
        section = _SECTIONS[table]
        fields = list(section.columns.values())
        cells = {fields.index(name): sys_cell(value) for name, value in values.items()}
        assert session.update(row, cells)
        named.update(values)
        new = tuple(named[field] for field in section.key)
        if new != key:
            del self._rows[table][key]
            self._rows[table][new] = row, named

    def delete(self, session: RowStatements, table: str, key: tuple[SysValue, ...]) -> None:
        """Delete the row with a key."""
        row, _ = self._rows[table].pop(key)
        assert session.delete(row)

    def create_owner_again(self, session: RowStatements, number: int) -> None:
        """Insert the row of a user with the owner's name and the number `number`, as CREATE USER
        does after DROP USER. From now on, tables are created for this user.
        """
        self.insert(session, "USER$", user=number, name=self._owner, spare1=0)
        self._owner_number = number

    def create_table(self, session: RowStatements | None, table: SimTable) -> None:
        """Insert all rows that define a table."""
        obj, organised = table.obj, table.index_organised
        parts = table.segments if table.has_partitions else []
        segment = 0 if parts or organised else table.dataobj
        self._insert_object(session, obj, segment, table.name, TABLE)
        self.insert(
            session, "TAB$", obj=obj, data_obj=segment, clu_cols=0,
            flags=ROW_DEPENDENCIES if table.row_scn else 0,
            property=(HAS_PRIMARY_KEY if table.key else 0) | (PARTITIONED if parts else 0)
            | (ORGANISED if organised else 0),
        )  # fmt: skip
        for place in range(len(table.columns)):
            self.add_column(session, table, place)
        if table.key:
            self.add_constraint(session, table, obj, f"PK_{table.name}", PRIMARY_KEY)
            for at in table.key:
                self.insert(session, "CCOL$", con=obj, obj=obj, int_col=table.intcol(at))
        if organised:
            index, own = table.rows_index, 0 if parts else table.segments[0].dataobj
            bits = PARTITIONED_INDEX if parts else 0
            self._add_index(session, index, own, table, ROWS_INDEX, IOT_TOP, bits)
            for pos, at in enumerate(table.key, 1):
                intcol = table.intcol(at)
                self.insert(session, "ICOL$", obj=index, bo=obj, int_col=intcol, pos=pos)
        for part in parts:
            self.add_partition(session, table, part)
        for at in table.lobs:
            self.add_lob(session, table, at)

    def add_constraint(
        self,
        session: RowStatements | None,
        table: SimTable,
        con: int,
        name: str,
        kind: int,
        **values: SysValue,
    ) -> None:
        """Insert the rows of an enabled constraint, except those of its columns."""
        self.insert(session, "CON$", con=con, owner=self._owner_number, name=name)
        told = {"enabled": 1, "state": VALIDATED, **values}
        self.insert(session, "CDEF$", con=con, obj=table.obj, type=kind, **told)

    def create_index(
        self,
        session: RowStatements | None,
        table: SimTable,
        obj: int,
        intcol: int,
        bits: int = 0,
    ) -> None:
        """Insert the rows of an index on the column with an INTCOL#, and bits of its PROPERTY."""
        self._insert_object(session, obj, obj, table.beside.index_names[obj], INDEX)
        self.insert(
            session, "IND$", obj=obj, data_obj=obj, bo=table.obj, type=NORMAL_INDEX, flags=0,
            property=bits,
        )  # fmt: skip
        self.insert(session, "ICOL$", obj=obj, bo=table.obj, int_col=intcol, pos=1)

    def drop_index(self, session: RowStatements, obj: int) -> None:
        """Delete the rows of an index that `create_index` has inserted."""
        for key in [key for key in self._rows["ICOL$"] if key[0] == obj]:
            self.delete(session, "ICOL$", key)
        self.delete(session, "IND$", (obj,))
        self.delete(session, "OBJ$", (obj,))

    def _add_index(
        self,
        session: RowStatements | None,
        obj: int,
        dataobj: int,
        table: SimTable,
        kind: int,
        name: str,
        bits: int = 0,
    ) -> None:
        self._insert_object(session, obj, dataobj, name, INDEX)
        self.insert(
            session, "IND$", obj=obj, data_obj=dataobj, bo=table.obj, type=kind, flags=0,
            property=UNIQUE | bits,
        )  # fmt: skip

    def add_lob(self, session: RowStatements | None, table: SimTable, at: int) -> None:
        """Insert the rows of the LOB column at `at` (from 0), its segments and their indexes."""
        lob, end = table.lobs[at], f"{table.obj:010d}C{at + 1:05d}$$"
        storage, own = lob.storage, lob.segments[0]
        tablespace = FIRST_LOB_TABLESPACE + TABLESPACE_BLOCKS.index(storage.block_size)
        divided = lob.is_partitioned
        segment, index = (0, 0) if divided else (own.dataobj, own.index_dataobj)
        self._insert_object(session, lob.obj, segment, f"SYS_LOB{end}", LOB)
        self._add_index(session, lob.index_obj, index, table, LOB_INDEX, f"SYS_IL{end}")
        self.insert(
            session, "LOB$", obj=table.obj, int_col=table.intcol(at), l_obj=lob.obj, ts=tablespace,
            ind=lob.index_obj, chunk=1, flags=0,
            property=(IN_ROW if storage.in_row else 0) | (SECUREFILE if storage.securefile else 0)
            | (PARTITIONED_LOB if divided else 0),
        )  # fmt: skip
        for one in lob.segments if divided else ():
            self.add_lob_partition(session, table, at, one)

    def add_lob_partition(
        self, session: RowStatements | None, table: SimTable, at: int, one: SimLobSegment
    ) -> None:
        """Insert the rows of a partition of the LOB column at `at`, and of its index."""
        lob, end = table.lobs[at], f"{table.obj:010d}C{at + 1:05d}$$"
        tablespace = FIRST_LOB_TABLESPACE + TABLESPACE_BLOCKS.index(lob.storage.block_size)
        self._insert_object(
            session, one.obj, one.dataobj, f"SYS_LOB{end}", LOB_PARTITION, f"SYS_LOB_P{one.obj}"
        )
        self._insert_object(
            session, one.index_obj, one.index_dataobj, f"SYS_IL{end}", INDEX_PARTITION,
            f"SYS_IL_P{one.index_obj}",
        )  # fmt: skip
        self.insert(
            session, "LOBFRAG$", frag_obj=one.obj, parent_obj=lob.obj, ts=tablespace,
            ind=one.index_obj,
        )  # fmt: skip

    def drop_lob_partition(self, session: RowStatements, one: SimLobSegment) -> None:
        """Delete the rows that `add_lob_partition` inserts."""
        self.delete(session, "LOBFRAG$", (one.obj,))
        self.delete(session, "OBJ$", (one.obj,))
        self.delete(session, "OBJ$", (one.index_obj,))

    def add_column(
        self,
        session: RowStatements | None,
        table: SimTable,
        place: int,
        bits: int = 0,
        text: str | None = None,
    ) -> None:
        """Insert the row of a table's column at `place` (from 0), with bits of its PROPERTY, and
        the text of its default.
        """
        column, at = table.columns[place], table.intcol(place)
        self.insert(
            session, "COL$", obj=table.obj, col=at, seg_col=place + 1, int_col=at,
            name=column.name, **told_type(column.type), null=0 if column.nullable else 1,
            property=bits, default_text=text,
        )  # fmt: skip

    def add_virtual(self, session: RowStatements, table: SimTable, intcol: int, bits: int) -> None:
        """Insert the row of a table's virtual column, with the bits of its PROPERTY."""
        column = table.virtual[intcol]
        self.insert(
            session, "COL$", obj=table.obj, col=intcol, seg_col=0, int_col=intcol,
            name=column.name, **told_type(column.type), null=0, property=bits,
            default_text=column.expression(table),
        )  # fmt: skip

    def drop_intcol(self, session: RowStatements, table: SimTable, intcol: int) -> None:
        """Decrease INTCOL# by one for those columns of a table that have a higher INTCOL#."""
        for name, (of_table, field) in _INTCOLS.items():
            rows = self._rows[name].items()
            found = [
                (value, key)
                for key, (_, named) in rows
                if named[of_table] == table.obj
                and isinstance(value := named[field], int)
                and value > intcol
            ]
            for value, key in sorted(found):
                self.update(session, name, key, **{field: value - 1})

    def remove_column(self, session: RowStatements, table: SimTable, place: int) -> None:
        """Delete the row of a column that is removed from the rows, and give each later column
        lower numbers; in Oracle, DROP COLUMN does so.
        """
        intcol = table.intcol(place)
        self.delete(session, "COL$", (table.obj, intcol))
        if (table.obj, intcol) in self._rows["ECOL$"]:
            self.delete(session, "ECOL$", (table.obj, intcol))
        later = sorted(
            key
            for key, (_, named) in self._rows["COL$"].items()
            if named["obj"] == table.obj and int(str(named["int_col"])) > intcol
        )
        for key in later:
            _, named = self._rows["COL$"][key]
            numbers = {name: int(str(named[name])) for name in ("col", "seg_col")}
            lower = {name: number - 1 for name, number in numbers.items() if number}
            if lower:
                self.update(session, "COL$", key, **lower)
        self.drop_intcol(session, table, intcol)

    def alter_column(
        self, session: RowStatements, table: SimTable, place: int, **values: SysValue
    ) -> None:
        """Update the row of a table's column at `place` (from 0)."""
        self.update(session, "COL$", (table.obj, table.intcol(place)), **values)

    def add_partition(
        self, session: RowStatements | None, table: SimTable, segment: SimSegment
    ) -> None:
        """Insert the rows of a partition, and of the index partition if that contains its rows."""
        obj, dataobj = segment.obj, segment.dataobj
        if segment.table_part:
            name = f"SYS_P{segment.table_part}"
            self._insert_object(session, obj, dataobj, IOT_TOP, INDEX_PARTITION, name)
            self.insert(session, "INDPART$", obj=obj, data_obj=dataobj, bo=table.rows_index)
            obj, dataobj = segment.table_part, 0
        name = segment.name or f"SYS_P{obj}"
        self._insert_object(session, obj, dataobj, table.name, TABLE_PARTITION, name)
        self.insert(session, "TABPART$", obj=obj, data_obj=dataobj, bo=table.obj)

    def drop_partition(self, session: RowStatements, segment: SimSegment) -> None:
        """Delete the rows that `add_partition` inserts."""
        if segment.table_part:
            self.delete(session, "INDPART$", (segment.obj,))
            self.delete(session, "OBJ$", (segment.obj,))
        self.delete(session, "TABPART$", (segment.table_part or segment.obj,))
        self.delete(session, "OBJ$", (segment.table_part or segment.obj,))

    def drop_table(self, session: RowStatements, table: SimTable) -> None:
        """Delete all rows that define a table."""
        for segment in table.segments if table.has_partitions else ():
            self.drop_partition(session, segment)
        for lob in table.lobs.values():
            for one in lob.segments if lob.is_partitioned else ():
                self.drop_lob_partition(session, one)
            self.delete(session, "OBJ$", (lob.obj,))
            self.delete(session, "OBJ$", (lob.index_obj,))
        if table.index_organised:
            self.delete(session, "OBJ$", (table.rows_index,))
        of_table = {"IND$": "bo", "ICOL$": "bo", "LOB$": "obj", "ECOL$": "tab_obj", "CCOL$": "obj",
                    "COM$": "obj", "CDEF$": "obj", "COL$": "obj", "TAB$": "obj",
                    "OBJ$": "obj"}  # fmt: skip
        constraints = {
            named["con"] for _, named in self._rows["CDEF$"].values() if named["obj"] == table.obj
        }
        for index in list(table.beside.indexes):
            self.drop_index(session, index)
        for index in (one.index for one in table.virtual.values() if one.index):
            self.drop_index(session, index)
        for sequence in table.beside.sequences.values():
            self.delete(session, "OBJ$", (sequence,))
        for con in constraints:
            self.delete(session, "CON$", (con,))
        for name, field in of_table.items():
            rows = self._rows[name].items()
            for key in [key for key, (_, named) in rows if named[field] == table.obj]:
                self.delete(session, name, key)

    def recycle(self, session: RowStatements, table: SimTable) -> str:
        """Move a table to the recycle bin, as DROP TABLE without PURGE does. The table gets another
        name, and so do its indexes and constraints. The rows and segments of the table stay until
        the table is purged. LOB segments and sequences keep their names.

        Returns:
            The name in the recycle bin.
        """
        name = recycled_name(table.obj)
        of_table = sorted(table.objects & {obj for (obj,) in self._rows["OBJ$"]})
        for obj in of_table:
            self.update(session, "OBJ$", (obj,), name=name, flags=IN_RECYCLE_BIN)
        indexes = [
            key
            for key, (_, named) in self._rows["IND$"].items()
            if named["bo"] == table.obj and named["type"] != LOB_INDEX
        ]
        for (index,) in indexes:
            name_of_index = recycled_name(int(str(index)))
            self.update(session, "OBJ$", (index,), name=name_of_index, flags=IN_RECYCLE_BIN)
        constraints = [
            named["con"] for _, named in self._rows["CDEF$"].values() if named["obj"] == table.obj
        ]
        for con in constraints:
            self.update(session, "CON$", (con,), name=recycled_name(int(str(con))))
        return name

    def restore(self, session: RowStatements, table: SimTable) -> None:
        """Give a table in the recycle bin its own name again. The table's indexes and constraints
        keep the names that they have there.
        """
        for obj in sorted(table.objects & {obj for (obj,) in self._rows["OBJ$"]}):
            self.update(session, "OBJ$", (obj,), name=table.name, flags=0)

    def create_sequence(self, session: RowStatements, obj: int, name: str) -> None:
        """Insert the row of OBJ$ of a sequence."""
        self._insert_object(session, obj, 0, name, SEQUENCE)

    def rename_partition(self, session: RowStatements, segment: SimSegment) -> None:
        """Write the partition's current name into its row of OBJ$."""
        self.update(session, "OBJ$", (segment.obj,), subname=segment.name)

    def touch_partition(self, session: RowStatements, segment: SimSegment) -> None:
        """Update the row of a partition. The model lacks the columns that Oracle changes in it."""
        self.update(session, "TABPART$", (segment.obj,), data_obj=segment.dataobj)

    def rename(self, session: RowStatements, obj: int, name: str) -> None:
        """Change the name of a table, also in the row of one of its partitions."""
        if (obj,) in self._rows["OBJ$"]:
            self.update(session, "OBJ$", (obj,), name=name)

    def replace_segment(self, session: RowStatements, obj: int, dataobj: int) -> None:
        """Change the segment of a table, partition, index or LOB."""
        for table in ("TABPART$", "TAB$", "IND$", "INDPART$"):
            if (obj,) in self._rows[table]:
                self.update(session, table, (obj,), data_obj=dataobj)
        self.update(session, "OBJ$", (obj,), data_obj=dataobj)

    def _insert_object(
        self,
        session: RowStatements | None,
        obj: int,
        dataobj: int,
        name: str,
        kind: int,
        partition: str | None = None,
    ) -> None:
        """Insert a row of OBJ$; a partition has the table's name, and its own name `partition`."""
        self.insert(
            session, "OBJ$",
            obj=obj, data_obj=dataobj, owner=self._owner_number, name=name, subname=partition,
            type=kind, flags=0,
        )  # fmt: skip

    def rows(self, tables: Sequence[SimTable] = ()) -> SysRows:
        """Return the current rows, in the form of a dictionary snapshot.

        Args:
            tables: if all of these have the same supplemental logging, it is shown as the level of
                the database.
        """
        found: dict[str, Any] = {
            "sys_user": [
                {"row_id": "AAAAAKAAAAAAIfAAAK", "user": OWNER_NUMBER, "name": self._owner},
                {"row_id": "AAAAAKAAAAAAADRAAA", "user": 0, "name": SYS, "single": 1},
            ],
            "sys_ts": [
                {
                    "row_id": f"#{at}",
                    "ts": FIRST_LOB_TABLESPACE + at,
                    "name": f"LOBS{size}",
                    "block_size": size,
                    "state": 1,
                    "flags": 0,
                }
                for at, size in enumerate(TABLESPACE_BLOCKS)
            ],
            "sys_tabcompart": [],
            "sys_tabsubpart": [],
        }
        for name, section in _SECTIONS.items():
            place = {"ts": FIRST_LOB_TABLESPACE} if section.rows in _WITH_TABLESPACE else {}
            found.setdefault(section.rows, []).extend(
                {"row_id": row.rowid, **place, **_told(values)}
                for row, values in self._rows[name].values()
            )
        return SysRows.model_validate(found).model_copy(update=_database_level(tables))


def _database_level(tables: Sequence[SimTable]) -> dict[str, int]:
    """Return the database's level of supplemental logging that gives every table its own; empty if
    the tables differ.
    """
    levels = {table.logging for table in tables}
    if len(levels) != 1:
        return {}
    (level,) = levels
    logged = level is not Logging.NONE, level is Logging.PRIMARY_KEY, level is Logging.ALL
    return {name: int(one) for name, one in zip(DATABASE_LEVELS, logged, strict=True)}


def _sys_table(name: str) -> SimTable:
    section = _SECTIONS[name]
    columns = tuple(SimColumn(column, _TYPES.get(column, _NUMBER)) for column in section.columns)
    return SimTable(
        *(SYS, name, section.obj, section.obj, columns, (0,), Logging.MINIMAL),
        *(0, 1, 1, 128 + section.obj * 512),
    )


def _told(values: Mapping[str, SysValue]) -> dict[str, Any]:
    """Return values in the form of `SysRows`."""
    return {
        name: absent(name) if value is None else value.hex() if isinstance(value, bytes) else value
        for name, value in values.items()
        if name != "default" or value is not None
    }
