"""The random workload: the actions of sessions. One seeded generator makes all choices.

`LobWorkload` is the workload ``lobs``: tables with documents, whose redo is mostly LOB pages.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from enum import Enum
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import BLOB, CLOB, Cell, number
from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.simulator.fields.row_fields import stored_sizes
from olr_pg.simulator.model.column_types import (
    DECLARATIONS,
    date_type,
    lob_type,
    number_type,
    random_lob,
    raw_type,
    timestamp_type,
    varchar,
)
from olr_pg.simulator.model.lobs import LobCell, LobDraft, LobStorage
from olr_pg.simulator.model.storage import DATABASE_BLOCK_SIZE, WIDE_BLOCK_SIZE
from olr_pg.simulator.model.tables import ROW_MAX, Logging, SimColumn, SimVirtual
from olr_pg.simulator.sessions.order_entry import ParallelGroup
from olr_pg.simulator.sessions.placement import TableSpec, place_table
from olr_pg.simulator.sessions.row_statements import can_be_loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.model.tables import ColumnType, Row, SimTable
    from olr_pg.simulator.sessions.session import SimSession

LONG_ROW_MAX: Final = 20_000
ROWS_MAX: Final = (ROW_MAX, LONG_ROW_MAX)
LOB_CHANGES: Final = ("write_lob", "append_lob", "trim_lob", "erase_lob")
ACTIONS: Final = (
    *("insert", "insert", "insert_many", "update", "update", "update_key", "delete"),
    *("delete_many", "lock", "failed_statement", "savepoint", "rollback_to", "begin_empty"),
    *("commit", "commit", "rollback"),
    *("fill_lob", *LOB_CHANGES),
    *("load", "ddl"),
)
RARITY: Final = {"load": 0.15, "ddl": 1.0}
"""Factors for the weights of some actions; loads are rare, because each writes whole blocks."""

WIDE: Final = 0.08
FILLED: Final = 0.15
WIDE_COLUMN: Final = 2000
"""WIDE: probability that a table is in blocks of 16 kB. FILLED: probability that a row of such a
table fills more than half of a block, so that its undo does not fit into an undo block.
WIDE_COLUMN: length of the columns that make such rows long.
"""
LOGGED_LOADS: Final = 0.3
"""Probability that a load is logged, in databases with NOLOGGING loads."""

DDL_WEIGHT: Final = 9.0
"""Weight of DDL in the uses `ALTERING`: high, because a change of one table writes little redo."""

UNLOGGED_WEIGHT: Final = 2.5
"""Weight of loads in databases with NOLOGGING loads: high, because such loads write little redo."""

PARALLEL: Final = 0.1
PARALLEL_END: Final = 0.5
"""In databases with parallel DML: the probability that a statement is parallel, and the
probability, at each action, that the children of a committed parent end.
"""

ONE_RECORD: Final = 0.1
"""Probability that a transaction ends in the record of its last changes, in the mode ONE_RECORD."""

BESIDE_STATEMENTS: Final = (
    *("comment", "comment", "create_index", "drop_index", "add_check", "switch_check"),
    *("create_expression_index", "drop_expression_index"),
)
"""Methods of `DdlStatements` and `ComputedColumns` that change neither rows nor visible columns."""

COLUMN_STATEMENTS: Final = ("rename_column", "set_unused", "modify_column", "set_nullable")
"""Methods of `DdlStatements` that alter a column."""

COMPUTED_STATEMENTS: Final = (
    *("add_virtual", "alter_virtual", "drop_virtual", "add_numbered", "drop_identity"),
)
"""Methods of `ComputedColumns`."""

PARTITION_STATEMENTS: Final = ("truncate_partition", "exchange_partition", "drop_partition")
"""Methods of `DdlStatements` that remove rows of a partition. A target table without these
partitions stops.
"""

STOPS: Final = 0.15
"""Probability that a statement of the use STOPPING is one that a target cannot follow:
`PARTITION_STATEMENTS`, MODIFY to another type, or a column with a sequence if there are rows.
"""

WAITING: Final = 0.5
"""Probability that DDL of the uses `ALTERING` waits for the open transactions of a table, if all
tables are locked. Otherwise the DDL fails.
"""
VARCHAR2: Final = 1
NUMBER: Final = 2
DATE: Final = 12
"""COL$.TYPE#."""

VIRTUAL_TYPES: Final = {
    VARCHAR2: ("with x", "own function"),
    NUMBER: ("plus one", "zero for null", "own function"),
}
"""The forms of a virtual column's expression, by the TYPE# of the column in it."""

NUMBER_DIGITS_MAX: Final = 18
"""Maximum precision of a number in the expression of a virtual column, so that the result is exact.
"""
WIDENED: Final = 20
VARCHAR2_MAX: Final = 4000
PRECISION_MAX: Final = 38

COLUMNS_MAX: Final = 320
LEAF_COLUMNS_MAX: Final = 250


class LobUse(Enum):
    """How the workload uses LOBs.

    WHOLE: the redo of a transaction contains each new value completely. PARTIAL: the workload also
    writes parts of older values, so that redo does not contain the whole value.
    """

    NONE = "none"
    WHOLE = "whole"
    PARTIAL = "partial"


TABLES_MAX: Final = 9
"""Maximum number of tables of a container, if the workload creates tables."""


class DdlUse(Enum):
    """The DDL statements of the workload.

    FOLLOWED: statements that a target can follow: adding nullable columns, TRUNCATE, and ADD, SPLIT
    and MERGE of partitions. COLUMNS: in addition, columns with a default are added, and columns are
    renamed, set unused, made wider and made NOT NULL; also virtual columns, and identity columns of
    empty tables. BESIDE: as COLUMNS, with comments, indexes and checks. TABLES: as COLUMNS, and
    tables are created, renamed, or dropped and created again. STOPPING: as COLUMNS, with statements
    that a target cannot follow. ANY: as COLUMNS, but without virtual and identity columns, and
    partitions are truncated, exchanged or dropped; after that, a target without these partitions
    differs from the source.
    """

    NONE = "none"
    FOLLOWED = "followed"
    COLUMNS = "columns"
    BESIDE = "beside"
    TABLES = "tables"
    STOPPING = "stopping"
    ANY = "any"


ALTERING: Final = (DdlUse.COLUMNS, DdlUse.BESIDE, DdlUse.TABLES, DdlUse.STOPPING)
"""Uses with much DDL. The target follows each statement, or its table stops at it."""


def random_value(rng: Random, table: SimTable, at: int) -> Cell:
    """Draw a value of column `at`; in tables with long rows, it is often a long one."""
    make = table.columns[at].type.make
    if table.row_max <= ROW_MAX or rng.random() < 0.5:
        return make(rng)
    draws = 4 if table.block_size == DATABASE_BLOCK_SIZE else 12
    return max((make(rng) for _ in range(draws)), key=lambda cell: len(cell.raw))


def random_column(rng: Random, name: str, *, filled: bool) -> SimColumn:
    """Draw a column that DDL adds: a nullable one or, if `filled`, one with a default."""
    made = rng.choice(DECLARATIONS)(rng)
    if not filled:
        return SimColumn(name, made)
    return SimColumn(name, made, nullable=False, default=made.make(rng))


def _wider(kind: ColumnType) -> ColumnType | None:
    """Return a wider type for a column; None if it cannot be made wider."""
    if kind.type_code == VARCHAR2 and kind.length + WIDENED <= VARCHAR2_MAX:
        return replace(kind, length=kind.length + WIDENED)
    if kind.type_code == NUMBER and kind.precision and kind.precision + 2 <= PRECISION_MAX:
        return replace(kind, precision=kind.precision + 2)
    return None


def _is_short_number(kind: ColumnType) -> bool:
    digits = kind.precision or NUMBER_DIGITS_MAX + 1
    return kind.type_code == NUMBER and digits <= NUMBER_DIGITS_MAX


def _is_short_text(kind: ColumnType) -> bool:
    return kind.type_code == VARCHAR2 and kind.charset_form == 1


def _computed_statements(table: SimTable) -> list[str]:
    """Return the methods of `ComputedColumns` that a table allows."""
    return [
        *["add_virtual"] * bool(_bases(table)),
        *["alter_virtual", "alter_virtual", "drop_virtual"] * bool(table.user_virtual),
        *["add_numbered"] * (3 if not table.live else 0),
        *["drop_identity"] * bool(table.beside.sequences),
    ]


def _bases(table: SimTable) -> list[int]:
    """Return the columns from which a virtual column can be computed: short numbers and texts."""
    return [
        at
        for at, one in enumerate(table.columns)
        if not one.unused and (_is_short_number(one.type) or _is_short_text(one.type))
    ]


def is_wide(column: SimColumn) -> bool:
    """Return whether a column is one of the long columns of tables in blocks of 16 kB."""
    return column.nullable and column.type.lob is None and column.type.length >= WIDE_COLUMN


def random_row(rng: Random, table: SimTable) -> list[Cell | None]:
    """Draw a new row with the next key value."""
    left_out = set[int]()
    if table.block_size > DATABASE_BLOCK_SIZE and rng.random() >= FILLED:
        left_out = {at for at, one in enumerate(table.columns) if is_wide(one)}
    while True:
        cells: list[Cell | None] = [
            None
            if at in left_out or column.unused or (column.nullable and rng.random() < 0.2)
            else random_value(rng, table, at)
            for at, column in enumerate(table.columns)
        ]
        if rng.random() < 0.15:
            for at in range(rng.randrange(len(cells)), len(cells)):
                if table.columns[at].nullable:
                    cells[at] = None
        for at in table.key[:1]:
            cells[at] = number(Decimal(table.next_key))
        if stored_sizes([cell.raw if cell else None for cell in cells]) <= table.row_max:
            table.next_key += 1
            return cells


def _is_ambiguous(row: Row) -> bool:
    """Return whether a table without a key has another row with the same values, except perhaps
    LOBs.

    No statement changes such a row: Oracle logs no LOB column supplementally, so redo does not show
    which of the rows is meant, and the applier would stop the table (OLR-05009).
    """
    table = row.table
    if table.key or not table.lobs:
        return False
    seen = [
        (at, column.default)
        for at, column in enumerate(table.columns)
        if at not in table.lobs and not column.unused
    ]
    own = [row.cells[at] or default for at, default in seen]
    return any(
        other is not row and all((other.cells[at] or default) == mine
                                 for mine, (at, default) in zip(own, seen, strict=True))
        for other in table.live
    )  # fmt: skip


def _partition_column(rng: Random, columns: Sequence[SimColumn], only: Sequence[int]) -> int:
    """Draw the partition column; if `only` is not empty, the column must be one of these."""
    drawn = rng.choice([at for at, column in enumerate(columns) if column.type.lob is None])
    return only[0] if only else drawn


class RandomWorkload:
    """Random tables, and a random subset of the actions with random weights."""

    def __init__(
        self,
        rng: Random,
        logging: Sequence[Logging],
        owner: str = "SIM",
        *,
        lobs: LobUse = LobUse.NONE,
        ddl: DdlUse = DdlUse.NONE,
        unlogged: bool = False,
    ) -> None:
        self._rng = rng
        self._unlogged = unlogged
        self._lobs = lobs
        self._ddl_use = ddl
        self._logging = logging
        self._owner = owner
        self._weights: list[float] = [rng.choice((0, 1, 1, 2, 5)) for _ in ACTIONS]
        for action, rarity in RARITY.items():
            self._weights[ACTIONS.index(action)] *= rarity
        if ddl in ALTERING:
            self._weights[ACTIONS.index("ddl")] = DDL_WEIGHT
        if unlogged:
            self._weights[ACTIONS.index("load")] = UNLOGGED_WEIGHT
        self._weights[0] += 2
        self._weights[ACTIONS.index("commit")] += rng.choice((1, 4, 8))
        self._marks = dict[int, list[int]]()
        self._group: ParallelGroup | None = None
        self._sessions: dict[int, SimSession] = {}
        self._made = 0

    def tables(self) -> list[TableSpec]:
        """Draw one to six tables."""
        rng = self._rng
        return [self._table(number) for number in range(rng.randint(1, 6))]

    def _table(self, number: int) -> TableSpec:
        rng = self._rng
        keyed = rng.random() < 0.8
        width = rng.choice((1, 2, 5, 9, 14, 14, 60, 60, 290))
        columns = [
            SimColumn(f"C{at}", rng.choice(DECLARATIONS)(rng), nullable=rng.random() < 0.8)
            for at in range(1, width + 1)
        ]
        key = tuple[int, ...]()
        organised = keyed and width < 200 and rng.random() < 0.2
        if keyed:
            at = 0 if organised else rng.choice((0, 0, 0, rng.randrange(width)))
            columns[at] = SimColumn("ID", number_type(12, 0), nullable=False)
            key = (at,)
        elif all(column.nullable for column in columns):
            columns[0] = SimColumn("C1", columns[0].type, nullable=False)
        indexes = [(key, True)] if keyed and not organised else []
        if self._lobs is not LobUse.NONE and not organised and rng.random() < 0.4:
            for lob in range(1, rng.randint(1, 2) + 1):
                at = rng.randint(max((*key, 0)) + 1, len(columns))
                columns.insert(at, SimColumn(f"LOB{lob}", random_lob(rng)))
        in_wide_blocks = not organised and rng.random() < WIDE
        if in_wide_blocks:
            columns += [SimColumn(f"WIDE{at}", raw_type(WIDE_COLUMN)) for at in range(1, 13)]
        short = [at for at, column in enumerate(columns) if column.type.length <= 50]
        if short and not organised and rng.random() < 0.5:
            indexes.append(((rng.choice(short),), False))
        return TableSpec(
            *(self._owner, f"T{number}", tuple(columns), key),
            *(rng.choice(self._logging), tuple(indexes)),
            row_max=ROW_MAX
            if organised
            else LONG_ROW_MAX
            if in_wide_blocks
            else rng.choice(ROWS_MAX),
            row_dependencies=not organised and rng.random() < 0.25,
            # No random number decides this, so that seeds without such tables keep their databases.
            partitions=(3 if width in (5, 14) else 1) if organised else rng.choice((1, 1, 1, 3)),
            partition_column=_partition_column(rng, columns, key if organised else ()),
            index_organised=organised,
            block_size=WIDE_BLOCK_SIZE if in_wide_blocks else DATABASE_BLOCK_SIZE,
        )

    def step(self, session: SimSession, tables: Sequence[SimTable]) -> None:
        """Carry out one random action."""
        self._sessions[id(session)] = session
        if self._group is not None and session.instance.mode_rng.random() < PARALLEL_END:
            self.finish()
        if session.instance.chooses(SourceMode.PARALLEL_DML, PARALLEL):
            self._run_parallel(session, self._rng.choice(tables))
            return
        if session.instance.chooses(SourceMode.ONE_RECORD, ONE_RECORD):
            self._commit_in_one_record(session, self._rng.choice(tables))
            return
        action = self._rng.choices(ACTIONS, self._weights)[0]
        table = self._rng.choice(tables)
        if action in LOB_CHANGES:
            self._change_lob(action, session, table)
        else:
            getattr(self, "_" + action)(session, table)

    def _commit_in_one_record(self, session: SimSession, table: SimTable) -> None:
        """Make changes whose redo is in the same record as their commit; in half of the cases, in a
        new transaction.

        Private redo is used for tables without supplemental logging, and contains the whole
        transaction.
        """
        rng, own = self._rng, (self._insert, self._insert_many, self._update, self._delete)
        if table.lobs or table.block_size > DATABASE_BLOCK_SIZE:
            return
        private = table.logging is Logging.NONE
        if private or rng.random() < 0.5:
            session.commit()
        changes = [rng.choice(own) for _ in range(rng.randint(1, 3))]

        def work() -> None:
            for change in changes:
                change(session, table)

        session.commit_in_one_record(work, private=private)
        self._marks.pop(id(session), None)

    def finish(self) -> None:
        """End the parallel statement whose parent has committed, if there is one."""
        if self._group is not None:
            self._group.finish()

    def _run_parallel(self, session: SimSession, table: SimTable) -> None:
        rng, actions = self._rng, (self._insert, self._insert_many, self._update, self._delete)
        if self._group is None:
            instance = session.instance
            self._group = ParallelGroup(instance, session.container, instance.threads)

        def work(server: SimSession) -> None:
            for _ in range(rng.choice((0, 1, 2, 12))):
                if rng.random() < 0.1:
                    self._failed_statement(server, table)
                rng.choice(actions)(server, table)

        def before(coordinator: SimSession) -> None:
            self._insert(coordinator, table)

        def load(server: SimSession) -> None:
            rows = [random_row(rng, table) for _ in range(rng.choice((0, 1, 20)))]
            server.load_part(table, rows)

        alone, committed = rng.random() < 0.3, rng.random() < 0.8
        appends = not alone and rng.random() < 0.2 and session.is_free(table)
        self._group.run(
            *(rng.randint(1, 4), before if alone else None, load if appends else work),
            committed=committed,
        )

    def _own_row(self, table: SimTable) -> Row | None:
        row = self._rng.choice(table.live) if table.live else None
        return None if row is None or _is_ambiguous(row) else row

    def _insert(self, session: SimSession, table: SimTable) -> None:
        session.insert(table, random_row(self._rng, table))

    def _insert_many(self, session: SimSession, table: SimTable) -> None:
        count = self._rng.randint(1, 12)
        session.insert_many(table, [random_row(self._rng, table) for _ in range(count)])

    def _new_values(self, row: Row) -> dict[int, Cell | None]:
        rng, columns = self._rng, row.table.columns
        unused = {at for at, column in enumerate(columns) if column.unused}
        free = [at for at in range(len(columns)) if at not in row.table.key and at not in unused]
        if not free:
            return {}
        chosen = sorted(rng.sample(free, rng.randint(1, min(len(free), 6))))
        if rng.random() < 0.2:
            chosen = sorted({*chosen, *free[-2:]})
        return {at: self._new_value(row, at) for at in chosen}

    def _new_value(self, row: Row, at: int) -> Cell | None:
        column = row.table.columns[at]
        draw = self._rng.random()
        if draw < 0.1:
            return row.cells[at] or column.default
        if draw < 0.3 and column.nullable:
            return None
        return random_value(self._rng, row.table, at)

    def _update(self, session: SimSession, table: SimTable) -> None:
        if row := self._own_row(table):
            session.update(row, self._new_values(row))

    def _update_key(self, session: SimSession, table: SimTable) -> None:
        row = self._own_row(table)
        if row is not None and table.key:
            new = {table.key[0]: number(Decimal(table.next_key))}
            table.next_key += 1
            session.update(row, {**self._new_values(row), **new})

    def _delete(self, session: SimSession, table: SimTable) -> None:
        if row := self._own_row(table):
            session.delete(row)

    def _delete_many(self, session: SimSession, table: SimTable) -> None:
        row = self._own_row(table)
        if row is None:
            return
        taken = [
            other
            for other in row.block.rows
            if other is not None
            and not other.deleted
            and other.block is row.block
            and not other.chain
            and (other.owner is None or not other.owner.active)
            and not _is_ambiguous(other)
        ]
        session.delete_many(taken[: self._rng.randint(1, 8)])

    def _lock(self, session: SimSession, table: SimTable) -> None:
        if row := self._own_row(table):
            session.lock(row)

    def _failed_statement(self, session: SimSession, table: SimTable) -> None:
        mark = session.savepoint()
        for _ in range(self._rng.randint(1, 3)):
            self._rng.choice((self._insert, self._update, self._delete))(session, table)
        session.rollback_to(mark)

    def _lob_of(self, session: SimSession, table: SimTable) -> tuple[Row, int, bytes] | None:
        """Choose a LOB of which a part may be changed; return its row, column and content."""
        row = self._own_row(table)
        if row is None or not table.lobs:
            return None
        at = self._rng.choice(list(table.lobs))
        cell = row.cells[at]
        if not isinstance(cell, LobCell):
            return None
        if self._lobs is LobUse.WHOLE and not session.lobs.wrote_lob(row, cell):
            return None
        return row, at, cell.content

    def _piece(self, table: SimTable, at: int) -> bytes:
        made = table.columns[at].type.make(self._rng)
        return made.content[: self._rng.choice((2, 100, 5000))]

    def _fill_lob(self, session: SimSession, table: SimTable) -> None:
        """Insert a row with an empty LOB, and then write the LOB."""
        if not table.lobs:
            return
        cells = random_row(self._rng, table)
        at = self._rng.choice(list(table.lobs))
        storage = table.lobs[at].storage
        cells[at] = LobDraft.of(storage, b"")
        row = session.insert(table, cells)
        if row is not None:
            session.lobs.write_lob(row, at, 0, table.columns[at].type.make(self._rng).content)

    def _change_lob(self, action: str, session: SimSession, table: SimTable) -> None:
        found = self._lob_of(session, table)
        if found is None:
            return
        row, at, content = found
        end, offset = len(content), len(content)
        if action != "append_lob":
            offset = self._rng.randrange(end // 2 + 1) * 2
        if action == "trim_lob":
            session.lobs.trim_lob(row, at, offset)
        elif action == "erase_lob":
            session.lobs.erase_lob(row, at, offset, (end - offset) // 2 * 2)
        else:
            session.lobs.write_lob(row, at, offset, self._piece(table, at))

    def _savepoint(self, session: SimSession, _: SimTable) -> None:
        self._marks.setdefault(id(session), []).append(session.savepoint())

    def _rollback_to(self, session: SimSession, _: SimTable) -> None:
        marks = self._marks.get(id(session))
        if marks:
            session.rollback_to(marks.pop())

    def _begin_empty(self, session: SimSession, _: SimTable) -> None:
        session.begin_empty()

    def _commit(self, session: SimSession, _: SimTable) -> None:
        session.commit()
        self._marks.pop(id(session), None)

    def _rollback(self, session: SimSession, _: SimTable) -> None:
        session.rollback()
        self._marks.pop(id(session), None)

    # --- actions that end the transaction ---

    def _load(self, session: SimSession, table: SimTable) -> None:
        if self._unlogged:
            own = session.container
            modes = session.instance.modes
            loaded = [one for one in own.tables if can_be_loaded(one, modes)]
            free = [one for one in loaded if not own.is_locked(one)]
            table = self._rng.choice(free or [table])
        count = self._rng.choice((1, 5, 60))
        rows = [random_row(self._rng, table) for _ in range(count)]
        committed = self._rng.random() < 0.85
        logged = not self._unlogged or self._rng.random() < LOGGED_LOADS
        session.load(table, rows, committed=committed, logged=logged)
        self._marks.pop(id(session), None)

    def _alter_column(self, statement: str, session: SimSession, table: SimTable) -> None:
        used = [at for at, column in enumerate(table.columns) if not column.unused]
        at = self._rng.choice(used)
        column, is_free = table.columns[at], at not in table.key and at != table.partition_column
        if statement == "rename_column":
            if table.index_organised and at in table.key:
                return  # the truth identifies such rows by key columns
            name = f"R{self._rng.randrange(1_000_000)}"
            session.ddl.rename_column(table, at, name)
        elif statement == "set_nullable":
            if is_free and at not in table.beside.sequences:
                session.ddl.set_nullable(table, at, nullable=not column.nullable)
        elif statement == "modify_column":
            wider = _wider(column.type)
            if self._ddl_use in ALTERING and column.type.type_code == DATE:
                wider = timestamp_type(self._rng.choice((0, 3, 6, 9)))
            if wider is not None:
                session.ddl.modify_column(table, at, wider)
        elif is_free and at not in table.lobs and not table.index_organised and len(used) > 2:
            # A draw of its own, so that the other draws of a seed stay the same.
            draw = Random(session.instance.scn).random()  # noqa: S311 - reproducible, not secret
            if draw < 0.5 or not session.ddl.drop_column(table, at):
                session.ddl.set_unused(table, at)
            if draw < 0.1:
                session.ddl.drop_unused_columns(table)

    def _compute_column(self, statement: str, session: SimSession, table: SimTable) -> None:
        rng, computed, virtual = self._rng, session.computed, table.user_virtual
        name = f"V{rng.randrange(1_000_000)}"
        if statement == "add_virtual":
            if len(table.columns) + len(virtual) < LEAF_COLUMNS_MAX:
                computed.add_virtual(table, self._virtual_column(table, name))
        elif statement == "add_numbered":
            if len(table.columns) < LEAF_COLUMNS_MAX:
                computed.add_numbered(table, name, identity=rng.random() < 0.7)
        elif statement == "drop_identity":
            computed.drop_identity(table, min(table.beside.sequences))
        elif statement == "drop_virtual":
            intcol = rng.choice(sorted(virtual))
            computed.drop_virtual(table, intcol, renumbers=rng.random() < 0.5)
        else:
            intcol = rng.choice(sorted(virtual))
            old = virtual[intcol]
            forms = [one for one in VIRTUAL_TYPES[old.type.type_code] if one != old.form]
            new = replace(old, name=name), replace(old, form=rng.choice(forms))
            computed.alter_virtual(table, intcol, rng.choice(new))

    def _virtual_column(self, table: SimTable, name: str) -> SimVirtual:
        """Draw a virtual column that is computed from a number or a text."""
        at = self._rng.choice(_bases(table))
        kind = table.columns[at].type
        form = self._rng.choice(VIRTUAL_TYPES[kind.type_code])
        kind = number_type() if kind.type_code == NUMBER else replace(kind, length=VARCHAR2_MAX)
        return SimVirtual(name, kind, at, form)

    def _modify_type(self, session: SimSession, table: SimTable) -> None:
        """MODIFY of a column without values to another type."""
        free = [
            at
            for at, one in enumerate(table.columns)
            if not one.unused
            and at not in table.key
            and at != table.partition_column
            and one.type.type_code == NUMBER
            and one.default is None
            and not table.is_computed_from(at)
            and all(row.cells[at] is None for row in table.live)
        ]
        if free:
            session.ddl.modify_column(table, self._rng.choice(free), varchar(50), stops=True)

    def _change_beside(self, statement: str, session: SimSession, table: SimTable) -> None:
        rng, ddl, beside = self._rng, session.ddl, table.beside
        short = [
            at
            for at, column in enumerate(table.columns)
            if not column.unused and column.type.lob is None and column.type.length <= 50
        ]
        if statement == "comment":
            text = rng.choice(("", "it's", "ä", f"number {rng.randrange(100)}"))
            place = rng.choice([None, *short])
            ddl.comment(table, place, text)
        elif statement == "drop_index" and beside.indexes:
            ddl.drop_index(table, rng.choice(list(beside.indexes)))
        elif statement == "switch_check" and beside.checks:
            ddl.switch_check(table, rng.choice(list(beside.checks)))
        elif statement == "drop_expression_index":
            hidden = sorted(table.virtual.keys() - table.user_virtual.keys())
            if hidden:
                intcol, renumbers = rng.choice(hidden), rng.random() < 0.5
                session.computed.drop_expression_index(table, intcol, renumbers=renumbers)
        elif statement == "create_expression_index":
            bases = [at for at in _bases(table) if at in short and not table.is_computed_from(at)]
            if bases:
                session.computed.create_expression_index(table, rng.choice(bases))
        elif statement in ("create_index", "add_check"):
            taken = {*beside.indexes.values(), *table.key}
            taken |= {at for at, _ in beside.checks.values()}
            free = [at for at in short if at not in taken]
            if free:
                getattr(ddl, statement)(table, rng.choice(free))

    def _create_table(self, session: SimSession) -> None:
        """Create a table without rows, which all sessions then use."""
        known = session.container.tables
        spec = replace(self._table(len(known)), row_dependencies=False)
        table = place_table(len(known), spec, session.instance.scn)
        if session.ddl.create_table(table, f"CREATE TABLE {table.name} (…)"):
            known.append(table)

    def _replace_table(self, session: SimSession, table: SimTable) -> None:
        """Drop a table, and create another one with its name and random columns."""
        known, dropped = session.container.tables, session.container.recycle_bin
        # Draws of its own, so that the other draws of a seed stay the same.
        rng = Random(session.instance.scn)  # noqa: S311 - reproducible, not secret
        if dropped and rng.random() < 0.3:
            session.ddl.purge_table(rng.choice(dropped))
        if not session.ddl.drop_table(table, purge=rng.random() < 0.4):
            return
        spec = replace(self._table(0), name=table.name, row_dependencies=False)
        number, self._made = TABLES_MAX + self._made, self._made + 1
        new = place_table(number, spec, session.instance.scn)
        made = session.ddl.create_again(new)
        assert made
        known[known.index(table)] = new

    def _rename_table(self, session: SimSession, table: SimTable) -> None:
        """Rename a table. After the rename, do nothing more, or exchange the names of the table and
        another one, or create a table with the former name.
        """
        rng, known, ddl = self._rng, session.container.tables, session.ddl
        number, self._made = TABLES_MAX + self._made, self._made + 1
        name, free, other = table.name, f"N{self._made}", rng.choice(known)
        after = rng.choice(("nothing", "swap", "create"))
        # A draw of its own, so that the other draws of a seed stay the same.
        at_once = Random(session.instance.scn).random() < 0.5  # noqa: S311 - reproducible
        if after == "swap" and other is not table and at_once:
            ddl.exchange_names(table, other)
            return
        if not ddl.rename_table(table, free):
            return
        if after == "swap" and other is not table:
            freed = other.name
            if ddl.rename_table(other, name):
                ddl.rename_table(table, freed)
        elif after == "create" and len(known) < TABLES_MAX:
            spec = replace(self._table(0), name=name, row_dependencies=False)
            new = place_table(number, spec, session.instance.scn)
            if ddl.create_again(new):
                known.append(new)

    def _new_column(self, table: SimTable, name: str, *, filled: bool) -> SimColumn:
        has_lobs = self._lobs is not LobUse.NONE and not table.index_organised
        if has_lobs and not filled and self._rng.random() < 0.2:
            return SimColumn(name, random_lob(self._rng))
        return random_column(self._rng, name, filled=filled)

    def _altered_table(self, session: SimSession, table: SimTable) -> SimTable:
        """Choose a table for DDL: one that is not locked, or `table` when its transactions end."""
        own = session.container
        free = [one for one in own.tables if not own.is_locked(one)]
        if free:
            return self._rng.choice(free)
        if self._rng.random() < WAITING:
            for other in self._sessions.values():
                locked = other.transaction.objects if other.transaction else set[int]()
                if other.container is own and not table.objects.isdisjoint(locked):
                    other.commit()
                    self._marks.pop(id(other), None)
        return table

    def _ddl(self, session: SimSession, table: SimTable) -> None:
        if self._ddl_use is DdlUse.NONE:
            return
        if self._ddl_use in ALTERING:
            table = self._altered_table(session, table)
        statement = self._rng.choice(self._statements(session, table))
        if statement == "create_table":
            self._create_table(session)
        elif statement == "drop_table":
            self._replace_table(session, table)
        elif statement == "rename_table":
            self._rename_table(session, table)
        elif statement == "modify_type":
            self._modify_type(session, table)
        elif statement in ("add_column", "add_filled_column"):
            if len(table.columns) < (LEAF_COLUMNS_MAX if table.index_organised else COLUMNS_MAX):
                taken = {one.name for one in table.columns}
                numbers = count(len(table.columns))  # a removed column leaves a lower number
                name = next(name for at in numbers if (name := f"X{at}") not in taken)
                filled = statement == "add_filled_column"
                session.ddl.add_column(table, self._new_column(table, name, filled=filled))
        elif statement in COMPUTED_STATEMENTS:
            self._compute_column(statement, session, table)
        elif statement in BESIDE_STATEMENTS:
            self._change_beside(statement, session, table)
        elif statement in COLUMN_STATEMENTS:
            self._alter_column(statement, session, table)
        elif statement in ("truncate", "add_partition"):
            getattr(session.ddl, statement)(table)
        else:
            getattr(session.ddl, statement)(table, self._rng.randrange(len(table.segments)))
        self._marks.pop(id(session), None)

    def _statements(self, session: SimSession, table: SimTable) -> list[str]:
        """Return the DDL statements to choose from."""
        use, parts = self._ddl_use, table.has_partitions and not table.lobs
        if use is DdlUse.STOPPING and self._rng.random() < STOPS:
            return ["modify_type", "add_numbered", *PARTITION_STATEMENTS * (2 * parts)]
        statements = [
            *("add_column", "truncate"),
            *["add_partition"] * parts,
            *["split_partition", "merge_partitions"] * (parts and table.is_plain),
        ]
        if use is not DdlUse.FOLLOWED:
            statements += ["add_filled_column", *COLUMN_STATEMENTS]
        if use in ALTERING:
            statements += ["comment", *_computed_statements(table)]
        if use in ALTERING and use is not DdlUse.TABLES:
            statements += ["set_unused"] * 2  # with TABLES, re-created tables lack columns, too
        statements += BESIDE_STATEMENTS if use is DdlUse.BESIDE else ()
        if use is DdlUse.ANY:
            statements += PARTITION_STATEMENTS * parts
        if use is DdlUse.TABLES and len(session.container.tables) < TABLES_MAX:
            statements += ["create_table"] * 2  # much redo: a row of COL$ per column
        if use is DdlUse.TABLES:
            # If rows are not in redo, their table stops, and so would the table that gets its name.
            statements += ["drop_table", *["rename_table"] * (not self._unlogged)] * 2
        return statements


SIZE_MAX: Final = 128 * 1024
_WEIGHTS: Final = {
    "insert": 6,
    "fill_lob": 3,
    "update": 5,
    "write_lob": 1,
    "append_lob": 2,
    "trim_lob": 1,
    "delete": 1,
    "commit": 6,
    "rollback": 1,
}


class LobWorkload(RandomWorkload):
    """Inserts, updates and DBMS_LOB operations on two tables; values of up to 128 KiB."""

    def __init__(
        self, rng: Random, logging: Sequence[Logging], owner: str = "DOCS", *, lobs: LobUse
    ) -> None:
        super().__init__(rng, logging, owner, lobs=lobs)
        self._weights = [_WEIGHTS.get(action, 0) / ACTIONS.count(action) for action in ACTIONS]

    def tables(self) -> list[TableSpec]:
        """Return the tables DOCUMENTS, with SECUREFILE LOBs, and ARCHIVE, with BASICFILE LOBs."""
        return [
            self._of("DOCUMENTS", SimColumn("BODY", _lob(CLOB)), SimColumn("IMAGE", _lob(BLOB))),
            self._of(
                "ARCHIVE",
                SimColumn("CONTENT", _lob(BLOB, securefile=False)),
                SimColumn("LABEL", _lob(CLOB, securefile=False, size_max=4000)),
            ),
        ]

    def _of(self, name: str, *lobs: SimColumn) -> TableSpec:
        columns = (
            SimColumn("ID", number_type(12, 0), nullable=False),
            SimColumn("TITLE", varchar(100)),
            SimColumn("CHANGED", date_type()),
            *lobs,
        )
        return TableSpec(self._owner, name, columns, (0,), self._logging[0], (((0,), True),))


def _lob(kind: int, *, securefile: bool = True, size_max: int = SIZE_MAX) -> ColumnType:
    return lob_type(LobStorage(kind, securefile), size_max)
