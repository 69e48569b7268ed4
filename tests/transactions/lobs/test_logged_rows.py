"""LOB pieces are found by binary search where their key begins."""

from __future__ import annotations

from olr_pg.kernels.compile import interpreted
from olr_pg.transactions.lobs.logged_rows import is_lob, lower_bound
from olr_pg.transactions.lobs.value_tables import Space, sort_rows
from tests.transactions.lobs.test_value_tables import rows_of

find, is_of = interpreted(lower_bound), interpreted(is_lob)


def test_a_key_is_found_where_its_rows_begin() -> None:
    rows = sort_rows(rows_of([(0, Space.PAGE, 7, 3, 5), (0, Space.PAGE, 7, 9, 5),
                              (0, Space.LIST, 0, 3, 5)]))  # fmt: skip
    at = find(rows, 0, int(Space.PAGE), 7, 4)
    assert rows.number[at] == 9
    assert is_of(rows, at, 0, int(Space.PAGE), 7)
    end = find(rows, 0, int(Space.PAGE), 7, 10)
    assert not is_of(rows, end, 0, int(Space.PAGE), 7)
