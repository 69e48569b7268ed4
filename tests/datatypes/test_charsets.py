"""The table of Oracle's character sets."""

from __future__ import annotations

import codecs

import pytest

from olr_pg.datatypes.charsets import charset, column_charset, supported_charsets
from olr_pg.errors import OlrPgError


def test_ids_and_names_are_unique() -> None:
    known = supported_charsets()
    assert len({one.number for one in known}) == len(known)
    assert len({one.name for one in known}) == len(known)
    for one in known:
        codecs.lookup(one.codec)
        assert charset(one.number) is charset(one.name) is one
        assert len(one.table) == (256 if one.structure == "single-byte" else 0)


def test_codecs_that_match_exactly_are_used_as_they_are() -> None:
    for name in ("WE8ISO8859P1", "EE8ISO8859P2", "WE8PC850", "CL8KOI8U"):
        found = charset(name)
        for byte, char in enumerate(found.table):
            if char != "\ufffe":
                assert bytes([byte]).decode(found.codec) == char


@pytest.mark.parametrize(
    ("name", "ascii_superset"),
    [
        ("AL32UTF8", True),
        ("UTF8", True),
        ("AL16UTF16", False),
        ("WE8MSWIN1252", True),
        ("D7DEC", False),
        ("WE8HP", False),
        ("JA16SJIS", True),
        ("JA16SJISYEN", False),
        ("AL16UTF16LE", False),
    ],
)
def test_which_sets_hold_ascii(name: str, ascii_superset: bool) -> None:
    assert charset(name).ascii_superset == ascii_superset


@pytest.mark.parametrize("identity", [866, 872, 25, 0, "ZHT16CCDC", "nonsense"])
def test_unknown_sets_are_refused(identity: int | str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02056"):
        charset(identity)


def test_the_set_of_a_column() -> None:
    def name(form: int | None, number: int | None) -> str:
        return column_charset(form, number, "WE8MSWIN1252", "UTF8").name

    assert name(2, 2000) == "UTF8"
    assert name(1, 873) == "WE8MSWIN1252"
    assert name(None, 873) == "AL32UTF8"
    assert name(0, 0) == name(None, None) == "WE8MSWIN1252"
