"""The counts of a walk add up, each with its own."""

from __future__ import annotations

from olr_pg.redo.walk import (
    NO_LOB_OBJECTS,
    TALLY_CHANGES,
    TALLY_UNPAIRED,
    TALLY_VECTORS,
    Tally,
    lob_objects,
)


def test_counts_add_up_by_name() -> None:
    one = Tally(vectors=5, row_vectors=3, changes=2, unpaired=1)
    other = Tally(vectors=7, filtered=4, changes=1)
    assert one.plus(other) == Tally(vectors=12, row_vectors=3, changes=3, filtered=4, unpaired=1)


def test_the_kernels_places_are_those_of_the_names() -> None:
    counts = [0] * len(Tally._fields)
    counts[TALLY_VECTORS], counts[TALLY_CHANGES], counts[TALLY_UNPAIRED] = 9, 8, 7
    assert Tally(*counts) == Tally(vectors=9, changes=8, unpaired=7)


def test_the_keys_ascend_and_the_first_of_a_number_counts() -> None:
    found = lob_objects([(9, False, 1), (1 << 32 | 4, True, 2), (9, True, 3), (7, True, 0)])
    assert found.key.tolist() == [7, 9, 1 << 32 | 4]
    assert found.is_index.tolist() == [1, 0, 1]
    assert found.table.tolist() == [0, 1, 2]


def test_there_may_be_none() -> None:
    assert [column.size for column in NO_LOB_OBJECTS] == [0, 0, 0]
