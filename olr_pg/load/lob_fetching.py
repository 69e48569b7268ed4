"""Fetches LOB values that the target lacks (olr_pg.incomplete) from the live source.

During a fetch the table's row of the ledger is locked, so that replication of the table waits. Rows
are read as of the SCN up to which all changes of the table are applied. Later changes are applied
after the fetched value was written, so a fetched value never replaces a newer value. A row is read
by its ROWID. The row's value is written only if the row's key equals the key of the list entry,
because another row can meanwhile have that ROWID.
"""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import psycopg
import structlog
from psycopg import Connection, sql

from olr_pg.appliance.container_names import source_dictionary
from olr_pg.appliance.opened_target import opened_target
from olr_pg.applier.settings import ApplierSettings, IncompletePolicy
from olr_pg.applier.statements.bound_statement import escape_percent_signs
from olr_pg.applier.statements.images import COPY_END, COPY_HEADER
from olr_pg.applier.statements.target_plan import TablePlan, target_name
from olr_pg.applier.stopped.error_table import count_incomplete
from olr_pg.applier.stopped.incomplete_values import key_expression
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.ledger import TableLedger
from olr_pg.applier.target.set_aside import set_aside
from olr_pg.config.source_section import OracleSource
from olr_pg.decoding.filters import filters_of_target
from olr_pg.dictionary.containers import unqualified
from olr_pg.dictionary.selection import as_known
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.column_binding import bind_columns
from olr_pg.load.cutover_steps import check_no_cutover
from olr_pg.load.large_rows import RowSpool
from olr_pg.load.live_rows import LiveTables
from olr_pg.load.plain_tuples import plain_tuples
from olr_pg.load.sources import apply_section, target_settings
from olr_pg.load.table_data import schema_of
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.key_cuts import LargeRow
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.oracle.table_query import RowidRange, read_rows
from olr_pg.postgres.sqlstates import is_transient, plain_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Table

LINES: Final = 100
"""Number of list entries per target transaction; replication of the table waits during a
transaction.
"""

PAUSE_SECONDS: Final = 15.0
"""Interval at which the automatic fetch checks for missing values."""

AGAIN_MINUTES: Final = 10
"""Minutes before a failed LOB fetch is retried automatically."""

_FETCHED: Final = sql.Identifier("pg_temp", "olr_pg_fetched")
_SCN: Final = (
    "SELECT coalesce(max(complete_scn), 0) FROM olr_pg.subscription WHERE subscription = %s"
)
_LINES: Final = """
SELECT id, key::text, row_id, column_name, target_column FROM olr_pg.incomplete
WHERE subscription = %s AND source_table = %s AND id > %s
    AND (%s::text[] IS NULL OR column_name = ANY(%s))
    AND (NOT %s OR coalesce(fetched_at < now() - make_interval(mins => %s), true))
ORDER BY id LIMIT %s
"""
_FAILED: Final = """
UPDATE olr_pg.incomplete SET fetched_at = now(), failure = %s WHERE id = ANY(%s)
"""
_DELETE: Final = "DELETE FROM olr_pg.incomplete WHERE id = ANY(%s)"
_TABLES: Final = """
SELECT DISTINCT source_table, column_name FROM olr_pg.incomplete WHERE subscription = %s
"""

_log = structlog.get_logger(__name__)


class FetchedTable(NamedTuple):
    """The result of fetching the LOB values of a table.

    Attributes:
        fetched: number of fetched values.
        left: number of values that the table still lacks.
        failure: the error of the last value that could not be fetched.
    """

    table: str
    fetched: int
    left: int
    failure: str | None


class _Line(NamedTuple):
    id: int
    key: str | None
    row_id: str | None
    column: str
    target_column: str


def fetch_lobs(
    config: Config,
    names: Collection[str] = (),
    *,
    wanted: Callable[[ApplierSettings, str, str], bool] | None = None,
) -> Iterator[FetchedTable]:
    """Fetch the missing values, one table per step of the iteration.

    Args:
        names: ``OWNER.NAME`` of the tables; empty for all.
        wanted: called with the applier's settings, a table and a column; returns whether to fetch
            the column's values. If `wanted` is given, values whose fetch recently failed are
            skipped. None to fetch all.

    Raises:
        OlrPgError: 5156 the source is not a live database, 5157 there is no such table, 5171 a
            cut-over is complete, 5003 the target cannot be reached, 7001 to 7009 errors of the
            source.
    """
    if not isinstance(config.source, OracleSource):
        raise OlrPgError(Code.LOB_FETCH_NEEDS_LIVE_SOURCE, "the source is offline")
    section = apply_section(config)
    replica = section.triggers == "replica"
    with opened_target(config, replica=replica, ledger="required") as (connection, target):
        counts = count_incomplete(connection, section.subscription)
        if not counts and not names:
            return
        # The applications may have set the missing values in the target.
        check_no_cutover(connection, section.subscription)
        join, filters = (
            partial(source_dictionary, config, keep=False),
            filters_of_target(config),
        )
        with closing(LiveTables(config.source, section.table_query, filters, join=join)) as live:
            tables = {one.full_name: one for one in live.choose(())}
            settings = target_settings(config, live.snapshot, target)
            set_aside(
                connection,
                settings,
                (target_name(settings, tables[n].owner, tables[n].name)
                 for n in counts if n in tables),
            )  # fmt: skip
            wanted_names = as_known(names, tables)
            for name in wanted_names:
                if name not in tables:
                    raise OlrPgError(Code.NO_SUCH_REPLICATED_TABLE, name)
            for name in counts:
                if name in tables and (not names or name in wanted_names):
                    source = live.source_of(tables[name])
                    work = _Fetching(connection, settings, source, tables[name])
                    done = work.run(wanted)
                    if done is not None:
                        yield done


class _Fetching:
    """The LOB values of one table that the target lacks."""

    def __init__(
        self,
        connection: Connection[Any],
        settings: ApplierSettings,
        source: OracleSource,
        table: Table,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._source = source
        self._table = table
        self._ledger = TableLedger(settings.subscription, table.full_name, "")
        self._failure: str | None = None

    def run(
        self, wanted: Callable[[ApplierSettings, str, str], bool] | None
    ) -> FetchedTable | None:
        """Fetch the table's missing values; return None if `wanted` accepts none of them."""
        name, columns = self._table.full_name, None
        if wanted is not None:
            found = self._connection.execute(_TABLES, (self._settings.subscription,)).fetchall()
            columns = [c for table, c in found if table == name and wanted(self._settings, name, c)]
            if not columns:
                return None
        fetched = last = 0
        while True:
            with self._connection.transaction():
                state = self._ledger.lock(self._connection)
                lines = self._lines(last, columns, is_again=wanted is not None)
                if not lines:
                    break
                last = lines[-1].id
                if state.stopped:
                    self._fail(lines, "the table is stopped or paused")
                    continue
                row = self._connection.execute(_SCN, (self._settings.subscription,)).fetchone()
                scn = max(state.position.commit_scn, row[0] if row else 0)
                fetched += self._fetch(lines, scn)
        counts = count_incomplete(self._connection, self._settings.subscription)
        return FetchedTable(name, fetched, counts.get(name, 0), self._failure)

    def _lines(self, last: int, columns: list[str] | None, *, is_again: bool) -> list[_Line]:
        parameters = (*self._ledger.key, last, columns, columns, is_again, AGAIN_MINUTES, LINES)
        return [_Line(*row) for row in self._connection.execute(_LINES, parameters).fetchall()]

    def _fail(self, lines: Sequence[_Line], reason: str) -> None:
        self._failure = reason
        self._connection.execute(_FAILED, (reason, [line.id for line in lines]))

    def _fetch(self, lines: Sequence[_Line], scn: int) -> int:
        """Fetch the values of some list entries while the ledger's row is locked; return the number
        of fetched values.
        """
        findable = [line for line in lines if line.key is not None and line.row_id]
        others = [line for line in lines if line not in findable]
        if others:
            self._fail(others, "the change contained no key or no ROWID; load the table again")
        done = list[int]()
        for column in sorted({line.column for line in findable}):
            mine = [line for line in findable if line.column == column]
            try:
                with self._connection.transaction():
                    mended = self._fetch_column(mine, scn)
            except OlrPgError as error:
                self._fail(mine, str(error))
                continue
            except psycopg.Error as error:
                if is_transient(error):
                    raise
                self._fail(mine, plain_words(error))
                continue
            done += mended
            left = [line for line in mine if line.id not in mended]
            if left:
                self._fail(left, f"as of SCN {scn} there is no row with that ROWID and key")
        if done:
            self._connection.execute(_DELETE, (done,))
            self._ledger.count_incomplete(self._connection, -len(done))
        return len(done)

    def _fetch_column(self, lines: Sequence[_Line], scn: int) -> list[int]:
        """Fetch a column of some rows; return the ids of the list entries whose value was
        fetched.
        """
        target = self._target_plan()
        names = [target.target.columns[place].name for place in target.key]
        key = {column.name for column in self._table.columns if column.intcol in self._table.key}
        read = replace(
            self._table,
            columns=tuple(
                one for one in self._table.columns if one.name in {*key, lines[0].column}
            ),
        )
        if len(read.delivered) != len(key) + 1 or not key:
            raise OlrPgError(
                Code.TARGET_COLUMN_MISSING,
                "the source table does not have this column or this key",
                table=read.full_name,
            )
        value = lines[0].target_column
        self._connection.execute(
            sql.SQL("CREATE TEMP TABLE olr_pg_fetched ON COMMIT DROP AS SELECT {} FROM {}"
                    " WITH NO DATA").format(
                sql.SQL(", ").join(map(sql.Identifier, [*names, value])), target.target.identifier
            )
        )  # fmt: skip
        for row_id in dict.fromkeys(line.row_id for line in lines):
            self._copy(target, read, str(row_id), scn)
        same = sql.SQL(" AND ").join(
            sql.SQL("t.{0} = f.{0}").format(escape_percent_signs(sql.Identifier(name)))
            for name in names
        )
        query = sql.SQL(
            "UPDATE {table} AS t SET {value} = f.{value} FROM {fetched} AS f,"
            " olr_pg.incomplete AS i WHERE i.id = ANY(%s) AND i.key = {key} AND {same}"
            " RETURNING i.id"
        ).format(
            table=escape_percent_signs(target.target.identifier),
            value=escape_percent_signs(sql.Identifier(value)),
            fetched=_FETCHED,
            key=key_expression(names, sql.SQL("f")),
            same=same,
        )
        ids = [line.id for line in lines]
        found = [row[0] for row in self._connection.execute(query, (ids,)).fetchall()]
        self._connection.execute("DROP TABLE pg_temp.olr_pg_fetched")
        return found

    def _target_plan(self) -> TablePlan:
        row = self._connection.execute(
            "SELECT target_table FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s",
            self._ledger.key,
        ).fetchone()
        schema, _, name = (row[0] if row else "").partition(".")
        target = read_table(self._connection, schema, name)
        if target is None:
            raise OlrPgError(
                Code.TARGET_TABLE_MISSING,
                f"{schema}.{name} does not exist",
                table=self._table.full_name,
            )
        return TablePlan(self._table.full_name, target, self._table, self._settings)

    def _copy(self, plan: TablePlan, table: Table, row_id: str, scn: int) -> None:
        """Copy a row as of an SCN to the temporary table; do nothing if there is no such row.

        Raises:
            OlrPgError: 7001 to 7009.
        """
        try:
            with closing(open_connection(self._source)) as oracle:
                part = RowidRange(row_id, row_id)
                for batch in read_rows(oracle, unqualified(table), scn, part, 1):
                    self._write(plan, table, batch)
        except oracledb.Error as error:
            raise oracle_error(error, f"reading {table.full_name} as of SCN {scn}") from error

    def _write(self, plan: TablePlan, table: Table, batch: Any) -> None:
        columns = bind_columns(plan, table, schema_of(batch), self._settings)
        query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            _FETCHED, sql.SQL(", ").join(sql.Identifier(one.target.name) for one in columns)
        )
        with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.write(COPY_HEADER.data)
            if isinstance(batch, LargeRow):
                for piece in RowSpool(columns, {}).copy_tuple(batch, 0):
                    copy.write(piece)
            else:
                copy.write(plain_tuples(columns, batch).data)
            copy.write(COPY_END.data)


# --- automatic fetch ---


def _is_to_be_fetched(settings: ApplierSettings, table: str, column: str) -> bool:
    return settings.incomplete_policy(table, column) is IncompletePolicy.FETCH


@contextmanager
def fetching_lobs(config: Config) -> Iterator[None]:
    """While the context is active, periodically fetch the missing LOB values of the configured
    columns.

    Raises:
        OlrPgError: 5156, columns are configured, but the source is not a live database.
    """
    parts = [
        part for part in config.targets
        if part.apply is not None and "fetch" in part.apply.incomplete_lobs.values()
    ]  # fmt: skip
    if not parts:
        yield
        return
    if not isinstance(config.source, OracleSource):
        raise OlrPgError(
            Code.LOB_FETCH_NEEDS_LIVE_SOURCE,
            "the source is offline",
            key="apply.incomplete-lobs",
        )
    ended = threading.Event()
    thread = threading.Thread(target=_fetch_now_and_then, args=(parts, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _fetch_now_and_then(parts: Sequence[Config], ended: threading.Event) -> None:
    while not ended.wait(PAUSE_SECONDS):
        for part in parts:
            try:
                for done in fetch_lobs(part, wanted=_is_to_be_fetched):
                    if done.fetched or done.failure:
                        _log.info("fetched missing LOB values", **done._asdict())
            except OlrPgError as error:
                _log.warning(
                    "could not fetch missing LOB values", code=error.label, reason=str(error)
                )
            except Exception:  # noqa: BLE001 - the thread's outer edge: the next look may succeed
                _log.exception("could not fetch missing LOB values")
