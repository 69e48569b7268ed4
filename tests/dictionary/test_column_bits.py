from __future__ import annotations

import pytest

from olr_pg.dictionary import column_bits
from olr_pg.dictionary.column_bits import char_length


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("SYS_NC00004$", 0x8000000120),  # guard column, real
        ("SYS_NC00003$", 65832),  # function-based index column, real
        ("SYS_C00002_24010112:00:00$", 0x8000 | 0x20),  # SET UNUSED
        ("C", 0x4000),  # dropped in progress
        ("SYS_NC00003$", 0x120),  # data column of an XMLTYPE
        ("ORA_ARCHIVE_STATE", 0x20),
        ("ORABCTAB_INST_ID$", 0x20),
    ],
)
def test_hidden_columns(name: str, properties: int) -> None:
    assert column_bits.is_hidden(name, properties)


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("ID", 0),
        ("PASSWORD", 1 << 43),  # real
        ("SCORE", 0x40000000),  # added with a default, real
        ("TITLE", 0x800000),  # NVARCHAR2, real
        ("DOC", 0x80),
        ("SHY", 0x20),  # user-invisible: the user's data
        ("ID", 1 << 37),  # identity
        ("TOTAL", 0x8),  # virtual, visible
    ],
)
def test_columns_of_the_user(name: str, properties: int) -> None:
    assert not column_bits.is_hidden(name, properties)


def test_virtual_and_encrypted_bits() -> None:
    assert column_bits.is_virtual(0x8)
    assert column_bits.is_virtual(65832)
    assert not column_bits.is_virtual(0x8000000120)
    assert column_bits.is_encrypted(0x4000000)
    assert not column_bits.is_encrypted(0x20000000)


def test_the_lob_bit_makes_a_string_extended_but_leaves_a_lob_a_lob() -> None:
    assert column_bits.is_string_stored_as_lob(1, 0x80)
    assert column_bits.is_string_stored_as_lob(23, 0x80)
    assert not column_bits.is_string_stored_as_lob(1, 0)
    assert not column_bits.is_string_stored_as_lob(112, 0x80)


@pytest.mark.parametrize(
    ("type_code", "length", "properties", "bytes_max", "characters"),
    [
        (1, 80, 1 << 23, 4, 20),
        (96, 10, 1 << 23, 1, 10),
        (1, 400, 1 << 23, 2, 200),
        (1, 80, 0, 4, None),  # BYTE semantics
        (1, 4000, 1 << 23, 4, None),  # cut: VARCHAR2(2000 CHAR) has it too
        (96, 2000, 1 << 23, 4, None),
        (1, 80, 1 << 23, None, None),  # a set whose widest character is not known
        (2, 22, 1 << 23, 1, None),
    ],
)
def test_lengths_in_characters(
    type_code: int, length: int, properties: int, bytes_max: int | None, characters: int | None
) -> None:
    assert char_length(type_code, length, properties, bytes_max) == characters
