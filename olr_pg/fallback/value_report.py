"""Reports before the cut-over which values in the target cannot be stored unchanged in Oracle.

For each column the report lists the possible causes, the policy for each cause, and the number of
rows with that cause today. The rows are checked by the same code that converts them during the
fallback (`fallback.oracle_values`), so the report and the fallback agree. Only columns that have a
possible cause are read.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import Connection, sql

from olr_pg.applier.statements.target_plan import target_columns, target_name
from olr_pg.applier.target.catalogue import TargetColumn, TargetTable, missing_table, read_table
from olr_pg.datatypes.mapping import oracle_type_name
from olr_pg.errors import OlrPgError
from olr_pg.fallback.oracle_values import Cause, OracleColumn, ValueSettings, oracle_column
from olr_pg.fallback.relation_plans import GENERATED_ACTION, NOT_SENT, key_names
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Column, Table

ROWS: Final = 2_000
"""Number of rows that are checked together."""

REFUSE: Final = "refuse"
_ONLY_THERE: Final = (
    "Oracle has no such column, so the first change stops the table; add the column to Oracle, or"
    " name it in `fallback.omit-columns`"
)
MISSING_VALUE: Final = "not-null"
"""The cause if a value is NULL and Oracle's column is NOT NULL."""


class Unfit(NamedTuple):
    """A cause for which values of a column cannot be stored unchanged.

    Attributes:
        cause: the policy's key in the configuration, or `MISSING_VALUE`.
        policy: the policy that the fallback would apply to such a value.
        rows: number of rows with such a value; None if they were not counted.
    """

    cause: str
    policy: str
    rows: int | None


class ColumnReport(NamedTuple):
    """The report of one column of Oracle.

    Attributes:
        name: the column's name in Oracle.
        target: the column's name in PostgreSQL; empty if PostgreSQL lacks the column.
        types: the types in both databases, for display.
        unfit: the possible causes; the cause with the most rows comes first.
        note: a text that says which values return to Oracle in another form; empty if none do.
        error: the reason why no value of the column can be written to Oracle; empty if values can
            be written.
    """

    name: str
    target: str
    types: str
    unfit: tuple[Unfit, ...] = ()
    note: str = ""
    error: str = ""

    @property
    def refused(self) -> int:
        """Number of values that would be refused; a row can contain several of them."""
        return sum(one.rows or 0 for one in self.unfit if one.policy == REFUSE)


class TableReport(NamedTuple):
    """The report of one table.

    Attributes:
        name: ``OWNER.NAME``.
        target: the table's name in PostgreSQL.
        rows: number of rows that were read; None if the rows were not read.
        columns: the columns for which there is something to report.
        own: columns that exist only in PostgreSQL, and that `fallback.omit-columns` lists.
        error: the reason why the table was not checked; empty if it was checked.
    """

    name: str
    target: str
    rows: int | None = None
    columns: tuple[ColumnReport, ...] = ()
    own: tuple[str, ...] = ()
    error: str = ""

    @property
    def is_ready(self) -> bool:
        """Return whether the fallback would refuse none of the current values."""
        return not self.error and not any(one.refused or one.error for one in self.columns)


def report_values(
    connection: Connection[Any],
    tables: Iterable[Table],
    settings: ApplierSettings,
    values: ValueSettings,
    *,
    count: bool = True,
    omits: Callable[[str, str], bool] = lambda _table, _column: False,
) -> Iterator[TableReport]:
    """Yield a report for each table of the values that Oracle cannot store unchanged.

    Args:
        connection: a connection to the target.
        tables: the tables in Oracle's dictionary.
        settings: the applier's settings, which map names to names of the target.
        count: whether to read the rows and count them.
        omits: `Fallback.omits`.
    """
    for table in tables:
        yield _table(connection, table, settings, values, omits, count=count)


def _table(
    connection: Connection[Any],
    table: Table,
    settings: ApplierSettings,
    values: ValueSettings,
    omits: Callable[[str, str], bool],
    *,
    count: bool,
) -> TableReport:
    schema, name = target_name(settings, table.owner, table.name)
    target = read_table(connection, schema, name)
    if target is None:
        problem = missing_table(connection, schema, name, table.full_name)
        return TableReport(table.full_name, f"{schema}.{name}", error=problem.detail)
    try:
        key_names(table)
        names = target_columns(settings, table)
    except OlrPgError as problem:
        return TableReport(table.full_name, target.full_name, error=problem.detail)
    own = [
        one for one in target.columns if not one.generated and one.name not in set(names.values())
    ]
    omitted = [one.name for one in own if omits(table.full_name, one.name)]
    reports, judged = dict[str, ColumnReport](), list[_Judged]()
    for column in table.delivered:
        one = _planned(table, column, target, names[column.name], values)
        if isinstance(one, ColumnReport):
            reports[column.name] = one
        else:
            judged.append(one)
    rows = _count(connection, target, judged) if count else None
    reports |= {one.column.name: one.report(values) for one in judged}
    told = [reports[column.name] for column in table.delivered]
    told += [
        ColumnReport(one.name, one.name, _type_name(one), error=_ONLY_THERE)
        for one in own
        if one.name not in omitted
    ]
    return TableReport(
        table.full_name,
        target.full_name,
        rows,
        tuple(one for one in told if one.unfit or one.note or one.error),
        tuple(sorted(omitted)),
    )


def _type_name(column: TargetColumn) -> str:
    return column.base_name.rpartition(".")[2]


class _Judged:
    """A column whose values are checked, with the number of values that do not fit."""

    def __init__(self, column: Column, target: str, types: str, back: OracleColumn) -> None:
        self.column = column
        self.target = target
        self._types = types
        self._back = back
        self._counts = Counter[tuple[str, str]]()
        self._is_counted = False

    @property
    def is_judged(self) -> bool:
        """Return whether the column has a possible cause, so that its values must be checked."""
        return bool(self._back.causes) or not self.column.nullable

    def judge(self, raw: Sequence[bytes | None]) -> None:
        """Check the values of some rows, and count the values that do not fit."""
        self._is_counted = True
        self._counts.update((one.cause.key, one.policy) for one in self._back.unfit(raw))
        if not self.column.nullable:
            self._counts[MISSING_VALUE, REFUSE] += raw.count(None)

    def report(self, values: ValueSettings) -> ColumnReport:
        """Return the column's report, including possible causes that no row has today."""
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
    types = f"{_type_name(there)} to {oracle}"
    if there.generated:
        return ColumnReport(column.name, name, types, error=f"{NOT_SENT}: {GENERATED_ACTION}")
    try:
        back = oracle_column(table.full_name, column, there.kind, values)
    except OlrPgError as problem:
        return ColumnReport(column.name, name, types, error=problem.detail)
    return _Judged(column, name, types, back)


def _count(connection: Connection[Any], target: TargetTable, columns: Sequence[_Judged]) -> int:
    """Check every row of a table; return the number of rows."""
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
    """Return the report as JSON."""
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
    """Yield the report as lines of text; for each table, values that would be refused come
    first.
    """
    for table in tables:
        rows = "" if table.rows is None else f", {counted(table.rows, 'row')}"
        yield f"{table.name} from {table.target}{rows}: {_verdict(table)}"
        for column in sorted(table.columns, key=lambda one: (not one.error, -one.refused)):
            yield from _column_lines(column)
        if table.own:
            own = ", ".join(table.own)
            yield (
                f"    Oracle lacks the columns {own}; they are not replicated, because"
                " `fallback.omit-columns` names them"
            )
    refused = sum(not table.is_ready for table in tables)
    if refused:
        of = counted(len(tables), "table")
        yield f"values that the way back would reject: in {refused} of {of}"
    else:
        yield f"{counted(len(tables), 'table')} without values that the way back would reject"


def _verdict(table: TableReport) -> str:
    if table.error:
        return table.error
    return "no value would be rejected" if table.is_ready else "values would be rejected"


def _column_lines(column: ColumnReport) -> Iterator[str]:
    head = f"    {column.name} ({column.types})"
    if column.error:
        yield f"{head}: values cannot be replicated back: {column.error}"
        return
    for one in column.unfit:
        if one.rows != 0:
            rows = "possible" if one.rows is None else counted(one.rows, "row")
            yield f"{head}: {one.cause}, {rows}: {one.policy}"
    possible = [f"{one.cause} ({one.policy})" for one in column.unfit if one.rows == 0]
    if possible:
        yield f"{head}: not in the current rows, but possible: {', '.join(possible)}"
    if column.note:
        yield f"{head}: {column.note}"
