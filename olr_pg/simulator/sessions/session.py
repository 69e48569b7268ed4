"""A session of the model, composed of the parts that write redo.

Each part writes one kind of redo in the transaction of the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.sessions.computed_columns import ComputedColumns
from olr_pg.simulator.sessions.ddl_statements import DdlStatements
from olr_pg.simulator.sessions.direct_loads import DirectLoads, LeafLoads
from olr_pg.simulator.sessions.row_statements import LobStatements, RowStatements
from olr_pg.simulator.writer.chained_rows import ChainWriter
from olr_pg.simulator.writer.iot_writer import IndexWriter, LeafWriter
from olr_pg.simulator.writer.lob_writer import LobWriter
from olr_pg.simulator.writer.piece_writer import PieceWriter
from olr_pg.simulator.writer.transaction_writer import PrivateWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.simulator.fields.vector_fields import DatabaseSession
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.sessions.sys_dictionary import SysDictionary
    from olr_pg.simulator.writer.instance import Container, Instance, RedoThread
    from olr_pg.simulator.writer.parallel_writer import ParallelWriter


class SimSession:
    """A session.

    Args:
        instance, container, thread: the instance to which it is connected.
        attributes: the attributes of the session in 5.19 and 5.20.
        dictionary: the SYS tables; None if their changes are not modelled. Then no DDL is carried
            out.
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
