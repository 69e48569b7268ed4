from __future__ import annotations

import pytest

from olr_pg.simulator.fields.vector_fields import undo_size
from olr_pg.simulator.writer.undo_parts import cut_undo


@pytest.mark.parametrize(
    ("sizes", "cut"), [([100] * 6, False), ([100, 100], False), ([40, 100], True)]
)
def test_undo_that_does_not_fit_goes_on_in_another_record(sizes: list[int], *, cut: bool) -> None:
    """The fields that the record has room for are the last ones, the first of them cut."""
    fields = [bytes(8), bytes(8), *[bytes([at]) * 100 for at in range(6)]]
    last, before, found = cut_undo(fields, 24, undo_size([24, *sizes]))
    assert b"".join((*before, *last)) == b"".join(fields)
    assert ([len(field) for field in last], found) == (sizes, cut)
