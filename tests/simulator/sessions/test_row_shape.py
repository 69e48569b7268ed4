from __future__ import annotations

from decimal import Decimal

import pytest

from olr_pg.simulator.fields.cells import number
from olr_pg.simulator.sessions.row_shape import COPIES_MAX, IDENTITY, PLACE, KeyForm, Keys


def test_without_copies_keys_count_from_1() -> None:
    keys = Keys()
    assert [keys.take("A") for _ in range(100)] == list(range(1, 101))
    assert (keys.next("A"), keys.next("B"), keys.place(7)) == (101, 1, 7)


@pytest.mark.parametrize("form", [IDENTITY, PLACE])
def test_a_key_keeps_its_length_and_differs_in_the_copys_digits(form: KeyForm) -> None:
    for own in (1, 8, 99):
        values = [form.first + copy * form.stride + own for copy in range(0, COPIES_MAX, 99)]
        raws, texts = [number(Decimal(value)).raw for value in values], list(map(str, values))
        rest = {(raw[: form.pair_at], raw[form.pair_at + 2 :]) for raw in raws}
        assert len(rest) == 1
        at = form.digits_at
        assert len({(text[:at], text[at + 4 :]) for text in texts}) == 1
        pairs = [(raw[form.pair_at] - 1) * 100 + raw[form.pair_at + 1] - 1 for raw in raws]
        assert pairs == [int(text[at : at + 4]) for text in texts]
        assert len(set(pairs)) == len(values)


def test_no_key_of_a_copy_ends_with_00() -> None:
    keys = Keys(3)
    taken = [keys.take("A") for _ in range(300)]
    assert not any(key % 100 == 0 for key in taken)
    assert taken[0] == 10_003_000_001
    assert keys.next("A") == taken[-1] + 1
    assert keys.place(2) == 100_302
