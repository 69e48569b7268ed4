"""Repairs exactly the rows that a verification has listed, so that each equals the source's row.

A table's rows are repaired in one transaction that locks the table's row of the ledger, so
replication waits until it ends. Every row is first read again. A row is not touched if replication
or another program may have changed it since the comparison (`target_state`), even if its values are
the same as at the comparison. In a table without a key, rows are not touched if the number of equal
rows has changed.

After a cut-over, `repair` changes nothing: the applications have changed rows in the target, and
the source contains their old values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import Connection, sql

from olr_pg.applier.statements.bound_statement import escape_percent_signs
from olr_pg.applier.target.catalogue import TargetColumn, TargetTable, read_table
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target.ledger import TableLedger, require_ledger
from olr_pg.applier.target.set_aside import put_back, set_aside, validate_foreign_keys
from olr_pg.applier.target.table_identity import forget_number
from olr_pg.applier.target.table_kinds import refuse_hidden
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.canonical import ImageField, fields_of, image_expression, placeholder
from olr_pg.load.cutover_steps import check_no_cutover
from olr_pg.load.verification.target_state import TargetState, is_referenced, read_state
from olr_pg.load.verification.verification import DIFFERENT, EXTRA, RowDifference
from olr_pg.postgres.sqlstates import is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.load.verification.differences import TableDifferences


class RepairedTable(NamedTuple):
    """The result of repairing a table.

    Attributes:
        inserted, updated, deleted: numbers of rows that were inserted, updated and deleted.
        left: number of rows that were not repaired, because they have changed since the
            verification.
    """

    table: str
    inserted: int
    updated: int
    deleted: int
    left: int


class _Found(NamedTuple):
    """A row of the target.

    Attributes:
        table_oid, ctid: the location of the row.
        version: ``xmin`` of the row.
        image: the row's image in the canonical form.
    """

    table_oid: int
    ctid: str
    version: int
    image: bytes

    @property
    def place(self) -> sql.Composed:
        """The SQL condition that identifies this row in ``t``."""
        return sql.SQL("t.tableoid = {} AND t.ctid = {}::tid").format(
            sql.Literal(self.table_oid), sql.Literal(self.ctid)
        )


def repair(
    settings: ApplierSettings, tables: Sequence[TableDifferences]
) -> Iterator[RepairedTable]:
    """Repair the rows of the tables, one table per step of the iteration.

    Yields:
        The result of each table, when it is committed.

    Raises:
        OlrPgError: 5003 the target cannot be reached, 5031 it has no ledger, 5042 the role
            cannot see all rows, 5112 a table differs from the file's description, 5114 PostgreSQL
            refuses a row. Then the table of this row is unchanged, and the tables before it are
            repaired. 5171, a cut-over is complete.
    """
    try:
        with connect_with(settings) as connection:
            require_ledger(connection)
            check_no_cutover(connection, settings.subscription)
            for table in tables:
                yield _repair(connection, settings, table)
    except psycopg.Error as error:
        raise target_error(error) from error


def _repair(
    connection: Connection[Any], settings: ApplierSettings, found: TableDifferences
) -> RepairedTable:
    target = read_table(connection, found.schema, found.name)
    columns = _columns(target, found)
    assert target is not None
    refuse_hidden(connection, settings, target, found.table)
    ledger = TableLedger(settings.subscription, found.table, target.full_name)
    key = [column for column in columns if column.name in found.key]
    table = _Table(found.table, target, columns, key)
    done = dict.fromkeys(("inserted", "updated", "deleted", "left"), 0)
    try:
        with connection.transaction():
            aside = set_aside(connection, settings, [(target.schema, target.name)])
            ledger.lock(connection)
            # A change of the ledger shows that the rows come from Oracle. Otherwise a way back that
            # begins to run later would write them to Oracle, over newer values.
            ledger.touch(connection)
            now = read_state(connection, ledger.key, target.oid)
            table.is_untouched = found.state.allows(now)
            table.is_in_place = found.state.position == now.position or not is_referenced(
                connection, target.oid
            )
            # Delete extra rows first, because another row may need the key or a unique value of a
            # deleted row.
            for difference in sorted(found.rows, key=lambda one: one.kind != EXTRA):
                has_list = ledger.listed and bool(key)
                lacks_later = has_list and table.lacks_later(
                    connection, ledger.key, difference, found.state
                )
                outcome = "left" if lacks_later else table.repair(connection, difference)
                done[outcome] += 1
                if has_list and outcome != "left":
                    table.clear_incomplete(connection, ledger.key, difference)
            table.finish(connection)
            if done["inserted"] != done["deleted"]:
                forget_number(connection, *ledger.key)
            if ledger.listed:
                ledger.count_incomplete(connection)
            # If replication has not set the foreign keys aside, this repair disabled them and must
            # enable them again.
            validate_foreign_keys(
                connection, put_back(connection, settings.subscription, aside).done
            )
    except psycopg.Error as error:
        if is_transient(error):
            raise
        raise target_error(error, code=Code.ROW_NOT_REPAIRABLE, table=found.table) from error
    return RepairedTable(found.table, **done)


def _columns(target: TargetTable | None, found: TableDifferences) -> list[TargetColumn]:
    """Return the columns that were compared.

    Raises:
        OlrPgError: 5112, the table has changed.
    """
    here = {} if target is None else {column.name: column for column in target.columns}
    for name, kind in zip(found.columns, found.types, strict=True):
        if name not in here or here[name].base_oid != kind:
            raise OlrPgError(
                Code.DIFFERENCES_FILE_UNUSABLE,
                f"{found.schema}.{found.name} has changed",
                table=found.table,
                column=name,
            )
    return [here[name] for name in found.columns]


class _Table:
    """The statements for one table.

    Args:
        source: ``OWNER.NAME``.
        key: the key's columns; empty without a key.

    Attributes:
        is_untouched: whether the table has no new conflict and no new file since the comparison.
        is_in_place: whether each removal of rows since the comparison would be visible: as a new
            conflict, or as a new file of the table.
    """

    def __init__(
        self,
        source: str,
        target: TargetTable,
        columns: list[TargetColumn],
        key: list[TargetColumn],
    ) -> None:
        self._source = source
        self._table = target.identifier
        self._name = escape_percent_signs(target.identifier)
        self._columns = columns
        self._key = key
        self._image = escape_percent_signs(image_expression(columns))
        self.is_untouched = self.is_in_place = False
        self._crossed = list[list[ImageField]]()
        self._copies = dict[bytes, int]()

    def repair(self, connection: Connection[Any], difference: RowDifference) -> str:
        """Repair one row; return ``inserted``, ``updated``, ``deleted`` or ``left``."""
        if not self.is_untouched or (difference.version is None and not self.is_in_place):
            return "left"
        if not self._key and self._copies_before(connection, difference) != difference.copies:
            return "left"
        found = self._find(connection, difference)
        image = None if found is None else found.image
        if image != difference.target:
            return "left"
        if self._key and found is not None and found.version != difference.version:
            return "left"
        if difference.source is None:
            assert found is not None
            self._delete(connection, found)
            return "deleted"
        fields = fields_of(difference.source, self._columns)
        if found is None or difference.kind != DIFFERENT:
            self._insert(connection, fields)
            return "inserted"
        try:
            with connection.transaction():
                self._update(connection, fields, found)
        except psycopg.errors.UniqueViolation:
            # Two rows may have exchanged their values: delete both before inserting either.
            self._delete(connection, found)
            self._crossed.append(fields)
        return "updated"

    def finish(self, connection: Connection[Any]) -> None:
        """Insert the rows that `repair` deleted because they had exchanged unique values."""
        for fields in self._crossed:
            self._insert(connection, fields)

    def lacks_later(
        self,
        connection: Connection[Any],
        table: tuple[str, str],
        difference: RowDifference,
        state: TargetState,
    ) -> bool:
        """Return whether the row lacks a LOB value that was set after the comparison. The change
        may have set nothing else, and then it has written no new row version.
        """
        condition, parameters = self._listed(table, difference)
        query = sql.SQL("SELECT FROM olr_pg.incomplete WHERE {} AND commit_scn > %s").format(
            condition
        )
        return connection.execute(query, [*parameters, state.position[0]]).rowcount > 0

    def clear_incomplete(
        self, connection: Connection[Any], table: tuple[str, str], difference: RowDifference
    ) -> None:
        """Delete the entries of a repaired row from ``olr_pg.incomplete``."""
        condition, parameters = self._listed(table, difference)
        query = sql.SQL("DELETE FROM olr_pg.incomplete WHERE {}").format(condition)
        connection.execute(query, parameters)

    def _listed(
        self, table: tuple[str, str], difference: RowDifference
    ) -> tuple[sql.Composed, list[Any]]:
        """Return the SQL condition of the row's entries in ``olr_pg.incomplete``, and its
        parameters.
        """
        image = difference.source or difference.target
        assert image is not None
        fields = [field for field in fields_of(image, self._columns) if field.column in self._key]
        pairs = sql.SQL(", ").join(
            sql.SQL("{}::text, ({})::text").format(
                escape_percent_signs(sql.Literal(field.column.name)), placeholder(field.column)
            )
            for field in fields
        )
        condition = sql.SQL(
            "subscription = %s AND source_table = %s"
            " AND target_column = ANY(%s) AND key = jsonb_build_object({})"
        ).format(pairs)
        names = [column.name for column in self._columns]
        return condition, [*table, names, *(field.parameter for field in fields)]

    def _copies_before(self, connection: Connection[Any], difference: RowDifference) -> int:
        """Return the number of rows in the target that were equal to this row before the repair
        began.

        In a table without a key, only this number shows whether the row has changed since the
        verification.
        """
        image = difference.source or difference.target
        assert image is not None
        if image not in self._copies:
            query = sql.SQL("SELECT count(*) FROM {} AS t WHERE {} = %b").format(
                self._name, self._image
            )
            row = connection.execute(query, [image]).fetchone()
            self._copies[image] = int(row[0]) if row else 0
        return self._copies[image]

    def _find(self, connection: Connection[Any], difference: RowDifference) -> _Found | None:
        """Find and lock the row; None if it does not exist."""
        if self._key:
            wanted = difference.source or difference.target
            assert wanted is not None
            fields = [f for f in fields_of(wanted, self._columns) if f.column in self._key]
            where = sql.SQL(" AND ").join(
                sql.SQL("t.{} = {}").format(_name(f.column), placeholder(f.column)) for f in fields
            )
            parameters: list[Any] = [field.parameter for field in fields]
        elif difference.target is None:
            return None  # the row is missing in a table without a key
        else:
            where, parameters = sql.SQL("{} = %b").format(self._image), [difference.target]
        query = sql.SQL(
            "SELECT t.tableoid::int8, t.ctid::text, t.xmin::text::int8, {} FROM {} AS t WHERE {}"
            " LIMIT 1 FOR UPDATE"
        ).format(self._image, self._name, where)
        with connection.cursor(binary=True) as cursor:
            row = cursor.execute(query, parameters).fetchone()
        return None if row is None else _Found(row[0], row[1], row[2], bytes(row[3]))

    def _delete(self, connection: Connection[Any], found: _Found) -> None:
        query = sql.SQL("DELETE FROM {} AS t WHERE {}").format(self._name, found.place)
        self._change(connection, query, [])

    def _change(
        self, connection: Connection[Any], query: sql.Composed, parameters: Sequence[Any]
    ) -> None:
        """Execute a statement that must change one row.

        Raises:
            OlrPgError: 5114, the statement changed no row. A row trigger that fires ``BEFORE`` the
                statement and returns NULL discards the change without an error.
        """
        if connection.execute(query, parameters).rowcount != 1:
            raise OlrPgError(
                Code.ROW_NOT_REPAIRABLE,
                f"a trigger of {self._table.as_string()} discards the change of a row",
                action="disable the trigger, which `olr-pg doctor` names, then repair again",
                table=self._source,
            )

    def _update(self, connection: Connection[Any], fields: list[ImageField], found: _Found) -> None:
        names = {column.name for column in self._key}
        theirs = fields_of(found.image, self._columns)
        setting = list[ImageField]()
        for wanted, there in zip(fields, theirs, strict=True):
            if wanted.column.identity == "a":
                self._check_identity(wanted, there)
            elif wanted.column.name not in names:
                setting.append(wanted)
        query = sql.SQL("UPDATE {} AS t SET {} WHERE {}").format(
            self._name,
            sql.SQL(", ").join(
                sql.SQL("{} = {}").format(_name(f.column), placeholder(f.column)) for f in setting
            ),
            found.place,
        )
        self._change(connection, query, [field.parameter for field in setting])

    def _check_identity(self, wanted: ImageField, there: ImageField) -> None:
        """Raise an error for a row that differs in a GENERATED ALWAYS identity column. PostgreSQL
        cannot update this column, so the row would be reported as repaired and still differ.
        """
        if wanted.value != there.value:
            column = sql.Identifier(wanted.column.name)
            mend = sql.SQL("ALTER TABLE {} ALTER {} SET GENERATED BY DEFAULT").format(
                self._table, column
            )
            raise OlrPgError(
                Code.ROW_NOT_REPAIRABLE,
                f"{column.as_string()} is GENERATED ALWAYS AS IDENTITY, which PostgreSQL"
                f" does not update. Run {mend.as_string()}, then repair again",
                table=self._source,
            )

    def _insert(self, connection: Connection[Any], fields: list[ImageField]) -> None:
        query = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
            self._name,
            sql.SQL(", ").join(_name(field.column) for field in fields),
            sql.SQL(", ").join(placeholder(field.column) for field in fields),
        )
        self._change(connection, query, [field.parameter for field in fields])


def _name(column: TargetColumn) -> sql.SQL:
    return escape_percent_signs(sql.Identifier(column.name))
