"""What is left out on the way: tables, columns, operations, transactions (`filter`).

All of it works where redo is decoded, so that external clients, the bundled applier, the initial
load and verification see the same:

- tables and columns: when a TableList is resolved, and for every later version of a table: what is
  left out is not decoded;
- columns of a single target, and operations: in the decoding tasks, before messages are built;
- transactions: where splits are merged, because only there the session of every transaction is
  known. A transaction whose session's attributes are not in the redo that was read is delivered.

What operations and transactions leave out is counted (`Account.rows_filtered`,
`transactions_filtered`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.config.model import NamedTarget
from olr_pg.errors import OlrPgError
from olr_pg.replicator.losses import report_idle
from olr_pg.scalars import parse_xid
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from olr_pg.capture.logs import LogScan
    from olr_pg.config.filter import Filter
    from olr_pg.config.model import Config
    from olr_pg.dictionary.evolution import Evolution
    from olr_pg.dictionary.model import Column, Database, Snapshot, Table
    from olr_pg.redo.sessions import SessionAttributes
    from olr_pg.replicator.source_database import SourceDatabase
    from olr_pg.transactions.lob_source import LobSource


@dataclass(frozen=True, slots=True)
class Filters:
    """What is left out. Patterns are shell patterns; a name fits as it is or in upper case.

    Attributes:
        include: patterns of ``OWNER.NAME``; empty = all.
        exclude: patterns of ``OWNER.NAME``; they win.
        columns: pattern of ``OWNER.NAME`` → patterns of columns that are left out.
        operations: pattern of ``OWNER.NAME`` → kinds of row changes that are left out.
        sessions: attribute of `SessionAttributes` → patterns of values whose transactions are left
            out.
        xids: packed XIDs of transactions that are left out.
        include_too: as `include`; a table must fit both.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operations: Mapping[str, frozenset[DmlKind]] = field(default_factory=dict)
    sessions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    xids: frozenset[int] = frozenset()
    include_too: tuple[str, ...] = ()

    def wants(self, owner: str, name: str) -> bool:
        """Whether a table is not left out."""
        full_name = f"{owner}.{name}"
        lists = (self.include, self.include_too)
        return all(not one or _fits(full_name, one) for one in lists) and not _fits(
            full_name, self.exclude
        )

    def chosen(self, tables: Sequence[Table]) -> tuple[Table, ...]:
        """The tables that are left, as they are delivered.

        Raises:
            OlrPgError: 1095 none is left, 1096 a key column would be left out.
        """
        chosen = tuple(self.shape(table) for table in tables if self.wants(table.owner, table.name))
        if tables and not chosen:
            raise OlrPgError(1095, f"{len(tables)} tables are left out", key="filter.tables")
        return chosen

    def idle(self, tables: Sequence[Table]) -> list[tuple[str, str]]:
        """(key, pattern) of what leaves nothing out of `tables`: a misspelt name, perhaps."""
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
        """The table without its left-out columns.

        Raises:
            OlrPgError: 1096, one is of the key, or none is left.
        """
        patterns = self._column_patterns(table)
        if not patterns:
            return table
        columns = tuple(self._shaped(table, column, patterns) for column in table.columns)
        shaped = replace(table, columns=columns)
        if table.delivered and not shaped.delivered:
            raise OlrPgError(1096, "no column is left", table=table.full_name)
        return shaped

    def shape_evolution(
        self, evolution: Evolution, definition: Table | None
    ) -> tuple[Evolution, Table | None]:
        """What a DDL means for a table without its left-out columns.

        Raises:
            OlrPgError: as `shape`.
        """
        if definition is None:
            return evolution, None
        definition = self.shape(definition)
        left = {column.name for column in definition.delivered}
        added = tuple(column for column in evolution.columns if column.name in left)
        return evolution._replace(columns=added), definition

    def left_columns(self, tables: Sequence[Table]) -> npt.NDArray[np.bool_] | None:
        """Shape (delivered columns of all tables): whether they are left out; None = none is."""
        if not self.columns:
            return None
        patterns = [self._column_patterns(table) for table in tables]
        left = [
            bool(fitting) and _fits(column.name, fitting)
            for table, fitting in zip(tables, patterns, strict=True)
            for column in table.delivered
        ]
        return np.array(left, np.bool_) if any(left) else None

    def _column_patterns(self, table: Table) -> list[str]:
        fitting = (ps for key, ps in self.columns.items() if _fits(table.full_name, (key,)))
        return [pattern for patterns in fitting for pattern in patterns]

    def _shaped(self, table: Table, column: Column, patterns: Sequence[str]) -> Column:
        if column.hidden or not _fits(column.name, patterns):
            return column
        if column.intcol in table.key:
            raise OlrPgError(1096, "it is of the key", table=table.full_name, column=column.name)
        return replace(column, hidden=True)

    def dropped(self, tables: Sequence[Table]) -> npt.NDArray[np.bool_] | None:
        """Shape (tables, 3): whether inserts, deletes, updates are left out; None = none at all."""
        if not self.operations:
            return None
        dropped = np.zeros((len(tables), len(DmlKind)), np.bool_)
        for number, table in enumerate(tables):
            for pattern, kinds in self.operations.items():
                if _fits(table.full_name, (pattern,)):
                    for kind in kinds:
                        dropped[number, kind - DmlKind.INSERT] = True
        return dropped

    @property
    def concerns_transactions(self) -> bool:
        """Whether transactions are left out at all."""
        return bool(self.sessions or self.xids)

    def drops(self, xid: int, attributes: SessionAttributes | None) -> bool:
        """Whether a transaction is left out."""
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


def _fitting(tables: Iterable[Table], pattern: str) -> list[Table]:
    return [table for table in tables if _fits(table.full_name, (pattern,))]


def filters_of(section: Filter) -> Filters:
    """What the configuration leaves out."""
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
    )


def filters_of_target(config: Config) -> Filters:
    """What a target by itself does not get: of everything, and of its own."""
    common = filters_of(config.filter)
    if not isinstance(config.target, NamedTarget):
        return common
    own = filters_of(config.target.filter)
    columns = {key: common.columns.get(key, ()) + own.columns.get(key, ())
               for key in (*common.columns, *own.columns)}  # fmt: skip
    return replace(
        common, include_too=own.include, exclude=common.exclude + own.exclude, columns=columns
    )


class FilteredDatabase:
    """A source database without the tables and columns that are left out."""

    def __init__(self, source: SourceDatabase, filters: Filters) -> None:
        self._source = source
        self._filters = filters
        self._is_reported = False

    @property
    def database(self) -> Database:
        """See `SourceDatabase.database`."""
        return self._source.database

    @property
    def lob_source(self) -> LobSource | None:
        """See `SourceDatabase.lob_source`."""
        return self._source.lob_source

    def resolve(self, sql: str) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`.

        Raises:
            OlrPgError: 1095, 1096 too.
        """
        snapshot, tables = self._source.resolve(sql)
        if not self._is_reported:
            self._is_reported = True
            report_idle(self._filters, snapshot.tables)
        return snapshot, self._filters.chosen(tables)

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        """See `SourceDatabase.scan`."""
        return self._source.scan(scn, delivered_scn)

    def delivering(self, scn: int) -> None:
        """See `SourceDatabase.delivering`."""
        self._source.delivering(scn)

    def pause(self, idle: int) -> float:
        """See `SourceDatabase.pause`."""
        return self._source.pause(idle)
