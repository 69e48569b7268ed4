"""A session of the model, composed of the parts that write redo, and its computed columns.

Each part writes one kind of redo in the transaction of the session. `ComputedColumns` combines
several of them: it is the DDL of columns whose values Oracle computes, which are virtual columns,
also the hidden ones of function-based indexes, and columns with a sequence.

A virtual column has an INTCOL#, but no SEGCOL#, because rows do not store it (dictionary §2.4). So
the INTCOL# and SEGCOL# of the columns that are added after it differ. We do not know whether DROP
of a virtual column lowers the INTCOL# of the later columns, so the simulator lowers them in half of
the cases.

An identity column has a sequence ``ISEQ$$_n``, where n is the OBJ# of the table, and the default
``"OWNER"."ISEQ$$_n".nextval``. If a column whose default is a sequence is added to a table with
rows, Oracle updates the rows one by one in the transaction of the statement (dictionary §10).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.sys_tables import HIDDEN, SYSTEM_GENERATED, VIRTUAL, VIRTUAL_ATTRIBUTE
from olr_pg.simulator.fields.cells import number
from olr_pg.simulator.model.column_types import number_type
from olr_pg.simulator.model.tables import IDENTITY_SEQUENCE, SimColumn, SimVirtual
from olr_pg.simulator.model.transactions import (
    ADD_COLUMN,
    BESIDE,
    IDENTITY,
    VIRTUAL_COLUMN,
    DdlEffect,
)
from olr_pg.simulator.sessions.ddl_statements import (
    ALTER_TABLE,
    CREATE_INDEX,
    DROP_INDEX,
    DdlStatements,
)
from olr_pg.simulator.sessions.row_statements import (
    DirectLoads,
    LeafLoads,
    LobStatements,
    RowStatements,
)
from olr_pg.simulator.sessions.sys_dictionary import FUNCTIONAL
from olr_pg.simulator.writer.chained_rows import ChainWriter, PieceWriter
from olr_pg.simulator.writer.iot_writer import IndexWriter, LeafWriter
from olr_pg.simulator.writer.lob_writer import LobWriter
from olr_pg.simulator.writer.transaction_writer import PrivateWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.simulator.fields.redo_format import DatabaseSession
    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.sessions.sys_dictionary import SysDictionary
    from olr_pg.simulator.writer.instance import Container, Instance, RedoThread
    from olr_pg.simulator.writer.transaction_writer import ParallelWriter, TransactionWriter


USES_SEQUENCE: Final = 1 << 35
IDENTITY_BY_DEFAULT: Final = 1 << 38
"""Bits of COL$.PROPERTY."""

OWN_SEQUENCE: Final = "OWN_SEQUENCE"
"""The name of a sequence that is not the sequence of an identity column."""

SEQUENCE_DIGITS: Final = 12

INDEXED_EXPRESSION: Final = VIRTUAL | HIDDEN | SYSTEM_GENERATED | VIRTUAL_ATTRIBUTE
"""COL$.PROPERTY of the column of a function-based index, as a real dictionary has it."""

NUMBER: Final = 2
"""COL$.TYPE#."""


class ComputedColumns:
    """The DDL statements on virtual columns and on columns with a sequence.

    Every method returns whether the statement was carried out.
    """

    def __init__(self, tx: TransactionWriter, rows: RowStatements, ddl: DdlStatements) -> None:
        self._tx, self._rows, self._ddl, self._rng = tx, rows, ddl, tx.rng

    # --- virtual columns ---

    def add_virtual(self, table: SimTable, column: SimVirtual) -> bool:
        """ALTER TABLE … ADD (… AS (expression))."""
        dictionary = self._ddl.begin(table)
        if dictionary is None:
            return False
        intcol = table.next_intcol
        table.virtual[intcol] = column
        table.free_intcols.discard(intcol)
        bits = self._rng.choice((VIRTUAL, VIRTUAL | VIRTUAL_ATTRIBUTE))
        dictionary.add_virtual(self._rows, table, intcol, bits)
        self._end(table, f"ADD ({column.name} AS ({column.expression(table)}))", column, "")
        return True

    def alter_virtual(self, table: SimTable, intcol: int, column: SimVirtual) -> bool:
        """ALTER TABLE … RENAME COLUMN, or MODIFY (… AS (expression)), of a virtual column."""
        dictionary = self._ddl.begin(table)
        if dictionary is None:
            return False
        old, key = table.virtual[intcol], (table.obj, intcol)
        text = column.expression(table)
        if old.name != column.name:
            dictionary.update(self._rows, "COL$", key, name=column.name)
            words = f"RENAME COLUMN {old.name} TO {column.name}"
        else:
            dictionary.update(self._rows, "COL$", key, default_text=text)
            words = f"MODIFY ({column.name} AS ({text}))"
        table.virtual[intcol] = column
        self._end(table, words, column, old.name)
        return True

    def drop_virtual(self, table: SimTable, intcol: int, *, renumbers: bool) -> bool:
        """ALTER TABLE … DROP COLUMN of a virtual column; the rows stay as they are.

        If the statement `renumbers`, the later columns get lower INTCOL#s.
        """
        dictionary = self._ddl.begin(table)
        if dictionary is None:
            return False
        old = self._drop(dictionary, table, intcol, renumbers=renumbers)
        effect = DdlEffect(VIRTUAL_COLUMN, table, names=(old.name, ""))
        words = f"ALTER TABLE {table.name} DROP COLUMN {old.name}"
        self._ddl.end(table, ALTER_TABLE, words, effect)
        return True

    def _drop(
        self, dictionary: SysDictionary, table: SimTable, intcol: int, *, renumbers: bool
    ) -> SimVirtual:
        dictionary.delete(self._rows, "COL$", (table.obj, intcol))
        is_last = intcol == table.next_intcol - 1
        old = table.virtual.pop(intcol)
        if renumbers and not is_last:
            dictionary.drop_intcol(self._rows, table, intcol)
            table.virtual = {at - (at > intcol): one for at, one in table.virtual.items()}
            table.free_intcols = {at - (at > intcol) for at in table.free_intcols}
        elif not is_last:
            table.free_intcols.add(intcol)
        return old

    def _end(self, table: SimTable, words: str, column: SimVirtual, old_name: str) -> None:
        base = table.columns[column.base].name
        effect = DdlEffect(
            *(VIRTUAL_COLUMN, table), names=(old_name, column.name), virtual=(column.form, base)
        )
        self._ddl.end(table, ALTER_TABLE, f"ALTER TABLE {table.name} {words}", effect)

    # --- function-based indexes, each with a hidden virtual column ---

    def create_expression_index(self, table: SimTable, place: int) -> bool:
        """CREATE INDEX on an expression with the column at `place`, from 0."""
        dictionary = self._ddl.begin(table)
        if dictionary is None:
            return False
        intcol, obj = table.next_intcol, self._tx.container.take_object()
        kind = table.columns[place].type
        form = "plus one" if kind.type_code == NUMBER else "upper"
        taken = {one.name for one in table.virtual.values()}
        names = (f"SYS_NC{number:05d}$" for number in count(intcol))
        # If a column was removed, later columns have lower numbers but keep their names.
        name = next(name for name in names if name not in taken)
        column = SimVirtual(name, kind, place, form, obj)
        table.virtual[intcol] = column
        table.free_intcols.discard(intcol)
        dictionary.add_virtual(self._rows, table, intcol, INDEXED_EXPRESSION)
        name = table.beside.name_index(obj)
        dictionary.create_index(self._rows, table, obj, intcol, FUNCTIONAL)
        words = f"CREATE INDEX {name} ON {table.name} ({column.expression(table)})"
        self._ddl.end(table, CREATE_INDEX, words, DdlEffect(BESIDE, table))
        return True

    def drop_expression_index(self, table: SimTable, intcol: int, *, renumbers: bool) -> bool:
        """DROP INDEX, with its virtual column; `renumbers` as for `drop_virtual`."""
        dictionary = self._ddl.begin(table)
        if dictionary is None:
            return False
        obj = table.virtual[intcol].index
        dictionary.drop_index(self._rows, obj)
        self._drop(dictionary, table, intcol, renumbers=renumbers)
        name = table.beside.free_index(obj)
        self._ddl.end(table, DROP_INDEX, f"DROP INDEX {name}", DdlEffect(BESIDE, table))
        return True

    # --- columns with a sequence ---

    def add_numbered(self, table: SimTable, name: str, *, identity: bool) -> bool:
        """ALTER TABLE … ADD of an identity column, or of a column with the default
        ``sequence.NEXTVAL``; each existing row gets a number.
        """
        if identity and (table.beside.sequences or not self._tx.redo.has_container):
            return False  # ORA-30669; identity columns exist since 12.1
        if table.live and not self._can_number(table):
            return False
        dictionary = self._ddl.begin(table)
        if dictionary is None:
            return False
        place, obj = len(table.columns), table.obj
        sequence = f"{IDENTITY_SEQUENCE}{obj}" if identity else OWN_SEQUENCE
        column = SimColumn(
            name, number_type(SEQUENCE_DIGITS, 0), nullable=not identity, sequence=sequence
        )
        table.columns = (*table.columns, column)
        if identity:
            table.beside.sequences[place] = self._tx.container.take_object()
            dictionary.create_sequence(self._rows, table.beside.sequences[place], sequence)
        text = f'"{table.owner}"."{sequence}".nextval'
        bits = USES_SEQUENCE | (IDENTITY_BY_DEFAULT if identity else 0)
        dictionary.add_column(self._rows, table, place, bits, text)
        for row in table.live:
            row.cells.append(None)
        is_filled = bool(table.live)
        for counted, row in enumerate(list(table.live), 1):
            assert self._rows.update(row, {place: number(Decimal(counted))})
        words = "GENERATED BY DEFAULT AS IDENTITY" if identity else f"DEFAULT {sequence}.NEXTVAL"
        effect = DdlEffect(ADD_COLUMN, table, column=place, stops=is_filled)
        if identity:
            self._tx.current.ddl.append(DdlEffect(IDENTITY, table, names=("", name)))
        statement = f"ALTER TABLE {table.name} ADD ({name} NUMBER {words})"
        self._ddl.end(table, ALTER_TABLE, statement, effect)
        return True

    def drop_identity(self, table: SimTable, place: int) -> bool:
        """ALTER TABLE … MODIFY (… DROP IDENTITY)."""
        dictionary = self._ddl.begin(table)
        if dictionary is None:
            return False
        old = table.columns[place]
        dictionary.alter_column(self._rows, table, place, default_text=None, property=0)
        dictionary.delete(self._rows, "OBJ$", (table.beside.sequences.pop(place),))
        table.former_columns.append((self._tx.instance.scn, table.columns))
        new = replace(old, sequence="")
        table.columns = (*table.columns[:place], new, *table.columns[place + 1 :])
        effect = DdlEffect(IDENTITY, table, names=("", ""))
        words = f"ALTER TABLE {table.name} MODIFY ({old.name} DROP IDENTITY)"
        self._ddl.end(table, ALTER_TABLE, words, effect)
        return True

    @staticmethod
    def _can_number(table: SimTable) -> bool:
        """Return whether the model can update all rows of a table: heap rows of one piece, which
        store all columns.
        """
        has_defaults = any(column.default for column in table.columns)
        return table.is_plain and not has_defaults and not any(row.chain for row in table.live)


class SimSession:
    """A session.

    Args:
        instance, container, thread: the instance to which it is connected.
        attributes: the attributes of the session in 5.19 and 5.20.
        dictionary: the SYS tables; None if their changes are not modelled. Without SYS tables, no
            DDL is carried out.
        writer: writes its transactions; by default a `PrivateWriter`.

    Attributes:
        chains: writes rows in pieces.
        rows: the statements that change rows; `lobs` those that change parts of LOBs, `ddl` those
            that change definitions, `computed` those on columns whose values Oracle computes.
    """

    def __init__(
        self,
        instance: Instance,
        container: Container,
        thread: RedoThread,
        attributes: DatabaseSession,
        *,
        dictionary: SysDictionary | None = None,
        writer: PrivateWriter | ParallelWriter | None = None,
    ) -> None:
        self.instance, self.container = instance, container
        self.thread, self.attributes = thread, attributes
        tx = writer or PrivateWriter(instance, container, thread, attributes)
        self._tx = tx
        indexes, pieces, lobs = IndexWriter(tx), PieceWriter(tx), LobWriter(tx)
        chains = self.chains = ChainWriter(tx, indexes, pieces)
        leaves = LeafWriter(tx)
        rows = self.rows = RowStatements(tx, indexes, pieces, chains, leaves, lobs)
        loads = DirectLoads(tx, indexes, pieces, chains)
        self.lobs = LobStatements(tx, lobs, rows)
        self.ddl = DdlStatements(tx, rows, loads, dictionary)
        self.computed = ComputedColumns(tx, rows, self.ddl)
        self.create_as_select = LeafLoads(tx, leaves).create_as_select
        self.begin_empty, self.commit, self.rollback = tx.begin_empty, tx.commit, tx.rollback
        self.savepoint, self.rollback_to = tx.savepoint, tx.rollback_to
        self.insert, self.insert_many = rows.insert, rows.insert_many
        self.delete, self.delete_many = rows.delete, rows.delete_many
        self.update, self.lock, self.load = rows.update, rows.lock, loads.load
        self.load_part, self.is_free = loads.load_part, loads.is_free
        self.is_whole = loads.is_whole

    @property
    def transaction(self) -> Transaction | None:
        """The open transaction, None if there is none."""
        return self._tx.transaction

    def commit_in_one_record(self, work: Callable[[], None], *, private: bool) -> None:
        """Carry out `work`, and commit in the same record. If `private`, the vectors have the order
        of private redo; otherwise the commit comes first.
        """
        assert isinstance(self._tx, PrivateWriter)
        self._tx.hold()
        work()
        self._tx.commit_held(private=private)

    def name_transaction(self, name: str) -> None:
        """SET TRANSACTION … NAME, for all transactions that begin from now on."""
        self._tx.transaction_name = name
