from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.simulator.fields.row_fields import FB_FROM_PREVIOUS, FB_TO_NEXT, stored_size
from olr_pg.simulator.model.row_layout import PIECE_OVERHEAD, lay_out

VALUES = st.lists(
    st.one_of(st.none(), st.integers(0, 900).map(lambda size: b"v" * size)), max_size=300
)


@given(values=VALUES, room=st.integers(1_000, 3_000))
def test_the_pieces_give_the_row_and_none_is_too_large(
    values: list[bytes | None], room: int
) -> None:
    parts = lay_out(values, room)
    joined: list[bytes | None] = []
    for part in parts:
        assert sum(map(stored_size, part.columns)) <= room - PIECE_OVERHEAD
        assert len(part.columns) <= 255
        columns = list(part.columns)
        assert part.first == len(joined) - bool(part.cut & FB_FROM_PREVIOUS)
        if part.cut & FB_FROM_PREVIOUS:
            first, before = columns.pop(0), joined.pop()
            assert first is not None
            assert before is not None
            columns.insert(0, before + first)
        joined += columns
    assert joined == values


def test_a_value_that_is_cut_goes_on_in_the_next_piece() -> None:
    head, tail = lay_out([b"x" * 1500], 1000)
    assert (head.cut, tail.cut) == (FB_TO_NEXT, FB_FROM_PREVIOUS)
    assert len(lay_out([b"x" * 900], 1000)) == 1
