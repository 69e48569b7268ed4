"""Plans: how changes of one source table are mapped to rows of one target table."""

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
    lost_table,
    missing_table,
    read_table,
    supports_xml,
)
from olr_pg.applier.target.column_encoder import column_encoder
from olr_pg.applier.target.crash_watch import lost_rows, lost_tables
from olr_pg.applier.target.modifiers import modifier_of
from olr_pg.applier.target.set_aside import check_quiet
from olr_pg.applier.target.table_kinds import refuse_kind
from olr_pg.config.names import OWN_SCHEMA
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
"""Maximum number of statements, and column-specific parts of them, that a plan caches."""


class ReceivedTable(NamedTuple):
    """A table as described by its changes.

    Attributes:
        columns: those of an INSERT, which names all; empty without an INSERT.
    """

    owner: str
    name: str
    columns: tuple[ColumnValue, ...] = ()


class BoundColumn(NamedTuple):
    """The target of a described column.

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
        source: the table in the source's dictionary, None if unknown; then the target's key is
            used, and every writable target column counts as one of the source.

    Attributes:
        name: ``OWNER.NAME``.
        key: indexes of the key's columns, in key order; empty without a key.
        is_key: of each target column.
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
        """Indexes of the columns of a whole row."""
        return np.array(sorted(self._whole), np.int64)

    @property
    def movable(self) -> npt.NDArray[np.int64]:
        """Indexes of the columns that a row keeps when its key changes, including the target's own
        columns.
        """
        columns = enumerate(self.target.columns)
        own = {place for place, column in columns if not column.generated}
        return np.array(sorted(self._whole | own), np.int64)

    @property
    def indexed(self) -> bool:
        """Return whether an index finds a row by the key: the key contains the target's primary
        key.
        """
        target = {self.target.column_number(name) for name in self.target.key}
        return bool(target) and target <= set(self.key.tolist())

    @property
    def inserted(self) -> npt.NDArray[np.int64]:
        """Indexes of the columns that INSERT names: those that the source has."""
        return np.array(
            [i for i in sorted(self._known.copy()) if not self.target.columns[i].generated],
            np.int64,
        )

    @property
    def types(self) -> npt.NDArray[np.int64]:
        """Type OID of each target column."""
        return np.array([column.type_oid for column in self.target.columns], np.int64)

    def field(self, column: str) -> int:
        """Return the index of a source column's target column.

        Raises:
            OlrPgError: 5006, there is none.
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
        """Return the source column of a target column's index; None if unknown."""
        return next((name for name in self._source if self.field(name) == place), None)

    def key_encoder(self, place: int) -> Encoder:
        """Return the encoder for the source column at an index of the target.

        Raises:
            OlrPgError: its values cannot be converted to the target's type.
        """
        source = self._source[str(self.source_name(place))]
        return column_encoder(self._settings, self.name, source, self.target.columns[place])

    def bind(self, received: ReceivedChanges, element: int) -> bool:
        """Find the target columns of a change's columns; return whether some were not bound before.

        Raises:
            OlrPgError: 5006 a column is missing, 5007 one cannot be converted to its target's type.
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
        """Return the target of a described column of this table.

        Raises:
            OlrPgError: 5006, 5007.
        """
        column = directory.columns[number].column
        bound = self._columns.get(column)
        if bound is None:
            bound = self._columns[column] = self._bind(column)
        return bound

    def bound(self, directory: ColumnDirectory) -> BoundColumns:
        """Return the targets of a directory's columns, as far as they are bound."""
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
        """Return a statement of the table, or a part of one, in UTF-8; it is composed once per kind
        and cached.
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
            # The protocol does not contain the length; for LOBs, only the protocol contains the
            # delivered form.
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
    """Refuse any value except NULL: large objects arrive in chunks, not in the row itself."""
    present = np.flatnonzero(values.length > 0)
    if len(present):
        raise OlrPgError(Code.ANSWER_MALFORMED, "a LOB that is not chunked", row=int(present[0]))
    return values, NOTHING


def target_columns(settings: ApplierSettings, source: Table | None) -> dict[str, str]:
    """Return the target names of a table's delivered columns (`Choices.column_names`).

    Raises:
        OlrPgError: 5016.
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
    """Return (schema, table) in the target: from the mapping, or the default in lower case.

    For several containers, the schema of an owner ``PDB.OWNER`` is ``pdb_owner``.
    """
    named = settings.table_names.get(f"{owner}.{table}")
    if named is not None:
        schema, _, name = named.partition(".")
        return schema, name
    return target_schema(settings, owner), settings.choices.name(table)


def target_schema(settings: ApplierSettings, owner: str) -> str:
    """Return the target schema for objects that are not tables mapped by name."""
    container, _, rest = owner.partition(".")
    own = f"{container}_{rest}" if rest and container in settings.containers else owner
    return settings.schema_names.get(owner) or settings.choices.name(own)


def named_target(settings: ApplierSettings, table: str) -> tuple[str, str]:
    """Return (schema, table) in the target of ``OWNER.NAME`` or ``PDB.OWNER.NAME``."""
    owner, _, name = table.partition(".")
    if owner in settings.containers:
        own, _, name = name.partition(".")
        owner = f"{owner}.{own}"
    return target_name(settings, owner, name)


def check_names(settings: ApplierSettings, tables: Iterable[Table]) -> None:
    """Refuse two source tables with the same target table, and a target table in the ledger's
    schema.

    Raises:
        OlrPgError: 5016; 5026, into the appliance's own schema.
    """
    seen: dict[tuple[str, str], str] = {}
    for table in tables:
        name = target_name(settings, table.owner, table.name)
        if name[0] == OWN_SCHEMA:
            raise OlrPgError(
                Code.TARGET_IN_OWN_SCHEMA, f"{table.full_name} would be {'.'.join(name)}"
            )
        other = seen.setdefault(name, table.full_name)
        if other != table.full_name:
            raise OlrPgError(
                Code.TARGET_NAME_CLASH,
                f"{other} and {table.full_name} would both be {'.'.join(name)}",
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
        begins: ignore the table's previous state, because it is loaded from the beginning.
        received: names the table; it can also say what columns to create.

    Raises:
        OlrPgError: 5005 the table is missing, 5006 a key column is, 5028 a trigger or foreign key
            would fire, 5040–5043 its kind of table would lose or hide rows, or has lost them.
    """
    full_name = f"{received.owner}.{received.name}"
    schema, name = target_name(settings, received.owner, received.name)
    target = read_table(connection, schema, name)
    if target is None and settings.create_tables:
        known = settings.subscription, full_name
        if not begins and (lost := lost_table(connection, schema, name, *known)):
            raise lost
        columns, key = new_table(settings, received, source)
        if columns:
            create_table(connection, schema, name, _creatable(connection, columns), key)
            target = read_table(connection, schema, name)
    if target is None:
        raise missing_table(connection, schema, name, full_name)
    if not begins and full_name in lost_tables(connection, settings.subscription):
        raise lost_rows(full_name)
    refuse_kind(connection, settings, target, full_name)
    check_quiet(connection, settings, schema, name)
    plan = TablePlan(full_name, target, source, settings)
    for place in plan.key.tolist():
        if target.columns[place].generated:
            raise OlrPgError(
                Code.TARGET_TABLE_UNFIT,
                f"{target.full_name}.{target.columns[place].name} is a generated column: the"
                " source's key does not go in, and rows cannot be found by it",
                table=full_name,
            )
    return plan


def _creatable(connection: Connection[Any], columns: list[NewColumn]) -> list[NewColumn]:
    """Return the columns, with text instead of xml if the server was built without xml."""
    if not any(column.type_name == "xml" for column in columns) or supports_xml(connection):
        return columns
    return [c._replace(type_name="text") if c.type_name == "xml" else c for c in columns]


def _columns_of(settings: ApplierSettings, source: Table) -> tuple[list[NewColumn], list[str]]:
    """Return columns and key of a table as in the source."""
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
    """Return columns and key of a table to create; no columns if they are not all known."""
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
        # char(n) needs a length
        return settings.choices.chosen_type(table, described) or "text"
    return settings.choices.pg_type(table, described).name
