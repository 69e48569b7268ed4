"""Plans: how the changes of one source table become rows of one target table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.row_columns import OPERATION, Operations
from olr_pg.applier.target.catalogue import (
    NewColumn,
    TargetTable,
    create_table,
    lost_table,
    missing_table,
    read_table,
    supports_xml,
)
from olr_pg.applier.target.column_encoder import column_encoder
from olr_pg.applier.target.crash_watch import lost_rows, lost_tables
from olr_pg.applier.target.set_aside import check_quiet
from olr_pg.applier.target.table_kinds import refuse_kind
from olr_pg.config.names import OWN_SCHEMA
from olr_pg.datatypes.convert import Encoder
from olr_pg.datatypes.mapping import LOB_TYPES, OracleType, PgKind
from olr_pg.datatypes.plain import PlainForm, plain_form
from olr_pg.datatypes.policies import NOTHING, Counters
from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from typing import Any

    from psycopg import Connection, sql

    from olr_pg.applier.received.layouts import Layout
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.wire.elements import ColumnValue


_LAYOUTS_MAX: Final = 10_000
"""Layouts that a plan remembers."""


class BoundColumn(NamedTuple):
    """One column of a layout on its way into the target.

    Attributes:
        entry: its place among the values of a change.
        after: whether it is of the after image.
        form: what the kernel of whole rows does with it.
    """

    entry: int
    field: int
    after: bool
    encoder: Encoder
    form: PlainForm


class BoundLayout(NamedTuple):
    """A layout whose columns have found their targets.

    Attributes:
        needed: the columns that the net change needs.
        all: every column.
        needed_operations, all_operations: the same for the kernel of whole rows.
    """

    needed: tuple[BoundColumn, ...]
    all: tuple[BoundColumn, ...]
    needed_operations: Operations
    all_operations: Operations


class LayoutOperations(NamedTuple):
    """The work of the kernel of whole rows for changes of several layouts.

    Attributes:
        first: shape (layouts + 1); where each layout's operations begin.
        columns: the column of each operation.
    """

    first: npt.NDArray[np.int64]
    operations: Operations
    columns: tuple[BoundColumn, ...]


def _operations(columns: Iterable[BoundColumn]) -> Operations:
    return np.array([(c.entry, c.field, c.after, c.form) for c in columns], OPERATION)


class TablePlan:
    """The plan of one table.

    Args:
        source: the table as the source's dictionary has it, None where nobody told; then the
            target's key decides and every writable target column counts as the source's.

    Attributes:
        name: ``OWNER.NAME``.
        key: places of the key's columns, in key order; empty = no key.
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
        self._bound: dict[Layout, BoundLayout] = {}
        self._sets: dict[tuple[tuple[Layout | None, ...], bool], LayoutOperations] = {}
        self._statements: dict[tuple[Hashable, tuple[str, ...]], bytes] = {}
        self.key = np.array(self._key_fields(source), np.int64)
        self._whole = (
            {self.field(column) for column in self._source}
            if source
            else {i for i, column in enumerate(target.columns) if not column.generated}
        )
        self._known = set(self._whole) if source else set[int]()

    @property
    def whole(self) -> npt.NDArray[np.int64]:
        """Places of the columns that a whole row has."""
        return np.array(sorted(self._whole), np.int64)

    @property
    def movable(self) -> npt.NDArray[np.int64]:
        """Places of the columns that a row keeps when its key changes: also the target's own."""
        columns = enumerate(self.target.columns)
        own = {place for place, column in columns if not column.generated}
        return np.array(sorted(self._whole | own), np.int64)

    @property
    def indexed(self) -> bool:
        """Tell whether an index finds a row by the key: the target's key lies within it."""
        target = {self.target.column_number(name) for name in self.target.key}
        return bool(target) and target <= set(self.key.tolist())

    @property
    def inserted(self) -> npt.NDArray[np.int64]:
        """Places of the columns that INSERT names: those the source is known to have."""
        return np.array(
            [i for i in sorted(self._known.copy()) if not self.target.columns[i].generated],
            np.int64,
        )

    @property
    def types(self) -> npt.NDArray[np.int64]:
        """Type OID of each target column."""
        return np.array([column.type_oid for column in self.target.columns], np.int64)

    def field(self, column: str) -> int:
        """Return the place of a source column in the target.

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
        """Return the source column of a place in the target; None where none is known."""
        return next((name for name in self._source if self.field(name) == place), None)

    def key_encoder(self, place: int) -> Encoder:
        """Return what converts values of the known source column at a place of the target.

        Raises:
            OlrPgError: its values cannot go into the target's type.
        """
        source = self._source[str(self.source_name(place))]
        return column_encoder(self._settings, self.name, source, self.target.columns[place])

    def bind(self, layout: Layout) -> BoundLayout:
        """Find the targets of a layout's columns.

        Raises:
            OlrPgError: 5006 a column is missing, 5007 a column cannot go into its target's type.
        """
        bound = self._bound.get(layout)
        if bound is None:
            if len(self._bound) >= _LAYOUTS_MAX:
                self._bound.clear()
            bound = self._bound[layout] = self._bind(layout)
        return bound

    def note_losses(self, column: str, lost: Counters) -> None:
        """Count values of a source column that a policy has changed."""
        self._settings.losses.add(self.name, column, lost)

    def statement(
        self, kind: Hashable, columns: tuple[str, ...], compose: Callable[[], sql.Composed]
    ) -> bytes:
        """Return a statement of the table in UTF-8, composed once per kind and columns."""
        found = self._statements.get((kind, columns))
        if found is None:
            if len(self._statements) >= _LAYOUTS_MAX:
                self._statements.clear()
            found = self._statements[kind, columns] = compose().as_bytes()
        return found

    def operations(
        self,
        layouts: tuple[Layout | None, ...],
        bind: Callable[[int], BoundLayout],
        *,
        whole: bool,
    ) -> LayoutOperations:
        """Return the operations of these layouts; None stands for one that is not needed.

        Args:
            bind: binds layout number n, where they are not remembered.
            whole: of every column, not only of those that the net change needs.

        Raises:
            what `bind` raises.
        """
        found = self._sets.get((layouts, whole))
        if found is None:
            if len(self._sets) >= _LAYOUTS_MAX:
                self._sets.clear()
            bound = [None if one is None else bind(number) for number, one in enumerate(layouts)]
            found = self._sets[layouts, whole] = _together(bound, whole=whole)
        return found

    def _bind(self, layout: Layout) -> BoundLayout:
        columns = []
        for entry, column in enumerate(layout.columns):
            field = self.field(column.name)
            self._known.add(field)
            if self.target.columns[field].generated:
                continue
            encoder, form = self._encoder(column, field)
            columns.append(BoundColumn(entry, field, entry >= layout.before, encoder, form))
        keys = set(self.key.tolist())
        moves = any(column.after and column.field in keys for column in columns)
        every = not keys or (layout.kind is DmlKind.UPDATE and moves)
        needed = [column for column in columns if every or column.after or column.field in keys]
        return BoundLayout(tuple(needed), tuple(columns), _operations(needed), _operations(columns))

    def _encoder(self, column: ColumnValue, field: int) -> tuple[Encoder, PlainForm]:
        described = column.described()
        if column.type_code not in LOB_TYPES:
            # The protocol does not tell the length; of LOBs it alone tells the delivered form.
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


def _together(bound: Sequence[BoundLayout | None], *, whole: bool) -> LayoutOperations:
    parts = [np.zeros(0, OPERATION)]
    columns: list[BoundColumn] = []
    first = [0]
    for one in bound:
        if one is not None:
            parts.append(one.all_operations if whole else one.needed_operations)
            columns += one.all if whole else one.needed
        first.append(len(columns))
    return LayoutOperations(np.array(first, np.int64), np.concatenate(parts), tuple(columns))


def _only_nulls(values: ValueColumn) -> tuple[ValueColumn, Counters]:
    """Refuse any value but NULL: large objects come in chunks, not in the row itself."""
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


def target_name(settings: ApplierSettings, owner: str, table: str) -> tuple[str, str]:
    """Return (schema, table) in the target: the mapping's, else folded.

    The schema of an owner ``PDB.OWNER`` of several containers is ``pdb_owner``.
    """
    named = settings.table_names.get(f"{owner}.{table}")
    if named is not None:
        schema, _, name = named.partition(".")
        return schema, name
    return target_schema(settings, owner), settings.choices.name(table)


def target_schema(settings: ApplierSettings, owner: str) -> str:
    """Return the schema in the target of what is no table that is mapped by its name."""
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
    """Refuse two source tables that go into one target table, and one beside the ledger.

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
    layout: Layout | Table,
    source: Table | None,
    *,
    begins: bool = False,
) -> TablePlan:
    """Plan the table, which is created where it is missing and that is allowed.

    Args:
        begins: what the table had does not count: it is loaded from the beginning.
        layout: names the table; of an Insert it can also say what columns to create.

    Raises:
        OlrPgError: 5005 the table is missing, 5006 a key column is, 5028 something fires there,
            5040–5043 it is of a kind that would lose or hide rows, or has lost them.
    """
    owner, table = (
        (layout.owner, layout.name) if isinstance(layout, Table) else (layout.owner, layout.table)
    )
    full_name = f"{owner}.{table}"
    schema, name = target_name(settings, owner, table)
    target = read_table(connection, schema, name)
    if target is None and settings.create_tables:
        known = settings.subscription, full_name
        if not begins and (lost := lost_table(connection, schema, name, *known)):
            raise lost
        columns, key = new_table(settings, layout, source)
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
    """Return the columns, with text in the place of xml where the server was built without it."""
    if not any(column.type_name == "xml" for column in columns) or supports_xml(connection):
        return columns
    return [c._replace(type_name="text") if c.type_name == "xml" else c for c in columns]


def _columns_of(settings: ApplierSettings, source: Table) -> tuple[list[NewColumn], list[str]]:
    """Return columns and key of a table as the source has it."""
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
    settings: ApplierSettings, layout: Layout | Table, source: Table | None
) -> tuple[list[NewColumn], list[str]]:
    """Return columns and key of a table to create; no columns where nothing tells them all."""
    if source is not None:
        return _columns_of(settings, source)
    if isinstance(layout, Table) or layout.kind is not DmlKind.INSERT:
        return [], []
    table = f"{layout.owner}.{layout.table}"
    names = settings.choices.column_names(table, [column.name for column in layout.columns])
    return (
        [
            NewColumn(names[column.name], _type_of_unknown_length(settings, table, column))
            for column in layout.columns
        ],
        [],
    )


def _type_of_unknown_length(settings: ApplierSettings, table: str, column: ColumnValue) -> str:
    described = column.described()
    if column.type_code == OracleType.CHAR:
        # char(n) needs a length
        return settings.choices.chosen_type(table, described) or "text"
    return settings.choices.pg_type(table, described).name
