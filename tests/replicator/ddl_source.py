"""A source database whose tables are changed by DDL: its redo, its dictionary, its rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Final

from olr_pg.dictionary.model import Database, Snapshot
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.simulator.fields.redo_format import COMPATIBLE, DatabaseSession, RedoFormat
from olr_pg.simulator.model.column_types import date_type, number_type, varchar
from olr_pg.simulator.model.storage import UndoSegment
from olr_pg.simulator.model.tables import ColumnType, Logging, Row, SimColumn, SimSegment, SimTable
from olr_pg.simulator.sessions.ddl_statements import ALTER_TABLE, CREATE_TABLE
from olr_pg.simulator.sessions.session import SimSession
from olr_pg.simulator.sessions.sys_dictionary import OWNER_NUMBER, SysDictionary, sys_cell
from olr_pg.simulator.writer.instance import Container, Instance, Pace, RedoThread
from olr_pg.simulator.writer.log_file import LogIdentity, OpenLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DROP: Final = 12
OWNER: Final = "SHOP"
NUMBER: Final = number_type()
TEXT: Final = varchar(128)


INVALID_DAY: Final = bytes.fromhex("78680d18010101")
"""A DATE with a month 13."""


class DdlSource:
    """Life cycle: `create` tables, `take_snapshot`, then row changes and DDL, then `finish`.

    Args:
        directory: gets ``logs`` and ``dictionary.json``.
        followed: whether the snapshot has the SYS tables and their rows.
        con_id: the container; 0 where there are none.
        beside: another container of the same database, whose redo threads it shares.

    Attributes:
        purges: whether `drop` removes a table, or moves it to the recycle bin.
    """

    def __init__(
        self,
        directory: Path,
        *,
        followed: bool = True,
        threads: int = 1,
        log_blocks: int = 100_000,
        con_id: int = 0,
        beside: DdlSource | None = None,
    ) -> None:
        self.directory = directory
        self._followed = followed
        (directory / "logs").mkdir(parents=True)
        identity = LogIdentity(
            dbid=77, name="DDLDB", activation=5, resetlogs=1_200_000_000, resetlogs_scn=1
        )
        redo = RedoFormat(COMPATIBLE["19"])
        pace = Pace(log_blocks=log_blocks, flush_at_commit=1.0, new_scn=1.0, commit_new_scn=1.0)
        self.instance: Instance = beside.instance if beside else Instance(
            redo, Random(7), self._archive, identity=identity, start_scn=1_000_000,
            start=datetime(2026, 3, 1, tzinfo=UTC), zone=timedelta(), pace=pace,
        )  # fmt: skip
        self.threads: list[RedoThread] = beside.threads if beside else [
            self.instance.start_thread(number, 10 * number) for number in range(1, threads + 1)
        ]  # fmt: skip
        self.dictionary = SysDictionary(OWNER, self.instance.scn)
        name = f"PDB{con_id - 2}" if con_id else None
        self.container = Container(con_id, name, identity.dbid ^ con_id)
        for thread in self.threads:
            dba = (5 << 22) + 128 + thread.number * 8192
            self.container.segments[thread.number] = [
                UndoSegment(thread.number, 5, dba, self.instance.scn)
            ]
        self._next_obj = 72_000
        self.tables: dict[str, SimTable] = {}
        self.snapshot: Snapshot | None = None
        self.purges = True
        self._sessions = [
            self._open(thread, DatabaseSession(40, 1000, OWNER, OWNER_NUMBER))
            for thread in self.threads
        ]
        self.session = self._sessions[0]

    def on_thread(self, thread_number: int) -> SimSession:
        """A session on a redo thread, from 1."""
        return self._sessions[thread_number - 1]

    def open_session(self, number: int = 41) -> SimSession:
        """Another session on the first redo thread."""
        return self._open(self.threads[0], DatabaseSession(number, 1000, OWNER, OWNER_NUMBER))

    def _open(self, thread: RedoThread, attributes: DatabaseSession) -> SimSession:
        return SimSession(
            self.instance, self.container, thread, attributes, dictionary=self.dictionary
        )

    def _archive(self, log: OpenLog, next_scn: int, time: int) -> None:
        (self.directory / "logs" / log.name).write_bytes(log.close(next_scn, time))

    # --- before the snapshot, or as a part of CREATE TABLE ---

    def create(
        self,
        name: str,
        columns: Mapping[str, ColumnType],
        partitions: int = 0,
        *,
        organised: bool = False,
    ) -> SimTable:
        """A table of SHOP; its first column is the primary key and decides the partition.

        Where it is `organised`, its rows are in the index of that key.
        """
        obj, self._next_obj = self._next_obj, self._next_obj + 20
        made = tuple(
            SimColumn(column, kind, nullable=number > 0)
            for number, (column, kind) in enumerate(columns.items())
        )
        block = 128 + obj % 1000 * 512
        table = SimTable(
            *(OWNER, name, obj, obj, made, (0,), Logging.ALL, 6, 6, 6, block),
            segments=[
                SimSegment(
                    obj + part, obj + part, 6, (6 << 22) + block + 64 * part,
                    table_part=obj + 10 + part if organised else 0,
                )
                for part in range(1, partitions + 1)
            ],
            index_organised=organised,
        )  # fmt: skip
        self.tables[name] = table
        self.dictionary.create_table(self.session.rows, table)
        return table

    def take_snapshot(self) -> Snapshot:
        """The dictionary as it is now."""
        self.session.commit()
        for thread in self.threads:
            thread.flush()
        own = tuple(table.describe() for table in self.tables.values())
        sys_tables = tuple(table.describe() for table in self.dictionary.tables.values())
        identity = self.instance.identity
        database = Database(
            identity.name, dbid=self.container.dbid, resetlogs=(identity.resetlogs,),
            activation=identity.activation, big_endian=False,
            con_id=self.container.con_id, con_name=self.container.name,
        )  # fmt: skip
        self.snapshot = Snapshot(
            self.instance.scn,
            database,
            (*own, *sys_tables) if self._followed else own,
            self.dictionary.rows() if self._followed else None,
        )
        write_snapshot(self.snapshot, str(self.directory / "dictionary.json"))
        self.instance.advance_scn()
        return self.snapshot

    # --- row changes ---

    def insert(self, name: str, *values: int | str | None, thread: int = 1) -> Row:
        """INSERT and COMMIT."""
        session = self.on_thread(thread)
        row = session.insert(self.tables[name], [sys_cell(value) for value in values])
        assert row is not None
        session.commit()
        return row

    def update(self, row: Row, values: Mapping[int, int | str | None], thread: int = 1) -> None:
        """UPDATE by column number from 0, and COMMIT."""
        session = self.on_thread(thread)
        assert session.update(row, {number: sys_cell(value) for number, value in values.items()})
        session.commit()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table now, by column name, in key order."""
        table = self.tables[name]
        found = [
            {
                column.name: json.loads(value.json) if (value := cell or column.default) else None
                for column, cell in zip(table.columns, row.cells, strict=True)
                if not column.unused
            }
            for row in table.live
        ]
        return sorted(found, key=lambda row: int(row[table.columns[0].name]))

    # --- DDL ---

    def statement(self, name: str, command: int, sql: str) -> None:
        """A 24.1 of the open transaction."""
        self.session.ddl.log_statement(self.tables[name], command, sql)

    def add_column(
        self, name: str, column: str, kind: ColumnType, default: int | str | None = None
    ) -> None:
        """ALTER TABLE … ADD of a nullable column, or of one NOT NULL with a default."""
        nullable = default is None
        new = SimColumn(column, kind, nullable=nullable, default=sys_cell(default))
        assert self.session.ddl.add_column(self.tables[name], new)

    def add_odd_column(
        self,
        name: str,
        column: str,
        *,
        nullable: bool = True,
        bits: int = 0,
        default: bytes | None = None,
    ) -> None:
        """ALTER TABLE … ADD of a NUMBER as no release of the model does it.

        Args:
            bits: of COL$.PROPERTY.
            default: the locator that ECOL$ gets.
        """
        table = self.tables[name]
        dictionary = self._begin(table)
        place = len(table.columns)
        table.columns = (*table.columns, SimColumn(column, NUMBER, nullable=nullable))
        if default is not None:
            dictionary.insert(
                self.session.rows, "ECOL$", tab_obj=table.obj, col_num=place + 1, default=default
            )
        dictionary.add_column(self.session.rows, table, place, bits)
        for row in table.live:
            row.cells.append(None)
        self.session.ddl.end(table, ALTER_TABLE, f"ALTER TABLE {name} ADD ({column} …)")

    def rename_column(self, name: str, place: int, column: str) -> None:
        """ALTER TABLE … RENAME COLUMN; `place` from 0."""
        assert self.session.ddl.rename_column(self.tables[name], place, column)

    def set_unused(self, name: str, place: int) -> None:
        """ALTER TABLE … SET UNUSED."""
        assert self.session.ddl.set_unused(self.tables[name], place)

    def drop_column(self, name: str, place: int) -> None:
        """ALTER TABLE … DROP COLUMN, which also removes the unused columns."""
        assert self.session.ddl.drop_column(self.tables[name], place)

    def modify_column(self, name: str, place: int, kind: ColumnType) -> None:
        """ALTER TABLE … MODIFY to another size."""
        assert self.session.ddl.modify_column(self.tables[name], place, kind)

    def set_nullable(self, name: str, place: int, *, nullable: bool) -> None:
        """ALTER TABLE … MODIFY (… NULL), or NOT NULL."""
        assert self.session.ddl.set_nullable(self.tables[name], place, nullable=nullable)

    def comment(self, name: str) -> None:
        """A DDL that changes neither rows nor columns: OBJ$'s other columns, not kept."""
        table = self.tables[name]
        self._begin(table).update(self.session.rows, "OBJ$", (table.obj,), flags=0)
        self.session.ddl.end(table, ALTER_TABLE, f"ALTER TABLE {name} CACHE")

    def rename(self, name: str, new: str) -> None:
        """ALTER TABLE … RENAME TO."""
        table = self.tables.pop(name)
        assert self.session.ddl.rename_table(table, new)
        self.tables[new] = table

    def swap(self, one: str, other: str) -> None:
        """Exchange the names of two tables in one transaction, as DBMS_REDEFINITION does at its
        end.
        """
        first, second = self.tables[one], self.tables[other]
        assert self.session.ddl.exchange_names(first, second)
        self.tables |= {one: second, other: first}

    def make(self, name: str, columns: Mapping[str, ColumnType]) -> None:
        """CREATE TABLE, without rows, as a statement of its own."""
        self.create(name, columns)
        self.statement(name, CREATE_TABLE, f"CREATE TABLE {name} (…)")
        self.session.commit()

    def truncate(self, name: str, *, logged: bool = True) -> None:
        """TRUNCATE TABLE."""
        assert self.session.ddl.truncate(self.tables[name], logged=logged)

    def drop(self, name: str) -> None:
        """DROP TABLE."""
        assert self.session.ddl.drop_table(self.tables[name], purge=self.purges)

    def flash_back(self, table: SimTable) -> None:
        """FLASHBACK TABLE … TO BEFORE DROP."""
        assert self.session.ddl.flash_back(table)

    def _begin(self, table: SimTable) -> SysDictionary:
        dictionary = self.session.ddl.begin(table)
        assert dictionary is not None
        return dictionary

    def finish(self) -> None:
        """Archive what there is."""
        self.instance.shut_down()


def source_without_sys_rows(folder: Path) -> DdlSource:
    """Return a source with an added column in A and without rows of SYS tables; B is unchanged."""
    source = DdlSource(folder, followed=False)
    source.create("A", {"ID": NUMBER})
    source.create("B", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1)
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, 22)
    source.insert("B", 1)
    source.finish()
    return source


def write_invalid_date(directory: Path) -> None:
    """Write a source with the table SHOP.DATES, whose only row has an invalid date."""
    made = DdlSource(directory)
    made.create("DATES", {"ID": NUMBER, "DAY": date_type()})
    made.take_snapshot()
    row = [sys_cell(1), sys_cell(INVALID_DAY)]
    assert made.session.insert(made.tables["DATES"], row) is not None
    made.session.commit()
    made.finish()
