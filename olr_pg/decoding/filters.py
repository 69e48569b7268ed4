"""Filters: leave out tables, columns, operations and transactions (`filter`).

Filters apply where redo is decoded, so that external clients, the bundled applier, the initial load
and verification all get the same rows:

- Tables and columns are left out when a TableList is resolved, and from every later version of a
  table. They are not decoded.
- Columns of a single target, rows and operations are left out in the decoding tasks, before
  messages are built.
- Transactions are left out when splits are merged, because only then the session of every
  transaction is known. If the attributes of its session are not in the redo that was read, a
  transaction is delivered.
- Transactions of the fallback are left out when they are complete. A transaction of the fallback is
  recognised because it changes the ledger of the fallback.

Row changes and transactions that are left out are counted (`Account.rows_filtered`,
`transactions_filtered`), except row changes of left-out tables.

A `TargetView` is the selection of decoded changes that a target receives, and their form.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.conditions.parse import parse_condition
from olr_pg.conditions.typed_conditions import (
    DEFAULT_CHARSETS,
    Charsets,
    RowCondition,
    Unusable,
    compile_condition,
)
from olr_pg.decoding.left_out_report import log_left_out
from olr_pg.decoding.split import View
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step, load_again
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted
from olr_pg.scalars import parse_xid
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import KINDS
from olr_pg.transactions.row_conditions import Conditions
from olr_pg.wire.encoder import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.conditions.tree import Condition
    from olr_pg.config.model import Config
    from olr_pg.config.port_sections import Fallback
    from olr_pg.config.table_sections import Filter
    from olr_pg.dictionary.model import Column, Database, Snapshot, Table
    from olr_pg.redo.sessions import SessionAttributes
    from olr_pg.transactions.lobs.lost_values import LostLob


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a configuration. The patterns of the filters are shell patterns. A name
    matches if the pattern fits as it is written, or in upper case.

    Attributes:
        include: patterns of ``OWNER.NAME`` or ``PDB.OWNER.NAME``, as all patterns of tables here.
            If `include` is empty, all tables match.
        exclude: patterns of tables that are left out even if `include` matches.
        columns: pattern of tables → patterns of their columns that are left out.
        operations: pattern of tables → kinds of row changes that are left out.
        sessions: attribute of `SessionAttributes` → patterns. If the value of the attribute
            matches, the transactions of the session are left out.
        xids: packed XIDs of transactions that are left out.
        include_too: further patterns, as in `include`. A table must match both.
        rows: (pattern of tables, condition for their rows). If several patterns match a table, its
            rows must fulfil the conditions of all of them.
        ledger: ``OWNER.NAME`` of the fallback's ledger in the source, empty without a fallback.
            The fallback wrote the transactions that change this ledger. The changes of these
            transactions come from the target, so they are left out.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operations: Mapping[str, frozenset[DmlKind]] = field(default_factory=dict)
    sessions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    xids: frozenset[int] = frozenset()
    include_too: tuple[str, ...] = ()
    rows: tuple[tuple[str, Condition], ...] = ()
    ledger: str = ""

    def is_ledger(self, table: Table) -> bool:
        """Return whether a table is the ledger of the fallback."""
        return bool(self.ledger) and self.ledger in table.names

    def is_of_way_back(self, name: str) -> bool:
        """Return whether ``OWNER.NAME`` is one of the fallback's own tables."""
        return bool(self.ledger) and name.startswith(self.ledger)

    def ledgers(self, tables: Sequence[Table]) -> npt.NDArray[np.bool_] | None:
        """Return True for each table that is a ledger of the fallback; None if there is no such
        table.
        """
        found = np.array([self.is_ledger(table) for table in tables], np.bool_)
        return found if found.any() else None

    def wants(self, table: Table) -> bool:
        """Return whether a table is replicated, according to the filters."""
        return self.wants_named(table.names)

    def wants_named(self, names: Collection[str]) -> bool:
        """Return whether a table is replicated, according to the filters. `names` are all its names
        (`Table.names`).
        """
        lists = (self.include, self.include_too)
        return (
            not any(map(self.is_of_way_back, names))
            and all(not one or _fit(names, one) for one in lists)
            and not _fit(names, self.exclude)
        )

    def chosen(
        self, tables: Sequence[Table], database: Database | None = None
    ) -> tuple[Table, ...]:
        """Return the tables that are not left out, in the form in which they are delivered.

        Args:
            tables: the tables to choose from.
            database: the database of the tables; None if its character sets are unknown.

        Raises:
            OlrPgError: 1095 if no table remains, 1096 if a key column would be left out, 1132 to
                1134 if a row condition does not match the columns of its table.
        """
        chosen = tuple(self.shape(table) for table in tables if self.wants(table))
        if tables and not chosen:
            raise OlrPgError(
                Code.FILTER_LEAVES_NO_TABLE,
                f"excluded: {counted(len(tables), 'table')}",
                key="filter.tables",
            )
        charsets = charsets_of(database)
        for table in chosen:
            self.row_condition(table, charsets)
        return chosen

    def row_condition(
        self,
        table: Table,
        charsets: Charsets = DEFAULT_CHARSETS,
        described: Mapping[str, Column] | None = None,
    ) -> RowCondition | None:
        """Return the condition for the rows of a table; None if there is none.

        Args:
            described: see `compile_condition`.

        Raises:
            OlrPgError: 1132 to 1134 if the condition does not match the columns.
        """
        found = tuple(one for pattern, one in self.rows if _fits_table(table, (pattern,)))
        return compile_condition(found, table, charsets, described) if found else None

    def conditions(self, tables: Sequence[Table], charsets: Charsets) -> Conditions | None:
        """Return the conditions for the tables of a row plan; None if there are none.

        If a version of a table lacks a column of its condition, it gets an unusable condition,
        which causes a fault for every row change.
        """
        found = dict[int, RowCondition | Unusable]()
        for number, table in enumerate(tables):
            try:
                condition = self.row_condition(table, charsets)
            except OlrPgError as error:
                found[number] = Unusable(str(error))
                continue
            if condition is not None:
                found[number] = condition
        return Conditions(found) if found else None

    def idle(self, tables: Sequence[Table]) -> list[tuple[str, str]]:
        """Return (key, pattern) of filters that match nothing in `tables`. The names in the
        returned patterns may be misspelt.
        """
        found = [
            ("filter.tables.exclude", pattern)
            for pattern in self.exclude
            if not _fitting(tables, pattern)
        ]
        found += [
            ("filter.operations", pattern)
            for pattern in self.operations
            if not _fitting(tables, pattern)
        ]
        found += [
            ("filter.rows", pattern) for pattern, _ in self.rows if not _fitting(tables, pattern)
        ]
        for key, patterns in self.columns.items():
            fitting = _fitting(tables, key)
            if not fitting:
                found.append(("filter.columns", key))
                continue
            names = {column.name for table in fitting for column in table.columns}
            idle = (p for p in patterns if not any(_fits(name, (p,)) for name in names))
            found += [("filter.columns", f"{key}: {pattern}") for pattern in idle]
        return found

    def shape(self, table: Table) -> Table:
        """Return the table without its left-out columns.

        Raises:
            OlrPgError: 1096 if a key column would be left out, or no column remains.
        """
        patterns = self._column_patterns(table)
        if not patterns:
            return table
        columns = tuple(self._shaped(table, column, patterns) for column in table.columns)
        shaped = replace(table, columns=columns)
        if table.delivered and not shaped.delivered:
            raise OlrPgError(
                Code.FILTER_LEAVES_OUT_NEEDED_COLUMN, "no column is left", table=table.full_name
            )
        return shaped

    def shape_evolution(
        self, evolution: Evolution, definition: Table | None
    ) -> tuple[Evolution, Table | None]:
        """Return the meaning and the definition that a DDL has for a table without its left-out
        columns.

        Raises:
            OlrPgError: as for `shape`.
        """
        if definition is None:
            return evolution, None
        patterns = self._column_patterns(definition)
        definition = self.shape(definition)
        if not patterns or evolution.stops:
            return evolution, definition
        came = [s.before.name for s in evolution.steps if s.before and _comes(s, patterns)]
        if not came:
            shaped = (_shaped_step(step, patterns) for step in evolution.steps)
            steps = tuple(step for step in shaped if step is not None)
            return evolution._replace(steps=steps), definition
        error = OlrPgError(
            Code.COLUMNS_CHANGED,
            f"column {came[0]} was renamed, and the filters no longer exclude it; load"
            " the table again",
            action=load_again(definition.full_name),
            table=definition.full_name,
        )
        return Evolution((), error), definition

    def left_columns(self, tables: Sequence[Table]) -> npt.NDArray[np.bool_] | None:
        """Return True for each column, among the delivered columns of all tables, that is left out;
        None if no column is.
        """
        if not self.columns:
            return None
        patterns = [self._column_patterns(table) for table in tables]
        left = [
            bool(fitting) and _fits(column.name, fitting)
            for table, fitting in zip(tables, patterns, strict=True)
            for column in table.delivered
        ]
        return np.array(left, np.bool_) if any(left) else None

    def shape_lobs(self, table: Table, lobs: Sequence[LostLob]) -> tuple[LostLob, ...]:
        """Return the missing LOB values whose column and operation are not left out."""
        left = self._column_patterns(table)
        kinds = [kinds for key, kinds in self.operations.items() if _fits_table(table, (key,))]
        dropped = np.array([any(kind in one for one in kinds) for kind in KINDS], np.bool_)
        shaped = (lob.without(dropped) for lob in lobs if not _fits(lob.column, left))
        return tuple(lob for lob in shaped if lob is not None)

    def _column_patterns(self, table: Table) -> list[str]:
        fitting = (ps for key, ps in self.columns.items() if _fits_table(table, (key,)))
        return [pattern for patterns in fitting for pattern in patterns]

    def _shaped(self, table: Table, column: Column, patterns: Sequence[str]) -> Column:
        if column.hidden or not _fits(column.name, patterns):
            return column
        if column.intcol in table.key:
            raise OlrPgError(
                Code.FILTER_LEAVES_OUT_NEEDED_COLUMN,
                "the column belongs to the key",
                table=table.full_name,
                column=column.name,
            )
        return replace(column, hidden=True)

    def dropped(self, tables: Sequence[Table]) -> npt.NDArray[np.bool_] | None:
        """Return whether the inserts, deletes and updates of each table are left out, shape
        (tables, 3); None if there is no filter of operations.
        """
        if not self.operations:
            return None
        dropped = np.zeros((len(tables), len(DmlKind)), np.bool_)
        for number, table in enumerate(tables):
            for pattern, kinds in self.operations.items():
                if _fits_table(table, (pattern,)):
                    for kind in kinds:
                        dropped[number, kind - DmlKind.INSERT] = True
        return dropped

    @property
    def concerns_transactions(self) -> bool:
        """Return whether there is a filter of transactions."""
        return bool(self.sessions or self.xids)

    def drops(self, xid: int, attributes: SessionAttributes | None) -> bool:
        """Return whether a transaction is left out."""
        if xid in self.xids:
            return True
        if attributes is None:
            return False
        return any(
            _fits(getattr(attributes, name), patterns) for name, patterns in self.sessions.items()
        )


NO_FILTERS: Final = Filters()


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, p) or fnmatchcase(name, p.upper()) for p in patterns)


def _comes(step: Step, patterns: Sequence[str]) -> bool:
    """Return whether a step gives a left-out column a new name under which it is no longer left
    out.
    """
    return (
        step.kind is DdlKind.RENAME_COLUMN
        and (step.before is not None and _fits(step.before.name, patterns))
        and (step.after is not None and not _fits(step.after.name, patterns))
    )


def _shaped_step(step: Step, patterns: Sequence[str]) -> Step | None:
    """Return a step as it applies to a target table that lacks the left-out columns; None if such a
    table does not need the step.

    If the step gives a column a name under which it is left out, the target must drop the column.
    """
    names = [None if c is None else c.name for c in (step.before, step.after)]
    was_seen, is_seen = (name is not None and not _fits(name, patterns) for name in names)
    if step.kind is DdlKind.RENAME_COLUMN and was_seen and not is_seen:
        return Step(DdlKind.DROP_COLUMN, step.before)
    is_of_rows = step.before is None and step.after is None
    return step if was_seen or is_seen or is_of_rows else None


def _fits_table(table: Table, patterns: Iterable[str]) -> bool:
    """Return whether a table matches one of the patterns, by its name with or without its
    container.
    """
    return _fit(table.names, patterns)


def _fit(names: Iterable[str], patterns: Iterable[str]) -> bool:
    patterns = tuple(patterns)
    return any(_fits(name, patterns) for name in names)


def _fitting(tables: Iterable[Table], pattern: str) -> list[Table]:
    return [table for table in tables if _fits_table(table, (pattern,))]


def charsets_of(database: Database | None) -> Charsets:
    """Return the character sets of a database in the form that conditions need."""
    return DEFAULT_CHARSETS if database is None else (database.charset, database.ncharset)


def filters_of(section: Filter, fallback: Fallback | None = None) -> Filters:
    """Return the filters of a section of the configuration.

    Args:
        fallback: the section of the fallback, whose transactions are left out.
    """
    transactions = section.transactions
    named = {
        "login_user": transactions.login_users,
        "os_user": transactions.os_users,
        "machine": transactions.machines,
        "program": transactions.programs,
        "client_id": transactions.client_ids,
    }
    return Filters(
        section.tables.include,
        section.tables.exclude,
        section.columns,
        {
            pattern: frozenset(DmlKind[name.upper()] for name in names)
            for pattern, names in section.operations.items()
        },
        {name: patterns for name, patterns in named.items() if patterns},
        frozenset(map(parse_xid, transactions.xids)),
        rows=tuple((one.table, parse_condition(one.where)) for one in section.rows),
        ledger="" if fallback is None else fallback.ledger,
    )


def filters_of_target(config: Config) -> Filters:
    """Return the filters of a target: the common filters and the target's own filters."""
    # Import this here, so that a process without a configuration does not build all models of the
    # configuration.
    from olr_pg.config.model import NamedTarget

    common = filters_of(config.filter, config.fallback)
    if not isinstance(config.target, NamedTarget):
        return common
    own = filters_of(config.target.filter)
    columns = {key: common.columns.get(key, ()) + own.columns.get(key, ())
               for key in (*common.columns, *own.columns)}  # fmt: skip
    return replace(
        common, include_too=own.include, exclude=common.exclude + own.exclude, columns=columns,
        rows=common.rows + own.rows,
    )  # fmt: skip


class FilteredDatabase:
    """A source database without the tables and columns that the filters leave out."""

    def __init__(self, source: SourceDatabase, filters: Filters) -> None:
        self._source = source
        self._filters = filters
        self._is_reported = False

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`.

        Raises:
            OlrPgError: the errors of the source database, and the errors of `Filters.chosen`.
        """
        snapshot, tables = self._source.resolve(sql, is_abandoned)
        if not self._is_reported:
            self._is_reported = True
            report_idle(self._filters, snapshot.tables)
        return snapshot, self._filters.chosen(tables, snapshot.database)

    def __getattr__(self, name: str) -> Any:
        """Delegate all other attributes to the source."""
        return getattr(self._source, name)


def report_idle(filters: Filters, tables: Sequence[Table], **named: str) -> None:
    """Log a warning about every filter pattern that matches no table or column of the
    dictionary.
    """
    for key, pattern in filters.idle(tables):
        log_left_out(OlrPgError(Code.PATTERN_FITS_NOTHING, pattern, key=key, **named))


@dataclass(frozen=True, slots=True)
class TargetView:
    """The selection of row changes that a target receives, and their form.

    Attributes:
        big_endian: byte order of the messages.
        chunk_bytes: maximum bytes of a LOB value in one Chunk element.
        objects: `Table.object_key` of the tables that the target receives; None for all decoded
            tables.
        filters: the filters for columns, operations and transactions that the target does not
            receive.
        raw_xml: True to deliver binary XML as it is stored, not as text. A value is assembled once
            for all views, so all views must have the same setting (`decoder.Decoder`).
        packed: True to deliver packed transactions instead of messages (`wire.packed_changes`).
    """

    big_endian: bool = False
    chunk_bytes: int = CHUNK_BYTES
    objects: frozenset[int] | None = None
    filters: Filters = NO_FILTERS
    raw_xml: bool = False
    packed: bool = False

    def of(
        self,
        tables: Sequence[Table],
        charsets: Charsets = DEFAULT_CHARSETS,
        names: Sequence[int] | None = None,
    ) -> View:
        """Return the view of a subscription to `tables`, which can contain several versions of a
        table.

        Args:
            names: for each table, the number of its name as a `Table.object_key`
                (`container_follower.ContainerFollower`). None if each name has the table's own
                number.
        """
        dropped = self.filters.dropped(tables)
        if self.objects is not None:
            keys = names if names is not None else [table.object_key for table in tables]
            others = np.array([key not in self.objects for key in keys], np.bool_)
            if dropped is None:
                dropped = np.zeros((len(tables), 3), np.bool_)
            dropped |= others[:, None]
        return View(
            self.big_endian, self.chunk_bytes, dropped, self.filters.left_columns(tables),
            self.filters.conditions(tables, charsets), self.packed,
        )  # fmt: skip


EVERYTHING: Final = TargetView()
EVERYTHING_PACKED: Final = TargetView(packed=True)
