"""DDL of a session: changes of SYS tables in a separate transaction, with the marker of the
statement.

A DDL statement first commits the session's open transaction. A DDL statement does not wait for
locks: it fails if an open transaction has changed the table. At its end, a DDL statement commits.
Facts: dictionary §10, redo-format §8.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.sys_tables import HIDDEN, UNUSED
from olr_pg.simulator.fields.cells import BLOB, basic_in_row
from olr_pg.simulator.model.tables import SimSegment
from olr_pg.simulator.model.transactions import (
    ADD_COLUMN,
    BESIDE,
    CREATE_AGAIN,
    DROP_COLUMN,
    DROP_UNUSED,
    EXCHANGE,
    EXCHANGE_NAMES,
    MODIFY_COLUMN,
    NOT_NULL,
    PARTITION,
    RENAME_COLUMN,
    RENAME_TABLE,
    TRUNCATE,
    DdlEffect,
)
from olr_pg.simulator.model.transactions import DROP_TABLE as DROPPED
from olr_pg.simulator.sessions.placement import added_lob, new_lob_segment
from olr_pg.simulator.sessions.row_statements import can_be_loaded
from olr_pg.simulator.sessions.sys_dictionary import (
    ADDED_WITH_DEFAULT,
    CHECK_CONSTRAINT,
    recycled_name,
    told_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.simulator.model.lobs import SimLob, SimLobSegment
    from olr_pg.simulator.model.tables import ColumnType, SimColumn, SimTable
    from olr_pg.simulator.sessions.row_statements import DirectLoads, RowStatements
    from olr_pg.simulator.sessions.sys_dictionary import SysDictionary, SysValue
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter

CREATE_INDEX: Final = 9
DROP_INDEX: Final = 10
COMMENT: Final = 29
CREATE_TABLE: Final = 1
DROP_TABLE: Final = 12
ALTER_TABLE: Final = 15
TRUNCATE_TABLE: Final = 85
PURGE_TABLE: Final = 200
FLASHBACK_TABLE: Final = 205
"""Command codes of V$SQLCOMMAND."""

FIRST_NEW_BLOCK: Final = 2_000_000
SEGMENT_BLOCKS: Final = 1_000


class _Emptied(NamedTuple):
    """The former contents of a partition: its DATAOBJ#, and the keys of rows without ROWID."""

    segments: frozenset[int] = frozenset()
    keys: frozenset[str] = frozenset()

    @classmethod
    def of(cls, table: SimTable, segment: SimSegment) -> _Emptied:
        rows = table.live if table.index_organised else ()
        keys = (table.key_text(row.cells) for row in rows if row.block.obj == segment.obj)
        return cls(frozenset((segment.dataobj,)), frozenset(keys))


def _names(table: SimTable) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns if not column.unused)


def _unused(table: SimTable) -> set[int]:
    return {place for place, column in enumerate(table.columns) if column.unused}


def _is_removable(table: SimTable, place: int) -> bool:
    """Return whether a column can be removed from the rows of a table."""
    used = {*table.key, table.partition_column, *(at for at, _ in table.beside.checks.values())}
    used.update(at for index in table.indexes for at in index.columns)
    is_free = place not in used and not table.is_computed_from(place)
    return table.is_plain and is_free and not any(row.chain for row in table.live)


def _check_condition(table: SimTable, place: int) -> str:
    name = table.columns[place].name
    return f'"{name}" IS NULL OR "{name}" IS NOT NULL'


def _is_fixed(effect: DdlEffect, place: int) -> bool:
    """Return whether Oracle refuses to alter a column because of the expressions that use it.

    If the expression of a virtual column uses this column, DDL can only set or remove its NOT NULL
    (ORA-54031, 54032, 54033). A column of a function-based index can also be renamed.
    """
    if effect.operation == NOT_NULL:
        return False
    users = effect.table.virtual.values()
    if effect.operation == RENAME_COLUMN:
        users = effect.table.user_virtual.values()
    return any(one.base == place for one in users)


class DdlStatements:
    """The DDL statements of a session.

    Every method returns whether the statement was carried out. The session does not split, merge or
    exchange partitions of tables with LOBs; other DDL on their partitions requires that the
    partitions have names (`SimSegment.name`). The simulator does not split or merge partitions of
    index-organised tables, because we do not know how Oracle logs the new leaf blocks. The
    simulator adds no column with a default to tables with LOBs and to index-organised tables,
    because Oracle would fill the column row by row.

    DDL on partitions with names fails only if an open transaction has changed these partitions, as
    in Oracle. Other DDL on partitions fails if an open transaction has changed any part of the
    table.

    Args:
        dictionary: the SYS tables; None if their changes are not modelled. Without SYS tables, no
            statement is carried out.
    """

    def __init__(
        self,
        tx: TransactionWriter,
        rows: RowStatements,
        loads: DirectLoads,
        dictionary: SysDictionary | None,
    ) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._rows, self._loads, self._dictionary = rows, loads, dictionary

    def create_table(self, table: SimTable, statement: str) -> bool:
        """CREATE TABLE, without rows."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        dictionary.create_table(self._rows, table)
        self.end(table, CREATE_TABLE, statement)
        return True

    def drop_table(self, table: SimTable, *, purge: bool) -> bool:
        """DROP TABLE: its rows and its definition are removed, or they are in the recycle bin."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        emptied = frozenset(segment.dataobj for segment in table.segments)
        for segment in table.segments:
            self._empty(table, segment)
        if purge:
            dictionary.drop_table(self._rows, table)
            words = f"DROP TABLE {table.name} PURGE"
        else:
            # With the name in the recycle bin, as LogMiner shows the statement.
            words = f'DROP TABLE {table.name} AS "{dictionary.recycle(self._rows, table)}"'
            self._tx.container.recycle_bin.append(table)
        effect = DdlEffect(DROPPED, table, emptied, columns=_names(table))
        self.end(table, DROP_TABLE, words, effect)
        return True

    def purge_table(self, table: SimTable) -> bool:
        """PURGE TABLE, of a table in the recycle bin."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        dictionary.drop_table(self._rows, table)
        self._tx.container.recycle_bin.remove(table)
        self.end(table, PURGE_TABLE, f'PURGE TABLE "{recycled_name(table.obj)}"')
        return True

    def flash_back(self, table: SimTable) -> bool:
        """FLASHBACK TABLE … TO BEFORE DROP. Indexes and constraints keep the names that they have
        in the recycle bin. The caller restores the rows.
        """
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        dictionary.restore(self._rows, table)
        self._tx.container.recycle_bin.remove(table)
        self.end(table, FLASHBACK_TABLE, f"FLASHBACK TABLE {table.name} TO BEFORE DROP")
        return True

    def create_again(self, table: SimTable) -> bool:
        """CREATE TABLE under the name of a dropped table, without rows."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        dictionary.create_table(self._rows, table)
        effect = DdlEffect(CREATE_AGAIN, table, columns=_names(table))
        self.end(table, CREATE_TABLE, f"CREATE TABLE {table.name} (…)", effect)
        return True

    def add_column(self, table: SimTable, column: SimColumn) -> bool:
        """ALTER TABLE … ADD; existing rows do not store the default of the new column."""
        if column.default is not None and not table.is_plain:
            return False
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        place, storage = len(table.columns), column.type.lob
        table.columns = (*table.columns, column)
        words = ""
        if column.default is not None:
            locator = basic_in_row(BLOB, self._tx.container.take_lob_number(), column.default.raw)
            dictionary.insert(
                *(self._rows, "ECOL$"),
                tab_obj=table.obj,
                col_num=table.intcol(place),
                default=locator,
            )
            words = " DEFAULT … NOT NULL"
        dictionary.add_column(self._rows, table, place, ADDED_WITH_DEFAULT if words else 0)
        if storage is not None:
            table.lobs[place] = added_lob(storage, table, self._tx.container, self._tx.instance.scn)
            dictionary.add_lob(self._rows, table, place)
        for row in table.live:
            row.cells.append(None)
        self.end(
            *(table, ALTER_TABLE, f"ALTER TABLE {table.name} ADD ({column.name} …{words})"),
            DdlEffect(ADD_COLUMN, table, column=place),
        )
        return True

    def rename_column(self, table: SimTable, place: int, name: str) -> bool:
        """ALTER TABLE … RENAME COLUMN; here and below, `place` is the column, from 0."""
        old = table.columns[place]
        effect = DdlEffect(RENAME_COLUMN, table, names=(old.name, name))
        words = f"RENAME COLUMN {old.name} TO {name}"
        return self._alter_column(effect, place, replace(old, name=name), words, {"name": name})

    def set_unused(self, table: SimTable, place: int) -> bool:
        """ALTER TABLE … SET UNUSED; the rows are not changed."""
        if any(place == at for at, _ in table.beside.checks.values()):
            return False  # Oracle would require CASCADE CONSTRAINTS.
        old = table.columns[place]
        hidden = f"SYS_C{place + 1:05d}_{table.obj:08d}$"
        new = replace(old, name=hidden, nullable=True, unused=True, sequence="")
        told: dict[str, SysValue] = {
            "name": hidden, "col": 0, "null": 0, "property": HIDDEN | UNUSED
        }  # fmt: skip
        if old.sequence:
            told["default_text"] = None
        effect = DdlEffect(DROP_COLUMN, table, names=(old.name, ""))
        return self._alter_column(effect, place, new, f"SET UNUSED ({old.name})", told)

    def drop_column(self, table: SimTable, place: int) -> bool:
        """ALTER TABLE … DROP COLUMN. The statement also removes all unused columns from the rows.

        The redo of the rows (11.14) is not modelled: it is not known, and a decoder ignores it.
        """
        old = table.columns[place]
        return self._remove_columns(
            *(table, {place, *_unused(table)}, f"DROP COLUMN {old.name}"),
            DdlEffect(DROP_COLUMN, table, names=(old.name, "")),
        )

    def drop_unused_columns(self, table: SimTable) -> bool:
        """ALTER TABLE … DROP UNUSED COLUMNS."""
        words = "DROP UNUSED COLUMNS"
        return self._remove_columns(table, _unused(table), words, DdlEffect(DROP_UNUSED, table))

    def _remove_columns(
        self, table: SimTable, places: set[int], words: str, effect: DdlEffect
    ) -> bool:
        may = places and all(_is_removable(table, place) for place in places)
        dictionary = self.begin(table) if may else None
        if dictionary is None:
            return False
        table.former_columns.append((self._tx.instance.scn, table.columns))
        for place in sorted(places, reverse=True):
            self._drop_with_column(dictionary, table, place)
            dictionary.remove_column(self._rows, table, place)
            table.remove_column(place)
        effect = replace(effect, removed=tuple(sorted(places)))
        self.end(table, ALTER_TABLE, f"ALTER TABLE {table.name} {words}", effect)
        return True

    def modify_column(
        self, table: SimTable, place: int, kind: ColumnType, *, stops: bool = False
    ) -> bool:
        """ALTER TABLE … MODIFY to a type that accepts every existing value unchanged.

        If `stops`, the target cannot follow the statement: in this case, the new type may be any
        type, but the column must contain only NULLs.
        """
        old = table.columns[place]
        told = told_type(kind)
        if not stops:
            del told["charset_form"], told["charset_id"]
        effect = DdlEffect(MODIFY_COLUMN, table, names=(old.name, old.name), stops=stops)
        words = f"MODIFY ({old.name} …)"
        return self._alter_column(effect, place, replace(old, type=kind), words, told)

    def set_nullable(self, table: SimTable, place: int, *, nullable: bool) -> bool:
        """ALTER TABLE … MODIFY (… NULL), or NOT NULL if no row has a NULL."""
        old = table.columns[place]
        if not nullable and not old.default and any(row.cells[place] is None for row in table.live):
            return False
        words = f"MODIFY ({old.name} {'' if nullable else 'NOT '}NULL)"
        effect = DdlEffect(NOT_NULL, table, names=(old.name, old.name))
        new = replace(old, nullable=nullable)
        return self._alter_column(effect, place, new, words, {"null": 0 if nullable else 1})

    def _alter_column(
        self,
        effect: DdlEffect,
        place: int,
        column: SimColumn,
        words: str,
        values: Mapping[str, SysValue],
    ) -> bool:
        table = effect.table
        dictionary = None if _is_fixed(effect, place) else self.begin(table)
        if dictionary is None:
            return False
        dictionary.alter_column(self._rows, table, place, **values)
        if column.unused:
            self._drop_with_column(dictionary, table, place)
        table.former_columns.append((self._tx.instance.scn, table.columns))
        table.columns = (*table.columns[:place], column, *table.columns[place + 1 :])
        if effect.operation == RENAME_COLUMN:
            self._rewrite_texts(dictionary, table, place)
        self.end(table, ALTER_TABLE, f"ALTER TABLE {table.name} {words}", effect)
        return True

    def _rewrite_texts(self, dictionary: SysDictionary, table: SimTable, place: int) -> None:
        """Write the new name of a column into the conditions of checks and the expressions of
        function-based indexes, which stay valid when Oracle renames a column (dictionary §10).
        """
        for con, (at, _) in table.beside.checks.items():
            if at == place:
                condition = _check_condition(table, place)
                dictionary.update(self._rows, "CDEF$", (con,), condition=condition)
        for intcol, one in table.virtual.items():
            if one.base == place:
                key = table.obj, intcol
                dictionary.update(self._rows, "COL$", key, default_text=one.expression(table))

    def comment(self, table: SimTable, place: int | None, text: str) -> bool:
        """COMMENT ON the table, or on a column; an empty text removes the comment."""
        before = table.beside.comments.get(place, "")
        dictionary = self.begin(table) if text != before else None
        if dictionary is None:
            return False
        key: tuple[SysValue, ...] = (table.obj, None if place is None else table.intcol(place))
        if not before:
            dictionary.insert(self._rows, "COM$", obj=key[0], col=key[1], text=text)
        elif text:
            dictionary.update(self._rows, "COM$", key, text=text)
        else:
            dictionary.delete(self._rows, "COM$", key)
        table.beside.comments[place] = text
        self.end(table, COMMENT, f"COMMENT ON … IS '{text}'", DdlEffect(BESIDE, table))
        return True

    def create_index(self, table: SimTable, place: int) -> bool:
        """CREATE INDEX on a column; the index itself has no redo."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        obj = self._tx.container.take_object()
        name = table.beside.name_index(obj)
        dictionary.create_index(self._rows, table, obj, table.intcol(place))
        table.beside.indexes[obj] = place
        words = f"CREATE INDEX {name} ON {table.name} ({table.columns[place].name})"
        self.end(table, CREATE_INDEX, words, DdlEffect(BESIDE, table))
        return True

    def drop_index(self, table: SimTable, obj: int) -> bool:
        """DROP INDEX, of an index that `create_index` created."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        dictionary.drop_index(self._rows, obj)
        del table.beside.indexes[obj]
        name = table.beside.free_index(obj)
        self.end(table, DROP_INDEX, f"DROP INDEX {name}", DdlEffect(BESIDE, table))
        return True

    def add_check(self, table: SimTable, place: int) -> bool:
        """ALTER TABLE … ADD CONSTRAINT … CHECK, with a condition that every row fulfils."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        con, condition = self._tx.container.take_object(), _check_condition(table, place)
        dictionary.add_constraint(
            self._rows, table, con, f"CK{con}", CHECK_CONSTRAINT, condition=condition
        )
        intcol = table.intcol(place)
        dictionary.insert(self._rows, "CCOL$", con=con, obj=table.obj, int_col=intcol)
        table.beside.checks[con] = place, True
        words = f"ALTER TABLE {table.name} ADD CONSTRAINT CK{con} CHECK ({condition})"
        self.end(table, ALTER_TABLE, words, DdlEffect(BESIDE, table))
        return True

    def switch_check(self, table: SimTable, con: int) -> bool:
        """ALTER TABLE … DISABLE CONSTRAINT, or ENABLE, of a constraint that `add_check` created."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        place, is_enabled = table.beside.checks[con]
        dictionary.update(self._rows, "CDEF$", (con,), enabled=None if is_enabled else 1)
        table.beside.checks[con] = place, not is_enabled
        words = f"ALTER TABLE {table.name} {'DIS' if is_enabled else 'EN'}ABLE CONSTRAINT CK{con}"
        self.end(table, ALTER_TABLE, words, DdlEffect(BESIDE, table))
        return True

    def _drop_with_column(self, dictionary: SysDictionary, table: SimTable, place: int) -> None:
        """Drop the indexes, the comment and the identity sequence of a column that is removed."""
        for obj in [obj for obj, at in table.beside.indexes.items() if at == place]:
            dictionary.drop_index(self._rows, obj)
            del table.beside.indexes[obj]
            table.beside.free_index(obj)
        if table.beside.comments.pop(place, ""):
            dictionary.delete(self._rows, "COM$", (table.obj, table.intcol(place)))
        if place in table.beside.sequences:
            dictionary.delete(self._rows, "OBJ$", (table.beside.sequences.pop(place),))

    def truncate(self, table: SimTable, *, logged: bool = True) -> bool:
        """TRUNCATE TABLE: every segment is replaced by an empty one.

        If `logged`, redo contains the statement's text, as with supplemental logging.
        """
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        emptied = frozenset(segment.dataobj for segment in table.segments)
        for segment in table.segments:
            self._replace_segment(dictionary, table, segment)
        for lob in table.lobs.values():
            self._empty_lob(dictionary, lob)
        statement = f"TRUNCATE TABLE {table.name}" if logged else ""
        self.end(table, TRUNCATE_TABLE, statement, DdlEffect(TRUNCATE, table, emptied))
        return True

    def truncate_partition(self, table: SimTable, number: int) -> bool:
        """ALTER TABLE … TRUNCATE PARTITION; `number` is the index in `table.segments`."""
        name = table.segments[number].name or "P"
        return self._empty_partition(table, number, f"TRUNCATE PARTITION {name}")

    def exchange_partition(self, table: SimTable, number: int) -> bool:
        """ALTER TABLE … EXCHANGE PARTITION with an empty table that is not replicated."""
        return self._empty_partition(table, number, "EXCHANGE PARTITION P WITH TABLE X")

    def exchange_with(self, table: SimTable, number: int, other: SimTable) -> bool:
        """ALTER TABLE … EXCHANGE PARTITION … WITH TABLE: exchange their segments, including the
        rows.
        """
        may = table.is_plain and other.is_plain and not other.has_partitions
        if not may or not table.has_partitions or self._tx.container.is_locked(other):
            return False
        part, whole = table.segments[number], other.segments[0]
        dictionary = self._begin_with(table, [part])
        if dictionary is None:
            return False
        moved = [(one, of, to) for one, of, to in ((part, table, other), (whole, other, table))]
        rows = [[row for row in of.live if row.block.obj == one.obj] for one, of, _ in moved]
        part.exchange(whole)
        other.dataobj = whole.dataobj
        for own, (_, of, to) in zip(rows, moved, strict=True):
            for row in own:
                of.drop_live(row)
                row.table = to
                to.add_live(row)
        for one, of in ((part, table), (whole, other)):
            kept = [block for block in of.blocks if block.obj in of.objects - {one.obj}]
            of.blocks = [*kept, *one.blocks]
        for one in (part, whole):
            for block in one.blocks:
                block.obj = one.obj
            dictionary.replace_segment(self._rows, one.obj, one.dataobj)
        effect = DdlEffect(EXCHANGE, table, other=other, exchanged=(part.dataobj, whole.dataobj))
        words = f"EXCHANGE PARTITION {part.name or 'P'} WITH TABLE {other.name}"
        self.end(table, ALTER_TABLE, f"ALTER TABLE {table.name} {words}", effect)
        return True

    def add_partition(self, table: SimTable) -> bool:
        """ALTER TABLE … ADD PARTITION for a range without rows, if there is one."""
        taken = {table.range_of(row.cells) for row in table.live}
        free = [at for at in range(len(table.routes)) if at not in taken]
        shared = [at for at in free if table.routes.count(table.routes[at]) > 1]
        if not shared or table.lobs or not table.has_partitions:
            return False
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        table.routes[shared[0]] = self._new_partition(dictionary, table)
        self._end_partition_ddl(table, "ADD PARTITION P VALUES LESS THAN (9)")
        return True

    def append_partition(
        self, table: SimTable, name: str = "", values: str = "VALUES LESS THAN (9)"
    ) -> bool:
        """ALTER TABLE … ADD PARTITION after the last one, for a table with `bounds`."""
        dictionary = self.begin(table) if name or not table.lobs else None
        if dictionary is None:
            return False
        table.routes.append(self._new_partition(dictionary, table, name))
        self._end_partition_ddl(table, f"ADD PARTITION {name or 'P'} {values}")
        return True

    def rename_partition(self, table: SimTable, number: int, name: str) -> bool:
        """ALTER TABLE … RENAME PARTITION, of a partition with a name."""
        segment = table.segments[number]
        dictionary = self._begin_with(table, [segment])
        if dictionary is None:
            return False
        old, segment.name = segment.name, name
        dictionary.rename_partition(self._rows, segment)
        self._end_partition_ddl(table, f"RENAME PARTITION {old} TO {name}")
        return True

    def modify_values(self, table: SimTable, number: int, words: str) -> bool:
        """ALTER TABLE … MODIFY PARTITION … ADD VALUES or DROP VALUES; no row moves."""
        segment = table.segments[number]
        dictionary = self._begin_with(table, [segment])
        if dictionary is None:
            return False
        dictionary.touch_partition(self._rows, segment)
        self._end_partition_ddl(table, f"MODIFY PARTITION {segment.name} {words}")
        return True

    def rehash(self, table: SimTable, old: SimSegment, name: str = "") -> bool:
        """Execute ALTER TABLE … ADD PARTITION `name` for a hash partition, which receives rows of
        `old`. Without a name, execute COALESCE PARTITION, which moves the rows of `old`, the last
        partition, to the others. The caller has already changed the table's `bounds`; this method
        changes `routes`.
        """
        rows = [row for row in table.live if row.block.obj == old.obj]
        may = can_be_loaded(table, self._tx.instance.modes) and not any(row.chain for row in rows)
        dictionary = self.begin(table) if may else None
        if dictionary is None:
            return False
        if name:
            table.routes.append(self._new_partition(dictionary, table, name))
        else:
            table.routes.remove(old)
        gone = [row for row in rows if table.segment_of(row.cells) is not old]
        before = [(row, row.rowid) for row in gone]
        for row in gone:
            row.block.release(row.slot)
        self._loads.load_blocks(table, gone)
        if not name:
            self._drop_segment(dictionary, table, old)
        words = f"ADD PARTITION {name}" if name else "COALESCE PARTITION"
        self._end_partition_ddl(table, words, moved={rowid: row.rowid for row, rowid in before})
        return True

    def move(self, table: SimTable, number: int) -> bool:
        """ALTER TABLE … MOVE of a segment: its rows are loaded into new blocks."""
        segment = table.segments[number]
        rows = [row for row in table.live if row.block.obj == segment.obj]
        if not can_be_loaded(table, self._tx.instance.modes) or any(row.chain for row in rows):
            return False
        dictionary = self._begin_with(table, [segment])
        if dictionary is None:
            return False
        before = [(row, row.rowid) for row in rows]
        table.blocks = [block for block in table.blocks if block.obj != segment.obj]
        segment.blocks = []
        segment.dataobj, segment.dba = self._new_place(table)
        if segment.obj == table.obj:
            table.dataobj = segment.dataobj
        dictionary.replace_segment(self._rows, segment.obj, segment.dataobj)
        self._loads.load_blocks(table, rows)
        moved = {rowid: row.rowid for row, rowid in before}
        words = f"MOVE PARTITION {segment.name}" if segment.name else "MOVE"
        self._end_partition_ddl(table, words, moved=moved)
        return True

    def rename_table(self, table: SimTable, name: str) -> bool:
        """ALTER TABLE … RENAME TO."""
        dictionary = self.begin(table)
        if dictionary is None:
            return False
        for obj in sorted(table.objects):
            dictionary.rename(self._rows, obj, name)
        words = f"ALTER TABLE {table.name} RENAME TO {name}"
        effect = DdlEffect(RENAME_TABLE, table, names=(table.name, name))
        table.former_names.append((self._tx.instance.scn, table.name))
        table.name = name
        self.end(table, ALTER_TABLE, words, effect)
        return True

    def exchange_names(self, table: SimTable, other: SimTable) -> bool:
        """Exchange the names of two tables in one transaction, as DBMS_REDEFINITION does at its
        end. No statement is logged. The table of the effect is the older one, because a decoder
        knows the two only by their numbers, and its event is applied before that of the other.
        """
        table, other = sorted((table, other), key=lambda one: one.obj)
        is_free = not self._tx.container.is_locked(other)
        dictionary = self.begin(table) if is_free else None
        if dictionary is None:
            return False
        effect = DdlEffect(EXCHANGE_NAMES, table, other=other)
        names = table.name, other.name
        for one, name in ((table, names[1]), (other, names[0])):
            for obj in sorted(one.objects):
                dictionary.rename(self._rows, obj, name)
            one.former_names.append((self._tx.instance.scn, one.name))
            one.name = name
        self.end(table, ALTER_TABLE, "", effect)
        return True

    def drop_partition(self, table: SimTable, number: int) -> bool:
        """ALTER TABLE … DROP PARTITION: its rows are removed, and another partition gets its
        ranges.
        """
        gone = table.segments[number]
        if len(table.segments) == 1 or (table.lobs and not gone.name):
            return False
        dictionary = self._begin_with(table, [gone])
        if dictionary is None:
            return False
        other = table.segments[number - 1]
        table.routes = [other if segment is gone else segment for segment in table.routes]
        emptied = _Emptied.of(table, gone)
        self._drop_segment(dictionary, table, gone)
        self._end_partition_ddl(table, f"DROP PARTITION {gone.name or 'P'}", emptied)
        return True

    def split_partition(
        self, table: SimTable, number: int, names: Sequence[str] = (), where: str = "AT (9)"
    ) -> bool:
        """ALTER TABLE … SPLIT PARTITION: its rows are loaded into two new partitions."""
        old = table.segments[number]
        if table.routes.count(old) < 2:
            return False
        words = f"SPLIT PARTITION {old.name or 'P'} {where} INTO (PARTITION Q, …)"
        if names:
            words = words.replace("PARTITION Q, …", ", ".join(f"PARTITION {one}" for one in names))
        return self._regroup(table, [old], names or ("", ""), words)

    def merge_partitions(self, table: SimTable, number: int, name: str = "") -> bool:
        """ALTER TABLE … MERGE PARTITIONS: the rows of two adjacent partitions are loaded into a new
        one.
        """
        old = table.segments[number : number + 2]
        if len(old) < 2:
            return False
        first, second = (one.name for one in old) if name else ("P", "Q")
        words = f"MERGE PARTITIONS {first}, {second} INTO PARTITION {name or 'R'}"
        return self._regroup(table, old, (name,), words)

    def _regroup(
        self, table: SimTable, old: list[SimSegment], names: Sequence[str], words: str
    ) -> bool:
        """Load the rows of partitions into new partitions, one for each of `names`. The
        ranges of the old partitions are divided among the new ones.
        """
        numbers = [segment.obj for segment in old]
        rows = [row for row in table.live if row.block.obj in numbers]
        may = can_be_loaded(table, self._tx.instance.modes)
        if not may or any(row.chain for row in rows):
            return False
        dictionary = self._begin_with(table, old)
        if dictionary is None:
            return False
        count = len(names)
        new = [self._new_partition(dictionary, table, name) for name in names]
        ranges = [at for at, segment in enumerate(table.routes) if segment.obj in numbers]
        for place, at in enumerate(ranges):
            table.routes[at] = new[place * count // len(ranges)]
        before = [(row, row.rowid) for row in rows]
        self._loads.load_blocks(table, rows)
        for segment in old:
            self._drop_segment(dictionary, table, segment)
        self._end_partition_ddl(table, words, moved={rowid: row.rowid for row, rowid in before})
        return True

    def _empty_partition(self, table: SimTable, number: int, words: str) -> bool:
        segment = table.segments[number]
        may = table.has_partitions and (bool(segment.name) or not table.lobs)
        dictionary = self._begin_with(table, [segment]) if may else None
        if dictionary is None:
            return False
        emptied = _Emptied.of(table, segment)
        self._replace_segment(dictionary, table, segment)
        for lob in table.lobs.values():
            self._empty_lob_segment(dictionary, lob.segments[number])
        self._end_partition_ddl(table, words, emptied)
        return True

    # --- a statement ---

    def _begin_with(self, table: SimTable, segments: Sequence[SimSegment]) -> SysDictionary | None:
        """Begin a statement on partitions; see the class for the locks."""
        named = all(segment.name for segment in segments)
        return self.begin(table, frozenset(one.obj for one in segments) if named else None)

    def begin(self, table: SimTable, objects: frozenset[int] | None = None) -> SysDictionary | None:
        """Commit the open transaction, and begin the statement; None if it is not possible now,
        because an open transaction has changed the table, or one of these `objects`.
        """
        self._tx.commit()
        if self._tx.container.is_locked(table, objects):
            return None
        # Earlier changes must have a lower SCN than the statement's commit.
        self._tx.instance.advance_scn()
        return self._dictionary if self._tx.ready() else None

    def _end_partition_ddl(
        self,
        table: SimTable,
        words: str,
        emptied: _Emptied | None = None,
        moved: dict[str, str] | None = None,
    ) -> None:
        segments, keys = emptied or _Emptied()
        has_names = all(segment.name for segment in table.segments)
        effect = DdlEffect(
            *(PARTITION, table, segments, moved or {}),
            emptied_keys=keys, stops=emptied is not None and not has_names,
        )  # fmt: skip
        self.end(table, ALTER_TABLE, f"ALTER TABLE {table.name} {words}", effect)

    def end(
        self, table: SimTable, command: int, statement: str, effect: DdlEffect | None = None
    ) -> None:
        """Log the statement, unless it is empty, and commit."""
        if effect is not None:
            self._tx.current.ddl.append(effect)
        if statement:
            self.log_statement(table, command, statement, self._rng.choice((1, 1, 2)))
        self._tx.commit()
        self._tx.instance.advance_scn()

    def log_statement(self, table: SimTable, command: int, statement: str, parts: int = 1) -> None:
        """Write the 24.1 of a statement in the open transaction, in `parts` records."""
        size = -(-len(statement) // parts)
        for part in range(parts):
            text = statement[part * size : (part + 1) * size].encode() + b"\0"
            first = (
                self._redo.pack("I", 10000)
                + self._tx.current.xid_bytes
                + self._redo.pack("HHHHHH", command, 0, 0, part + 1, parts, 0)
            )
            record = self._tx.record()
            record.vector((24, 1), [first, *self._statement_fields(table, text, part)])
            record.emit()

    def _statement_fields(self, table: SimTable, text: bytes, part: int) -> Sequence[bytes]:
        if part:
            return [text]
        user = self._tx.attributes.user.encode()
        return [
            *(user, user, bytes(12), b"", bytes(2), bytes(2), text),
            *(table.owner.encode(), table.name.encode(), bytes(20)),
            *(self._redo.pack("I", table.obj), bytes(2)),
        ]

    # --- segments ---

    def _replace_segment(
        self, dictionary: SysDictionary, table: SimTable, segment: SimSegment
    ) -> None:
        self._empty(table, segment)
        segment.dataobj, segment.dba = self._new_place(table)
        if segment.obj == table.obj:
            table.dataobj = segment.dataobj
        dictionary.replace_segment(self._rows, segment.obj, segment.dataobj)

    def _empty_lob(self, dictionary: SysDictionary, lob: SimLob) -> None:
        """Replace the segments and the indexes of a LOB by empty ones."""
        for one in lob.segments:
            self._empty_lob_segment(dictionary, one)

    def _empty_lob_segment(self, dictionary: SysDictionary, one: SimLobSegment) -> None:
        taken = self._tx.container.take_object(), self._tx.container.take_object()
        one.empty(*taken, self._tx.instance.scn)
        dictionary.replace_segment(self._rows, one.obj, one.dataobj)
        dictionary.replace_segment(self._rows, one.index_obj, one.index_dataobj)

    def _new_place(self, table: SimTable) -> tuple[int, int]:
        """Return DATAOBJ# and first block for a new segment."""
        dataobj = self._tx.container.take_object()
        place = FIRST_NEW_BLOCK + dataobj % 1_000 * SEGMENT_BLOCKS
        return dataobj, (table.relative_file << 22) + place

    def _new_partition(
        self, dictionary: SysDictionary, table: SimTable, name: str = ""
    ) -> SimSegment:
        dataobj, dba = self._new_place(table)
        of_table = self._tx.container.take_object() if table.index_organised else 0
        segment = SimSegment(dataobj, dataobj, table.afn, dba, table_part=of_table, name=name)
        table.segments.append(segment)
        dictionary.add_partition(self._rows, table, segment)
        for at, lob in table.lobs.items():
            one = new_lob_segment(self._tx.container, self._tx.instance.scn)
            lob.segments.append(one)
            dictionary.add_lob_partition(self._rows, table, at, one)
        return segment

    def _drop_segment(
        self, dictionary: SysDictionary, table: SimTable, segment: SimSegment
    ) -> None:
        self._empty(table, segment)
        number = table.segments.index(segment)
        table.segments.remove(segment)
        dictionary.drop_partition(self._rows, segment)
        for lob in table.lobs.values():
            dictionary.drop_lob_partition(self._rows, lob.segments.pop(number))

    @staticmethod
    def _empty(table: SimTable, segment: SimSegment) -> None:
        """Remove the blocks and rows of a segment."""
        for row in [row for row in table.live if row.block.obj == segment.obj]:
            table.drop_live(row)
        table.blocks = [block for block in table.blocks if block.obj != segment.obj]
        segment.blocks = []
