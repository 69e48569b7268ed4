"""The generated tables: whole, of one character each, and each set once."""

from __future__ import annotations

from collections import Counter

import pytest

from olr_pg.datatypes.charset_tables import TABLES
from olr_pg.datatypes.charsets import charset


@pytest.mark.parametrize(("sets", "digits"), [(one[0], one[2]) for one in TABLES],
                         ids=[one[1] for one in TABLES])  # fmt: skip
def test_a_table_has_256_characters_and_is_that_of_its_sets(
    sets: tuple[tuple[int, str], ...], digits: str
) -> None:
    characters = [chr(int(digits[at : at + 4], 16)) for at in range(0, len(digits), 4)]
    assert len(characters) == 256
    assert all(count == 1 for char, count in Counter(characters).items() if char != "\ufffe")
    assert not any("\ud800" <= char <= "\udfff" for char in characters)
    for number, name in sets:
        assert charset(number).name == name
        assert charset(name).table == "".join(characters)


def test_no_set_is_there_twice() -> None:
    sets = [one for sets, _, _ in TABLES for one in sets]
    assert len({number for number, _ in sets}) == len({name for _, name in sets}) == len(sets)
