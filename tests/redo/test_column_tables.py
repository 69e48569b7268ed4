"""Tables of columns: whichever form they have, the same rows are taken, cut and joined."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from olr_pg.redo.column_tables import as_table, cut, grown, head, joined_rows, take


class Columns(NamedTuple):
    number: np.ndarray
    flag: np.ndarray


COLUMNS = Columns(np.arange(5, dtype=np.int64), np.array([1, 0, 1, 0, 1], np.uint8))
TABLE = as_table(**COLUMNS._asdict())


@pytest.mark.parametrize("table", [COLUMNS, TABLE])
def test_rows_are_taken_in_the_order_asked_for(table: Columns) -> None:
    taken = take(table, np.array([4, 0, 3]))
    assert type(taken) is type(table)
    assert taken.number.tolist() == [4, 0, 3]
    assert taken.flag.tolist() == [1, 1, 0]
    assert head(table, 2).number.tolist() == [0, 1]


def test_a_column_is_an_attribute_that_can_be_set_and_another_is_an_error() -> None:
    table = TABLE.copy()
    table.flag = 7
    assert table.flag.tolist() == [7] * 5
    with pytest.raises(AttributeError, match="no column colour"):
        _ = table.colour


def test_cut_rows_are_views_that_join_to_the_whole() -> None:
    parts = cut(TABLE, [0, 2, 2, 5])
    assert [part.size for part in parts] == [2, 0, 3]
    assert all(np.shares_memory(part, TABLE) for part in parts if part.size)
    given = np.empty(TABLE.nbytes, np.uint8)
    for joined in (joined_rows(parts), joined_rows(parts, lambda size: given[:size])):
        assert joined.number.tolist() == COLUMNS.number.tolist()
        assert joined.flag.tolist() == COLUMNS.flag.tolist()
    assert given.any()


def test_a_table_grows_and_keeps_its_rows() -> None:
    room = grown(TABLE, 3, 10)
    assert room.size == 10
    assert room.number[:3].tolist() == [0, 1, 2]
