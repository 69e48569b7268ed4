"""The tables of a window, and the numbers in them that others rely on."""

from __future__ import annotations

from olr_pg.redo.batch import (
    ENTRY,
    EVENT,
    PIECE,
    CutFlag,
    Role,
    empty_batch,
    empty_entries,
    empty_events,
    empty_pieces,
)
from olr_pg.redo.format import row_fields
from olr_pg.transactions import row_job


def test_a_role_is_the_bit_whose_number_assembly_knows() -> None:
    numbers = {str(role.name): int(role).bit_length() - 1 for role in Role}
    assert numbers == {name: getattr(row_job, name) for name in numbers}
    assert len(Role) == row_job.ROLES


def test_parts_are_the_flags_of_a_row_piece() -> None:
    assert (CutFlag.TO_NEXT, CutFlag.FROM_PREVIOUS) == (row_fields.FB_NEXT, row_fields.FB_PREVIOUS)


def test_tables_are_made_of_rows_of_their_type() -> None:
    for make, dtype in ((empty_events, EVENT), (empty_pieces, PIECE), (empty_entries, ENTRY)):
        table = make(3)
        assert (table.size, table.dtype.names) == (3, dtype.names)
        for name in dtype.names or ():
            getattr(table, name)[:] = 1
        assert all(table[2][name] == 1 for name in dtype.names or ())


def test_a_batch_of_nothing() -> None:
    batch = empty_batch()
    assert [column.size for column in batch] == [0, 0, 0, 0]
    assert batch.events.kind.tolist() == []
