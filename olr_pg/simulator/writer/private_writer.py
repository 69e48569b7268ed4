"""Writes small transactions, or their last changes, in one record with their commit.

The record has its vectors in one of two orders. In the first, the commit is before the pairs of
undo and redo. The second is that of private redo (in-memory undo): row vectors come first, and
there is no session vector (redo-format §4.8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.block_layout import VLD_VALID
from olr_pg.simulator.fields.vector_fields import MARKER, VectorBlock
from olr_pg.simulator.writer.instance import RecordWriter
from olr_pg.simulator.writer.space_vectors import COMMIT_NOTE
from olr_pg.simulator.writer.transaction_writer import TransactionWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.simulator.writer.instance import Container, Instance, RedoThread

VLD_PRIVATE: Final = VLD_VALID | 0x08

_END: Final = {(5, 4): 1, (24, 4): 1, COMMIT_NOTE: 1}
COMMIT_FIRST: Final[Mapping[tuple[int, int], int]] = {(5, 2): 0, **_END}
"""Rank of vectors in the record: first 5.2, then the commit; all others follow in their order."""

PRIVATE: Final[Mapping[tuple[int, int], int]] = {(5, 2): 0, **_END, (5, 1): 2}
"""Rank of vectors in private redo; all others are row vectors and come first."""

SESSIONS: Final = frozenset({(5, 19), (5, 20)})


class PrivateRecord(RecordWriter):
    """A record that collects the vectors of several records."""

    def __init__(self, instance: Instance, thread: RedoThread, container: Container) -> None:
        super().__init__(instance, thread, container)
        self._opcodes = list[tuple[int, int]]()

    def vector(
        self,
        opcode: tuple[int, int],
        fields: Sequence[bytes],
        block: VectorBlock = MARKER,
        *,
        undo_of: int = 0,
    ) -> None:
        """Add a change vector."""
        self._opcodes.append(opcode)
        super().vector(opcode, fields, block, undo_of=undo_of)

    def emit(self, vld: int = VLD_VALID, *, more: bool = False) -> None:
        """Do nothing: the next vectors belong to the same record."""

    def hand_over(self, *, private: bool) -> None:
        """Add the record to the thread, in the order of private redo or with the commit first."""
        ranks, other = (PRIVATE, -1) if private else (COMMIT_FIRST, 2)
        kept = [
            (ranks.get(opcode, other), part)
            for opcode, part in zip(self._opcodes, self._parts, strict=True)
            if not (private and opcode in SESSIONS)
        ]
        self._parts = [part for _, part in sorted(kept, key=lambda one: one[0])]
        super().emit(VLD_PRIVATE if private else VLD_VALID)


class PrivateWriter(TransactionWriter):
    """Writes the transactions of a session; `hold` makes a record that includes the commit."""

    _private: PrivateRecord | None = None

    def record(self) -> RecordWriter:
        """Begin a new record, or continue the held record."""
        return self._private or super().record()

    def hold(self) -> None:
        """Write all following vectors, including the COMMIT, to one record."""
        self.instance.record(self.thread, self.container, commit=True)
        self._private = PrivateRecord(self.instance, self.thread, self.container)

    def commit_held(self, *, private: bool) -> None:
        """COMMIT, in the record with the vectors since `hold`."""
        record, self._private = self._private, None
        transaction = self._written()
        if record is None or transaction is None:
            return
        self._write_end(record, transaction, rolled_back=False, undo=transaction.last_undo)
        record.hand_over(private=private)
        self._close(transaction, record.scn, committed=True)
        self._deliver(transaction)
        if self.rng.random() < self.instance.pace.flush_at_commit:
            self.thread.flush()
