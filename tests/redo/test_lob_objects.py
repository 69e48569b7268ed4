"""LOB segments and indexes by number: ascending, the first of a number counts."""

from __future__ import annotations

from olr_pg.redo.lob_objects import NO_LOB_OBJECTS, lob_objects


def test_the_keys_ascend_and_the_first_of_a_number_counts() -> None:
    found = lob_objects([(9, False, 1), (1 << 32 | 4, True, 2), (9, True, 3), (7, True, 0)])
    assert found.key.tolist() == [7, 9, 1 << 32 | 4]
    assert found.is_index.tolist() == [1, 0, 1]
    assert found.table.tolist() == [0, 1, 2]


def test_there_may_be_none() -> None:
    assert [column.size for column in NO_LOB_OBJECTS] == [0, 0, 0]
