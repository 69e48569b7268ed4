"""What of the target's data cannot go back to Oracle as it is: told before the cut-over.

By column: what could keep a value from going back, the policy that would act, and in how many rows
of today. The rows are judged by the same code that converts them on the way back
(`fallback.oracle_values`), so that the report and the way back cannot disagree. Only columns of
which something may not fit are read.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import sql

from olr_pg.applier.statements.target_plan import target_columns, target_name
from olr_pg.applier.target.catalogue import missing_table, read_table
from olr_pg.datatypes.mapping import oracle_type_name
from olr_pg.errors import OlrPgError
from olr_pg.fallback.oracle_values import Cause, oracle_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetTable
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.fallback.oracle_values import OracleColumn, ValueSettings

ROWS: Final = 2_000
"""Rows that are judged together."""

REFUSE: Final = "refuse"
MISSING_VALUE: Final = "not-null"
"""Stands for the cause of a NULL in a column that Oracle has as NOT NULL."""


class Unfit(NamedTuple):
    """Something that keeps values of a column from going back.

    Attributes:
        cause: the policy's key in the configuration, or `MISSING_VALUE`.
        policy: what would be done with such a value.
        rows: how many have one; None: they were not counted.
    """

    cause: str
    policy: str
    rows: int | None


class ColumnReport(NamedTuple):
    """A column of Oracle's that has something to be said of.

    Attributes:
        name: Oracle's.
        target: the name in PostgreSQL; empty where it is not there.
        types: of both, for people.
        unfit: what may not fit, the most rows first.
        note: what comes back in another form; empty where nothing does.
        error: why no value goes back at all; empty where they do.
    """

    name: str
    target: str
    types: str
    unfit: tuple[Unfit, ...] = ()
    note: str = ""
    error: str = ""

    @property
    def refused(self) -> int:
        """How many values would be refused; several may be of one row."""
        return sum(one.rows or 0 for one in self.unfit if one.policy == REFUSE)


class TableReport(NamedTuple):
    """A table on the way back.

    Attributes:
        name: ``OWNER.NAME``.
        target: in PostgreSQL.
        rows: that were read; None: none were.
        columns: of which there is something to be said.
        own: columns of PostgreSQL that Oracle does not have: they do not go back.
        error: why the table was not looked at; empty where it was.
    """

    name: str
    target: str
    rows: int | None = None
    columns: tuple[ColumnReport, ...] = ()
    own: tuple[str, ...] = ()
    error: str = ""

    @property
    def is_ready(self) -> bool:
        """Tell whether nothing of today would be refused."""
        return not self.error and not any(one.refused or one.error for one in self.columns)


def report_values(
    connection: Connection[Any],
    tables: Iterable[Table],
    settings: ApplierSettings,
    values: ValueSettings,
    *,
    count: bool = True,
) -> Iterator[TableReport]:
    """Yield what of each table cannot go back as it is.

    Args:
        connection: to the target.
        tables: as Oracle's dictionary has them.
        settings: of the forward applier: what is called how in the target.
        count: whether rows are read and counted.
    """
    for table in tables:
        schema, name = target_name(settings, table.owner, table.name)
        target = read_table(connection, schema, name)
        if target is None:
            problem = missing_table(connection, schema, name, table.full_name)
            yield TableReport(table.full_name, f"{schema}.{name}", error=problem.detail)
        else:
            yield _table(connection, table, target, settings, values, count=count)


def _table(
    connection: Connection[Any],
    table: Table,
    target: TargetTable,
    settings: ApplierSettings,
    values: ValueSettings,
    *,
    count: bool,
) -> TableReport:
    try:
        names = target_columns(settings, table)
    except OlrPgError as problem:
        return TableReport(table.full_name, target.full_name, error=problem.detail)
    own = {column.name for column in target.columns if not column.generated} - set(names.values())
    reports, judged = dict[str, ColumnReport](), list[_Judged]()
    for column in table.delivered:
        one = _planned(table, column, target, names[column.name], values)
        if isinstance(one, ColumnReport):
            reports[column.name] = one
        else:
            judged.append(one)
    rows = _count(connection, target, judged) if count else None
    reports |= {one.column.name: one.report(values) for one in judged}
    told = (reports[column.name] for column in table.delivered)
    return TableReport(
        table.full_name,
        target.full_name,
        rows,
        tuple(one for one in told if one.unfit or one.note or one.error),
        tuple(sorted(own)),
    )


class _Judged:
    """A column whose values are judged, and the counts of what does not fit."""

    def __init__(self, column: Column, target: str, types: str, back: OracleColumn) -> None:
        self.column = column
        self.target = target
        self._types = types
        self._back = back
        self._counts = Counter[tuple[str, str]]()
        self._is_counted = False

    @property
    def is_judged(self) -> bool:
        """Tell whether a value of it may not fit."""
        return bool(self._back.causes) or not self.column.nullable

    def judge(self, raw: Sequence[bytes | None]) -> None:
        """Count what of some rows does not fit."""
        self._is_counted = True
        self._counts.update((one.cause.key, one.policy) for one in self._back.unfit(raw))
        if not self.column.nullable:
            self._counts[MISSING_VALUE, REFUSE] += raw.count(None)

    def report(self, values: ValueSettings) -> ColumnReport:
        """Return what is known of it, also of what no row has today."""
        counts = +self._counts
        found = {cause for cause, _ in counts}
        for cause in self._back.causes:
            if cause.key not in found:
                counts[cause.key, self._policy(cause, values)] = 0
        unfit = tuple(
            Unfit(cause, policy, rows if self._is_counted else None)
            for (cause, policy), rows in counts.most_common()
        )
        return ColumnReport(self.column.name, self.target, self._types, unfit, self._back.note)

    def _policy(self, cause: Cause, values: ValueSettings) -> str:
        policy: str = getattr(values.policies, cause.value)
        return REFUSE if policy == "null" and not self.column.nullable else policy


def _planned(
    table: Table, column: Column, target: TargetTable, name: str, values: ValueSettings
) -> _Judged | ColumnReport:
    place = target.column_number(name)
    oracle = oracle_type_name(column)
    if place is None:
        return ColumnReport(column.name, "", oracle, error=f"{target.full_name} has no {name}")
    there = target.columns[place]
    types = f"{there.base_name.rpartition('.')[2]} to {oracle}"
    try:
        back = oracle_column(table.full_name, column, there.kind, values)
    except OlrPgError as problem:
        return ColumnReport(column.name, name, types, error=problem.detail)
    return _Judged(column, name, types, back)


def _count(connection: Connection[Any], target: TargetTable, columns: Sequence[_Judged]) -> int:
    """Judge every row of a table; return how many there are."""
    judged = [one for one in columns if one.is_judged]
    if not judged:
        query = sql.SQL("SELECT count(*) FROM {}").format(target.identifier)
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])
    names = sql.SQL(", ").join(sql.Identifier(one.target) for one in judged)
    copy = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT BINARY)")
    found = 0
    with connection.cursor() as cursor, cursor.copy(copy.format(names, target.identifier)) as rows:
        left = rows.rows()
        while some := list(islice(left, ROWS)):
            found += len(some)
            for one, raw in zip(judged, zip(*some, strict=True), strict=False):
                one.judge(raw)
    return found


# --- for people and programs ----------------------------------------------------------------------


def report_json(tables: Sequence[TableReport]) -> dict[str, Any]:
    """Return the report as JSON has it."""
    return {
        "ready": all(table.is_ready for table in tables),
        "tables": [
            {
                **table._asdict(),
                "ready": table.is_ready,
                "columns": [
                    {**one._asdict(), "unfit": [unfit._asdict() for unfit in one.unfit]}
                    for one in table.columns
                ],
            }
            for table in tables
        ],
    }


def report_lines(tables: Sequence[TableReport]) -> Iterator[str]:
    """Yield the report as text, what would be refused first in each table."""
    for table in tables:
        rows = "" if table.rows is None else f", {table.rows:,} rows"
        yield f"{table.name} from {table.target}{rows}: {_verdict(table)}"
        for column in sorted(table.columns, key=lambda one: (not one.error, -one.refused)):
            yield from _column_lines(column)
        if table.own:
            own = ", ".join(table.own)
            yield f"    Oracle lacks the columns {own}: their values do not go back"
    refused = sum(not table.is_ready for table in tables)
    if refused:
        yield f"{refused} of {len(tables)} tables have values that the way back refuses today"
    else:
        yield f"{len(tables)} tables: the way back refuses nothing of today"


def _verdict(table: TableReport) -> str:
    if table.error:
        return table.error
    return "nothing is refused" if table.is_ready else "values would be refused"


def _column_lines(column: ColumnReport) -> Iterator[str]:
    head = f"    {column.name} ({column.types})"
    if column.error:
        yield f"{head}: no value goes back: {column.error}"
        return
    for one in column.unfit:
        if one.rows != 0:
            counted = "may occur" if one.rows is None else f"{one.rows:,} rows"
            yield f"{head}: {one.cause}, {counted}: {one.policy}"
    possible = [f"{one.cause} ({one.policy})" for one in column.unfit if one.rows == 0]
    if possible:
        yield f"{head}: not today, but possible: {', '.join(possible)}"
    if column.note:
        yield f"{head}: {column.note}"
