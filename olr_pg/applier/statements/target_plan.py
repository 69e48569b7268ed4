"""Plans: how changes of one source table are converted to rows of one target table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.row_columns import NOWHERE, UNBOUND, BoundColumns
from olr_pg.applier.target.catalogue import (
    NewColumn,
    TargetColumn,
    TargetTable,
    create_table,
    missing_table,
    read_table,
    supports_xml,
)
from olr_pg.applier.target.column_encoder import column_encoder
from olr_pg.applier.target.crash_watch import lost_rows, lost_tables
from olr_pg.applier.target.ledger import TableLedger
from olr_pg.applier.target.modifiers import modifier_of
from olr_pg.applier.target.set_aside import check_quiet
from olr_pg.applier.target.table_identity import check_identity, vanished_tables
from olr_pg.applier.target.table_kinds import refuse_kind
from olr_pg.config.table_patterns import OWN_SCHEMA
from olr_pg.datatypes.convert import Encoder
from olr_pg.datatypes.mapping import LOB_TYPES, OracleType, PgKind
from olr_pg.datatypes.plain import PlainForm, plain_form
from olr_pg.datatypes.policies import NOTHING, Counters
from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any

    from psycopg import Connection, sql

    from olr_pg.applier.received.change_reading import ReceivedChanges
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.mapping import PgType
    from olr_pg.wire.column_directory import ColumnDirectory
    from olr_pg.wire.elements import ColumnValue


_STATEMENTS_MAX: Final = 4_000
"""Maximum number of statements, and of parts of statements for single columns, that a plan
caches.
"""


class ReceivedTable(NamedTuple):
    """A table as its received changes describe it.

    Attributes:
        columns: all columns, as described by an INSERT; empty if no INSERT was received.
    """

    owner: str
    name: str
    columns: tuple[ColumnValue, ...] = ()


class BoundColumn(NamedTuple):
    """The target column of a source column, and the conversion of its values.

    Attributes:
        field: the index of the target column; `NOWHERE` for a column that cannot be written.
        form: how kernels convert its values.
    """

    field: int
    encoder: Encoder
    form: PlainForm


class TablePlan:
    """The plan of one table.

    Args:
        source: the table in the source's dictionary. If `source` is None (unknown), the target's
            key is used, and each target column that can be written is assumed to exist in the
            source.

    Attributes:
        name: ``OWNER.NAME``.
        key: the indexes of the key's columns in the target table, in key order; empty if there is
            no key.
        is_key: for each target column, 1 if it belongs to the key.
    """

    def __init__(
        self,
        name: str,
        target: TargetTable,
        source: Table | None,
        settings: ApplierSettings,
    ) -> None:
        self.name = name
        self.target = target
        self._settings = settings
        self._source = {column.name: column for column in source.delivered} if source else {}
        self._names = target_columns(settings, source)
        self._columns: dict[ColumnValue, BoundColumn] = {}
        self._bound: WeakKeyDictionary[ColumnDirectory, BoundColumns] = WeakKeyDictionary()
        self._statements: dict[Hashable, bytes] = {}
        self.key = np.array(self._key_fields(source), np.int64)
        self.is_key = np.isin(np.arange(len(target.columns)), self.key).astype(np.uint8)
        self._whole = (
            {self.field(column) for column in self._source}
            if source
            else {i for i, column in enumerate(target.columns) if not column.generated}
        )
        self._known = set(self._whole) if source else set[int]()

    @property
    def whole(self) -> npt.NDArray[np.int64]:
        """The indexes of the target columns that the source has."""
        return np.array(sorted(self._whole), np.int64)

    @property
    def movable(self) -> npt.NDArray[np.int64]:
        """The indexes of all columns whose values a row must keep when its key changes: those that
        the source has, and the target's own columns.
        """
        columns = enumerate(self.target.columns)
        own = {place for place, column in columns if not column.generated}
        return np.array(sorted(self._whole | own), np.int64)

    @property
    def indexed(self) -> bool:
        """Return whether the key contains the target's key, so that an index finds a row by the
        key.
        """
        target = {self.target.column_number(name) for name in self.target.key}
        return bool(target) and target <= set(self.key.tolist())

    @property
    def inserted(self) -> npt.NDArray[np.int64]:
        """The indexes of the columns that an INSERT sets: the known columns of the source, without
        generated columns.
        """
        return np.array(
            [i for i in sorted(self._known.copy()) if not self.target.columns[i].generated],
            np.int64,
        )

    @property
    def types(self) -> npt.NDArray[np.int64]:
        """The type OID of each target column."""
        return np.array([column.type_oid for column in self.target.columns], np.int64)

    def field(self, column: str) -> int:
        """Return the index of the target column for a source column.

        Raises:
            OlrPgError: 5006, the target table has no such column.
        """
        name = self._names.get(column) or self._settings.choices.column_name(self.name, column)
        found = self.target.column_number(name)
        if found is None:
            raise OlrPgError(
                Code.TARGET_COLUMN_MISSING,
                f"{self.target.full_name} has no column {name!r}",
                table=self.name,
                column=column,
            )
        return found

    def source_name(self, place: int) -> str | None:
        """Return the name of the source column for the target column with this index; None if
        unknown.
        """
        return next((name for name in self._source if self.field(name) == place), None)

    def key_encoder(self, place: int) -> Encoder:
        """Return the encoder for values of the target column with this index.

        Raises:
            OlrPgError: values of the source column cannot be converted to the target's type.
        """
        source = self._source[str(self.source_name(place))]
        return column_encoder(self._settings, self.name, source, self.target.columns[place])

    def bind(self, received: ReceivedChanges, element: int) -> bool:
        """Find the target columns for the columns of a change. Return whether the plan had no
        target column yet for some of these columns.

        Raises:
            OlrPgError: 5006, a target column is missing; 5007, values cannot be converted to its
                type.
        """
        bound = self.bound(received.directory)
        first, end = received.changes.entry_first[element : element + 2].tolist()
        columns = np.unique(received.changes.value_column[first:end])
        unbound = columns[bound.field[columns] == UNBOUND].tolist()
        for number in unbound:
            one = self.column(received.directory, number)
            bound.field[number], bound.form[number] = one.field, one.form
        return bool(unbound)

    def column(self, directory: ColumnDirectory, number: int) -> BoundColumn:
        """Return the target column for the column `number` of a directory.

        Raises:
            OlrPgError: 5006, 5007, as `bind`.
        """
        column = directory.columns[number].column
        bound = self._columns.get(column)
        if bound is None:
            bound = self._columns[column] = self._bind(column)
        return bound

    def bound(self, directory: ColumnDirectory) -> BoundColumns:
        """Return the target columns of a directory's columns; unknown columns are `UNBOUND`."""
        bound, size = self._bound.get(directory), len(directory.columns)
        if bound is None or len(bound.field) < size:
            larger = BoundColumns(
                np.full(2 * size, UNBOUND, np.int32), np.zeros(2 * size, np.uint8)
            )
            if bound is not None:
                larger.field[: len(bound.field)] = bound.field
                larger.form[: len(bound.form)] = bound.form
            bound = self._bound[directory] = larger
        return bound

    def note_losses(self, column: str, lost: Counters) -> None:
        """Count values of a source column that a policy has changed."""
        self._settings.losses.add(self.name, column, lost)

    def statement(self, kind: Hashable, compose: Callable[[], sql.Composed]) -> bytes:
        """Return a statement, or a part of a statement, in UTF-8. The text is composed once for
        each `kind` and then cached.
        """
        found = self._statements.get(kind)
        if found is None:
            if len(self._statements) >= _STATEMENTS_MAX:
                self._statements.clear()
            found = self._statements[kind] = compose().as_bytes()
        return found

    def _bind(self, column: ColumnValue) -> BoundColumn:
        field = self.field(column.name)
        self._known.add(field)
        encoder, form = self._encoder(column, field)
        return BoundColumn(
            NOWHERE if self.target.columns[field].generated else field, encoder, form
        )

    def _encoder(self, column: ColumnValue, field: int) -> tuple[Encoder, PlainForm]:
        described = column.described()
        if column.type_code not in LOB_TYPES:
            # Use the dictionary's description, because the protocol does not contain the length.
            # But for a LOB, only the protocol describes the form in which it is delivered.
            described = self._source.get(column.name, described)
        elif not column.chunked:
            return Encoder(column.name, "LOB", PgKind.BYTEA, _only_nulls), PlainForm.NONE
        try:
            encoder = column_encoder(
                self._settings, self.name, described, self.target.columns[field]
            )
        except OlrPgError as error:
            raise OlrPgError(
                Code.TARGET_TYPE_UNFIT,
                f"{error.title}: {error.detail}",
                table=self.name,
                column=column.name,
                target=self.target.columns[field].base_name,
            ) from error
        if column.chunked or not encoder.plain:
            return encoder, PlainForm.NONE
        return encoder, plain_form(described, encoder.kind, self._settings.facts)

    def _key_fields(self, source: Table | None) -> list[int]:
        if source and source.key:
            names = {column.intcol: column.name for column in source.columns}
            return [self.field(names[number]) for number in source.key]
        return [i for i in map(self.target.column_number, self.target.key) if i is not None]


def _only_nulls(values: ValueColumn) -> tuple[ValueColumn, Counters]:
    """Accept only NULL: other values of a LOB arrive in chunks, so their column is described
    differently.
    """
    present = np.flatnonzero(values.length > 0)
    if len(present):
        raise OlrPgError(Code.ANSWER_MALFORMED, "a LOB that is not chunked", row=int(present[0]))
    return values, NOTHING


def target_columns(settings: ApplierSettings, source: Table | None) -> dict[str, str]:
    """Return the names of the target columns for a table's delivered columns
    (`Choices.column_names`).

    Raises:
        OlrPgError: 5016, a configured name is also the name of another column.
    """
    if source is None:
        return {}
    names = [column.name for column in source.delivered]
    return settings.choices.column_names(source.full_name, names)


def planned_column(name: str, made: PgType) -> TargetColumn:
    """Return the target column that would be created for a column of this type."""
    oid = int(made.kind)
    return TargetColumn(name, oid, oid, made.name, False, "", modifier_of(made))


def target_name(settings: ApplierSettings, owner: str, table: str) -> tuple[str, str]:
    """Return the schema and the name of a target table: from the configuration, or the source's
    names in lower case.

    For several containers, the schema of an owner ``PDB.OWNER`` is ``pdb_owner``.
    """
    named = settings.table_names.get(f"{owner}.{table}")
    if named is not None:
        schema, _, name = named.partition(".")
        return schema, name
    return target_schema(settings, owner), settings.choices.name(table)


def target_schema(settings: ApplierSettings, owner: str) -> str:
    """Return the target schema for objects of an owner, except tables with a configured name."""
    container, _, rest = owner.partition(".")
    own = f"{container}_{rest}" if rest and container in settings.containers else owner
    return settings.schema_names.get(owner) or settings.choices.name(own)


def named_target(settings: ApplierSettings, table: str) -> tuple[str, str]:
    """Return the schema and the name of the target table for ``OWNER.NAME`` or
    ``PDB.OWNER.NAME``.
    """
    owner, _, name = table.partition(".")
    if owner in settings.containers:
        own, _, name = name.partition(".")
        owner = f"{owner}.{own}"
    return target_name(settings, owner, name)


def table_ledger(settings: ApplierSettings, table: str) -> TableLedger:
    """Return the object for the row of a table (as in `named_target`) in the ledger."""
    target = ".".join(named_target(settings, table))
    return TableLedger(settings.subscription, table, target, settings.dbid)


def check_names(settings: ApplierSettings, tables: Iterable[Table]) -> None:
    """Check that no two source tables have the same target table, and that no target table is in
    the ledger's schema.

    Raises:
        OlrPgError: 5016, two source tables have the same target table; 5026, a target table is in
            the ledger's schema.
    """
    seen: dict[tuple[str, str], str] = {}
    for table in tables:
        name = target_name(settings, table.owner, table.name)
        if name[0] == OWN_SCHEMA:
            raise OlrPgError(
                Code.TARGET_IN_OWN_SCHEMA, f"{table.full_name} would become {'.'.join(name)}"
            )
        other = seen.setdefault(name, table.full_name)
        if other != table.full_name:
            raise OlrPgError(
                Code.TARGET_NAME_CLASH,
                f"{other} and {table.full_name} would both become {'.'.join(name)}",
            )


def plan_table(
    connection: Connection[Any],
    settings: ApplierSettings,
    received: ReceivedTable | Table,
    source: Table | None,
    *,
    begins: bool = False,
) -> TablePlan:
    """Make the plan of a table; create the table if it is missing and creation is allowed.

    Args:
        begins: ignore the records about the table's previous rows, because it is loaded from the
            beginning.
        received: names the table, and describes its columns if they are known.

    Raises:
        OlrPgError: 5005, the table is missing; 5006, a column of the key is missing; 5028, a
            trigger or foreign key would fire; 5040–5043, the table would lose or hide rows, or has
            lost rows; 5046, the table was restored without the ledger.
    """
    full_name = f"{received.owner}.{received.name}"
    schema, name = target_name(settings, received.owner, received.name)
    target = read_table(connection, schema, name)
    if target is None and not begins:
        missing = {full_name: (schema, name)}
        for error in vanished_tables(connection, settings.subscription, missing).values():
            raise error
    if target is None and settings.create_tables:
        columns, key = new_table(settings, received, source)
        if columns:
            create_table(connection, schema, name, _creatable(connection, columns), key)
            target = read_table(connection, schema, name)
    if target is None:
        raise missing_table(connection, schema, name, full_name)
    if not begins and full_name in lost_tables(connection, settings.subscription):
        raise lost_rows(full_name)
    if not begins:
        check_identity(connection, settings.subscription, full_name, target.oid)
    refuse_kind(connection, settings, target, full_name)
    check_quiet(connection, settings, schema, name)
    plan = TablePlan(full_name, target, source, settings)
    for place in plan.key.tolist():
        if target.columns[place].generated:
            raise OlrPgError(
                Code.TARGET_TABLE_UNFIT,
                f"{target.full_name}.{target.columns[place].name} is a generated column:"
                " the value of the source's key cannot be stored in it, so rows cannot"
                " be found by this key",
                table=full_name,
            )
    return plan


def _creatable(connection: Connection[Any], columns: list[NewColumn]) -> list[NewColumn]:
    """Return the columns, with the type text instead of xml if the server does not support xml."""
    if not any(column.type_name == "xml" for column in columns) or supports_xml(connection):
        return columns
    return [c._replace(type_name="text") if c.type_name == "xml" else c for c in columns]


def _columns_of(settings: ApplierSettings, source: Table) -> tuple[list[NewColumn], list[str]]:
    """Return the columns and the key to create for a table of the source."""
    names = target_columns(settings, source)
    key = [column.name for number in source.key for column in source.columns
           if column.intcol == number]  # fmt: skip
    columns = [
        NewColumn(
            names[column.name],
            settings.choices.pg_type(source.full_name, column).name,
            not column.nullable or column.name in key,
        )
        for column in source.delivered
    ]
    return columns, [names[name] for name in key]


def new_table(
    settings: ApplierSettings, received: ReceivedTable | Table, source: Table | None
) -> tuple[list[NewColumn], list[str]]:
    """Return the columns and the key of a table to create. If the columns of the source's table are
    unknown, return no columns.
    """
    if source is not None:
        return _columns_of(settings, source)
    if isinstance(received, Table):
        return [], []
    table = f"{received.owner}.{received.name}"
    names = settings.choices.column_names(table, [column.name for column in received.columns])
    return (
        [
            NewColumn(names[column.name], _type_of_unknown_length(settings, table, column))
            for column in received.columns
        ],
        [],
    )


def _type_of_unknown_length(settings: ApplierSettings, table: str, column: ColumnValue) -> str:
    described = column.described()
    if column.type_code == OracleType.CHAR:
        # without a length, char(n) would be char(1)
        return settings.choices.chosen_type(table, described) or "text"
    return settings.choices.pg_type(table, described).name
