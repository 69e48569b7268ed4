"""Writes parallel DML: a parent transaction and its children, which end together (redo-format
§4.4).

The children have the commit SCN of the parent. The 5.4 of the parent comes first, those of the
children follow in later records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.fields.vector_fields import (
    STATE_CHILD_PREPARED,
    STATE_INACTIVE,
    CommitMark,
    commit_fields,
    parent_commit_fields,
    state_fields,
)
from olr_pg.simulator.model.storage import undo_vector_block
from olr_pg.simulator.writer.transaction_writer import TransactionWriter

if TYPE_CHECKING:
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.writer.instance import RecordWriter

SCN_FIELD_PLACES = 4


class ParallelWriter(TransactionWriter):
    """Writes the transactions of a coordinator or of one of its parallel servers."""

    def begin_parallel(self) -> bool:
        """Begin a parent transaction, which is its own parent; False if no slot is free."""
        if self.transaction is not None or not self.ready():
            return False
        self.current.parent_xid = self.current.xid_bytes
        record = self.record()
        self.write_begin_only(record)
        record.emit()
        return True

    def join(self, parent: TransactionWriter) -> bool:
        """Begin a child of the open transaction of `parent`; False if no slot is free."""
        if not self.ready():
            return False
        self.current.parent_xid = parent.current.xid_bytes
        return True

    def prepare(self) -> Transaction | None:
        """Write the 5.12 of a child that is ready to commit; None if it has written nothing."""
        transaction = self._written()
        if transaction is not None:
            record = self.record()
            self._write_state(record, transaction, STATE_CHILD_PREPARED)
            record.emit()
        return transaction

    def commit_parent(self) -> int:
        """Write the 5.4 that commits parent and children; return the commit SCN."""
        transaction, instance = self.current, self.instance
        instance.advance_scn()
        record = instance.record(self.thread, self.container, commit=True)
        fields = parent_commit_fields(self.redo, transaction.slot, transaction.sequence)
        self._write_header_vector(record, transaction, (5, 4), fields)
        record.emit()
        transaction.commit_scn = record.scn
        self._deliver(transaction)
        if self.rng.random() < instance.pace.flush_at_commit:
            self.thread.flush()
        return record.scn

    def commit_child(self, scn: int) -> None:
        """Write the 5.4 of a child at its parent's commit SCN."""
        transaction, rng = self.current, self.instance.mode_rng
        long_form = self.redo.long_scn and rng.random() < 0.5
        mark = CommitMark(
            *(transaction.slot, transaction.sequence, False, transaction.last_undo, long_form),
            *(self.instance.unix_time, scn, rng.randrange(SCN_FIELD_PLACES)),
        )
        record = self.record()
        self._write_header_vector(record, transaction, (5, 4), commit_fields(self.redo, mark))
        record.emit()
        self._close(transaction, scn, committed=True)
        transaction.commit_delay = record.scn - scn
        self._deliver(transaction)

    def close_parent(self, scn: int) -> None:
        """Write the 5.12 of a parent that committed at `scn`, after its children have ended."""
        transaction = self.current
        record = self.record()
        self._write_state(record, transaction, STATE_INACTIVE, self.instance.unix_time)
        record.emit()
        self.instance.parallel_ends.append((scn, record.scn))
        self._close(transaction, scn, committed=True)

    def rollback_alone(self) -> None:
        """Roll back this transaction, at its own SCN."""
        transaction = self._written()
        if transaction is None:
            return
        self.rollback_to(0)
        mark = CommitMark(
            *(transaction.slot, transaction.sequence, True, None, False), self.instance.unix_time
        )
        record = self.record()
        self._write_header_vector(record, transaction, (5, 4), commit_fields(self.redo, mark))
        record.emit()
        self._close(transaction, record.scn, committed=False)

    def _write_state(
        self,
        record: RecordWriter,
        transaction: Transaction,
        state: int,
        unix_time: int | None = None,
    ) -> None:
        number = transaction.slot, transaction.sequence
        fields = state_fields(self.redo, *number, state, unix_time)
        self._write_header_vector(record, transaction, (5, 12), fields)

    @staticmethod
    def _write_header_vector(
        record: RecordWriter, transaction: Transaction, opcode: tuple[int, int], fields: list[bytes]
    ) -> None:
        segment = transaction.segment
        header = undo_vector_block(segment.header, record.scn, cls=segment.header_class)
        record.vector(opcode, fields, header)
