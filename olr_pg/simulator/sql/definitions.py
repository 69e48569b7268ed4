"""DDL and similar statements. DDL commits the session's open transaction, changes definitions, and
commits again.

The session's transaction writes redo for the changed rows of SYS tables, as for the DDL of the
random workload (`sessions.ddl_statements`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.simulator.model.tables import IDENTITY_SEQUENCE, Logging, SimColumn
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sessions.placement import (
    FIRST_OBJECT,
    INDEXES_MAX,
    TableSpec,
    index_place,
    place_index,
    place_table,
)
from olr_pg.simulator.sql.blocks import read_block
from olr_pg.simulator.sql.create_table import (
    Constraint,
    TableDefinition,
    Words,
    read_bounds,
    read_column,
    read_constraint,
    read_identity,
    read_logging,
    read_partition,
    read_table,
    read_type,
)
from olr_pg.simulator.sql.name_scopes import SqlSequence
from olr_pg.simulator.sql.row_store import (
    Check,
    ForeignKey,
    Key,
    ListBounds,
    RangeBounds,
    SqlTable,
    StoredRow,
    Trigger,
)
from olr_pg.simulator.sql.sql_columns import SqlColumn, lob_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sessions.session import SimSession
    from olr_pg.simulator.sessions.sys_dictionary import SysDictionary
    from olr_pg.simulator.sql.database import SqlDatabase
    from olr_pg.simulator.sql.statements import Outcome
    from olr_pg.simulator.sql.typed_values import Value

DROP_TABLE: Final = 12
"""Command codes of V$SQLCOMMAND."""

DEFINITIONS: Final = frozenset(
    ("CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "COMMENT", "SET", "PURGE", "RENAME")
)
_RENAME: Final = re.compile(r"^RENAME\s+(\S+)\s+TO\b", re.IGNORECASE)
"""RENAME a TO b, which is executed as ALTER TABLE a RENAME TO b."""
_WITHOUT_EFFECT: Final = (
    ("GRANT",), ("COMMENT",), ("PURGE",), ("ALTER", "SESSION"), ("SET", "TRANSACTION", "READ",
    "WRITE"), ("SET", "ROLE"),
)  # fmt: skip


class Definer(Protocol):
    """The session that executes DDL."""

    database: SqlDatabase
    sim: SimSession

    def commit(self) -> None:
        """Commit the transaction."""

    def execute(self, text: str, binds: Sequence[Value] = ()) -> Outcome:
        """Execute a statement."""

    def execute_many(self, text: str, rows: Sequence[Sequence[Value]]) -> Outcome:
        """Execute a statement for each row of binds."""


def is_definition(first: str) -> bool:
    """Return whether a statement with this first word is DDL or similar."""
    return first in DEFINITIONS


def define(session: Definer, text: str) -> None:
    """Execute DDL.

    Raises:
        OraError: the statement is not possible, or not supported.
    """
    words = Words(_RENAME.sub(r"ALTER TABLE \1 RENAME TO", text.strip().rstrip(";")))
    if words.take("ALTER", "SYSTEM"):
        if words.take("SWITCH", "LOGFILE") or words.take("ARCHIVE", "LOG", "CURRENT"):
            session.database.switch_logs()
            return
        raise words.unknown()
    if words.take("SET", "TRANSACTION", "NAME"):
        session.sim.name_transaction(words.tokens[words.at].text)
        return
    for known in _WITHOUT_EFFECT:
        if words.take(*known):
            if known[0] not in ("SET", "ALTER"):
                session.commit()
            return
    _Definitions(session, words).carry_out()


class _Definitions:
    """A DDL statement that is being executed."""

    def __init__(self, session: Definer, words: Words) -> None:
        self._session, self._words = session, words
        self._database, self._sim = session.database, session.sim

    def carry_out(self) -> None:
        words = self._words
        statements: tuple[tuple[tuple[str, ...], Callable[[], None]], ...] = (
            (("CREATE", "TABLE"), self._create_table),
            (("CREATE", "SEQUENCE"), self._create_sequence),
            (("CREATE", "INDEX"), self._create_index),
            (("CREATE", "UNIQUE", "INDEX"), lambda: self._create_index(unique=True)),
            (("CREATE", "TRIGGER"), self._create_trigger),
            (("CREATE", "OR", "REPLACE", "TRIGGER"), lambda: self._create_trigger(replaces=True)),
            (("DROP", "TABLE"), self._drop_table),
            (("DROP", "TRIGGER"), lambda: self._drop_trigger(self._words.name())),
            (("DROP", "SEQUENCE"), self._drop_sequence),
            (("ALTER", "SEQUENCE"), self._alter_sequence),
            (("DROP", "INDEX"), self._drop_index),
            (("TRUNCATE", "TABLE"), self._truncate),
            (("ALTER", "TABLE"), self._alter_table),
            (("ALTER", "INDEX"), self._alter_index),
            (("ALTER", "TRIGGER"), self._alter_trigger),
        )
        self._session.commit()
        for known, do in statements:
            if words.take(*known):
                do()
                self._database.definitions_changed()
                return
        raise words.unknown()

    # --- tables ---

    def _create_table(self) -> None:
        words, database = self._words, self._database
        name = words.name()
        if name in database.tables or name in database.sequences:
            raise OraError(955, "name is already used by an existing object")
        found = read_table(words)
        rows: list[tuple[Value, ...]] = []
        if found.query:
            rows = self._columns_of_query(found)
        if not found.columns:
            raise OraError(904, ": invalid identifier")
        table = self._place(name, found)
        self._number_identities(table, found.identity_start)
        is_made = self._sim.ddl.create_table(table.sim, words.text)
        assert is_made
        database.tables[name] = table
        database.container.tables.append(table.sim)
        for constraint in found.constraints:
            self._constrain(table, constraint)
        if rows:
            marks = ", ".join(f":{at}" for at in range(len(found.columns)))
            self._session.execute_many(f'INSERT INTO "{name}" VALUES ({marks})', rows)  # noqa: S608
            self._session.commit()

    def _number_identities(self, table: SqlTable, start: int | None) -> None:
        """Create the sequence that generates the values of an identity column."""
        for place, column in enumerate(table.columns):
            if column.identity:
                sequence = f"{IDENTITY_SEQUENCE}{table.sim.obj}"
                self._database.sequences[sequence] = SqlSequence(sequence, start or 1)
                numbered = replace(column, default=f'"{sequence}".NEXTVAL')
                self._replace_column(table, place, numbered)

    def _modify_identity(self, table: SqlTable, place: int) -> None:
        column = table.columns[place]
        if not column.identity:
            raise OraError(30673, "column to be modified is not an identity column")
        identity, start = read_identity(self._words)
        self._replace_column(table, place, replace(column, identity=identity))
        if start is not None:
            sequence = f"{IDENTITY_SEQUENCE}{table.sim.obj}"
            self._database.sequences[sequence] = SqlSequence(sequence, start)

    def _columns_of_query(self, found: TableDefinition) -> list[tuple[Value, ...]]:
        """Add the columns of the query of CREATE TABLE … AS; return the query's rows."""
        outcome = self._session.execute(found.query)
        for column, declared in zip(outcome.columns, outcome.declared, strict=True):
            if declared is None:
                raise OraError(
                    998, "must name this expression with a column alias: the simulator creates a"
                    " table as a query of columns only"
                )  # fmt: skip
            storage = lob_storage(declared.kind)
            found.columns.append(SqlColumn(column, declared, storage=storage))
        return outcome.rows

    def _place(self, name: str, found: TableDefinition) -> SqlTable:
        database = self._database
        primary = next((one for one in found.constraints if one.kind == "PRIMARY"), None)
        own = [one.of_database(database.shape.charset) for one in found.columns]
        columns = [
            _not_null(one) if primary and one.name in primary.columns else one for one in own
        ]
        key = self._positions(columns, primary.columns if primary else ())
        if (found.index_organised and key != tuple(range(len(key)))) or (
            found.index_organised and not key
        ):
            raise OraError(
                25175,
                "no PRIMARY KEY constraint found: in the simulator, its columns must come first",
            )
        partition = (
            self._positions(columns, [found.partition_column])[0] if (found.partition_column) else 0
        )
        if len(found.ranges) == 1:
            raise OraError(
                3001, "unimplemented feature: the simulator does not support a single partition"
            )
        unique = [one for one in found.constraints if one.kind == "UNIQUE"]
        indexes = [] if found.index_organised or not key else [(key, True)]
        indexes += [(self._positions(columns, one.columns), True) for one in unique]
        spec = TableSpec(
            database.owner, name, tuple(one.simulated() for one in columns), key,
            found.logging or database.logging, tuple(indexes),
            row_dependencies=found.row_dependencies, partitions=found.partitions,
            partition_column=partition, index_organised=found.index_organised,
        )  # fmt: skip
        row_scn = database.shape.redo.row_scn_size if found.row_dependencies else 0
        number, database.tables_made = database.tables_made, database.tables_made + 1
        sim = place_table(number, spec, database.instance.scn)
        sim.row_scn = row_scn
        table = SqlTable(sim, columns)
        table.moves_rows = found.row_movement
        table.partition_names = [one.name for one in found.ranges] or [
            f"SYS_P{at}" for at in range(found.partitions)
        ]
        if found.ranges:
            column = columns[partition]
            cells = [[self._bound(column, text) for text in one.values] for one in found.ranges]
            sim.bounds = ListBounds(cells) if found.is_list else RangeBounds(cells)
            sim.routes = list(sim.segments)
        return table

    def _bound(self, column: SqlColumn, text: str) -> bytes | None:
        """Return a partition's bound or value in bytes; None for NULL."""
        outcome = self._session.execute(f"SELECT {text} FROM DUAL")  # noqa: S608
        cell = column.cell(column.converted(outcome.rows[0][0], ""))
        return None if cell is None else cell.raw

    @staticmethod
    def _positions(columns: Sequence[SqlColumn], names: Sequence[str]) -> tuple[int, ...]:
        known = [one.name for one in columns]
        for name in names:
            if name not in known:
                raise OraError(904, f'"{name}": invalid identifier')
        return tuple(known.index(name) for name in names)

    def _drop_table(self) -> None:
        words, database = self._words, self._database
        table = database.table(words.name())
        cascades, purges = words.take("CASCADE", "CONSTRAINTS"), words.take("PURGE")
        others = [child for child, _ in table.children if child is not table]
        if others and not cascades:
            raise OraError(2449, "unique/primary keys in table referenced by foreign keys")
        dictionary = self._begin(table)
        remove = dictionary.drop_table if purges else dictionary.recycle
        remove(self._sim.rows, table.sim)
        self._sim.ddl.end(table.sim, DROP_TABLE, words.text)
        for child in others:
            child.foreign_keys = [one for one in child.foreign_keys if one.parent is not table]
        for foreign in table.foreign_keys:
            foreign.parent.children = [
                one for one in foreign.parent.children if one[0] is not table
            ]
        del database.tables[table.name]
        database.sequences.pop(f"{IDENTITY_SEQUENCE}{table.sim.obj}", None)
        database.container.tables.remove(table.sim)

    def _begin(self, table: SqlTable) -> SysDictionary:
        if any(one.writer or one.locker for one in table.present):
            raise OraError(54, "resource busy and acquire with NOWAIT specified or timeout expired")
        dictionary = self._sim.ddl.begin(table.sim)
        if dictionary is None:
            raise OraError(54, "resource busy and acquire with NOWAIT specified or timeout expired")
        return dictionary

    def _truncate(self) -> None:
        table = self._database.table(self._words.name())
        if any(child is not table for child, _ in table.children):
            raise OraError(2266, "unique/primary keys in table referenced by enabled foreign keys")
        if any(one.writer or one.locker for one in table.present):
            raise OraError(54, "resource busy and acquire with NOWAIT specified or timeout expired")
        if not self._sim.ddl.truncate(table.sim):
            raise OraError(54, "resource busy and acquire with NOWAIT specified or timeout expired")
        scn = self._database.instance.scn - 1
        for stored in list(table.present):
            stored.values = None
            stored.since.append(scn)
            stored.were.append(None)
            table.settle(stored)

    def _alter_table(self) -> None:
        words = self._words
        table = self._database.table(words.name())
        ddl = self._sim.ddl
        statements: tuple[tuple[tuple[str, ...], Callable[[], None]], ...] = (
            (("ADD", "SUPPLEMENTAL", "LOG", "DATA"), lambda: self._log(table, adds=True)),
            (("DROP", "SUPPLEMENTAL", "LOG", "DATA"), lambda: self._log(table, adds=False)),
            (("ADD", "PARTITION"), lambda: self._add_partition(table)),
            (("TRUNCATE", "PARTITION"), lambda: self._empty_partition(
                table, words.name(), ddl.truncate_partition)),
            (("DROP", "PARTITION"), lambda: self._drop_partition(table, words.name())),
            (("EXCHANGE", "PARTITION"), lambda: self._exchange_partition(table, words.name())),
            (("SPLIT", "PARTITION"), lambda: self._split_partition(table, words.name())),
            (("MERGE", "PARTITIONS"), lambda: self._merge_partitions(table)),
            (("DROP", "CONSTRAINT"), lambda: self._drop_constraint(table, words.name())),
            (("DROP",), self._drop_columns),
            (("MOVE",), lambda: self._move(table)),
            (("RENAME", "COLUMN"), lambda: self._rename_column(table)),
            (("RENAME", "TO"), lambda: self._rename_table(table, words.name())),
            (("SET", "UNUSED"), lambda: self._set_unused(table)),
            (("MODIFY",), lambda: self._modify_columns(table)),
            (("ENABLE", "ALL", "TRIGGERS"), lambda: self._switch_triggers(table, on=True)),
            (("DISABLE", "ALL", "TRIGGERS"), lambda: self._switch_triggers(table, on=False)),
            (("ENABLE", "CONSTRAINT"), lambda: self._enable_key(table, words.name())),
            (("ENABLE", "VALIDATE", "CONSTRAINT"), lambda: self._enable_key(table, words.name())),
            (("DISABLE", "CONSTRAINT"), lambda: self._disable_key(table, words.name())),
            (("ENABLE", "ROW", "MOVEMENT"), lambda: self._move_rows(table, moves=True)),
            (("DISABLE", "ROW", "MOVEMENT"), lambda: self._move_rows(table, moves=False)),
            (("ADD",), lambda: self._add(table)),
        )  # fmt: skip
        for known, do in statements:
            if words.take(*known):
                do()
                return
        raise words.unknown()

    def _add(self, table: SqlTable) -> None:
        kinds = ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN")
        if self._words.peek() in kinds:
            self._constrain(table, read_constraint(self._words))
        else:
            self._add_columns(table)

    def _log(self, table: SqlTable, *, adds: bool) -> None:
        logging = read_logging(self._words)
        if not adds and logging is not table.sim.logging:
            raise OraError(32588, "supplemental logging attribute does not exist")
        table.sim.logging = logging if adds else Logging.MINIMAL

    @staticmethod
    def _move_rows(table: SqlTable, *, moves: bool) -> None:
        table.moves_rows = moves

    @staticmethod
    def _drop_columns() -> None:
        raise OraError(
            3001, "unimplemented feature: the simulator cannot write redo of dropped columns"
        )

    # --- partitions ---

    def _segment(self, table: SqlTable, name: str) -> int:
        if name not in table.partition_names or not table.sim.has_partitions:
            raise OraError(2149, "Specified partition does not exist")
        return table.partition_names.index(name)

    def _busy(self) -> OraError:
        return OraError(54, "resource busy and acquire with NOWAIT specified or timeout expired")

    def _empty_partition(
        self, table: SqlTable, name: str, empty: Callable[[SimTable, int], bool]
    ) -> None:
        number = self._segment(table, name)
        obj = table.sim.segments[number].obj
        gone = [one for one in table.present if one.row.block.obj == obj]
        if any(one.writer or one.locker for one in table.present):
            raise self._busy()
        if not empty(table.sim, number):
            raise OraError(3001, "unimplemented feature: the simulator cannot alter this partition")
        self._forget(table, gone)

    def _forget(self, table: SqlTable, gone: Sequence[StoredRow]) -> None:
        scn = self._database.instance.scn - 1
        for stored in gone:
            stored.values = None
            stored.since.append(scn)
            stored.were.append(None)
            table.settle(stored)

    def _drop_partition(self, table: SqlTable, name: str) -> None:
        number, sim = self._segment(table, name), table.sim
        if sim.bounds is None:
            raise OraError(14255, "table is not partitioned by Range, List or Composite methods")
        bounds = sim.bounds
        assert isinstance(bounds, RangeBounds | ListBounds)
        self._empty_partition(table, name, self._sim.ddl.drop_partition)
        del table.partition_names[number], bounds.cells[number]
        sim.routes = list(sim.segments)

    def _exchange_partition(self, table: SqlTable, name: str) -> None:
        """EXCHANGE PARTITION … WITH TABLE …: exchange the segments and their rows."""
        words, sim, number = self._words, table.sim, self._segment(table, name)
        words.expect("WITH")
        words.expect("TABLE")
        other = self._database.table(words.name())
        validates = True
        while not words.done:
            if words.take("WITHOUT", "VALIDATION"):
                validates = False
            elif not (
                words.take("WITH", "VALIDATION")
                or words.take("INCLUDING", "INDEXES")
                or words.take("EXCLUDING", "INDEXES")
                or words.take("UPDATE", "GLOBAL", "INDEXES")
                or words.take("UPDATE", "INDEXES")
            ):
                raise words.unknown()
        if other is table or other.sim.has_partitions:
            raise OraError(
                14095, "ALTER TABLE EXCHANGE requires an unpartitioned, unclustered table"
            )
        if [one.declared for one in table.columns] != [one.declared for one in other.columns]:
            raise OraError(14097, "column type or size mismatch in ALTER TABLE EXCHANGE PARTITION")
        bounds, at = sim.bounds, sim.partition_column
        strangers = bounds is not None and any(
            bounds(one.row.cells[at]) != number for one in other.present
        )
        if validates and strangers:
            raise OraError(14099, "all rows in table do not qualify for specified partition")
        if any(one.writer or one.locker for one in (*table.present, *other.present)):
            raise self._busy()
        obj = sim.segments[number].obj
        going = [one for one in table.present if one.row.block.obj == obj]
        coming = list(other.present)
        if not self._sim.ddl.exchange_with(sim, number, other.sim):
            raise OraError(
                3001, "unimplemented feature: the simulator cannot exchange this partition"
            )
        scn = self._database.instance.scn - 1
        for rows, of, to in ((going, table, other), (coming, other, table)):
            kept = [(one.row, one.values) for one in rows]
            self._forget(of, rows)
            for row, values in kept:
                moved = StoredRow(to, row, values, since=[scn], were=[values])
                to.present[moved] = None
                to.note(moved)

    def _split_partition(self, table: SqlTable, name: str) -> None:
        """SPLIT PARTITION … AT (…) INTO (PARTITION …, PARTITION …), of ranges."""
        words, sim, number = self._words, table.sim, self._segment(table, name)
        words.expect("AT")
        (text,) = read_bounds(words)
        names = self._into(2)
        bounds = sim.bounds
        if not isinstance(bounds, RangeBounds):
            raise OraError(3001, "unimplemented feature: the simulator splits only ranges")
        bound = self._bound(table.columns[sim.partition_column], text)
        kept = [list(one) for one in bounds.cells]
        bounds.cells.insert(number, [bound])
        sim.routes.insert(number, sim.routes[number])
        if not bounds.is_sorted:
            bounds.cells[:] = kept
            del sim.routes[number]
            raise OraError(14080, "partition cannot be split along the specified high bound")
        self._regroup(table, number, 1, names, self._sim.ddl.split_partition)

    def _merge_partitions(self, table: SqlTable) -> None:
        """MERGE PARTITIONS a, b INTO PARTITION c, for adjacent ranges."""
        words, bounds = self._words, table.sim.bounds
        first = self._segment(table, words.name())
        words.expect(",")
        second = self._segment(table, words.name())
        names = self._into(1)
        if not isinstance(bounds, RangeBounds) or second != first + 1:
            raise OraError(14274, "partitions being merged are not adjacent")
        self._regroup(table, first, 2, names, self._sim.ddl.merge_partitions)
        del bounds.cells[first], table.sim.routes[first]

    def _into(self, count: int) -> list[str]:
        words, names = self._words, list[str]()
        words.expect("INTO")
        in_brackets = words.take("(")
        for at in range(count):
            if at:
                words.expect(",")
            words.expect("PARTITION")
            names.append(words.name())
        if in_brackets:
            words.expect(")")
        return names

    def _regroup(
        self,
        table: SqlTable,
        first: int,
        count: int,
        names: Sequence[str],
        regroup: Callable[[SimTable, int], bool],
    ) -> None:
        """Replace `count` partitions from `first` on by others; keep segments in the order of
        ranges.
        """
        sim = table.sim
        if any(one.writer or one.locker for one in table.present):
            raise self._busy()
        if not regroup(sim, first):
            raise OraError(3001, "unimplemented feature: the simulator cannot regroup these rows")
        table.partition_names[first : first + count] = names
        sim.segments[:] = [
            one for at, one in enumerate(sim.routes) if one not in sim.routes[:at]
        ]  # fmt: skip

    def _add_partition(self, table: SqlTable) -> None:
        self._words.at -= 1
        sim, one = table.sim, read_partition(self._words)
        bounds = sim.bounds
        if not isinstance(bounds, RangeBounds | ListBounds):
            raise self._words.unknown()
        column = table.columns[sim.partition_column]
        cells = [self._bound(column, text) for text in one.values]
        if isinstance(bounds, RangeBounds) and not bounds.may_follow(cells):
            raise OraError(14074, "partition bound must collate higher than that of the last one")
        if not self._sim.ddl.append_partition(sim):
            raise self._busy()
        bounds.cells.append(cells)
        table.partition_names.append(one.name)

    def _move(self, table: SqlTable) -> None:
        words, number = self._words, 0
        if words.take("PARTITION"):
            number = self._segment(table, words.name())
        elif table.sim.has_partitions:
            raise OraError(14511, "cannot perform operation on a partitioned object")
        if any(one.writer or one.locker for one in table.present):
            raise self._busy()
        if not self._sim.ddl.move(table.sim, number):
            raise OraError(3001, "unimplemented feature: the simulator cannot move these rows")

    def _alter_index(self) -> None:
        """ALTER INDEX … REBUILD, which does not change rows."""
        self._words.name()
        self._words.expect("REBUILD")

    # --- columns ---

    def _place_of(self, table: SqlTable, name: str) -> int:
        if any(one.writer or one.locker for one in table.present):
            raise self._busy()
        (place,) = self._positions(table.columns, [name])
        return place

    def _replace_column(self, table: SqlTable, place: int, column: SqlColumn) -> None:
        table.columns = (*table.columns[:place], column, *table.columns[place + 1 :])

    def _rename_column(self, table: SqlTable) -> None:
        words = self._words
        place = self._place_of(table, words.name())
        words.expect("TO")
        name = words.name()
        if table.position(name) is not None:
            raise OraError(957, "duplicate column name")
        if not self._sim.ddl.rename_column(table.sim, place, name):
            raise self._busy()
        self._replace_column(table, place, replace(table.columns[place], name=name))

    def _set_unused(self, table: SqlTable) -> None:
        words = self._words
        names = (words.name(),) if words.take("COLUMN") else words.names()
        for name in names:
            place = self._place_of(table, name)
            if any(place in key.columns for key in table.keys):
                raise OraError(12991, "column is referenced in a multi-column constraint")
            if not self._sim.ddl.set_unused(table.sim, place):
                raise self._busy()
            column = replace(table.columns[place], name="", not_null=False, default="")
            self._replace_column(table, place, column)
            table.map_values(lambda values, at=place: (*values[:at], None, *values[at + 1 :]))

    def _modify_columns(self, table: SqlTable) -> None:
        words = self._words
        in_brackets = words.take("(")
        self._modify_column(table)
        while in_brackets and words.take(","):
            self._modify_column(table)

    def _modify_column(self, table: SqlTable) -> None:
        words = self._words
        place = self._place_of(table, words.name())
        old, new = table.columns[place], table.columns[place]
        if words.take("GENERATED"):
            self._modify_identity(table, place)
            return
        if words.peek() not in ("NULL", "NOT", "DEFAULT"):
            declared, words.at = read_type(words.tokens, words.at)
            if declared.kind != old.declared.kind and table.present:
                raise OraError(1439, "column to be modified must be empty to change datatype")
            new = replace(old, declared=declared, storage=lob_storage(declared.kind))
            new = new.of_database(self._database.shape.charset)
            for stored in table.present:
                value = (stored.values or stored.committed or ())[place]
                if declared.kind == "CHAR" or new.converted(value, table.name) != value:
                    raise OraError(
                        1441, "cannot decrease column length because some value is too big"
                    )
            if not self._sim.ddl.modify_column(table.sim, place, new.simulated().type):
                raise self._busy()
        if words.take("NOT", "NULL") or words.take("NULL"):
            not_null = words.tokens[words.at - 2].text.upper() == "NOT"
            if not_null and any(one.values and one.values[place] is None for one in table.present):
                raise OraError(2296, "cannot enable - null values found")
            if not self._sim.ddl.set_nullable(table.sim, place, nullable=not not_null):
                raise self._busy()
            new = replace(new, not_null=not_null)
        self._replace_column(table, place, new)

    def _rename_table(self, table: SqlTable, name: str) -> None:
        database = self._database
        if name in database.tables or name in database.sequences:
            raise OraError(955, "name is already used by an existing object")
        old = table.name
        if any(one.writer or one.locker for one in table.present) or not (
            self._sim.ddl.rename_table(table.sim, name)
        ):
            raise self._busy()
        database.tables[name] = database.tables.pop(old)

    def _add_columns(self, table: SqlTable) -> None:
        words, found = self._words, TableDefinition()
        in_brackets = words.take("(")
        read_column(words, found)
        while in_brackets and words.take(","):
            read_column(words, found)
        for column in found.columns:
            self._add_column(table, column)
        for constraint in found.constraints:
            self._constrain(table, constraint)

    def _add_column(self, table: SqlTable, column: SqlColumn) -> None:
        column = column.of_database(self._database.shape.charset)
        if table.position(column.name) is not None:
            raise OraError(1430, "column being added already exists in table")
        value: Value = None
        if column.default:
            if not column.not_null:
                raise OraError(
                    3001, "unimplemented feature: the simulator adds a column with a DEFAULT as"
                    " NOT NULL only"
                )  # fmt: skip
            outcome = self._session.execute(f"SELECT {column.default} FROM DUAL")  # noqa: S608
            value = column.converted(outcome.rows[0][0], table.name)
        elif column.not_null and table.present:
            raise OraError(1758, "table must be empty to add mandatory (NOT NULL) column")
        sim = column.simulated()
        if value is not None:
            sim = SimColumn(sim.name, sim.type, sim.nullable, column.cell(value))
        if value is not None and not table.sim.is_plain:
            raise OraError(
                3001,
                "unimplemented feature: the simulator adds no column with a DEFAULT to a table with"
                " LOBs, or an index-organised one",
            )
        if any(one.writer or one.locker for one in table.present) or not (
            self._sim.ddl.add_column(table.sim, sim)
        ):
            raise OraError(54, "resource busy and acquire with NOWAIT specified or timeout expired")
        table.columns = (*table.columns, column)
        table.map_values(lambda values: (*values, value))

    # --- constraints, indexes, sequences ---

    def _constrain(self, table: SqlTable, one: Constraint) -> None:
        number = 8_000 + len(table.keys) + len(table.checks) + len(table.foreign_keys)
        name = one.name or f"SYS_C{number + 100 * self._database.tables_made:07d}"
        columns = self._positions(table.columns, one.columns)
        if one.kind == "CHECK":
            check = Check(name, one.condition)
            self._database.check_condition(table, check)
            table.checks.append(check)
        elif one.kind == "FOREIGN":
            self._refer(table, one, name, columns)
        else:
            self._add_key(table, Key(name, columns, one.kind == "PRIMARY"))

    def _add_key(self, table: SqlTable, key: Key) -> None:
        if key.is_primary and table.primary_key is not None:
            raise OraError(2260, "table can have only one primary key")
        found = [key.of(one.values) for one in table.present if one.values is not None]
        wanted = [one for one in found if one is not None]
        if len(wanted) != len(set(wanted)):
            raise OraError(2299, f"cannot validate ({table.sim.owner}.{key.name}) - duplicate keys")
        table.add_key(key)

    def _refer(self, table: SqlTable, one: Constraint, name: str, columns: tuple[int, ...]) -> None:
        parent = table if one.parent == table.name else self._database.table(one.parent)
        wanted = self._positions(parent.columns, one.parent_columns)
        keys = [key for key in parent.keys if
                (key.columns == wanted if wanted else key.is_primary)]  # fmt: skip
        if not keys or len(keys[0].columns) != len(columns):
            raise OraError(2270, "no matching unique or primary key for this column-list")
        foreign = ForeignKey(name, columns, parent, keys[0], one.on_delete)
        table.foreign_keys.append(foreign)
        parent.children.append((table, foreign))

    def _drop_constraint(self, table: SqlTable, name: str) -> None:
        for key in table.keys:
            if key.name == name and not key.is_primary:
                table.drop_key(key)
                return
        kept = len(table.checks), len(table.foreign_keys)
        table.checks = [one for one in table.checks if one.name != name]
        for foreign in [one for one in table.foreign_keys if one.name == name]:
            table.foreign_keys.remove(foreign)
            foreign.parent.children.remove((table, foreign))
        if kept == (len(table.checks), len(table.foreign_keys)):
            raise OraError(2443, "Cannot drop constraint - nonexistent constraint")

    def _disable_key(self, table: SqlTable, name: str) -> None:
        for foreign in [one for one in table.foreign_keys if one.name == name]:
            table.foreign_keys.remove(foreign)
            foreign.parent.children.remove((table, foreign))
            table.disabled_keys.append(foreign)
        if all(one.name != name for one in table.disabled_keys):
            raise OraError(2431, f"cannot disable constraint ({name}) - no such constraint")

    def _enable_key(self, table: SqlTable, name: str) -> None:
        found = [one for one in table.disabled_keys if one.name == name]
        if not found and all(one.name != name for one in table.foreign_keys):
            raise OraError(2430, f"cannot enable constraint ({name}) - no such constraint")
        for foreign in found:
            parents = {foreign.parent_key.of(one.values) for one in foreign.parent.present
                       if one.values is not None}  # fmt: skip
            keys = [Key("", foreign.columns).of(one.values) for one in table.present
                    if one.values is not None
                    and None not in [one.values[at] for at in foreign.columns]]  # fmt: skip
            if not parents.issuperset(keys):
                raise OraError(2298, f"cannot validate ({table.sim.owner}.{name}) - parent keys"
                               " not found")  # fmt: skip
            table.disabled_keys.remove(foreign)
            table.foreign_keys.append(foreign)
            foreign.parent.children.append((table, foreign))

    @staticmethod
    def _switch_triggers(table: SqlTable, *, on: bool) -> None:
        triggers = [*table.triggers, *table.disabled_triggers]
        table.triggers, table.disabled_triggers = (triggers, []) if on else ([], triggers)

    def _alter_trigger(self) -> None:
        name, on = self._words.name(), self._words.take("ENABLE")
        if not on:
            self._words.expect("DISABLE")
        table, trigger = self._remove_trigger(name)
        (table.triggers if on else table.disabled_triggers).append(trigger)

    def _create_index(self, *, unique: bool = False) -> None:
        words, database = self._words, self._database
        name = words.name()
        words.expect("ON")
        table = database.table(words.name())
        columns = self._positions(table.columns, words.names())
        sim = table.sim
        if any(index.columns == columns for index in sim.indexes):
            raise OraError(1408, "such column list already indexed")
        if any(at in sim.lobs for at in columns):
            raise OraError(2327, "cannot create index on expression with datatype LOB")
        if len(sim.indexes) >= INDEXES_MAX - 1 or sim.index_organised:
            raise OraError(
                3001, "unimplemented feature: the simulator does not support such an index"
            )
        if unique:
            self._add_key(table, Key(name, columns))
        place = index_place((sim.obj - FIRST_OBJECT) // 20, len(sim.indexes))
        obj = database.container.take_object()
        index = place_index(obj, columns, unique, place, database.instance.scn)
        sim.indexes = (*sim.indexes, index)
        database.indexes[name] = table, obj

    def _drop_index(self) -> None:
        name, database = self._words.name(), self._database
        if name not in database.indexes:
            raise OraError(1418, "specified index does not exist")
        table, obj = database.indexes.pop(name)
        table.sim.indexes = tuple(one for one in table.sim.indexes if one.obj != obj)
        for key in [one for one in table.keys if one.name == name]:
            table.drop_key(key)

    def _create_trigger(self, *, replaces: bool = False) -> None:
        words, name, events = self._words, self._words.name(), set[str]()
        columns: tuple[str, ...] = ()
        is_before = words.take("BEFORE")
        if not is_before:
            words.expect("AFTER")
        while not words.take("ON"):
            event = {"INSERT": "INSERTING", "UPDATE": "UPDATING", "DELETE": "DELETING"}.get(
                words.peek()
            )
            if event is None:
                raise words.unknown()
            words.at += 1
            events.add(event)
            if words.take("OF"):
                columns = (words.name(),)
                while words.take(","):
                    columns = (*columns, words.name())
            words.take("OR")
        table = self._database.table(words.name())
        words.expect("FOR", "EACH", "ROW")
        block = read_block(words)
        if self._find_trigger(name):
            if not replaces:
                raise OraError(4081, f"trigger '{name}' already exists")
            self._drop_trigger(name)
        places = frozenset(self._positions(table.columns, columns))
        trigger = Trigger(name, words.text, block, frozenset(events), is_before, places)
        table.triggers.append(trigger)

    def _find_trigger(self, name: str) -> tuple[SqlTable, Trigger] | None:
        for table in self._database.tables.values():
            for trigger in (*table.triggers, *table.disabled_triggers):
                if trigger.name == name:
                    return table, trigger
        return None

    def _drop_trigger(self, name: str) -> None:
        self._remove_trigger(name)

    def _remove_trigger(self, name: str) -> tuple[SqlTable, Trigger]:
        """Remove a trigger from its table; return both."""
        found = self._find_trigger(name)
        if found is None:
            raise OraError(4080, f"trigger '{name}' does not exist")
        table, trigger = found
        for triggers in (table.triggers, table.disabled_triggers):
            if trigger in triggers:
                triggers.remove(trigger)
        return table, trigger

    def _create_sequence(self) -> None:
        words, database = self._words, self._database
        name = words.name()
        if name in database.sequences or name in database.tables:
            raise OraError(955, "name is already used by an existing object")
        found = SqlSequence(name)
        while not words.done:
            if words.take("START", "WITH"):
                found.following = words.number()
            elif words.take("INCREMENT", "BY"):
                found.increment = words.number()
            elif words.take("CACHE"):
                found.cache = words.number()
            elif words.take("MAXVALUE"):
                found.maximum = words.number()
            elif words.peek() in ("NOCACHE", "NOCYCLE", "ORDER", "NOORDER", "NOMAXVALUE"):
                words.at += 1
            else:
                raise words.unknown()
        database.sequences[name] = found

    def _alter_sequence(self) -> None:
        words, known = self._words, self._database.sequences
        name = words.name()
        if name not in known:
            raise OraError(2289, "sequence does not exist")
        if name.startswith(IDENTITY_SEQUENCE):
            raise OraError(32793, "cannot alter a system-generated sequence")
        words.expect("RESTART")
        words.expect("START")
        words.expect("WITH")
        known[name].following = words.number()

    def _drop_sequence(self) -> None:
        name = self._words.name()
        if name not in self._database.sequences:
            raise OraError(2289, "sequence does not exist")
        if name.startswith(IDENTITY_SEQUENCE):
            raise OraError(32794, "cannot drop a system-generated sequence")
        del self._database.sequences[name]


def _not_null(column: SqlColumn) -> SqlColumn:
    return replace(column, not_null=True)
