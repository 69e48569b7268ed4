"""A source database whose tables are changed by DDL: its redo, its dictionary, its rows.

DDL is written as row changes of SYS tables (kept as plain heap tables here) in one transaction with
a 24.1 vector, as dictionary §10 and redo-format §8.1 have it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any, Final

from olr_pg.dictionary.model import Database, Snapshot
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.dictionary.sys_rows import SysRows
from olr_pg.scalars import format_rowid
from olr_pg.simulator.cells import Cell, number, raw, text
from olr_pg.simulator.column_types import number_type, raw_type, varchar
from olr_pg.simulator.instance import Container, Instance, Pace
from olr_pg.simulator.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.session import SimSession
from olr_pg.simulator.storage import Row, UndoSegment
from olr_pg.simulator.tables import ColumnType, Logging, SimColumn, SimTable
from olr_pg.simulator.vectors import Session
from olr_pg.simulator.writer import LogIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ALTER: Final = 15
TRUNCATE: Final = 85
DROP: Final = 12
OWNER: Final = "SHOP"
OWNER_NUMBER: Final = 106
NUMBER: Final = number_type()
TEXT: Final = varchar(128)
LOB: Final = replace(raw_type(4000), type_code=113)

SYS_COLUMNS: Final[dict[str, tuple[int, str, dict[str, str]]]] = {
    "OBJ$": (18, "sys-obj", {
        "OBJ#": "obj", "DATAOBJ#": "data-obj", "OWNER#": "owner", "NAME": "name",
        "TYPE#": "type", "FLAGS": "flags",
    }),
    "TAB$": (4, "sys-tab", {
        "OBJ#": "obj", "DATAOBJ#": "data-obj", "CLUCOLS": "clu-cols", "FLAGS": "flags",
        "PROPERTY": "property",
    }),
    "COL$": (21, "sys-col", {
        "OBJ#": "obj", "COL#": "col", "SEGCOL#": "seg-col", "INTCOL#": "int-col", "NAME": "name",
        "TYPE#": "type", "LENGTH": "length", "PRECISION#": "precision", "SCALE": "scale",
        "CHARSETFORM": "charset-form", "CHARSETID": "charset-id", "NULL$": "null",
        "PROPERTY": "property",
    }),
    "CDEF$": (31, "sys-cdef", {"CON#": "con", "OBJ#": "obj", "TYPE#": "type"}),
    "CCOL$": (32, "sys-ccol", {"CON#": "con", "OBJ#": "obj", "INTCOL#": "int-col"}),
    "ECOL$": (158, "sys-ecol", {
        "TABOBJ#": "tab-obj", "COLNUM": "col-num", "BINARYDEFVAL": "default",
        "GUARD_ID": "guard-id",
    }),
    "TABPART$": (947, "sys-tabpart", {"OBJ#": "obj", "DATAOBJ#": "data-obj", "BO#": "bo"}),
}  # fmt: skip


def cell(value: int | str | bytes | None) -> Cell | None:
    if value is None or isinstance(value, bytes):
        return None if value is None else raw(value)
    return text(value, "utf-8") if isinstance(value, str) else number(Decimal(value))


class DdlSource:
    """Life cycle: `create` tables, `snapshot`, then row changes and DDL, then `finish`.

    Args:
        directory: gets ``logs`` and ``dictionary.json``.
        followed: whether the snapshot has the SYS tables and their rows.
    """

    def __init__(
        self, directory: Path, *, followed: bool = True, threads: int = 1, log_blocks: int = 100_000
    ) -> None:
        self.directory = directory
        self._followed = followed
        (directory / "logs").mkdir(parents=True)
        identity = LogIdentity(
            dbid=77, name="DDLDB", activation=5, resetlogs=1_200_000_000, resetlogs_scn=1
        )
        redo = RedoFormat(COMPATIBLE["19"])
        pace = Pace(log_blocks=log_blocks, flush_at_commit=1.0, new_scn=1.0, commit_new_scn=1.0)
        self.instance = Instance(
            redo, Random(7), self._archive, identity=identity, start_scn=1_000_000,
            start=datetime(2026, 3, 1, tzinfo=UTC), zone=timedelta(), pace=pace,
        )  # fmt: skip
        self.threads = [
            self.instance.start_thread(number, 10 * number) for number in range(1, threads + 1)
        ]
        self.container = Container(0, None, identity.dbid)
        for thread in self.threads:
            dba = (5 << 22) + 128 + thread.number * 8192
            self.container.segments[thread.number] = [
                UndoSegment(thread.number, 5, dba, self.instance.scn)
            ]
        self._next_obj = 72_000
        self._sys = {name: self._sys_table(name) for name in SYS_COLUMNS}
        self._sys_rows: dict[str, dict[tuple[int, ...], tuple[Row, dict[str, Any]]]] = {
            name: {} for name in SYS_COLUMNS
        }
        self.tables: dict[str, SimTable] = {}
        self.snapshot: Snapshot | None = None
        self._sessions = [
            SimSession(
                self.instance, self.container, thread, Session(40, 1000, "SHOP", OWNER_NUMBER)
            )
            for thread in self.threads
        ]
        self.session = self._sessions[0]

    def on_thread(self, thread_number: int) -> SimSession:
        """A session on a redo thread, from 1."""
        return self._sessions[thread_number - 1]

    def _archive(self, name: str, data: bytes) -> None:
        (self.directory / "logs" / name).write_bytes(data)

    def _table(
        self, owner: str, name: str, obj: int, columns: tuple[SimColumn, ...], logging: Logging
    ) -> SimTable:
        afn = 4 if owner == "SYS" else 6
        return SimTable(
            owner, name, obj, obj, columns, (0,), logging, 6, afn, afn, 128 + obj % 1000 * 512
        )

    def _sys_table(self, name: str) -> SimTable:
        obj, _, fields = SYS_COLUMNS[name]
        types = {"NAME": TEXT, "BINARYDEFVAL": LOB}
        columns = tuple(SimColumn(c, types.get(c, NUMBER)) for c in fields)
        return self._table("SYS", name, obj, columns, Logging.MINIMAL)

    # --- rows of SYS tables ---

    def sys_insert(self, table: str, **values: int | str | bytes | None) -> None:
        """Insert a row; the keywords are the fields of the JSON form, hyphens as underscores."""
        _, _, fields = SYS_COLUMNS[table]
        named = {field: values.get(field.replace("-", "_")) for field in fields.values()}
        row = self.session.insert(self._sys[table], [cell(value) for value in named.values()])
        assert row is not None
        self._sys_rows[table][self._key(table, named)] = row, named

    def sys_update(self, table: str, key: tuple[int, ...], **values: int | str | None) -> None:
        row, named = self._sys_rows[table][key]
        fields = list(SYS_COLUMNS[table][2].values())
        new = {fields.index(name.replace("_", "-")): cell(v) for name, v in values.items()}
        assert self.session.update(row, new)
        named.update({name.replace("_", "-"): value for name, value in values.items()})

    def sys_delete(self, table: str, key: tuple[int, ...]) -> None:
        row, _ = self._sys_rows[table].pop(key)
        assert self.session.delete(row)

    @staticmethod
    def _key(table: str, values: Mapping[str, Any]) -> tuple[int, ...]:
        names = {
            "COL$": ("obj", "int-col"),
            "ECOL$": ("tab-obj", "col-num"),
            "CDEF$": ("con",),
            "CCOL$": ("con", "int-col"),
        }
        return tuple(values[name] for name in names.get(table, ("obj",)))

    def _write_column(self, obj: int, place: int, column: SimColumn, bits: int = 0) -> None:
        kind = column.type
        self.sys_insert(
            "COL$", obj=obj, col=place, seg_col=place, int_col=place, name=column.name,
            type=kind.type_code, length=kind.length, precision=kind.precision, scale=kind.scale,
            charset_form=kind.charset_form or 0, charset_id=kind.charset_id or 0,
            null=0 if column.nullable else 1, property=bits,
        )  # fmt: skip

    # --- before the snapshot ---

    def create(self, name: str, columns: Mapping[str, ColumnType], partitions: int = 0) -> SimTable:
        """A table of SHOP; its first column is the primary key."""
        obj = self._next_obj
        self._next_obj += 20
        made = tuple(
            SimColumn(column, kind, nullable=number > 0)
            for number, (column, kind) in enumerate(columns.items())
        )
        table = self._table(OWNER, name, obj, made, Logging.ALL)
        self.tables[name] = table
        segment = 0 if partitions else obj
        self.sys_insert(
            "OBJ$", obj=obj, data_obj=segment, owner=OWNER_NUMBER, name=name, type=2, flags=0
        )
        bits = 0x20000020 if partitions else 0x20000000
        self.sys_insert("TAB$", obj=obj, data_obj=segment, clu_cols=0, flags=0, property=bits)
        for place, column in enumerate(made, 1):
            self._write_column(obj, place, column)
        self.sys_insert("CDEF$", con=obj, obj=obj, type=2)
        self.sys_insert("CCOL$", con=obj, obj=obj, int_col=1)
        for part in range(partitions):
            self._write_partition(obj, obj + 1 + part)
        return table

    def _write_partition(self, table: int, obj: int) -> None:
        self.sys_insert(
            "OBJ$", obj=obj, data_obj=obj, owner=OWNER_NUMBER, name="P", type=19, flags=0
        )
        self.sys_insert("TABPART$", obj=obj, data_obj=obj, bo=table)

    def take_snapshot(self) -> Snapshot:
        """The dictionary as it is now."""
        self.session.commit()
        for thread in self.threads:
            thread.flush()
        rows: dict[str, Any] = {
            "sys-user": [{"row-id": "AAAAAKAAAAAAIfAAAK", "user": OWNER_NUMBER, "name": OWNER},
                         {"row-id": "AAAAAKAAAAAAADRAAA", "user": 0, "name": "SYS", "single": 1}],
            "sys-tabcompart": [], "sys-tabsubpart": [],
        }  # fmt: skip
        for name, (_, section, _) in SYS_COLUMNS.items():
            rows[section] = [
                {"row-id": self._row_id(row), **_with_numbers(values)}
                for row, values in self._sys_rows[name].values()
            ]
        sys_tables = tuple(table.describe() for table in self._sys.values())
        own = tuple(
            replace(
                table.describe(),
                partitions=tuple(
                    values["obj"]
                    for _, values in self._sys_rows["TABPART$"].values()
                    if values["bo"] == table.obj
                ),
            )
            for table in self.tables.values()
        )
        identity = self.instance.identity
        database = Database(
            identity.name, dbid=identity.dbid, resetlogs=(identity.resetlogs,),
            activation=identity.activation, big_endian=False,
        )  # fmt: skip
        self.snapshot = Snapshot(
            self.instance.scn,
            database,
            (*own, *sys_tables) if self._followed else own,
            SysRows.model_validate(rows) if self._followed else None,
        )
        write_snapshot(self.snapshot, str(self.directory / "dictionary.json"))
        self.instance.advance_scn()
        return self.snapshot

    @staticmethod
    def _row_id(row: Row) -> str:
        return format_rowid(row.table.dataobj, row.block.dba, row.slot)

    # --- row changes of user tables ---

    def insert(self, name: str, *values: int | str | None, thread: int = 1) -> Row:
        """INSERT and COMMIT."""
        session = self.on_thread(thread)
        row = session.insert(self.tables[name], [cell(value) for value in values])
        assert row is not None
        session.commit()
        return row

    def update(self, row: Row, values: Mapping[int, int | str | None], thread: int = 1) -> None:
        """UPDATE by column number from 0, and COMMIT."""
        session = self.on_thread(thread)
        assert session.update(row, {number: cell(value) for number, value in values.items()})
        session.commit()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table now, by column name, in key order."""
        table = self.tables[name]
        names = [column.name for column in table.columns]
        found = [
            dict(zip(names, (json.loads(c.json) if c else None for c in row.cells), strict=True))
            for row in table.live
        ]
        return sorted(found, key=lambda row: int(row[names[0]]))

    # --- DDL ---

    def statement(self, name: str, command: int, sql: str, parts: int = 1) -> None:
        """A 24.1 of the open transaction, in `parts` records."""
        session, redo = self.session, self.instance.redo
        assert session.transaction is not None
        size = -(-len(sql) // parts)
        for part in range(parts):
            chunk = sql[part * size : (part + 1) * size].encode()
            first = (
                redo.pack("I", 10000)
                + session.transaction.xid_bytes
                + redo.pack("HHHHHH", command, 0, 0, part + 1, parts, 0)
            )
            fields = [first, chunk + b"\0"]
            if part == 0:
                obj = redo.pack("I", self.tables[name].obj)
                fields = [
                    *(first, b"SHOP", b"SHOP", bytes(12), b"", bytes(2), bytes(2), chunk + b"\0"),
                    *(OWNER.encode(), name.encode(), bytes(20), obj, bytes(2)),
                ]
            record = self.instance.record(self.threads[0], self.container)
            record.vector((24, 1), fields)
            record.emit()

    def add_column(
        self,
        name: str,
        column: str,
        kind: ColumnType,
        *,
        nullable: bool = True,
        bits: int = 0,
        default: bytes | None = None,
    ) -> None:
        """ALTER TABLE … ADD; `default` is the locator that ECOL$ gets."""
        table = self.tables[name]
        made = SimColumn(column, kind, nullable=nullable)
        if default is not None:
            place = len(table.columns) + 1
            self.sys_insert("ECOL$", tab_obj=table.obj, col_num=place, default=default)
        self._write_column(table.obj, len(table.columns) + 1, made, bits)
        self.statement(name, ALTER, f"ALTER TABLE {name} ADD ({column} …)", parts=2)
        self.session.commit()
        table.columns = (*table.columns, made)
        for row in table.live:
            row.cells.append(None)

    def rename_column(self, name: str, place: int, column: str) -> None:
        """ALTER TABLE … RENAME COLUMN; `place` from 0."""
        table = self.tables[name]
        self.sys_update("COL$", (table.obj, place + 1), name=column)
        self.statement(name, ALTER, f"ALTER TABLE {name} RENAME COLUMN x TO {column}")
        self.session.commit()
        columns = list(table.columns)
        columns[place] = replace(columns[place], name=column)
        table.columns = tuple(columns)

    def comment(self, name: str) -> None:
        """A DDL that changes neither rows nor columns: OBJ$'s other columns, not kept."""
        self.sys_update("OBJ$", (self.tables[name].obj,), flags=0)
        self.statement(name, ALTER, f"ALTER TABLE {name} CACHE")
        self.session.commit()

    def truncate(self, name: str, *, logged: bool = True) -> None:
        """TRUNCATE TABLE."""
        table = self.tables[name]
        new = self._new_segment()
        self.sys_update("TAB$", (table.obj,), data_obj=new)
        self.sys_update("OBJ$", (table.obj,), data_obj=new)
        if logged:
            self.statement(name, TRUNCATE, f"TRUNCATE TABLE {name}")
        self.session.commit()
        self._replace_segment(table, new)
        table.live.clear()

    def _new_segment(self) -> int:
        self._next_obj += 20
        return self._next_obj - 7

    def _replace_segment(self, table: SimTable, dataobj: int) -> None:
        table.dataobj, table.blocks = dataobj, []
        table.segment_block += 100_000

    def add_partition(self, name: str, part: int) -> None:
        """ALTER TABLE … ADD PARTITION; the table's rows go into it from then on."""
        table = self.tables[name]
        self._write_partition(table.obj, part)
        self.statement(name, ALTER, f"ALTER TABLE {name} ADD PARTITION P VALUES LESS THAN (9)")
        self.session.commit()

    def drop_partition(self, name: str, part: int, sql: str = "DROP PARTITION P") -> None:
        """ALTER TABLE … DROP PARTITION."""
        self.sys_delete("TABPART$", (part,))
        self.sys_delete("OBJ$", (part,))
        self.statement(name, ALTER, f"ALTER TABLE {name} {sql}")
        self.session.commit()

    def drop(self, name: str) -> None:
        """DROP TABLE … PURGE."""
        table = self.tables[name]
        for place in range(len(table.columns)):
            self.sys_delete("COL$", (table.obj, place + 1))
        self.sys_delete("TAB$", (table.obj,))
        self.sys_delete("OBJ$", (table.obj,))
        self.statement(name, DROP, f"DROP TABLE {name} PURGE")
        self.session.commit()

    def finish(self) -> None:
        """Archive what there is."""
        self.instance.shut_down()


def _with_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """NULLs as the JSON form has them."""
    absent = {"precision": -1, "scale": -1}
    return {n: absent.get(n, 0) if v is None else v for n, v in values.items()}
